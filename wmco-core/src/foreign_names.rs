//! Further names of entries that belong to a Node or a Machine of another host.

use std::fmt;

use crate::facts::{MachineFacts, NodeFacts};
use crate::instances::{AlsoNamed, Entries};
use crate::names;

/// A further name of an entry that another host has. The host of the entry gets no certificate for it.
///
/// Source: `docs/contract/certificate-requests.md`, CSR45.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Foreign {
    address: String,
    name: AlsoNamed,
    owner: String,
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, name, owner } = self;
        write!(
            f,
            "entry `{address}`: its `names=` holds {name}, which is {owner}'s; leave it out, or remove it \
             from the other"
        )
    }
}

/// Finds further names of entries that are those of Nodes and Machines at other addresses, in the order of the
/// entries. For people who check a list: the objects may have changed since.
pub fn foreign_names(
    entries: &Entries,
    nodes: &[NodeFacts],
    machines: &[MachineFacts],
) -> Vec<Foreign> {
    let mut found = Vec::new();
    for (address, entry) in entries.iter() {
        let also = entries.names_of(address);
        if also.is_empty() {
            continue;
        }
        let key = AlsoNamed::of(address);
        let at = entry.as_ref().ok().map(|instance| AlsoNamed::Address(instance.ipv4.into()));
        let is_here = |own: &AlsoNamed| *own == key || Some(own) == at.as_ref();
        let mut add = |owner: &dyn Fn() -> String, all: &mut dyn Iterator<Item = AlsoNamed>| {
            let all: Vec<_> = all.collect();
            if all.iter().any(is_here) {
                return;
            }
            let shared = all.into_iter().find(|own| also.contains(own));
            let foreign =
                shared.map(|name| Foreign { address: address.to_owned(), name, owner: owner() });
            found.extend(foreign);
        };
        for node in nodes {
            let is_made_from = node.annotation(names::INSTANCE_ANNOTATION) == Some(address);
            let shown = node.addresses.iter().map(|shown| AlsoNamed::of(shown));
            let mut all = [AlsoNamed::of(&node.name)].into_iter().chain(shown);
            if !is_made_from {
                add(&|| format!("node {}", node.name), &mut all);
            }
        }
        for machine in machines {
            let shown = machine.addresses.iter().map(|shown| AlsoNamed::of(&shown.address));
            let mut all = [AlsoNamed::of(&machine.name)].into_iter().chain(shown);
            add(&|| format!("Machine {}", machine.name), &mut all);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::MachineAddress;
    use crate::instances::{Resolutions, parse};

    fn node(name: &str, addresses: &[&str]) -> NodeFacts {
        let mut node = k8s_openapi::api::core::v1::Node::default();
        node.metadata.name = Some(name.to_owned());
        let status = node.status.get_or_insert_default();
        let addresses = addresses.iter().map(|address| {
            serde_json::from_value(serde_json::json!({"type": "InternalIP", "address": address}))
        });
        status.addresses = Some(addresses.collect::<Result<_, _>>().unwrap());
        NodeFacts::from(&node)
    }

    #[track_caller]
    fn check(names: &str, nodes: &[NodeFacts], machines: &[MachineFacts], owner: Option<&str>) {
        let value = format!("username=a\nnames={names}");
        let entries = parse([("10.0.0.1", value)], &Resolutions::default());
        let found: Vec<_> =
            foreign_names(&entries, nodes, machines).into_iter().map(|it| it.owner).collect();
        assert_eq!(found, owner.into_iter().collect::<Vec<_>>(), "{names}");
    }

    #[test]
    fn names_and_addresses_of_another_node_are_found() {
        let other = [node("cp-1", &["10.0.0.2", "cp-1.example"])];
        for names in ["cp-1", "x.example,CP-1.example.", "10.0.0.2"] {
            check(names, &other, &[], Some("node cp-1"));
        }
        check("cp-2", &other, &[], None);
        // Its own Node.
        check("win-1,10.0.0.9", &[node("win-1", &["10.0.0.1", "10.0.0.9"])], &[], None);
    }

    #[test]
    fn names_and_addresses_of_a_machine_are_found() {
        let shown = |address: &str| MachineAddress {
            kind: "InternalIP".to_owned(),
            address: address.to_owned(),
        };
        let machine = |address| MachineFacts {
            name: "m-1".to_owned(),
            addresses: vec![shown(address)],
            ..MachineFacts::default()
        };
        check("m-1", &[], &[machine("10.0.0.2")], Some("Machine m-1"));
        check("10.0.0.2", &[], &[machine("10.0.0.2")], Some("Machine m-1"));
        check("10.0.0.9,m-1", &[], &[machine("10.0.0.1")], None);
    }
}
