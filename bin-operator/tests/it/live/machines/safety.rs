//! The safety rules that hold at every single change of a cluster, whatever happens to it.
//!
//! - Never are more nodes disrupted by the operator than the budget. One is disrupted while it, having
//!   been in service, holds a slot or is cordoned by the operator; and from the moment that the operator
//!   deletes a Machine until its MachineSet has all its replicas, Ready and with the right version.
//! - What people asked to leave alone, and what is being deleted, is not written to.
//! - No Machine is deleted whose host lets the operator in.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::Value;
use wmco_core::facts::{MachineFacts, MachineSetFacts};
use wmco_core::names;

/// What is on its way when somebody asks to leave something alone may still arrive.
const ON_ITS_WAY: Duration = Duration::from_secs(2);

/// A change of a Node, Machine or MachineSet, as a watch tells it.
pub(super) struct Change {
    pub(super) seen: Instant,
    pub(super) kind: Kind,
    pub(super) object: Value,
    pub(super) is_gone: bool,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Kind {
    Machine,
    MachineSet,
    Node,
}

/// Something that the operator asked the API to write.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) asked: Instant,
    pub(super) verb: String,
    pub(super) kind: Kind,
    pub(super) name: String,
    /// Whether the host of this Machine let the operator's key in then.
    pub(super) lets_in: bool,
}

/// What was found.
#[derive(Debug, Default)]
pub(in crate::live) struct Findings {
    pub(in crate::live) violations: Vec<String>,
    /// Most nodes that were disrupted at the same time.
    pub(in crate::live) most_disrupted: usize,
    /// Machines that the operator deleted, in order.
    pub(in crate::live) deleted: Vec<String>,
}

/// Goes through all changes in their order.
pub(super) fn check(
    mut changes: Vec<Change>,
    writes: &[Write],
    budget: usize,
    version: &str,
) -> Findings {
    changes.sort_by_key(|change| resource_version(&change.object));
    let mut world = World::default();
    let mut findings = Findings::default();
    let mut left = Vec::new();
    for change in &changes {
        world.enter(change, writes, version, &mut findings.deleted);
        world.note_left(change.seen, &mut left);
        let disrupted = world.disrupted();
        findings.most_disrupted = findings.most_disrupted.max(disrupted.len());
        if disrupted.len() > budget {
            let violation = format!("more than {budget} disrupted: {disrupted:?}");
            findings.violations.push(violation);
        }
    }
    let violations = &mut findings.violations;
    violations.dedup();
    for write in writes {
        if left.iter().any(|left: &Left| left.covers(write)) {
            violations.push(format!("written to what is to be left alone: {write:?}"));
        }
        if write.lets_in {
            violations.push(format!("deleted though its host lets us in: {write:?}"));
        }
    }
    findings
}

pub(super) fn resource_version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap()
}

/// A time in which an object is to be left alone.
struct Left {
    kind: Kind,
    name: String,
    from: Instant,
    until: Option<Instant>,
}

impl Left {
    fn covers(&self, write: &Write) -> bool {
        let is_about = self.kind == write.kind && self.name == write.name;
        let has_begun = self.from + ON_ITS_WAY < write.asked;
        is_about && has_begun && self.until.is_none_or(|until| write.asked < until)
    }
}

/// The cluster at one moment.
#[derive(Default)]
struct World {
    nodes: BTreeMap<String, Value>,
    machines: BTreeMap<String, MachineFacts>,
    /// Names of Machines that are to be left alone.
    left: BTreeSet<String>,
    sets: BTreeMap<String, MachineSetFacts>,
    /// UIDs of Nodes that were in service once.
    served: BTreeSet<String>,
    /// UIDs of Machines that were seen to be deleted.
    deleted: BTreeSet<String>,
    /// Names of Machines that the operator deleted while their MachineSet is not whole again, by set.
    replaced: BTreeMap<String, Vec<String>>,
}

