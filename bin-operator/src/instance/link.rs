//! The one connection of a worker to its host.

use std::sync::Arc;

use wmco_core::digest::Sha256;
use wmco_core::reach::Reach;
use wmco_ssh::{HostAgent as _, Lease};

use super::inputs::WorkerInputs;

/// A host that is leased from the pool when it is first needed, and given back while its worker
/// rests.
#[derive(Default)]
pub struct Link {
    host: Option<Leased>,
}

struct Leased {
    lease: Arc<Lease>,
    reach: Reach,
    /// Hashes of the keys that were offered.
    keys: Vec<Sha256>,
}

impl Link {
    /// The connection, if it is still there and leads where `reach` does, with the same login.
    pub(super) fn current(&self, reach: &Reach, inputs: &WorkerInputs) -> Option<Arc<Lease>> {
        let host = self.host.as_ref()?;
        let same = reach.only_pins(&host.reach) && inputs.instance.keys == host.keys;
        (!host.lease.is_closed() && same).then(|| Arc::clone(&host.lease))
    }

    pub(super) fn keep(
        &mut self,
        lease: Lease,
        reach: &Reach,
        inputs: &WorkerInputs,
    ) -> Arc<Lease> {
        let (lease, keys) = (Arc::new(lease), inputs.instance.keys.clone());
        let host = self.host.insert(Leased { lease, reach: reach.clone(), keys });
        Arc::clone(&host.lease)
    }

    /// Gives the connection back; the pool keeps it for a while.
    pub(super) fn release(&mut self) {
        self.host = None;
    }

    /// Ends the connection, if there is one.
    pub(super) async fn close(&mut self) {
        if let Some(host) = self.host.take() {
            host.lease.close().await;
        }
    }
}
