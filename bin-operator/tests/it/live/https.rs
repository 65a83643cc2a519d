//! A client of the operator's metrics and health: real TLS, and tokens of the cluster.

use std::io::Result;
use std::net::SocketAddr;
use std::sync::Arc;

use bin_operator::demo::Stage;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::PostParams;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ALL_VERSIONS, ClientConfig, DigitallySignedStruct, Error, SignatureScheme,
    SupportedProtocolVersion,
};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::scenery::admin;

/// Takes any certificate; which one it was, tests look at.
#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

/// A connection that speaks one of these versions.
pub(super) async fn connect_by(
    address: SocketAddr,
    versions: &[&'static SupportedProtocolVersion],
) -> Result<TlsStream<TcpStream>> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate))
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// A connection.
pub(super) async fn connect(address: SocketAddr) -> TlsStream<TcpStream> {
    connect_by(address, ALL_VERSIONS).await.unwrap()
}

/// The certificate that a server shows.
pub(super) fn shown(stream: &TlsStream<TcpStream>) -> CertificateDer<'static> {
    stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned()
}

/// The answer with its head.
pub(super) async fn get(address: SocketAddr, path: &str, token: Option<&str>) -> Result<String> {
    let mut stream = connect_by(address, ALL_VERSIONS).await?;
    let login = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n{login}\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}

/// The code of the answer.
pub(super) async fn code(address: SocketAddr, path: &str, token: Option<&str>) -> u16 {
    get(address, path, token).await.unwrap()[9..12].parse().unwrap()
}

/// A token of a ServiceAccount that has no rights unless somebody gives it some.
pub(super) async fn token(stage: &Stage, account: &str) -> String {
    let metadata = json!({"name": account, "namespace": stage.namespace()});
    let object = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
    if stage.cluster.object("", "serviceaccounts", stage.namespace(), account).is_none() {
        stage.cluster.put(&object).unwrap();
    }
    let accounts: Api<ServiceAccount> = Api::namespaced(admin(stage).await, stage.namespace());
    let request = TokenRequest::default();
    let made = accounts.create_token_request(account, &PostParams::default(), &request).await;
    made.unwrap().status.unwrap().token
}

/// A token of somebody who may see metrics, as the cluster's Prometheus may.
pub(super) async fn scraper(stage: &Stage) -> String {
    const NAME: &str = "scraper";
    let group = "rbac.authorization.k8s.io";
    let role = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": NAME},
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
    });
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding",
        "metadata": {"name": NAME},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": stage.namespace()}],
    });
    for object in [role, binding] {
        stage.cluster.put(&object).unwrap();
    }
    token(stage, NAME).await
}
