//! Listens with TLS. Clients may present a certificate.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::listen::{Peer, StartError};
use super::pki::Pki;

/// Time limit of a client's handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Most accepted connections that wait to be served.
const BACKLOG: usize = 64;

/// Accepts connections and performs their handshakes concurrently.
pub(super) struct TlsListener {
    address: SocketAddr,
    ready: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    accepting: JoinHandle<()>,
}

/// TLS refused the cluster's certificates.
fn broken(source: impl std::error::Error + Send + Sync + 'static) -> StartError {
    StartError::Tls { source: Box::new(source) }
}

fn server_config(pki: &Pki) -> Result<ServerConfig, StartError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(pki.authority.der())).map_err(broken)?;
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()
            .map_err(broken)?;
    let made = pki.authority.server().map_err(StartError::certificate)?;
    let certificate =
        CertificateDer::from_pem_slice(made.certificate.as_bytes()).map_err(broken)?;
    let key = PrivateKeyDer::from_pem_slice(made.key.as_bytes()).map_err(broken)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(broken)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate], key)
        .map_err(broken)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

impl TlsListener {
    pub(super) async fn bind(address: SocketAddr, pki: &Pki) -> Result<Self, StartError> {
        let config = server_config(pki)?;
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
                // For example out of file descriptors: give other connections time to end.
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
