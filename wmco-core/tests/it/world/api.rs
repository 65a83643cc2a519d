//! A model of the API: Nodes with the pods on them, and the ConfigMap of host keys.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use wmco_core::facts::{NodeFacts, PodFacts};
use wmco_core::names;
use wmco_core::node::NodePatch;

use super::machines::MachineApi;

#[expect(clippy::struct_excessive_bools, reason = "facts that are independent of each other")]
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Node {
    pub(crate) facts: NodeFacts,
    pub(crate) pods: Vec<PodFacts>,
    /// Ghost: UIDs of pods that came while it was cordoned.
    pub(crate) tolerating: BTreeSet<String>,
    /// Ghost: a person cordoned it.
    pub(crate) persons_cordon: bool,
    /// Ghost: a person gave it the mark of a slot.
    pub(crate) persons_mark: bool,
    /// Ghost: pods came to it, whether or not we had put it into service.
    pub(crate) ran: bool,
    /// Ghost: it has been in service, so taking it out disrupts the cluster.
    pub(crate) served: bool,
    /// Ghost: a person made it schedulable while it held a slot, so pods came that nobody expects.
    pub(crate) meddled: bool,
    /// Ghost: since when it is out of service for us.
    pub(crate) held_since: Option<Timestamp>,
    /// Ghost: something on its host was changed that its services may notice, and they are not all
    /// back.
    pub(crate) touched: bool,
    /// Ghost: boot of its host when a restart was asked for that has not happened yet.
    pub(crate) asked_at_boot: Option<u32>,
    /// Ghost: people took it, or what we knew of it, from us; until it gets a slot, or we give it back.
    pub(crate) taken: bool,
    /// Ghost: it did not work when we took it out of service, and its MachineSet waited for it.
    pub(crate) idle: bool,
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
        Self {
            facts,
            pods: vec![],
            tolerating: BTreeSet::new(),
            persons_cordon: false,
            persons_mark: false,
            ran: false,
            served: false,
            meddled: false,
            held_since: None,
            touched: false,
            asked_at_boot: None,
            taken: false,
            idle: false,
        }
    }

    /// Whether it is out of service by our work. A node that a person has uncordoned again is not, unless
    /// our mark says that the work continues.
    pub(crate) fn is_disrupted(&self) -> bool {
        let held = self.facts.annotation(names::CORDONED_ANNOTATION).is_some();
        let out = self.facts.unschedulable || self.facts.holds_slot() && !self.persons_mark;
        (self.served || self.ran) && held && out && !self.taken
    }

    /// The pods that a drain has to wait for.
    pub(crate) fn guarded_pods(&self) -> impl Iterator<Item = &PodFacts> {
        self.pods.iter().filter(|pod| !self.tolerating.contains(&pod.uid))
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
    /// Data of the ConfigMap of host keys.
    pub(crate) host_keys: BTreeMap<String, String>,
    pub(crate) last_uid: u32,
    pub(crate) made: MachineApi,
}

impl Api {
    pub(crate) fn facts(&self) -> Vec<NodeFacts> {
        self.nodes.values().map(|node| node.facts.clone()).collect()
    }

    pub(crate) fn next_uid(&mut self) -> u32 {
        self.last_uid += 1;
        self.last_uid
    }
}
