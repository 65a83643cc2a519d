//! Real TLS clients against the listener.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use k8s_openapi::ByteString;
use k8s_openapi::api::authentication::v1::UserInfo;
use k8s_openapi::api::core::v1::Secret;
use kube::Error;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme, SupportedProtocolVersion};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use wmco_core::names::objects::{TLS_CERTIFICATE_KEY, TLS_PRIVATE_KEY_KEY};
use wmco_core::tls_profile::{TlsProfile, TlsVersion};
use wmco_ssh::{Options, Pool, PoolLimits, TcpDialer};

use super::*;

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Takes any certificate, since what is served is what these tests are about.
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
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

/// An API server that knows `scraper` and `guest`, and lets the first one in.
#[derive(Default)]
struct Api {
    asked: AtomicUsize,
    fault: Option<u16>,
}

#[async_trait]
impl access::Reviewer for Api {
    async fn user(&self, token: &str) -> Result<Option<UserInfo>, Error> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        match self.fault {
            None => {}
            // It does not answer at all.
            Some(0) => std::future::pending().await,
            Some(code) => {
                let status = kube::core::Status::failure("no", "No").with_code(code);
                return Err(Error::Api(status.boxed()));
            }
        }
        let known = ["scraper", "guest"].contains(&token);
        let user = UserInfo { username: Some(token.to_owned()), ..UserInfo::default() };
        Ok(known.then_some(user))
    }

    async fn allowed(&self, user: &UserInfo) -> Result<bool, Error> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Ok(user.username.as_deref() == Some("scraper"))
    }
}

/// A listener at work.
struct Server {
    address: SocketAddr,
    api: Arc<Api>,
    settings: Settings,
    stop: CancellationToken,
}

