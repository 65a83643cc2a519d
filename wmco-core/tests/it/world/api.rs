//! A model of the API: Nodes with the pods on them, and the ConfigMap of host keys.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use wmco_core::names;
use wmco_core::node::{NodeFacts, NodePatch, PodFacts};

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Node {
    pub(crate) facts: NodeFacts,
    pub(crate) pods: Vec<PodFacts>,
    /// Ghost: a person cordoned it.
    pub(crate) persons_cordon: bool,
    /// Ghost: it has been in service, so taking it out disrupts the cluster.
    pub(crate) served: bool,
    /// Ghost: a person made it schedulable while it held a slot, so pods came that nobody expects.
    pub(crate) meddled: bool,
    /// Ghost: boot of its host when a restart was asked for that has not happened yet.
    pub(crate) asked_at_boot: Option<u32>,
}

impl Node {
    /// A node as its kubelet registers it.
    pub(crate) fn registered(name: &str, uid: u32, addresses: Vec<String>, os: &str) -> Self {
        let facts = NodeFacts {
            name: name.to_owned(),
            uid: uid.to_string(),
            labels: [(names::OS_LABEL.to_owned(), os.to_owned())].into(),
            addresses,
            ..NodeFacts::default()
        };
        let (persons_cordon, served, meddled) = (false, false, false);
        Self { facts, pods: vec![], persons_cordon, served, meddled, asked_at_boot: None }
    }

    pub(crate) fn is_disrupted(&self) -> bool {
        self.served && self.facts.annotation(names::CORDONED_ANNOTATION).is_some()
    }

    pub(crate) fn patch(&mut self, patch: &NodePatch) {
        change(&mut self.facts.labels, &patch.labels);
        change(&mut self.facts.annotations, &patch.annotations);
        if let Some(unschedulable) = patch.unschedulable {
            self.facts.unschedulable = unschedulable;
        }
    }

    pub(crate) fn annotate(&mut self, name: &str, value: &str) {
        self.facts.annotations.insert(name.to_owned(), value.to_owned());
    }
}

fn change(map: &mut BTreeMap<String, String>, changes: &BTreeMap<String, Option<String>>) {
    for (key, value) in changes {
        match value {
            Some(value) => map.insert(key.clone(), value.clone()),
            None => map.remove(key),
        };
    }
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Api {
    pub(crate) nodes: BTreeMap<String, Node>,
    /// Addresses with an entry in the ConfigMap of host keys.
    pub(crate) keys: BTreeSet<String>,
    /// Keys of the records of hosts that are known to be closed, in the same ConfigMap.
    pub(crate) closed: BTreeSet<String>,
    pub(crate) last_uid: u32,
}

impl Api {
    pub(crate) fn facts(&self) -> Vec<NodeFacts> {
        self.nodes.values().map(|node| node.facts.clone()).collect()
    }

    pub(crate) fn node_at(&mut self, address: Ipv4Addr) -> Option<&mut Node> {
        let text = address.to_string();
        self.nodes.values_mut().find(|node| node.facts.addresses.contains(&text))
    }

    pub(crate) fn next_uid(&mut self) -> u32 {
        self.last_uid += 1;
        self.last_uid
    }
}
