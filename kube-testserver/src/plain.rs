//! Listens without TLS, for builds without the feature `tls`.

use std::io;
use std::net::SocketAddr;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::net::{TcpListener, TcpStream};

use super::listen::{Peer, StartError};

/// Accepts connections.
pub(super) struct PlainListener(TcpListener);

impl PlainListener {
    pub(super) async fn bind(address: SocketAddr) -> Result<Self, StartError> {
        let listen = |source| StartError::Listen { address, source };
        TcpListener::bind(address).await.map(Self).map_err(listen)
    }
}

impl Listener for PlainListener {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (stream, peer) = Listener::accept(&mut self.0).await;
        // Events of a watch are small and must not wait for each other.
        let _ = stream.set_nodelay(true);
        (stream, peer)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.0.local_addr()
    }
}

impl Connected<IncomingStream<'_, PlainListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, PlainListener>) -> Self {
        Self { certificate: None, address: *stream.remote_addr() }
    }
}
