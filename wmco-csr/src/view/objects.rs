//! Fills a [`View`] from Kubernetes objects.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::{Node, NodeAddress, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use wmco_core::facts::Facts;
use wmco_core::instances::{Entries, EntryError, Problem};
use wmco_core::limits;
use wmco_core::names::OS_LABEL;

use super::{Instance, Instances, MachineFacts, NodeFacts, View, fold};

impl View {
    /// Replaces all instances by the entries of `windows-instances`.
    ///
    /// An entry with a mistake in its value, or whose name does not resolve at the moment, stands
    /// for its host as well: its node may be at work already. Only what cannot be the address of a
    /// host is left out.
    pub fn set_entries(&mut self, entries: &Entries, facts: &Facts) {
        let of = |found: &wmco_core::instances::Instance| (Some(found.ipv4), found.port);
        let instances = entries.iter().filter_map(|(address, entry)| {
            let (ipv4, port) = match entry {
                Ok(instance) => of(instance),
                Err(EntryError { problem: Problem::Host(_), .. }) => return None,
                // The same host as that of the other entry.
                Err(EntryError { problem: Problem::Duplicate { first }, .. }) => {
                    let first = entries.get(first).and_then(|entry| entry.as_ref().ok());
                    first.map_or((None, limits::SSH_PORT), of)
                }
                Err(_) => (None, limits::SSH_PORT),
            };
            Some(Instance::new(address, ipv4, port, facts))
        });
        self.instances = Instances::new(instances.collect(), facts);
    }

    /// Adds a Node or replaces what was known about it.
    pub fn set_node(&mut self, node: &Node) {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        self.set_node_facts(name, NodeFacts::from(node));
    }
}

impl From<&Node> for NodeFacts {
    /// Source of the address types: `spec/csr.md`, W-7.
    fn from(node: &Node) -> Self {
        let labels = node.metadata.labels.as_ref();
        let mut facts = Self {
            os: labels.and_then(|labels| labels.get(OS_LABEL)).cloned(),
            created: node.metadata.creation_timestamp.as_ref().map(|time| time.0),
            ..Self::default()
        };
        let addresses = node.status.as_ref().and_then(|status| status.addresses.as_ref());
        (facts.addresses, facts.names) = sorted(addresses.into_iter().flatten());
        facts
    }
}

/// A Machine object, as far as we look at it.
#[derive(Deserialize)]
pub(super) struct Machine {
    metadata: Option<ObjectMeta>,
    status: Option<MachineStatus>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MachineStatus {
    node_ref: Option<ObjectReference>,
    addresses: Option<Vec<NodeAddress>>,
}

impl From<Machine> for MachineFacts {
    /// The name of its Node, and the names that its cloud gave to it. Before it has any, it may
    /// become a node of its own name.
    fn from(machine: Machine) -> Self {
        let status = machine.status.unwrap_or_default();
        let (addresses, mut names) = sorted(status.addresses.iter().flatten());
        names.extend(status.node_ref.and_then(|node| node.name));
        if names.is_empty() {
            names.extend(machine.metadata.and_then(|metadata| metadata.name));
        }
        Self { names, addresses }
    }
}

/// IP addresses, and names in the spelling that is compared.
fn sorted<'a>(list: impl Iterator<Item = &'a NodeAddress>) -> (Vec<IpAddr>, Vec<String>) {
    let (mut addresses, mut names) = (Vec::new(), Vec::new());
    for entry in list {
        match (entry.type_.as_str(), entry.address.parse::<IpAddr>()) {
            ("InternalIP" | "ExternalIP", Ok(ip)) => addresses.push(ip.to_canonical()),
            ("Hostname" | "InternalDNS" | "ExternalDNS", Err(_)) => {
                names.push(fold(&entry.address));
            }
            _ => {}
        }
    }
    (addresses, names)
}
