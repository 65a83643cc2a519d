//! All registries of a pull: a proxy on loopback that answers for every name as the test sets it.
//!
//! containerd's client uses the proxy in its environment, so images keep names such as `quay.io` and no name has to be
//! resolved. Registries on the host itself are requested directly, so the same port answers those, too.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::behaviour::{Answer, Behaviour};
use super::image::Image;

/// A request, as a registry sees it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Asked {
    /// A complete request: method, URL and credentials.
    Request(Method, String, Option<String>),
    /// Only the name came through, for example `https://quay.io`.
    Connection(String),
}

/// A certificate authority that issues leaf certificates on demand.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(super) pem: String,
    leaf_key: KeyPair,
}

impl Authority {
    pub(super) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem, leaf_key: KeyPair::generate().unwrap() }
    }

    fn acceptor(&self, host: &str, trusted: bool) -> TlsAcceptor {
        let params = CertificateParams::new([host.to_owned()]).unwrap();
        let leaf = if trusted {
            params.signed_by(&self.leaf_key, &self.issuer).unwrap()
        } else {
            params.self_signed(&self.leaf_key).unwrap()
        };
        let key = PrivatePkcs8KeyDer::from(self.leaf_key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from(leaf.der().to_vec())],
                PrivateKeyDer::Pkcs8(key),
            )
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// The registries of a pull; stopped on drop.
pub(super) struct Upstream {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
    _stop: DropGuard,
}

struct Shared {
    authority: Arc<Authority>,
    image: Arc<Image>,
    behaviour: Behaviour,
    asked: Mutex<Vec<Asked>>,
}

impl Upstream {
    pub(super) async fn start(
        authority: Arc<Authority>,
        image: Arc<Image>,
        behaviour: Behaviour,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared { authority, image, behaviour, asked: Mutex::default() });
        let stop = CancellationToken::new();
        let serving = serve(listener, Arc::clone(&shared), stop.clone());
        tokio::spawn(stop.clone().run_until_cancelled_owned(serving));
        Self { address, shared, _stop: stop.drop_guard() }
    }

    /// Returns the requests so far, in order.
    pub(super) fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().clone()
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>, stop: CancellationToken) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let shared = Arc::clone(&shared);
        let connection = async move {
            // A client may disconnect early: its requests are recorded.
            let _ = shared.connection(stream).await;
        };
        tokio::spawn(stop.clone().run_until_cancelled_owned(connection));
    }
}

impl Shared {
    async fn connection(self: Arc<Self>, mut stream: TcpStream) -> std::io::Result<()> {
        let authority = match first_byte(&stream).await? {
            // Only the method CONNECT begins with it.
            b'C' => {
                let authority = read_connect(&mut stream).await?;
                let url = format!("https://{}", shown("https", &authority));
                if self.answer(&url) == Answer::Refused {
                    self.note(Asked::Connection(url));
                    return stream.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n").await;
                }
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
                Some(authority)
            }
            _ => None,
        };
        if first_byte(&stream).await? != TLS_HANDSHAKE {
            return self.requests(stream, "http", None).await;
        }
        let authority = match authority {
            Some(authority) => shown("https", &authority),
            None => stream.local_addr()?.to_string(),
        };
        let url = format!("https://{authority}");
        let host = authority.rsplit_once(':').map_or(authority.as_str(), |(host, _)| host);
        let trusted = self.answer(&url) != Answer::BadCertificate;
        let acceptor = self.authority.acceptor(host, trusted);
        // Recorded before the client can react: it does not wait until its refusal has arrived.
        if !trusted {
            self.note(Asked::Connection(url));
        }
        let stream = acceptor.accept(stream).await?;
        if !trusted {
            self.asked.lock().unwrap().pop();
        }
        self.requests(stream, "https", Some(authority)).await
    }

    fn note(&self, asked: Asked) {
        self.asked.lock().unwrap().push(asked);
    }

