//! A Kubernetes API server in this process.
//!
//! [`SimCluster`] speaks HTTPS on loopback and behaves like kube-apiserver with the controllers
//! that an operator for nodes meets: resourceVersions, watches, patches, server-side apply, RBAC,
//! CSR signing, eviction. kubectl and kube-runtime talk to it as to any cluster.
//!
//! # Guarantees
//! - What it does not support it answers with 501, never with a wrong answer.
//! - Reads, writes and watches are linearizable: one lock, one counter.
//!
//! # Not here
//! Scheduling, kubelets, endpoints, disruption controller: status of Nodes, Pods and
//! PodDisruptionBudgets is what clients write. Taints of Nodes, too, unless
//! [`Builder::taint_nodes`] asks for more.

// A request: `server` takes it apart (`incoming`, `route`), asks `auth`, and hands it to `objects` or
// `paths`. Reads end in `list` and `watch`. A write goes through `write`, which asks `admission` and
// `validate` (`crd`, `csr`, ...) and changes the `state`; then `shared`, which holds the state under
// its lock, lets the `controllers` react.
mod admission;
mod apply;
mod audit;
mod auth;
mod call;
mod controllers;
mod convert;
mod crd;
mod csr;
mod custom_resource;
mod discovery;
pub mod error;
mod eviction;
mod hex;
mod identity;
mod incoming;
mod kubeconfig;
mod label_selector;
mod list;
mod meta;
mod names;
mod negotiate;
mod objects;
mod patches;
mod paths;
mod pki;
mod policy;
mod preload;
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
mod tls;
mod tokens;
mod validate;
mod virtual_resources;
mod watch;
mod write;

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use jiff::SignedDuration;
use serde_json::Value;
use tokio::task::JoinHandle;

pub use audit::{Fault, Request};
pub use pki::ClientCertificate;
pub use tls::StartError;

use pki::Pki;
use shared::Shared;
use tls::TlsListener;

/// A running cluster. Dropping it ends the server.
///
/// ```
/// use wmco_sim::cluster::SimCluster;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cluster = SimCluster::start().await?;
/// cluster.apply(&serde_json::json!({
///     "apiVersion": "v1", "kind": "Node", "metadata": {"name": "w1"},
/// }))?;
/// let folder = std::env::temp_dir().join(format!("sim-cluster-doc-{}", std::process::id()));
/// std::fs::create_dir_all(&folder)?;
/// // Now `KUBECONFIG={folder}/admin kubectl get nodes` lists w1.
/// cluster.write_kubeconfig(&folder.join("admin"), "admin", &["system:masters"])?;
/// assert!(cluster.url().starts_with("https://127.0.0.1:"));
/// # std::fs::remove_dir_all(&folder)?;
/// cluster.stop().await;
/// # Ok(())
/// # }
/// ```
pub struct SimCluster {
    shared: Arc<Shared>,
    address: SocketAddr,
    serving: JoinHandle<()>,
}

/// How a cluster is to be.
#[derive(Clone, Debug)]
pub struct Builder {
    address: SocketAddr,
    longest_lifetime: SignedDuration,
    taints_nodes: bool,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            longest_lifetime: csr::signer::LIFETIME,
            taints_nodes: false,
        }
    }
}

impl Builder {
    /// Listens there instead of a free port on 127.0.0.1.
    #[must_use]
    pub fn listen(self, address: SocketAddr) -> Self {
        Self { address, ..self }
    }

    /// Signs no certificate for longer than this, however long a life is asked for.
    #[must_use]
    pub fn longest_certificates(self, longest_lifetime: SignedDuration) -> Self {
        Self { longest_lifetime, ..self }
    }

    /// Lets the taints of Nodes follow their Ready condition and their cordon, as the node
    /// lifecycle controller does. Without it they are what clients write.
    #[must_use]
    pub fn taint_nodes(self) -> Self {
        Self { taints_nodes: true, ..self }
    }

    /// Starts the server.
    ///
    /// # Errors
    /// The port is taken, or certificates cannot be made.
    pub async fn start(self) -> Result<SimCluster, StartError> {
        let pki = Pki::new(self.longest_lifetime)?;
        let shared = Arc::new(Shared::new(pki, self.taints_nodes));
        preload::preload(&shared);
        let listener = TlsListener::bind(self.address, tls::server_config(&shared.pki)?).await?;
        let source = |source| StartError::Listen { address: self.address, source };
        let address = axum::serve::Listener::local_addr(&listener).map_err(source)?;
        shared.set_address(address);
        let serving = tokio::spawn(serve(listener, Arc::clone(&shared)));
        Ok(SimCluster { shared, address, serving })
    }
}

