//! Fills a [`View`] from Kubernetes objects.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::Node;
use serde_json::Value;
use wmco_core::facts::{self, Facts};
use wmco_core::instances::{Entries, EntryError, Field, Problem};
use wmco_core::names::OS_LABEL;
use wmco_core::{limits, machines};

use super::{Instance, MachineFacts, NodeIdentity, View, fold};

impl View {
    /// Replaces all instances by the entries of `windows-instances`.
    ///
    /// An entry with an invalid value, or with a name that does not resolve at the moment, still counts as its
    /// host: its node may already be running. An entry whose key cannot be an address keeps its further names from
    /// others. Facts about a Machine's host are in `facts` under the Machine's [key](machines::key).
    pub fn set_entries(&mut self, entries: &Entries, facts: &Facts) {
        let of = |found: &wmco_core::instances::Instance| (Some(found.ipv4), found.port);
        let instances = entries.iter().map(|(address, entry)| {
            let also = || entries.names_of(address).iter().cloned().collect();
            let (ipv4, port) = match entry {
                Ok(instance) => of(instance),
                Err(EntryError { problem: Problem::Host(_), field: Field::Address, .. }) => {
                    let unknown = Instance::new(address, None, limits::SSH_PORT, also(), facts);
                    return unknown.without_key();
                }
                // Same host as that of the other entry.
                Err(EntryError { problem: Problem::Duplicate { first }, .. }) => {
                    let first = entries.get(first).and_then(|entry| entry.as_ref().ok());
                    first.map_or((None, limits::SSH_PORT), of)
                }
                Err(_) => (None, limits::SSH_PORT),
            };
            Instance::new(address, ipv4, port, also(), facts)
        });
        self.set_listed(instances.collect(), facts);
    }

    /// Adds or replaces a Node.
    pub fn set_node(&mut self, node: &Node) {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        self.set_node_identity(name, NodeIdentity::from(node));
    }
}

impl From<&Node> for NodeIdentity {
    /// Source of the address types: `docs/contract/certificate-requests.md`, CSR36.
    fn from(node: &Node) -> Self {
        let labels = node.metadata.labels.as_ref();
        let mut facts = Self {
            uid: node.metadata.uid.clone(),
            os: labels.and_then(|labels| labels.get(OS_LABEL)).cloned(),
            created: node.metadata.creation_timestamp.as_ref().map(|time| time.0),
            ..Self::default()
        };
        let addresses = node.status.as_ref().and_then(|status| status.addresses.as_ref());
        let addresses = addresses.into_iter().flatten();
        (facts.addresses, facts.names) =
            sorted(addresses.map(|address| (address.type_.as_str(), address.address.as_str())));
        facts
    }
}

impl From<&facts::MachineFacts> for MachineFacts {
    fn from(machine: &facts::MachineFacts) -> Self {
        let all = machine.addresses.iter();
        let (addresses, names) =
            sorted(all.map(|address| (address.kind.as_str(), address.address.as_str())));
        Self {
            name: machine.name.clone(),
            // An address is no name of a host.
            names: names.into_iter().filter(|name| name.parse::<IpAddr>().is_err()).collect(),
            addresses,
            node: machine.node.clone(),
            host: machine.is_windows.then(|| machines::host_address(machine)),
        }
    }
}

impl From<Value> for MachineFacts {
    fn from(machine: Value) -> Self {
        Self::from(&facts::MachineFacts::of(&machine))
    }
}

/// Sorts IP addresses from names as the kubelet does, with the names normalized: under `Hostname` an address is an
/// address, under the types of names it stays a name.
fn sorted<'a>(list: impl Iterator<Item = (&'a str, &'a str)>) -> (Vec<IpAddr>, Vec<String>) {
    let (mut addresses, mut names) = (Vec::new(), Vec::new());
    for (kind, address) in list {
        if address.is_empty() {
            continue;
        }
        let address = fold(address);
        match (kind, address.parse::<IpAddr>()) {
            ("InternalIP" | "ExternalIP" | "Hostname", Ok(ip)) => {
                addresses.push(ip.to_canonical());
            }
            ("Hostname", Err(_)) | ("InternalDNS" | "ExternalDNS", _) => names.push(address),
            _ => {}
        }
    }
    (addresses, names)
}
