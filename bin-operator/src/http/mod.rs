//! `/metrics`, `/healthz` and `/readyz`, by HTTPS.
//!
//! # Guarantees
//! - Who sends half a request or half a handshake, reads slowly or opens many connections costs a bounded time
//!   and memory, keeps no probe out, and does not hold up the end of the process.
//! - Metrics are for those that the API server knows and allows; without its answer for nobody.
//! - A certificate and a TLS profile that change are in force from the next connection on.

mod access;
mod certificate;
mod connections;
mod plain;
mod profile;
mod settings;
#[cfg(test)]
mod tests;

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use wmco_core::limits;
use wmco_core::names::monitoring::METRICS_PATH;

pub use access::{Access, MetricsAccess};
pub use certificate::{Certificate, CertificateError};
pub use settings::{Settings, follow};

use crate::metrics::Metrics;
use connections::Connections;

/// Pause when no connection can be taken, for example because too many files are open.
const ACCEPT_RETRY: Duration = Duration::from_millis(500);

/// What is served, and to whom.
#[derive(Clone)]
pub struct Served {
    /// What is counted.
    pub metrics: Metrics,
    /// Who may see it.
    pub access: Access,
    /// Turns true when the caches are filled.
    pub ready: watch::Receiver<bool>,
}

/// Serves on `listener` until `stop`, each connection by what `tls` says when it comes.
///
/// # Errors
/// When the listener is of no use.
pub async fn serve(
    listener: TcpListener,
    served: Served,
    tls: watch::Receiver<Arc<ServerConfig>>,
    stop: CancellationToken,
) -> std::io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    tracing::info!(address = %listener.local_addr()?, "serving metrics and health");
    let service = TowerToHyperService::new(router(served));
    let mut protocol = http1::Builder::new();
    // One request for each connection, so that the time limit of a connection is that of a request.
    protocol.keep_alive(false).timer(TokioTimer::new());
    protocol.header_read_timeout(limits::HTTP_HEADERS.unsigned_abs());
    let graceful = GracefulShutdown::new();
    let mut connections = Connections::default();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "no connection taken for metrics and health");
                    time::sleep(ACCEPT_RETRY).await;
                    continue;
                }
            },
            () = stop.cancelled() => break,
        };
        let acceptor = TlsAcceptor::from(Arc::clone(&tls.borrow()));
        let (protocol, service) = (protocol.clone(), service.clone());
        let (watcher, stop) = (graceful.watcher(), stop.clone());
        connections.add(async move {
            let serving = async {
                let shaking = stop.run_until_cancelled(handshake(acceptor, stream));
                let Some(Some(stream)) = shaking.await else { return };
                let connection = protocol.serve_connection(TokioIo::new(stream), service);
                if let Err(error) = watcher.watch(connection).await {
                    tracing::debug!(%error, "connection to metrics and health ended");
                }
            };
            if time::timeout(limits::HTTP_REQUEST.unsigned_abs(), serving).await.is_err() {
                tracing::debug!("connection to metrics and health took too long");
            }
        });
    }
    // What is left then is cut off.
    let _ = time::timeout(limits::HTTP_END.unsigned_abs(), graceful.shutdown()).await;
    Ok(())
}

/// The connection after the TLS handshake; plain HTTP gets an answer that says so, as from Go's servers.
async fn handshake(acceptor: TlsAcceptor, mut stream: TcpStream) -> Option<TlsStream<TcpStream>> {
    let shaking = async {
        if plain::is_http(&stream).await {
            plain::refuse(&mut stream).await;
            return None;
        }
        match acceptor.accept(stream).await {
            Ok(stream) => Some(stream),
            Err(error) => {
                tracing::debug!(%error, "no TLS handshake for metrics and health");
                None
            }
        }
    };
    time::timeout(limits::HTTP_HANDSHAKE.unsigned_abs(), shaking).await.ok().flatten()
}

fn router(served: Served) -> Router {
    let ready = served.ready.clone();
    Router::new()
        .route(METRICS_PATH, get(metrics))
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(move || async move { readiness(*ready.borrow()) }))
        .with_state(served)
}

async fn metrics(State(served): State<Served>, headers: HeaderMap) -> Response {
    let authorization = headers.get(header::AUTHORIZATION);
    let token = authorization.and_then(|value| access::bearer(value.as_bytes()));
    let (code, text) = match served.access.look(token).await {
        MetricsAccess::Allowed => return served.metrics.text().into_response(),
        MetricsAccess::Unknown => {
            let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
            return (StatusCode::UNAUTHORIZED, challenge, "log in with a token").into_response();
        }
        MetricsAccess::Forbidden => {
            (StatusCode::FORBIDDEN, "you need the right to get the path /metrics")
        }
        MetricsAccess::NoRights => {
            (StatusCode::INTERNAL_SERVER_ERROR, "the operator may not ask who you are")
        }
        MetricsAccess::NoAnswer => {
            (StatusCode::SERVICE_UNAVAILABLE, "the api server does not say who you are")
        }
    };
    (code, text).into_response()
}

const fn readiness(ready: bool) -> (StatusCode, &'static str) {
    if ready {
        (StatusCode::OK, "ok")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the caches are not filled yet")
    }
}
