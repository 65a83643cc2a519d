//! Decides about each Machine.

use std::cell::LazyCell;
use std::collections::HashSet;

use super::because::first;
use super::budget::Replacements;
use super::identity::{Hosts, MachineIndex, shows};
use super::{Assignment, Assignments, Because, Intent, Observed};
use crate::facts::NodeFacts;
use crate::host_record::HostRecord;
use crate::instances::Instance;
use crate::machines::{Machine, Machines, all_internal_ipv4, key};

/// Decides about all Machines without the ignore label. `is_listed` says whether there is a list of entries;
/// without a list, every recorded host may be listed.
///
/// Only the list and the Machine API count, no report of a host or its Node. If they contradict each other, all
/// affected instances are left.
pub(super) fn decide<'a>(
    made: &MachineIndex<'a>,
    hosts: &Hosts<'a>,
    is_listed: bool,
    observed: &Observed<'a>,
    out: &mut Assignments<'a>,
) {
    let by_uid = made.nodes(observed.nodes);
    let names = LazyCell::new(|| -> HashSet<&str> {
        observed.nodes.iter().map(|node| node.name.as_str()).collect()
    });
    let is_there = |name: &str| names.contains(name);
    for machine in made.machines() {
        let referred = machine.facts.node.as_ref();
        let node = referred.and_then(|node| by_uid.get(node.uid.as_str()).copied());
        let address = key(&machine.facts.name);
        let ipv4 = machine.instance.as_ref().ok().map(|instance| instance.ipv4);
        let there = || all_internal_ipv4(&machine.facts).flat_map(|ipv4| hosts.at(ipv4));
        let shared = |with: String| Because::NodeShared { with };
        // Without a conflict the Machine's Node decides.
        let because = first(&[
            &|| machine.instance.as_ref().err().cloned().map(Because::Unfit),
            &|| {
                let is_damaged = observed.hosts.is_damaged(&address);
                is_damaged.then(|| Because::RecordDamaged { address: address.clone() })
            },
            &|| {
                // It may tell that the host is listed, or to be cleaned.
                let there = hosts.damaged_record_at(ipv4?)?.to_owned();
                Some(Because::RecordDamaged { address: there })
            },
            &|| {
                let address = there().find(|host| host.is_listed())?.address.to_owned();
                Some(Because::AddressListed { address })
            },
            &|| {
                let is_touched = |record: &HostRecord| !record.is_untouched();
                let there = there().find(|host| host.record().is_some_and(is_touched))?;
                Some(Because::AddressOnRecord { address: there.address.to_owned() })
            },
            &|| {
                let machine = made.beside(machine)?.facts.name.clone();
                Some(Because::AddressOfMachine { machine })
            },
            // A host that is not listed by this address may be listed by another one.
            &|| {
                let on_record = hosts.first_with_node_on_record(&node?.name)?;
                Some(shared(hosts.numbered(on_record)?.address.to_owned()))
            },
            &|| Some(shared(key(&made.sharing_node(machine)?.facts.name))),
            // A Node's addresses decide about its own Machine only.
            &|| {
                let elsewhere = node.filter(|node| !ipv4.is_some_and(|ipv4| shows(node, ipv4)))?;
                owner_of(elsewhere, machine, hosts, made, is_listed).map(shared)
            },
        ]);
        let because = because.unwrap_or_else(|| of_node(machine, node, is_there));
        let configured = because == Because::Provisioned;
        let instance = machine.instance.as_ref().ok();
        out.instances.push(Assignment {
            formerly: instance.and_then(|it| formerly(it, hosts, observed)).into_iter().collect(),
            address,
            instance,
            node,
            // The Machine API stores it, and may correct it.
            confirmed: false,
            intent: if configured { Intent::Configure(None) } else { Intent::Leave },
            because,
        });
    }
}

/// The address of another instance that may own a Node, which a Machine refers to and which does not have the
/// Machine's address.
fn owner_of(
    node: &NodeFacts,
    machine: &Machine,
    hosts: &Hosts<'_>,
    made: &MachineIndex<'_>,
    is_listed: bool,
) -> Option<String> {
    let mut shown =
        node.addresses.iter().filter_map(|shown| hosts.numbered(hosts.first_at(shown)?));
    let there =
        shown.find(|host| host.is_listed() || !is_listed).or_else(|| hosts.called(&node.name));
    let listed = there.map(|host| host.address.to_owned());
    listed.or_else(|| Some(key(&made.at_node(machine, node)?.facts.name)))
}

/// The decision that follows from the Node of a Machine without a conflict.
fn of_node(
    machine: &Machine,
    node: Option<&NodeFacts>,
    is_there: impl Fn(&str) -> bool,
) -> Because {
    match (&machine.facts.node, node) {
        (_, Some(node)) if !node.is_windows() => Because::OtherSystem,
        (Some(referred), None) if !referred.uid.is_empty() && is_there(&referred.name) => {
            Because::OtherNode { node: referred.name.clone() }
        }
        (None, None) if machine.is_running() => Because::NodeNotTold,
        _ => Because::Provisioned,
    }
}

/// The address under which the Go operator pinned the host key of a Machine without a Node.
fn formerly(instance: &Instance, hosts: &Hosts<'_>, observed: &Observed<'_>) -> Option<String> {
    let known = observed.hosts;
    let (own, ipv4) = (&instance.address, instance.ipv4.to_string());
    let is_pinned =
        known.pin(own).is_some() || known.record(own).is_some_and(|it| it.pinned.is_some());
    let is_theirs = known.pin(&ipv4).is_some()
        && known.record(&ipv4).is_none()
        && !known.is_damaged(&ipv4)
        && hosts.named(&ipv4).is_none();
    (is_theirs && !is_pinned).then_some(ipv4)
}

/// Keys of data of deleted Machines, except Machines that are still being replaced.
pub(super) fn forgotten_keys(
    machines: &Machines,
    observed: &Observed<'_>,
    replaced: &Replacements,
) -> Vec<String> {
    let mut forgotten = Vec::new();
    for (name, kept) in observed.hosts.of_machines() {
        let uid = kept.record.and_then(|record| record.machine.as_ref());
        let is_there = machines.get(name).is_some_and(|machine| {
            uid.is_none_or(|uid| *uid == machine.facts.uid) || machine.instance.is_ok()
        });
        if is_there || replaced.contains(name) {
            continue;
        }
        let key = key(name);
        if kept.record.is_some() || kept.is_damaged {
            forgotten.push(HostRecord::key_name(&key));
        }
        if kept.pin.is_some() {
            forgotten.push(key);
        }
    }
    forgotten
}
