//! A plain HTTP client with a client certificate, for requests that a Kubernetes client never
//! sends.

use std::sync::Arc;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use kube_testserver::TestServer;
use rustls::ClientConfig;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// One identity at one cluster.
#[derive(Clone)]
pub(crate) struct Client {
    address: std::net::SocketAddr,
    tls: Arc<ClientConfig>,
}

impl Client {
    /// Without a client certificate.
    pub(crate) fn anonymous(cluster: &TestServer) -> Self {
        Self::new(cluster, None)
    }

    /// With a certificate of the cluster.
    pub(crate) fn of(cluster: &TestServer, user: &str, groups: &[&str]) -> Self {
        Self::new(cluster, Some((user, groups)))
    }

    fn new(cluster: &TestServer, identity: Option<(&str, &[&str])>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(cluster.ca_pem().as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let tls = match identity {
            None => builder.with_no_client_auth(),
            Some((user, groups)) => {
                let pair = cluster.client_certificate(user, groups).unwrap();
                let certificate =
                    CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
                builder.with_client_auth_cert(vec![certificate], key).unwrap()
            }
        };
        Self { address: cluster.address(), tls: Arc::new(tls) }
    }

    /// Sends a request; the answer's body is still to be read.
    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let name = ServerName::from(self.address.ip());
        let stream = TlsConnector::from(Arc::clone(&self.tls)).connect(name, stream).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        sender.send_request(request).await.unwrap()
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn fetch(&self, request: Request<Full<Bytes>>) -> Response<Bytes> {
        let (parts, body) = self.send(request).await.into_parts();
        Response::from_parts(parts, body.collect().await.unwrap().to_bytes())
    }
}
