//! One Node, as far as it is asked about for each host.

use std::net::Ipv4Addr;

use super::Because;
use super::made::Made;
use crate::facts::NodeFacts;
use crate::names;

/// A Node, and what was read of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node<'a> {
    /// Its place among all Nodes of the pass.
    pub(super) number: usize,
    pub(super) facts: &'a NodeFacts,
    pub(super) kind: Kind,
    /// Its copy of the pinned key of its host.
    pub(super) key_copy: Option<&'a str>,
}

/// What a Node is to us.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// A Windows node that comes from an entry.
    FromEntry,
    /// A Windows node with a Machine behind it.
    FromMachine,
    /// No Windows node.
    OtherSystem,
    /// A Windows node that does not tell where it comes from.
    Unmarked,
}

impl<'a> Node<'a> {
    pub(super) fn read(number: usize, facts: &'a NodeFacts, made: &Made<'_>) -> Self {
        Self {
            number,
            facts,
            kind: Kind::of(facts, made),
            key_copy: facts.annotation(names::HOST_KEY_ANNOTATION),
        }
    }

    /// The address as listed that it says it was made from.
    pub(super) fn origin(&self) -> Option<&'a str> {
        self.facts.annotation(names::INSTANCE_ANNOTATION)
    }
}

impl Kind {
    fn of(node: &NodeFacts, made: &Made<'_>) -> Self {
        if !node.is_windows() {
            Self::OtherSystem
        } else if made.is_behind(node) {
            // A kubelet may write our label.
            Self::FromMachine
        } else if node.is_byoh() {
            Self::FromEntry
        } else {
            Self::Unmarked
        }
    }
}

/// Whether a Node shows an address.
pub(super) fn shows(node: &NodeFacts, ipv4: Ipv4Addr) -> bool {
    node.addresses.iter().any(|shown| shown.parse() == Ok(ipv4))
}

/// Why a host is left that several Nodes claim to stand for.
pub(super) fn contested(nodes: &[Node<'_>]) -> Because {
    Because::Contested { nodes: nodes.iter().map(|node| node.facts.name.clone()).collect() }
}
