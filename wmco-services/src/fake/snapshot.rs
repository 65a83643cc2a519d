//! The comparable state of a host.

use std::collections::{BTreeMap, BTreeSet};

use wmco_core::digest::Sha256;
use wmco_core::protocol::{Access, FeatureState, ServiceRunState};
use wmco_core::winpath::WindowsPath;

use super::State;
use super::tree::Content;
use crate::windows::{ServiceConfig, ServiceName};

/// A file, folder or link, without its time.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SnapshotEntry {
    /// Its kind and content.
    pub content: Content,
    /// The accounts that may access it.
    pub access: Access,
}

/// A host's state without facts that depend on time: write times, processes, boot identity.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Snapshot {
    /// Files, folders and links.
    pub files: BTreeMap<WindowsPath, SnapshotEntry>,
    /// Services.
    pub services: BTreeMap<ServiceName, (ServiceConfig, ServiceRunState)>,
    /// System-wide variables, names in upper case.
    pub environment: BTreeMap<String, String>,
    /// Trusted roots.
    pub roots: BTreeSet<Sha256>,
    /// The containers feature.
    pub containers: FeatureState,
    /// The host's name.
    pub host_name: String,
    /// HNS networks.
    pub networks: BTreeSet<String>,
}

impl Snapshot {
    /// Returns the snapshot without `folder` and everything below it.
    #[must_use]
    pub fn without(mut self, folder: &WindowsPath) -> Self {
        self.files.retain(|path, _| !path.is_within(folder));
        self
    }
}

pub(super) fn take(state: &State) -> Snapshot {
    let entry =
        |node: &super::Node| SnapshotEntry { content: node.content.clone(), access: node.access };
    Snapshot {
        files: state.tree.nodes().map(|(path, node)| (path.clone(), entry(node))).collect(),
        services: state
            .scm
            .services
            .iter()
            .map(|(name, service)| (name.clone(), (service.config.clone(), service.state)))
            .collect(),
        environment: state
            .environment
            .iter()
            .map(|(key, (_, value))| (key.clone(), value.clone()))
            .collect(),
        roots: state.roots.clone(),
        containers: state.containers,
        host_name: state.host_name.clone(),
        networks: state.networks.clone(),
    }
}
