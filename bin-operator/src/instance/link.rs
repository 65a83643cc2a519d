//! The one connection of a worker to its host.

use std::sync::Arc;

use wmco_ssh::{HostAgent as _, Lease};

/// A host that is leased from the pool when it is first needed, and given back while its worker
/// rests.
#[derive(Default)]
pub struct Link {
    host: Option<Arc<Lease>>,
}

impl Link {
    /// The connection, if it is still there.
    pub(super) fn current(&self) -> Option<Arc<Lease>> {
        self.host.as_ref().filter(|host| !host.is_closed()).map(Arc::clone)
    }

    pub(super) fn keep(&mut self, lease: Lease) -> Arc<Lease> {
        Arc::clone(self.host.insert(Arc::new(lease)))
    }

    /// Gives the connection back; the pool keeps it for a while.
    pub(super) fn release(&mut self) {
        self.host = None;
    }

    /// Ends the connection, if there is one.
    pub(super) async fn close(&mut self) {
        if let Some(host) = self.host.take() {
            host.close().await;
        }
    }
}
