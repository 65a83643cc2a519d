//! What a worker gets from the fleet.

use std::sync::Arc;

use wmco_core::node::InstanceInputs;
use wmco_core::reach::{Pinned, Reach};
use wmco_ssh::{Credentials, HostKeyPolicy, PrivateKey, Route, Target};

use super::error::StepError;
use crate::release::Contents;

/// What a worker works with.
#[derive(Clone, Debug)]
pub struct WorkerInputs {
    /// What it goes by.
    pub instance: InstanceInputs,
    /// The key that lets us in.
    pub key: Arc<PrivateKey>,
    /// Contents for its host.
    pub contents: Arc<Contents>,
}

impl PartialEq for WorkerInputs {
    fn eq(&self, other: &Self) -> bool {
        // The key is told by its hash.
        self.instance == other.instance && Arc::ptr_eq(&self.contents, &other.contents)
    }
}

impl WorkerInputs {
    /// The way to the host.
    ///
    /// # Errors
    /// [`StepError::Route`] says what is missing for that.
    pub(super) fn route(&self) -> Result<(Route, &Reach), StepError> {
        let reach = self.instance.reach.as_ref();
        let reach = reach.map_err(|why| StepError::Route(why.clone()))?;
        let way = |address: String, port, user: &str, host_key: Option<&Pinned>| {
            let credentials = Credentials { user: user.to_owned(), key: Arc::clone(&self.key) };
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
