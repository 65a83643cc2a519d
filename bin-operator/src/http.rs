//! `/metrics`, `/healthz` and `/readyz`.

use std::net::TcpListener;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;

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
    let app = router(metrics, ready);
    axum::serve(listener, app).with_graceful_shutdown(stop.cancelled_owned()).await
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