impl World {
    fn enter(
        &mut self,
        change: &Change,
        writes: &[Write],
        version: &str,
        deleted: &mut Vec<String>,
    ) {
        let object = &change.object;
        let name = text(&object["metadata"]["name"]);
        match (change.kind, change.is_gone) {
            (Kind::Node, true) => drop(self.nodes.remove(&name)),
            (Kind::Node, false) => drop(self.nodes.insert(name, object.clone())),
            (Kind::MachineSet, true) => drop(self.sets.remove(&name)),
            (Kind::MachineSet, false) => {
                drop(self.sets.insert(name, MachineSetFacts::of(object)));
            }
            (Kind::Machine, is_gone) => {
                let facts = MachineFacts::of(object);
                let is_asked = |write: &&Write| {
                    write.kind == Kind::Machine && write.verb == "delete" && write.name == name
                };
                if (facts.is_deleted || is_gone)
                    && self.deleted.insert(facts.uid.clone())
                    && writes.iter().find(is_asked).is_some_and(|it| it.asked <= change.seen)
                {
                    deleted.push(name.clone());
                    let set = facts.machine_set.as_ref().map_or("", |set| &set.name).to_owned();
                    self.replaced.entry(set).or_default().push(name.clone());
                }
                // Read here, and not by what is to be tested.
                let metadata = &object["metadata"];
                let is_left = metadata["labels"][names::IGNORE_LABEL] == names::TRUE
                    || metadata["deletionTimestamp"].is_string();
                if is_left && !is_gone {
                    self.left.insert(name.clone());
                } else {
                    self.left.remove(&name);
                }
                if is_gone {
                    self.machines.remove(&name);
                } else {
                    self.machines.insert(name, facts);
                }
            }
        }
        let served = self.nodes.values().filter(|node| is_in_service(node)).map(uid);
        self.served.extend(served.collect::<Vec<_>>());
        let whole: Vec<String> =
            self.replaced.keys().filter(|set| self.is_whole(set, version)).cloned().collect();
        for set in whole {
            self.replaced.remove(&set);
        }
    }

    /// Whether a MachineSet has all that it is to have.
    fn is_whole(&self, set: &str, version: &str) -> bool {
        let Some(set) = self.sets.get(set) else { return true };
        let works = |machine: &MachineFacts| {
            let owner = machine.machine_set.as_ref();
            let is_of_set = owner.is_some_and(|owner| owner.name == set.name);
            let node = machine.node.as_ref().and_then(|node| self.nodes.get(&node.name));
            let is_current = |node: &Value| annotation(node, names::VERSION_ANNOTATION) == version;
            is_of_set
                && !machine.is_deleted
                && node.is_some_and(|node| is_ready(node) && is_current(node))
        };
        self.machines.values().filter(|machine| works(machine)).count() >= set.replicas
    }

    /// Names of Nodes and Machines that are disrupted by the operator.
    fn disrupted(&self) -> Vec<&str> {
        let holds = |node: &&Value| {
            let labels = &node["metadata"]["labels"];
            let by_us = annotation(node, names::CORDONED_ANNOTATION) == names::CORDONED_BY_US;
            let is_cordoned = node["spec"]["unschedulable"] == true && by_us;
            self.served.contains(&uid(node))
                && (labels[names::UPGRADING_LABEL].is_string() || is_cordoned)
        };
        let nodes = self.nodes.iter().filter(|(_, node)| holds(node));
        let replaced = self.replaced.values().flatten();
        nodes.map(|(name, _)| name.as_str()).chain(replaced.map(String::as_str)).collect()
    }

    /// Notes what is to be left alone from now on, and what is no more.
    fn note_left(&self, now: Instant, left: &mut Vec<Left>) {
        let mut all = BTreeSet::new();
        for machine in self.machines.values().filter(|it| self.left.contains(&it.name)) {
            all.insert((Kind::Machine, machine.name.clone()));
            let node = machine.node.as_ref().map(|node| node.name.clone());
            let node = node.filter(|name| self.nodes.contains_key(name));
            all.extend(node.map(|name| (Kind::Node, name)));
        }
        for it in left.iter_mut().filter(|it| it.until.is_none()) {
            if !all.remove(&(it.kind, it.name.clone())) {
                it.until = Some(now);
            }
        }
        let new = all.into_iter();
        left.extend(new.map(|(kind, name)| Left { kind, name, from: now, until: None }));
    }
}

fn is_in_service(node: &Value) -> bool {
    is_ready(node)
        && node["spec"]["unschedulable"].is_null()
        && !annotation(node, names::VERSION_ANNOTATION).is_empty()
}

fn is_ready(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    conditions.is_some_and(|all| all.iter().any(|c| c["type"] == "Ready" && c["status"] == "True"))
}

fn annotation<'a>(object: &'a Value, name: &str) -> &'a str {
    object["metadata"]["annotations"][name].as_str().unwrap_or_default()
}

fn uid(object: &Value) -> String {
    text(&object["metadata"]["uid"])
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
