//! The listener: TLS on loopback, with client certificates if the client has one.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::pki::Pki;

/// A client that has not finished its handshake by then is dropped.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Accepted connections that wait to be served.
const BACKLOG: usize = 64;

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Keys or certificates could not be made.
    #[error("make the cluster's certificates")]
    Certificate(#[from] rcgen::Error),
    /// The port could not be opened.
    #[error("listen on {address}")]
    Listen {
        /// What was asked for.
        address: SocketAddr,
        /// Why it failed.
        source: io::Error,
    },
    /// TLS refused the server's key or the CA.
    #[error("set up TLS")]
    Tls(#[from] rustls::Error),
    /// The CA cannot verify clients.
    #[error("set up the verification of client certificates")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

/// Who is at the other end of a connection.
#[derive(Clone)]
pub(crate) struct Peer {
    /// The client's certificate in DER, verified against the cluster's CA.
    pub certificate: Option<Arc<[u8]>>,
    /// Where it is.
    pub address: SocketAddr,
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has = self.certificate.is_some();
        f.debug_struct("Peer").field("address", &self.address).field("certificate", &has).finish()
    }
}

/// Accepts connections and lets them shake hands beside each other.
pub(super) struct TlsListener {
    address: SocketAddr,
    ready: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    accepting: JoinHandle<()>,
}

pub(super) fn server_config(pki: &Pki) -> Result<ServerConfig, StartError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(pki.ca_der().clone())?;
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![pki.server.clone()], pki.server_key())?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

impl TlsListener {
    pub(super) async fn bind(
        address: SocketAddr,
        config: ServerConfig,
    ) -> Result<Self, StartError> {
        let listen = |source| StartError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        let bound = listener.local_addr().map_err(listen)?;
        let (sender, ready) = mpsc::channel(BACKLOG);
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let accepting = tokio::spawn(accept(listener, acceptor, sender));
        Ok(Self { address: bound, ready, accepting })
    }
}

async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    sender: mpsc::Sender<(TlsStream<TcpStream>, SocketAddr)>,
) {
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file descriptors, for example: give others time to end.
                tracing::warn!(%error, "accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        // Events of a watch are small and must not wait for each other.
        let _ = stream.set_nodelay(true);
        let (acceptor, sender) = (acceptor.clone(), sender.clone());
        tokio::spawn(async move {
            let handshake = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream));
            match handshake.await {
                Ok(Ok(stream)) => drop(sender.send((stream, peer)).await),
                Ok(Err(error)) => tracing::debug!(%peer, %error, "TLS handshake failed"),
                Err(_) => tracing::debug!(%peer, "TLS handshake took too long"),
            }
        });
    }
}

impl Drop for TlsListener {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(accepted) => accepted,
            // The accepting task ends only with this listener.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        Ok(self.address)
    }
}

impl Connected<IncomingStream<'_, TlsListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, TlsListener>) -> Self {
        let certificates = stream.io().get_ref().1.peer_certificates();
        let certificate = certificates.and_then(<[_]>::first);
        Self {
            certificate: certificate.map(|certificate| Arc::from(certificate.as_ref())),
            address: *stream.remote_addr(),
        }
    }
}
