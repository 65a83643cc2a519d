//! What the cluster looks like, indexed by what a decision asks for.
//!
//! A [`View`] can be filled once (the offline command) or kept up to date from watch events (the
//! operator): every `set_` replaces what was known under that name. Each question that a decision
//! asks is one hash lookup, so its cost does not depend on the number of nodes.

mod instances;
mod objects;
mod pending;

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use jiff::Timestamp;
use serde::Deserialize;

pub(crate) use instances::{Found, Instance, Instances, Source};
pub(crate) use pending::{Newer, PendingRequests};

/// What a decision may know about the cluster.
#[derive(Clone, Debug, Default)]
pub struct View {
    nodes: HashMap<String, NodeFacts>,
    machines: HashSet<String>,
    machine_addresses: HashSet<IpAddr>,
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

    /// Adds a Node or replaces what was known about it.
    pub fn set_node_facts(&mut self, name: &str, facts: NodeFacts) {
        self.nodes.insert(name.to_owned(), facts);
    }

    /// Forgets a Node.
    pub fn remove_node(&mut self, name: &str) {
        self.nodes.remove(name);
    }

    /// Replaces all Machines.
    pub fn set_machines(&mut self, machines: impl IntoIterator<Item = MachineFacts>) {
        self.machines.clear();
        self.machine_addresses.clear();
        for machine in machines {
            self.machines.extend(machine.names.iter().map(|name| fold(name)));
            self.machine_addresses.extend(machine.addresses);
        }
    }

    /// What is known about the Node `name`.
    pub fn node(&self, name: &str) -> Option<&NodeFacts> {
        self.nodes.get(name)
    }

    /// Whether a Machine claims the node name `name` (lower case).
    pub(crate) fn is_machine(&self, name: &str) -> bool {
        self.machines.contains(name)
    }

    /// Whether a Machine has `address`.
    pub(crate) fn is_machine_address(&self, address: IpAddr) -> bool {
        self.machine_addresses.contains(&address)
    }
}

/// The one spelling of a host name that is compared: no blanks around, lower case, no final dot.
pub(crate) fn fold(name: &str) -> String {
    let name = name.trim();
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}
