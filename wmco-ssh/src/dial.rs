//! How an address becomes a byte stream.

use std::io;
use std::net::{IpAddr, SocketAddr};

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};

/// Something to read from and write to, such as a socket.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection of any kind.
pub type ByteStream = Box<dyn Duplex>;

/// Turns an address into a connection. The demo and tests map addresses to loopback ports with it,
/// or add latency and cuts.
#[async_trait]
pub trait Dialer: Send + Sync {
    /// Connects to `port` of `address`. The caller limits the time.
    ///
    /// # Errors
    /// What the system says; [`io::ErrorKind`] decides how it is reported.
    async fn dial(&self, address: &str, port: u16) -> io::Result<ByteStream>;
}

/// Plain TCP without Nagle's delay. A name is resolved, IPv4 addresses first; each address is tried.
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