impl Server {
    fn start(api: Api) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (api, stop) = (Arc::new(api), CancellationToken::new());
        let settings = Settings::new("ns").unwrap();
        let pool = Pool::new(Arc::new(TcpDialer), Options::default(), PoolLimits::default());
        let served = Served {
            metrics: Metrics::new(pool),
            access: Access::by(api.clone()),
            ready: watch::channel(true).1,
        };
        tokio::spawn(serve(listener, served, settings.served(), stop.clone()));
        Self { address, api, settings, stop }
    }

    /// The code of the answer, and the certificate that was shown.
    async fn get(&self, path: &str, token: Option<&str>) -> (u16, CertificateDer<'static>) {
        let (text, certificate) = self.ask(&[&TLS13, &TLS12], path, token).await.unwrap();
        (text[9..12].parse().unwrap(), certificate)
    }

    async fn ask(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        path: &str,
        token: Option<&str>,
    ) -> std::io::Result<(String, CertificateDer<'static>)> {
        let mut stream = connect(self.address, versions).await?;
        let certificate = stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned();
        let token = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: x\r\n{}\r\n", token.unwrap_or_default());
        stream.write_all(request.as_bytes()).await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        Ok((text, certificate))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn connect(
    address: SocketAddr,
    versions: &[&'static SupportedProtocolVersion],
) -> std::io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
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

/// A Secret as the service CA makes it.
fn secret() -> (Secret, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let data = [
        (TLS_CERTIFICATE_KEY.to_owned(), ByteString(made.cert.pem().into_bytes())),
        (TLS_PRIVATE_KEY_KEY.to_owned(), ByteString(made.signing_key.serialize_pem().into_bytes())),
    ];
    (Secret { data: Some(data.into()), ..Secret::default() }, made.cert.der().clone())
}

#[tokio::test]
async fn metrics_are_for_those_who_may() {
    let server = Server::start(Api::default());
    assert_eq!(server.get("/metrics", Some("scraper")).await.0, 200);
    assert_eq!(server.get("/metrics", Some("guest")).await.0, 403);
    assert_eq!(server.get("/metrics", Some("garbage")).await.0, 401);
    assert_eq!(server.get("/metrics", None).await.0, 401);
}

#[tokio::test]
async fn health_is_for_everybody() {
    let server = Server::start(Api { fault: Some(500), ..Api::default() });
    assert_eq!(server.get("/healthz", None).await.0, 200);
    assert_eq!(server.get("/readyz", Some("garbage")).await.0, 200);
    assert_eq!(server.api.asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn without_the_api_server_nobody_sees_metrics() {
    for (fault, code) in [(500, 503), (403, 500), (429, 500)] {
        let server = Server::start(Api { fault: Some(fault), ..Api::default() });
        assert_eq!(server.get("/metrics", Some("scraper")).await.0, code, "{fault}");
    }
}

#[tokio::test]
async fn an_api_server_that_is_silent_is_not_waited_for() {
    let access = Access::by(Arc::new(Api { fault: Some(0), ..Api::default() }));
    assert_eq!(access.look(Some("scraper")).await, MetricsAccess::NoAnswer);
}

#[tokio::test]
async fn answers_count_for_a_while() {
    let api = Arc::new(Api::default());
    let access = Access::by(api.clone());
    let begun = Instant::now();
    // So often the API server is asked for one look, so many seconds later.
    let asked = async |seconds: u64, token: &str| {
        let before = api.asked.load(Ordering::SeqCst);
        access.look_at(begun + Duration::from_secs(seconds), Some(token)).await;
        api.asked.load(Ordering::SeqCst) - before
    };
    assert_eq!(asked(0, "scraper").await, 2);
    assert_eq!(asked(59, "scraper").await, 0);
    assert_eq!(asked(61, "scraper").await, 1, "rights count longer than tokens");
    assert_eq!(asked(301, "scraper").await, 2);
    assert_eq!(asked(0, "guest").await, 2);
    assert_eq!(asked(29, "guest").await, 0);
    assert_eq!(asked(31, "guest").await, 1, "a refusal counts shorter than a token");
    assert_eq!(asked(0, "garbage").await, 1);
    assert_eq!(asked(59, "garbage").await, 0);
    assert_eq!(asked(61, "garbage").await, 1);
}

#[tokio::test]
async fn another_secret_is_served_from_the_next_connection_on() {
    let mut server = Server::start(Api::default());
    let (first, shown) = secret();
    let (_, own) = server.get("/healthz", None).await;
    assert_ne!(own, shown);
    server.settings.update(Some(Arc::new(first)), None);
    assert_eq!(server.get("/healthz", None).await.1, shown);
    let (second, rotated) = secret();
    server.settings.update(Some(Arc::new(second)), None);
    assert_eq!(server.get("/healthz", None).await.1, rotated);
    let broken = Secret { data: Some(BTreeMap::new()), ..Secret::default() };
    server.settings.update(Some(Arc::new(broken)), None);
    assert_eq!(server.get("/healthz", None).await.1, rotated, "the last good one stays");
    let (other, _) = secret();
    let mut mixed = secret().0;
    let key = other.data.unwrap().remove(TLS_PRIVATE_KEY_KEY).unwrap();
    mixed.data.as_mut().unwrap().insert(TLS_PRIVATE_KEY_KEY.to_owned(), key);
    server.settings.update(Some(Arc::new(mixed)), None);
    server.settings.update(None, None);
    assert_eq!(server.get("/healthz", None).await.1, rotated, "also when it is gone");
}

#[tokio::test]
async fn modern_refuses_what_is_older_without_a_restart() {
    let mut server = Server::start(Api::default());
    assert!(server.ask(&[&TLS12], "/healthz", None).await.is_ok());
    let modern = TlsProfile { min_version: TlsVersion::Tls13, cipher_suites: vec![] };
    server.settings.update(None, Some(modern));
    let refused = server.ask(&[&TLS12], "/healthz", None).await.unwrap_err();
    assert!(refused.to_string().contains("ProtocolVersion"), "{refused}");
    assert!(server.ask(&[&TLS13], "/healthz", None).await.is_ok());
    server.settings.update(None, None);
    assert!(server.ask(&[&TLS12], "/healthz", None).await.is_ok(), "and takes that back");
}

#[tokio::test]
async fn http_without_tls_is_refused_in_words() {
    let server = Server::start(Api::default());
    let mut plain = TcpStream::connect(server.address).await.unwrap();
    plain.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut text = String::new();
    plain.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.0 400 ") && text.contains("HTTPS"), "{text}");
}

#[tokio::test]
async fn a_handshake_that_stalls_ends_and_keeps_nobody_out() {
    let server = Server::start(Api::default());
    // On a machine that stands still for so long the handshakes are over before the answer: another try tells.
    for _ in 0..20 {
        let mut stalled = Vec::new();
        for first in [&b""[..], &[22, 3, 1, 2], &[22]] {
            for _ in 0..limits::HTTP_CONNECTIONS {
                let mut stream = TcpStream::connect(server.address).await.unwrap();
                // The oldest make room, so that one may be closed already.
                let _ = stream.write_all(first).await;
                stalled.push(stream);
            }
        }
        assert_eq!(server.get("/healthz", None).await.0, 200);
        // It was answered while as many stalled as may be: for it, no more than the oldest was closed.
        let youngest = stalled.len() - limits::HTTP_CONNECTIONS + 1;
        let mut kept_out_nobody = true;
        for stream in &mut stalled[youngest..] {
            kept_out_nobody &= timeout(Duration::ZERO, stream.read_u8()).await.is_err();
        }
        for mut stream in stalled {
            let mut rest = Vec::new();
            let _ = timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("it is closed");
        }
        if kept_out_nobody {
            return;
        }
    }
    panic!("no try was answered before those that stall were closed");
}

#[tokio::test]
async fn the_end_does_not_wait_for_clients() {
    let server = Server::start(Api::default());
    let _silent = TcpStream::connect(server.address).await.unwrap();
    let mut half = connect(server.address, &[&TLS13]).await.unwrap();
    half.write_all(b"GET /metrics HTTP/1.1\r\nX: ").await.unwrap();
    time::sleep(Duration::from_millis(100)).await;
    server.stop.cancel();
    let mut rest = Vec::new();
    let ended = half.read_to_end(&mut rest);
    let _ = timeout(PATIENCE, ended).await.expect("it is cut off");
}

#[test]
fn tokens_are_taken_from_the_header_as_it_is_written() {
    assert_eq!(access::bearer(b"Bearer abc"), Some("abc"));
    assert_eq!(access::bearer(b"bearer  abc "), Some("abc"));
    for none in [&b"Bearer"[..], b"Bearer ", b"Basic abc", b"", b"\xff\xfe"] {
        assert_eq!(access::bearer(none), None);
    }
}
