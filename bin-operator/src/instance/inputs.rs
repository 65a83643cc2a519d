//! What a worker gets from the fleet.

use std::collections::BTreeMap;
use std::sync::Arc;

use wmco_core::digest::Sha256;
use wmco_core::facts::NodeFacts;
use wmco_core::fleet::Assignment;
use wmco_core::host_key::HostKey;
use wmco_core::host_record::HostRecord;
use wmco_core::node::Desired;
use wmco_core::reach::Pin;
use wmco_ssh::{Blob, HostKeyPolicy, Route};

/// Everything that one instance's worker needs to know of the cluster.
#[derive(Clone, Debug)]
pub struct InstanceInputs {
    /// What is wanted, and why.
    pub assignment: Assignment,
    /// What it is to become.
    pub desired: Arc<Desired>,
    /// The Node that stands for it.
    pub node: Option<NodeSeen>,
    /// How its host is reached; `Err` says in one line what is missing for that.
    pub route: Result<Route, String>,
    /// Whether the ConfigMap of host keys has its key or its record.
    pub on_record: bool,
    /// Whether the pinned key, which is not kept yet under the instance's address, is to be.
    pub key_to_keep: bool,
    /// Key under which the host key of its jump host is to be kept; none: it is already.
    pub jump_key_name: Option<String>,
    /// What is on record of its host.
    pub record: Option<HostRecord>,
    /// Where the host key that it has to show is pinned.
    pub pin: Option<Pin>,
    /// As `pin`, for its jump host.
    pub jump_pin: Option<Pin>,
    /// Contents for its host.
    pub release: Arc<Release>,
}

/// A Node and the version of the object that was looked at.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NodeSeen {
    /// Its resource version; Kubernetes lets us compare those of one object by size.
    pub resource_version: u64,
    /// What matters of it.
    pub facts: NodeFacts,
}

/// Contents of this version, by digest.
#[derive(Debug)]
pub struct Release {
    /// Our agent.
    pub agent: Blob,
    /// Everything else.
    pub contents: BTreeMap<Sha256, Blob>,
}

impl InstanceInputs {
    /// Name of the Node, or the address while there is none.
    pub fn node_name(&self) -> &str {
        self.node.as_ref().map_or(&self.assignment.address, |node| &node.facts.name)
    }

    /// The key that the host has to show, if one is pinned.
    pub fn pinned_key(&self) -> Option<&HostKey> {
        match &self.route.as_ref().ok()?.host_key {
            HostKeyPolicy::Pinned(key) => Some(key),
            HostKeyPolicy::TrustOnFirstUse => None,
        }
    }

    /// Whether the host that has to show the pinned key was found closed by an agent of ours.
    pub fn is_known_closed(&self) -> bool {
        let closed_for = |key| self.record.as_ref().is_some_and(|record| record.is_closed_for(key));
        self.pinned_key().is_some_and(closed_for)
    }

    /// Whether nothing differs that a worker looks at.
    pub fn equals(&self, other: &Self) -> bool {
        self.assignment == other.assignment
            && self.desired == other.desired
            && self.node == other.node
            && (self.on_record, self.key_to_keep) == (other.on_record, other.key_to_keep)
            && self.jump_key_name == other.jump_key_name
            && self.record == other.record
            && (&self.pin, &self.jump_pin) == (&other.pin, &other.jump_pin)
            && self.route == other.route
            && Arc::ptr_eq(&self.release, &other.release)
            && !self.asks_otherwise_than(other)
    }

    /// Whether people or the cluster ask for something else than in `old`, so that waiting for a
    /// retry is pointless. What others write on the Node does not count, nor does it when the key
    /// that its host showed us becomes the pinned one.
    pub fn asks_otherwise_than(&self, old: &Self) -> bool {
        let asked = |inputs: &Self| {
            let desired = &inputs.desired;
            (inputs.assignment.intent.verb(), desired.version.clone(), desired.agent)
        };
        asked(self) != asked(old)
            || self.desired.files != old.desired.files
            || match (&self.route, &old.route) {
                (Ok(new), Ok(old)) => !new.only_pins(old),
                (Err(_), Err(_)) => false,
                (Ok(_), Err(_)) | (Err(_), Ok(_)) => true,
            }
    }
}
