//! The one connection of a worker to its host.

use std::sync::Arc;

use wmco_ssh::{HostAgent as _, Lease, Route};

/// A host that is leased from the pool when it is first needed, and given back while its worker
/// rests.
#[derive(Default)]
pub struct Link {
    host: Option<(Arc<Lease>, Route)>,
}

impl Link {
    /// The connection, if it is still there and leads where `route` does, with the same login.
    pub(super) fn current(&self, route: &Route) -> Option<Arc<Lease>> {
        let (host, kept) = self.host.as_ref()?;
        (!host.is_closed() && route.only_pins(kept)).then(|| Arc::clone(host))
    }

    pub(super) fn keep(&mut self, lease: Lease, route: Route) -> Arc<Lease> {
        Arc::clone(&self.host.insert((Arc::new(lease), route)).0)
    }

    /// Gives the connection back; the pool keeps it for a while.
    pub(super) fn release(&mut self) {
        self.host = None;
    }

    /// Ends the connection, if there is one.
    pub(super) async fn close(&mut self) {
        if let Some((host, _)) = self.host.take() {
            host.close().await;
        }
    }
}
