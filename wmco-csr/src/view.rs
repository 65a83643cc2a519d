//! The cluster state that a decision needs, indexed for its look-ups.
//!
//! A [`View`] can be filled once (the offline command) or kept up to date from watch events (the operator): every
//! `set_` method replaces the object of that name. Each look-up of a decision is one hash look-up, so its cost does
//! not depend on the number of nodes.

mod conflict;
mod index;
mod instances;
mod machines;
mod objects;
mod owners;
mod pending;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

use jiff::Timestamp;
use serde::Deserialize;
use wmco_core::facts::{Facts, Reference};
use wmco_core::machines::Unfit;

use crate::cluster::ClusterFacts;
pub(crate) use index::Index;
use machines::Machines;

pub use conflict::Dispute;
pub(crate) use conflict::{Against, Owner};
pub(crate) use instances::{Instance, Instances, Source};
pub(crate) use owners::Found;
pub(crate) use pending::{Newer, PendingRequests};

/// The cluster state that a decision may use.
#[derive(Clone, Debug, Default)]
pub struct View {
    pub(crate) cluster: ClusterFacts,
    nodes: HashMap<String, NodeIdentity>,
    /// Names of Nodes, by the addresses and the names in their status.
    nodes_by_address: Index<IpAddr, String>,
    nodes_by_name: Index<String, String>,
    /// The same by the first labels of their full names.
    nodes_by_label: Index<String, String>,
    pub(crate) machines: Machines,
    pub(crate) instances: Instances,
    /// The last answers of hosts and the DNS, for names in requests and hosts of Machines that are added later.
    facts: Facts,
    pub(crate) pending: PendingRequests,
}

/// Facts about a Node that a decision may use.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NodeIdentity {
    /// Its UID, if it was stored.
    pub uid: Option<String>,
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

/// Facts about a Machine that a decision may use. Deserializes from a Machine object.
///
/// ```
/// use wmco_core::machines::Unfit;
/// use wmco_csr::MachineFacts;
///
/// let machine: MachineFacts = serde_json::from_value(serde_json::json!({
///     "metadata": {"name": "win-x7k2p", "labels": {"machine.openshift.io/os-id": "Windows"}},
///     "status": {
///         "phase": "Provisioned",
///         "addresses": [
///             {"type": "InternalIP", "address": "10.0.128.1"},
///             {"type": "InternalDNS", "address": "WIN-X7K2P.corp.example"},
///         ],
///     },
/// }))?;
/// assert_eq!(machine.names, ["win-x7k2p.corp.example"]);
/// assert_eq!(machine.host, Some(Ok([10, 0, 128, 1].into())));
/// Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(from = "serde_json::Value")]
pub struct MachineFacts {
    /// The Machine's name.
    pub name: String,
    /// Names that the cloud gave to the Machine.
    pub names: Vec<String>,
    /// The Machine's addresses.
    pub addresses: Vec<IpAddr>,
    /// The Machine's `nodeRef`.
    pub node: Option<Reference>,
    /// For a Machine with the Windows label: the address of its host, or why the host is not usable. `None` for
    /// another operating system; cluster-machine-approver then handles its kubelet.
    pub host: Option<Result<Ipv4Addr, Unfit>>,
}

impl View {
    /// Makes a view of a cluster without objects.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces the facts about the cluster as a whole.
    pub fn set_cluster(&mut self, facts: ClusterFacts) {
        self.cluster = facts;
    }

    /// The facts about the cluster as a whole.
    pub fn cluster(&self) -> &ClusterFacts {
        &self.cluster
    }

    /// Adds or replaces a Node.
    pub fn set_node_identity(&mut self, name: &str, facts: NodeIdentity) {
        self.remove_node(name);
        let name = name.to_owned();
        self.nodes_by_address.add(&facts.addresses, &name);
        self.nodes_by_name.add(&facts.names, &name);
        self.nodes_by_label.add(&labels(&name, &facts), &name);
        self.nodes.insert(name, facts);
    }

    /// Removes a Node.
    pub fn remove_node(&mut self, name: &str) {
        if let Some((name, facts)) = self.nodes.remove_entry(name) {
            self.nodes_by_address.remove(&facts.addresses, &name);
            self.nodes_by_name.remove(&facts.names, &name);
            self.nodes_by_label.remove(&labels(&name, &facts), &name);
        }
    }

    /// Replaces all Machines. The reports of their hosts are those that [`Self::set_entries`] received under the
    /// [keys](wmco_core::machines::key) of Machines, before or after.
    pub fn set_machines(&mut self, machines: impl IntoIterator<Item = MachineFacts>) {
        self.machines = machines.into_iter().collect();
        self.instances.set_machines(self.machines.iter(), &self.facts);
    }

    /// Replaces all entries and the facts about hosts.
    fn set_listed(&mut self, listed: Vec<Instance>, facts: &Facts) {
        self.facts.clone_from(facts);
        self.instances = Instances::new(listed);
        self.instances.set_machines(self.machines.iter(), facts);
    }

    /// The facts about the Node `name`.
    pub fn node(&self, name: &str) -> Option<&NodeIdentity> {
        self.nodes.get(name)
    }

    /// The name of the Node that a Machine refers to, if the Node still exists.
    pub(crate) fn referred(&self, to: &Reference) -> Option<&str> {
        let (name, node) = self.nodes.get_key_value(&to.name)?;
        let is_gone = node.uid.as_ref().is_some_and(|uid| is_another(uid, &to.uid));
        (!is_gone).then_some(name.as_str())
    }
}

/// The first labels of the full names of the Node `name`.
fn labels(name: &str, node: &NodeIdentity) -> Vec<String> {
    let names = [name].into_iter().chain(node.names.iter().map(String::as_str));
    names.filter_map(|full| full.split_once('.')).map(|(label, _)| label.to_owned()).collect()
}

/// Whether two UIDs are known to belong to different objects.
pub(crate) fn is_another(uid: &str, other: &str) -> bool {
    !uid.is_empty() && !other.is_empty() && uid != other
}

/// Normalizes a host name for comparison: without surrounding blanks and last dots, in lower case.
pub(crate) fn fold(name: &str) -> String {
    name.trim().trim_end_matches('.').to_ascii_lowercase()
}
