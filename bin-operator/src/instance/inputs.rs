//! The inputs that the fleet gives to a worker.

use std::sync::Arc;

use wmco_core::digest::Sha256;
use wmco_core::node::InstanceInputs;
use wmco_core::reach::{Pinned, Reach};
use wmco_ssh::{Credentials, HostKeyPolicy, PrivateKey, Route, Target};

use super::error::StepError;
use crate::release::Contents;

/// The inputs of a worker.
#[derive(Clone, Debug)]
pub struct WorkerInputs {
    /// What it goes by.
    pub instance: InstanceInputs,
    /// The keys that are to let us in.
    pub keys: Arc<[Arc<PrivateKey>]>,
    /// Contents for its host.
    pub contents: Arc<Contents>,
}

impl PartialEq for WorkerInputs {
    fn eq(&self, other: &Self) -> bool {
        // Keys are compared by their hashes.
        self.instance == other.instance && Arc::ptr_eq(&self.contents, &other.contents)
    }
}

impl WorkerInputs {
    /// The way to the host, with all keys that may let us in.
    ///
    /// # Errors
    /// [`StepError::Route`] says what is missing for that.
    pub(super) fn route(&self) -> Result<(Route, &Reach), StepError> {
        self.route_with(&self.instance.keys)
    }

    /// The same with the keys of these hashes only, in their order.
    ///
    /// # Errors
    /// As above.
    pub(super) fn route_with(&self, hashes: &[Sha256]) -> Result<(Route, &Reach), StepError> {
        let key = |hash: &Sha256| self.keys.iter().find(|key| key.public().hash() == *hash);
        let keys: Vec<_> = hashes.iter().filter_map(key).cloned().collect();
        let reach = self.instance.reach.as_ref();
        let reach = reach.map_err(|why| StepError::Route(why.clone()))?;
        let way = |address: String, port, user: &str, host_key: Option<&Pinned>| {
            let credentials = Credentials { user: user.to_owned(), keys: keys.clone() };
            let policy = host_key.map_or(HostKeyPolicy::TrustOnFirstUse, |pinned| {
                HostKeyPolicy::Pinned(pinned.key.clone())
            });
            Route::new(Target { address, port }, credentials).host_key(policy)
        };
        let address = reach.address.to_string();
        let route = way(address, reach.port, &reach.username, reach.host_key.as_ref());
        let jump = reach
            .via
            .as_ref()
            .map(|via| way(via.address.clone(), via.port, &via.username, via.host_key.as_ref()));
        Ok((jump.into_iter().fold(route, Route::via), reach))
    }
}
