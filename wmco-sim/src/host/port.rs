//! A TCP port that can refuse connections without being lost to another program.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use tokio::net::{TcpListener, TcpSocket};

/// Most connections that wait to be accepted.
const BACKLOG: u32 = 128;

/// A port of this machine. While it has no open listener, connections are refused.
#[derive(Debug)]
pub(super) struct Port {
    /// Bound but never listening: it only reserves the number.
    _reserved: TcpSocket,
    address: SocketAddr,
}

impl Port {
    /// Reserves a free port on the loopback interface.
    pub(super) fn reserve() -> io::Result<Self> {
        let socket = bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0).into())?;
        let address = socket.local_addr()?;
        Ok(Self { _reserved: socket, address })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Opens the port until the listener is dropped.
    pub(super) fn listen(&self) -> io::Result<TcpListener> {
        bind(self.address)?.listen(BACKLOG)
    }
}

fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    // Lets the listener share the port with the reservation and with connections that are closing.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpStream;

    #[tokio::test]
    async fn the_port_opens_and_closes_and_stays_ours() {
        let port = Port::reserve().unwrap();
        let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        for _ in 0..3 {
            assert!(TcpStream::connect(port.address()).await.is_err_and(refused));
            let listener = port.listen().unwrap();
            let (client, server) =
                tokio::join!(TcpStream::connect(port.address()), listener.accept());
            let (_client, (_server, _)) = (client.unwrap(), server.unwrap());
        }
    }
}
