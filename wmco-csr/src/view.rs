//! What the cluster looks like, indexed by what a decision asks for.
//!
//! A [`View`] can be filled once (the offline command) or kept up to date from watch events (the
//! operator): every `set_` replaces what was known under that name. Each question that a decision
//! asks is one hash lookup, so its cost does not depend on the number of nodes.

mod index;
mod instances;
mod machines;
mod objects;
mod owners;
mod pending;

use std::collections::HashMap;
use std::net::IpAddr;

use jiff::Timestamp;
use serde::Deserialize;

use crate::cluster::ClusterFacts;
pub(crate) use index::Index;
use machines::Machines;

pub(crate) use instances::{Instance, Instances, Source};
pub use owners::Dispute;
pub(crate) use owners::{Against, Found, Owner};
pub(crate) use pending::{Newer, PendingRequests};

/// What a decision may know about the cluster.
#[derive(Clone, Debug, Default)]
pub struct View {
    pub(crate) cluster: ClusterFacts,
    nodes: HashMap<String, NodeFacts>,
    /// Nodes by the addresses and the names that their status holds.
    nodes_by_address: Index<IpAddr, String>,
    nodes_by_name: Index<String, String>,
    pub(crate) machines: Machines,
    pub(crate) instances: Instances,
    pub(crate) pending: PendingRequests,
}

/// What a decision may know about one Node.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NodeFacts {
    /// The value of its operating system label.
    pub os: Option<String>,
    /// When the Node was created.
    pub created: Option<Timestamp>,
    /// Addresses of type InternalIP and ExternalIP.
    pub addresses: Vec<IpAddr>,
    /// Addresses of type Hostname, InternalDNS and ExternalDNS that are names: lower case, without
    /// a trailing dot.
    pub names: Vec<String>,
}

/// What a decision may know about one Machine. Deserializes from a Machine object.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(from = "objects::Machine")]
pub struct MachineFacts {
    /// The name of its Node, the names that its cloud gave to it: whatever its kubelet may claim.
    pub names: Vec<String>,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
}

impl View {
    /// A cluster without anything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces what is known of the cluster as a whole.
    pub fn set_cluster(&mut self, facts: ClusterFacts) {
        self.cluster = facts;
    }

    /// What is known of the cluster as a whole.
    pub fn cluster(&self) -> &ClusterFacts {
        &self.cluster
    }

    /// Adds a Node or replaces what was known about it.
    pub fn set_node_facts(&mut self, name: &str, facts: NodeFacts) {
        self.remove_node(name);
        let name = name.to_owned();
        self.nodes_by_address.add(&facts.addresses, &name);
        self.nodes_by_name.add(&facts.names, &name);
        self.nodes.insert(name, facts);
    }

    /// Forgets a Node.
    pub fn remove_node(&mut self, name: &str) {
        if let Some((name, facts)) = self.nodes.remove_entry(name) {
            self.nodes_by_address.remove(&facts.addresses, &name);
            self.nodes_by_name.remove(&facts.names, &name);
        }
    }

    /// Replaces all Machines.
    pub fn set_machines(&mut self, machines: impl IntoIterator<Item = MachineFacts>) {
        self.machines = machines.into_iter().collect();
    }

    /// What is known about the Node `name`.
    pub fn node(&self, name: &str) -> Option<&NodeFacts> {
        self.nodes.get(name)
    }
}

/// The one spelling of a host name that is compared: no blanks around, lower case, no final dot.
pub(crate) fn fold(name: &str) -> String {
    let name = name.trim();
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}
