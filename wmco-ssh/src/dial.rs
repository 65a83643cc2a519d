//! Connects an address to a byte stream.

use std::io;
use std::net::{IpAddr, SocketAddr};

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};

/// A bidirectional byte stream, such as a socket.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection of any kind.
pub type ByteStream = Box<dyn Duplex>;

/// Connects to an address. The demo and tests map addresses to loopback ports with it, or add latency and disconnects.
#[async_trait]
pub trait Dialer: Send + Sync {
    /// Connects to `port` of `address`. The caller limits the time.
    ///
    /// # Errors
    /// The system's error; its [`io::ErrorKind`] selects the [`ConnectError`](crate::ConnectError).
    async fn dial(&self, address: &str, port: u16) -> io::Result<ByteStream>;
}

/// Plain TCP without Nagle's delay. A name is resolved; each address is tried, IPv4 addresses first.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpDialer;

#[async_trait]
impl Dialer for TcpDialer {
    async fn dial(&self, address: &str, port: u16) -> io::Result<ByteStream> {
        let mut candidates: Vec<SocketAddr> = match address.parse::<IpAddr>() {
            Ok(ip) => vec![(ip, port).into()],
            Err(_) => lookup_host((address, port)).await?.collect(),
        };
        candidates.sort_by_key(SocketAddr::is_ipv6);
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for candidate in candidates {
            match TcpStream::connect(candidate).await {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(Box::new(stream));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}
