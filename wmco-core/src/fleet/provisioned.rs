//! Decides about each Machine.

use std::cell::LazyCell;
use std::collections::HashSet;

use super::host::Host;
use super::hosts::Hosts;
use super::machine_index::MachineIndex;
use super::node::shows;
use super::replacements::Replacements;
use super::{Assignment, Assignments, Because, Intent, Observed};
use crate::facts::NodeFacts;
use crate::host_record::HostRecord;
use crate::instances::Instance;
use crate::machines::{Machine, Machines, key};

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
        let because = match &machine.instance {
            Err(unfit) => Because::Unfit(unfit.clone()),
            Ok(_) if observed.hosts.is_damaged(&address) => {
                Because::RecordDamaged { address: address.clone() }
            }
            Ok(instance) => {
                let there = hosts.at(instance.ipv4);
                let is_ours =
                    |host: &&Host<'_>| host.record().is_some_and(|record| !record.is_untouched());
                let on_record = node.and_then(|node| hosts.first_with_node_on_record(&node.name));
                // A host that is not listed by this address may be listed by another one.
                let on_record = on_record.and_then(|host| hosts.numbered(host));
                let beside = made.beside(machine, instance.ipv4);
                let sharing = made.sharing_node(machine).map(|other| key(&other.facts.name));
                let with = on_record.map(|host| host.address.to_owned()).or(sharing);
                // A Node's addresses decide about its own Machine only.
                let elsewhere = node.filter(|node| !shows(node, instance.ipv4));
                let with = with.or_else(|| owner_of(elsewhere?, machine, hosts, made, is_listed));
                if let Some(host) = there.filter(|host| host.is_listed()) {
                    Because::AddressListed { address: host.address.to_owned() }
                } else if let Some(host) = there.filter(is_ours) {
                    Because::AddressOnRecord { address: host.address.to_owned() }
                } else if let Some(other) = beside {
                    Because::AddressOfMachine { machine: other.facts.name.clone() }
                } else if let Some(with) = with {
                    Because::NodeShared { with }
                } else {
                    of_node(machine, node, is_there)
                }
            }
        };
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
    let there = shown.find(|host| host.is_listed() || !is_listed).or_else(|| hosts.called(node));
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
    replaced: &Replacements<'_>,
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
