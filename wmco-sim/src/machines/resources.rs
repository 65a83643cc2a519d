//! The API's resources that are used, and errors of a pass.

use k8s_openapi::api::core::v1::{Node, Secret};
use kube::{Api, Client};
use wmco_core::names::objects;

use super::kinds::{Machine, MachineSet};

/// Why a pass ended early; the next one continues.
#[derive(Debug, thiserror::Error)]
pub(super) enum PassError {
    #[error("the api refused, look at its answer")]
    Api(#[from] kube::Error),
    #[error("a machine has no host")]
    Host(#[from] crate::host::SimHostError),
}

/// The resources that are used.
#[derive(Clone)]
pub(super) struct Resources {
    pub(super) sets: Api<MachineSet>,
    pub(super) machines: Api<Machine>,
    pub(super) nodes: Api<Node>,
    pub(super) secrets: Api<Secret>,
}

impl Resources {
    pub(super) fn new(client: &Client) -> Self {
        let namespace = objects::MACHINE_API_NAMESPACE;
        Self {
            sets: Api::namespaced(client.clone(), namespace),
            machines: Api::namespaced(client.clone(), namespace),
            nodes: Api::all(client.clone()),
            secrets: Api::namespaced(client.clone(), namespace),
        }
    }
}

/// Ignores that an object has been deleted meanwhile.
pub(super) fn unless_gone<T>(answer: Result<T, kube::Error>) -> Result<(), PassError> {
    match answer {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(error.into()),
    }
}