    fn answer(&self, url: &str) -> Answer {
        let (scheme, authority) = url.split_once("://").unwrap();
        self.behaviour.answer(scheme, authority)
    }

    async fn requests<S>(
        self: Arc<Self>,
        stream: S,
        scheme: &'static str,
        authority: Option<String>,
    ) -> std::io::Result<()>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let service = service_fn(move |request: Request<Incoming>| {
            // A proxy gets the whole URL, a registry its own name in a header.
            let authority = authority.clone().unwrap_or_else(|| {
                let named = request.uri().authority().map(ToString::to_string);
                shown(scheme, &named.unwrap_or_else(|| text(request.headers(), header::HOST)))
            });
            let response = self.request(&format!("{scheme}://{authority}"), &request);
            std::future::ready(Ok::<_, std::convert::Infallible>(response))
        });
        hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service)
            .await
            .map_err(std::io::Error::other)
    }

    fn request(&self, registry: &str, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let (method, uri) = (request.method(), request.uri());
        let rest = uri.path_and_query().map_or("/", |rest| rest.as_str());
        let answer = self.answer(registry);
        // A request with two lines has two credentials, of which a registry may take either, or none.
        let lines = request.headers().get_all(header::AUTHORIZATION).iter();
        let lines: Vec<&str> = lines.map(|value| value.to_str().unwrap()).collect();
        let credentials = (!lines.is_empty()).then(|| lines.join(" and "));
        self.note(if answer == Answer::Refused {
            Asked::Connection(registry.to_owned())
        } else {
            Asked::Request(method.clone(), format!("{registry}{rest}"), credentials.clone())
        });
        let empty = |status| Response::builder().status(status).body(Full::default()).unwrap();
        match answer {
            // A plain connection, or one that accepts any certificate, works with a bad one, too.
            Answer::Image | Answer::BadCertificate => self.image.answer(method, uri.path()),
            Answer::NoContent if method == Method::HEAD => self.image.answer(method, uri.path()),
            Answer::NoContent | Answer::NotFound => empty(StatusCode::NOT_FOUND),
            Answer::Token if uri.path() == "/token" => {
                Response::new(Full::from(format!("{{\"token\": {TOKEN:?}}}")))
            }
            Answer::Token if credentials == Some(format!("Bearer {TOKEN}")) => {
                self.image.answer(method, uri.path())
            }
            Answer::Token => Response::builder()
                .status(StatusCode::UNAUTHORIZED)
                .header(header::WWW_AUTHENTICATE, format!("Bearer realm=\"{registry}/token\""))
                .body(Full::default())
                .unwrap(),
            Answer::Unauthorized => Response::builder()
                .status(StatusCode::UNAUTHORIZED)
                .header(header::WWW_AUTHENTICATE, "Basic realm=\"test\"")
                .body(Full::default())
                .unwrap(),
            Answer::ServerError => empty(StatusCode::INTERNAL_SERVER_ERROR),
            Answer::Refused => empty(StatusCode::BAD_GATEWAY),
        }
    }
}

/// What a registry gives to those that ask for a token.
pub(super) const TOKEN: &str = "t0ken";

/// The first byte of a TLS record with a handshake.
const TLS_HANDSHAKE: u8 = 22;

async fn first_byte(stream: &TcpStream) -> std::io::Result<u8> {
    let mut first = [0];
    match stream.peek(&mut first).await? {
        0 => Err(ErrorKind::UnexpectedEof.into()),
        _ => Ok(first[0]),
    }
}

/// Reads `CONNECT quay.io:443 HTTP/1.1` and its headers.
async fn read_connect(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8(head).unwrap();
    Ok(head.split(' ').nth(1).unwrap().to_owned())
}

/// Removes the scheme's default port from `authority`.
fn shown(scheme: &str, authority: &str) -> String {
    let port = if scheme == "https" { ":443" } else { ":80" };
    authority.strip_suffix(port).unwrap_or(authority).to_owned()
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> String {
    headers.get(name).map_or("", |value| value.to_str().unwrap()).to_owned()
}
