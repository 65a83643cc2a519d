//! `/metrics`, `/healthz` and `/readyz`.
//!
//! # Guarantees
//! - Who sends half a request, reads slowly or opens many connections costs a bounded time and memory,
//!   keeps no probe out, and does not hold up the end of the process.

use std::collections::VecDeque;
use std::net::TcpListener;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time;
use tokio_util::sync::CancellationToken;
use wmco_core::limits;

use crate::metrics::Metrics;

/// Pause when no connection can be taken, for example because too many files are open.
const ACCEPT_RETRY: Duration = Duration::from_millis(500);

/// Serves on `listener` until `stop`; `ready` turns true when the caches are filled.
///
/// # Errors
/// When the listener is of no use.
pub async fn serve(
    listener: TcpListener,
    metrics: Metrics,
    ready: watch::Receiver<bool>,
    stop: CancellationToken,
) -> std::io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    tracing::info!(address = %listener.local_addr()?, "serving metrics and health");
    let service = TowerToHyperService::new(router(metrics, ready));
    let mut server = http1::Builder::new();
    // One request for each connection, so that the time limit of a connection is that of a request.
    server.keep_alive(false).timer(TokioTimer::new());
    server.header_read_timeout(limits::HTTP_HEADERS.unsigned_abs());
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
        let connection = server.serve_connection(TokioIo::new(stream), service.clone());
        let connection = graceful.watch(connection);
        connections.add(async move {
            match time::timeout(limits::HTTP_REQUEST.unsigned_abs(), connection).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%error, "connection to metrics and health ended"),
                Err(_) => tracing::debug!("connection to metrics and health took too long"),
            }
        });
    }
    // What is left then is cut off.
    let _ = time::timeout(limits::HTTP_END.unsigned_abs(), graceful.shutdown()).await;
    Ok(())
}

/// The connections that are served; dropping it ends them.
#[derive(Default)]
struct Connections {
    tasks: JoinSet<()>,
    /// Oldest first.
    open: VecDeque<AbortHandle>,
}

impl Connections {
    /// Serves one more. When there are too many, the oldest makes room: an answer takes milliseconds, so
    /// it is one that says nothing, and a probe that waits behind such ones would fail.
    fn add(&mut self, serving: impl Future<Output = ()> + Send + 'static) {
        while self.tasks.try_join_next().is_some() {}
        self.open.retain(|connection| !connection.is_finished());
        if self.open.len() >= limits::HTTP_CONNECTIONS
            && let Some(oldest) = self.open.pop_front()
        {
            oldest.abort();
        }
        self.open.push_back(self.tasks.spawn(serving));
    }
}

fn router(metrics: Metrics, ready: watch::Receiver<bool>) -> Router {
    Router::new()
        .route("/metrics", get(|State(metrics): State<Metrics>| async move { metrics.text() }))
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(move || async move { readiness(*ready.borrow()) }))
        .with_state(metrics)
}

const fn readiness(ready: bool) -> (StatusCode, &'static str) {
    if ready {
        (StatusCode::OK, "ok")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the caches are not filled yet")
    }
}
