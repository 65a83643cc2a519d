//! A Node with the facts that are needed for each host.

use std::net::Ipv4Addr;

use super::machine_index::MachineIndex;
use crate::facts::NodeFacts;
use crate::names;

/// A Node with facts read from it.
#[derive(Clone, Copy, Debug)]
pub(in crate::fleet) struct Node<'a> {
    /// Its number among all Nodes of the pass.
    pub(in crate::fleet) number: usize,
    pub(in crate::fleet) facts: &'a NodeFacts,
    pub(in crate::fleet) kind: Kind,
}

/// The origin of a Node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::fleet) enum Kind {
    /// A Windows node made from an entry.
    FromEntry,
    /// A Windows node of a Machine.
    FromMachine,
    /// Not a Windows node.
    OtherSystem,
    /// A Windows node without a label about its origin.
    Unmarked,
}

impl<'a> Node<'a> {
    pub(super) fn read(number: usize, facts: &'a NodeFacts, made: &MachineIndex<'_>) -> Self {
        Self { number, facts, kind: Kind::of(facts, made) }
    }

    /// The listed address that the Node was made from, by its annotation.
    pub(in crate::fleet) fn origin(&self) -> Option<&'a str> {
        self.facts.annotation(names::INSTANCE_ANNOTATION)
    }
}

impl Kind {
    fn of(node: &NodeFacts, made: &MachineIndex<'_>) -> Self {
        if !node.is_windows() {
            Self::OtherSystem
        } else if made.is_behind(node) {
            // A kubelet may write this label itself.
            Self::FromMachine
        } else if node.is_byoh() {
            Self::FromEntry
        } else {
            Self::Unmarked
        }
    }
}

/// Whether a Node has an address.
pub(in crate::fleet) fn shows(node: &NodeFacts, ipv4: Ipv4Addr) -> bool {
    node.addresses.iter().any(|shown| shown.parse() == Ok(ipv4))
}
