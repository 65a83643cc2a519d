//! Settings of a server, and its start.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use serde::Serialize;
use serde_json::Value;

use super::error::{ApiError, Result as Answer};
#[cfg(not(feature = "tls"))]
use super::plain::PlainListener;
#[cfg(feature = "tls")]
use super::tls::TlsListener;
use super::{StartError, TestServer, listen, meta, pki, preload, server, shared};
use pki::Pki;
use shared::Shared;

/// Settings of a server. [`TestServer::builder`] makes one.
#[derive(Clone, Debug)]
pub struct Builder {
    address: SocketAddr,
    taints_nodes: bool,
    definitions: Vec<Answer<Value>>,
    objects: Vec<Answer<Value>>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            taints_nodes: false,
            definitions: Vec::new(),
            objects: Vec::new(),
        }
    }
}

fn value(object: &impl Serialize) -> Answer<Value> {
    serde_json::to_value(object).map_err(|error| ApiError::bad_request(error.to_string()))
}

impl Builder {
    /// Serves a custom resource from the start, for example `MyKind::crd()` of kube's `CustomResourceExt`. May be
    /// called several times.
    #[must_use]
    pub fn crd(mut self, definition: impl Serialize) -> Self {
        self.definitions.push(value(&definition));
        self
    }

    /// Creates an object at the start, typed or as JSON. Objects are created in the order of the calls, after all
    /// definitions of [`crd`](Self::crd).
    #[must_use]
    pub fn object(mut self, object: &impl Serialize) -> Self {
        self.objects.push(value(object));
        self
    }

    /// Listens on this address instead of a free port on 127.0.0.1.
    #[must_use]
    pub fn listen(self, address: SocketAddr) -> Self {
        Self { address, ..self }
    }

    /// Makes the taints of Nodes follow their Ready condition and their cordon, as the node lifecycle controller
    /// does. Without it, taints are as clients write them.
    #[must_use]
    pub fn taint_nodes(self) -> Self {
        Self { taints_nodes: true, ..self }
    }

    /// Starts the server.
    ///
    /// # Errors
    /// The port is in use, certificates cannot be made, or an object is refused.
    pub async fn start(self) -> Result<TestServer, StartError> {
        let pki = Pki::new().map_err(StartError::certificate)?;
        let shared = Arc::new(Shared::new(pki, self.taints_nodes));
        preload::preload(&shared);
        for object in self.definitions.into_iter().chain(self.objects) {
            create(&shared, object)?;
        }
        #[cfg(feature = "tls")]
        let listener = TlsListener::bind(self.address, &shared.pki).await?;
        #[cfg(not(feature = "tls"))]
        let listener = PlainListener::bind(self.address).await?;
        let source = |source| StartError::Listen { address: self.address, source };
        let address = axum::serve::Listener::local_addr(&listener).map_err(source)?;
        shared.set_address(address);
        let mut stopped = shared.stopped();
        let router = Router::new().fallback(server::handle).with_state(Arc::clone(&shared));
        let service = router.into_make_service_with_connect_info::<listen::Peer>();
        let serving = axum::serve(listener, service).with_graceful_shutdown(async move {
            // Waiting cannot fail: the router holds the sender.
            let _ = stopped.wait_for(|stop| *stop).await;
        });
        let controlled = Arc::clone(&shared);
        let serving = tokio::spawn(async move {
            tokio::select! {
                ended = serving.into_future() => if let Err(error) = ended {
                    tracing::error!(%error, "the API server ended");
                },
                () = controlled.run_controllers() => {}
            }
        });
        Ok(TestServer { shared, address, serving })
    }
}

fn create(cluster: &Shared, object: Answer<Value>) -> Result<(), StartError> {
    let refused = |object: String, source| StartError::Object { object, source: Box::new(source) };
    let object = object.map_err(|source| refused("an object".to_owned(), source))?;
    preload::put(cluster, &object).map(drop).map_err(|source| {
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or("an object");
        refused(format!("{kind} {}", meta::name(&object)), source)
    })
}
