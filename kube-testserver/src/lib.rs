#![doc = include_str!("../README.md")]

// A request: `server` takes it apart (`incoming`, `route`), asks `auth`, and hands it to `objects` or
// `paths`. Reads end in `list` and `watch`. A write goes through `write`, which asks `admission` and
// `kinds` (`crd`, `csr`, ...) and changes the `state`; then `shared`, which holds the state under
// its lock, lets the `controllers` react.
mod access;
mod access_log;
mod admission;
#[cfg_attr(not(feature = "server-side-apply"), path = "apply/absent.rs")]
mod apply;
mod audit;
mod auth;
mod authority;
mod binding;
mod builder;
mod call;
mod controllers;
mod convert;
mod crd;
mod csr;
mod custom_resource;
mod discovery;
pub mod error;
mod eviction;
mod golang;
mod hex;
mod identity;
mod incoming;
mod kinds;
mod kubeconfig;
mod label_selector;
mod left_out;
mod list;
mod listen;
mod meta;
mod names;
mod negotiate;
mod objects;
mod patches;
mod paths;
mod pki;
#[cfg(not(feature = "tls"))]
mod plain;
#[cfg(feature = "admission-policy")]
mod policy;
mod preload;
#[cfg_attr(not(feature = "protobuf"), path = "protobuf/absent.rs")]
mod protobuf;
mod random;
mod registry;
mod resources;
mod respond;
mod route;
mod schema;
mod selectors;
mod server;
mod shared;
mod state;
mod store;
mod table;
#[cfg(feature = "tls")]
mod tls;
mod tokens;
mod virtual_resources;
mod watch;
mod write;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::task::JoinHandle;

pub use access_log::AccessDecision;
pub use audit::{Fault, Request};
pub use authority::{Authority, CertificateError, CertifiedKey};
pub use builder::Builder;
pub use error::ApiError;
pub use identity::User;
pub use listen::StartError;

use shared::Shared;

/// A running API server. Dropping it stops the server.
pub struct TestServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl TestServer {
    /// Starts an empty cluster on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// The port cannot be opened, or certificates cannot be made.
    pub async fn start() -> Result<Self, StartError> {
        Self::builder().start().await
    }

    /// Settings for custom resources, initial objects, and others.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// `https://127.0.0.1:port`; `http` without the feature `tls`.
    pub fn url(&self) -> String {
        let scheme = if cfg!(feature = "tls") { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// The address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Moves the clock of certificates `seconds` ahead of the machine's clock, or behind if negative. Certificate
    /// requests are signed, and client certificates judged with each request, by this clock. A test that needs a
    /// certificate at the end of its life does not have to wait for it.
    pub fn move_certificate_clock(&self, seconds: i64) {
        self.shared.pki.set_seconds_ahead(seconds);
    }

    /// Discards all history, like etcd's compaction: watches and pages that start at an older resourceVersion get
    /// 410.
    pub fn expire_history(&self) {
        self.shared.lock().store.compact();
    }

    /// The last 10,000 requests, oldest first. Watches are listed when they start.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.audit.requests()
    }

    /// The authorizers' decisions about requests, each different decision once.
    ///
    /// ```
    /// use kube_testserver::TestServer;
    ///
    /// #[tokio::main(flavor = "current_thread")]
    /// async fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let cluster = TestServer::builder().start().await?;
    ///     assert!(cluster.access_decisions().is_empty(), "nobody has asked for anything");
    ///     cluster.stop().await;
    ///     Ok(())
    /// }
    /// ```
    pub fn access_decisions(&self) -> Vec<AccessDecision> {
        self.shared.lock().store.access.all()
    }

    /// Number of requests with `verb` for `resource`, for example `("create", "pods/eviction")`.
    pub fn count(&self, verb: &str, resource: &str) -> u64 {
        self.shared.audit.count(verb, resource)
    }

    /// Calls `hook` before each request to choose a fault in place of the usual answer; replaces the previous hook.
    /// The request's `code` is 0 at that time.
    pub fn inject_faults(&self, hook: impl Fn(&Request) -> Option<Fault> + Send + Sync + 'static) {
        self.shared.audit.set_hook(Some(Arc::new(hook)));
    }

    /// Removes the hook, so that requests are answered as usual.
    pub fn clear_faults(&self) {
        self.shared.audit.set_hook(None);
    }

    /// Ends watches and the server, and waits until open requests are answered.
    pub async fn stop(mut self) {
        self.shared.stop();
        if let Err(error) = (&mut self.serving).await {
            tracing::error!(%error, "the API server panicked");
        }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

impl fmt::Debug for TestServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestServer").field("address", &self.address).finish_non_exhaustive()
    }
}