async fn serve(listener: TlsListener, cluster: Arc<Shared>) {
    let mut stopped = cluster.stopped();
    let router = Router::new().fallback(server::handle).with_state(cluster);
    let service = router.into_make_service_with_connect_info::<tls::Peer>();
    let serving = axum::serve(listener, service).with_graceful_shutdown(async move {
        // Waiting cannot fail: the router holds the sender.
        let _ = stopped.wait_for(|stop| *stop).await;
    });
    if let Err(error) = serving.await {
        tracing::error!(%error, "the API server of the simulated cluster ended");
    }
}

impl SimCluster {
    /// Starts an empty cluster on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// The port cannot be opened, or certificates cannot be made.
    pub async fn start() -> Result<Self, StartError> {
        Self::builder().start().await
    }

    /// For clusters that are to listen elsewhere.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// `https://127.0.0.1:port`.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Where the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate of the CA that signed the server's and all clients' certificates, in PEM.
    pub fn ca_pem(&self) -> &str {
        self.shared.pki.ca_pem()
    }

    /// A certificate that authenticates as `user` in `groups`; `system:masters` may do everything.
    ///
    /// # Errors
    /// A name cannot stand in a certificate.
    pub fn client_certificate(
        &self,
        user: &str,
        groups: &[&str],
    ) -> Result<ClientCertificate, rcgen::Error> {
        self.shared.pki.client(user, groups)
    }

    /// A kubeconfig (JSON, which is YAML) with a certificate for `user` in `groups`. It holds a
    /// private key.
    ///
    /// # Errors
    /// A name cannot stand in a certificate.
    pub fn kubeconfig(&self, user: &str, groups: &[&str]) -> Result<String, rcgen::Error> {
        let client = self.client_certificate(user, groups)?;
        Ok(kubeconfig::kubeconfig(&self.url(), self.ca_pem(), user, &client))
    }

    /// Writes [`SimCluster::kubeconfig`] to a file, on Unix readable by its owner only.
    ///
    /// # Errors
    /// The file cannot be written, or a name cannot stand in a certificate.
    pub fn write_kubeconfig(&self, path: &Path, user: &str, groups: &[&str]) -> io::Result<()> {
        let text = self.kubeconfig(user, groups).map_err(io::Error::other)?;
        kubeconfig::write(path, &text)
    }

    /// Creates an object as an administrator, or replaces it when it is there, without HTTP.
    /// Defaults, validation and controllers run as for any request.
    ///
    /// # Errors
    /// What the API would answer.
    pub fn apply(&self, object: &Value) -> error::Result<Arc<Value>> {
        preload::put(&self.shared, object)
    }

    /// The stored object, for example of `("", "nodes", "", "w1")`.
    pub fn object(
        &self,
        group: &str,
        plural: &str,
        namespace: &str,
        name: &str,
    ) -> Option<Arc<Value>> {
        let place = resources::StorageKey::new(group, plural);
        self.shared.lock().store.get(&place, namespace, name).cloned()
    }

    /// The stored objects of a namespace (all when empty), in list order.
    pub fn objects(&self, group: &str, plural: &str, namespace: &str) -> Vec<Arc<Value>> {
        let place = resources::StorageKey::new(group, plural);
        self.shared.lock().store.list(&place, namespace).cloned().collect()
    }

    /// Discards all history: older resourceVersions and continue tokens expire.
    pub fn compact(&self) {
        self.shared.lock().store.compact();
    }

    /// The last 10,000 requests, oldest first. Watches are listed when they begin.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.audit.requests()
    }

    /// How often `verb` was asked of `resource`, for example `("create", "pods/eviction")`.
    pub fn count(&self, verb: &str, resource: &str) -> u64 {
        self.shared.audit.count(verb, resource)
    }

    /// Asks `hook` before each request what to do instead of answering it; replaces the hook
    /// before. The request's `code` is 0 at that time.
    pub fn inject_faults(&self, hook: impl Fn(&Request) -> Option<Fault> + Send + Sync + 'static) {
        self.shared.audit.set_hook(Some(Arc::new(hook)));
    }

    /// Answers everything as usual again.
    pub fn clear_faults(&self) {
        self.shared.audit.set_hook(None);
    }

    /// Ends watches and the server, and waits until open requests are answered.
    pub async fn stop(mut self) {
        self.shared.stop();
        if let Err(error) = (&mut self.serving).await {
            tracing::error!(%error, "the API server of the simulated cluster panicked");
        }
    }
}

impl Drop for SimCluster {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

impl fmt::Debug for SimCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimCluster").field("address", &self.address).finish_non_exhaustive()
    }
}
