//! Decides about each entry.

use super::evidence::Evidence;
use super::host::Host;
use super::hosts::Hosts;
use super::machine_index::MachineIndex;
use super::matching::{Matching, NodeOfHost};
use super::node::{Kind, contested};
use super::{Assignment, Assignments, Because, Intent};
use crate::host_record::RecordChange;

/// Decides about all listed hosts. Returns the address of a host that is to be configured and is about to be
/// contacted for the first time.
pub(super) fn decide<'a>(
    hosts: &Hosts<'a>,
    made: &MachineIndex<'a>,
    evidence: &Evidence<'a>,
    matching: &Matching<'a>,
    out: &mut Assignments<'a>,
) -> Option<&'a str> {
    // The entry that has an address, by the number of the first host there.
    let mut taken: Vec<Option<&str>> = vec![None; hosts.listed().len()];
    let mut look_due = None;
    out.instances.reserve(hosts.all().len());
    // Of two entries for one host, the entry with a Node keeps the host.
    for has_node in [true, false] {
        for host in hosts.listed() {
            let stand = matching.stand(host);
            let node = stand.node();
            if node.is_some() != has_node {
                continue;
            }
            let address = host.address;
            let machine = host.ipv4.and_then(|ipv4| made.address_of_machine(ipv4));
            let because = match (host.first_at_ipv4.filter(|_| machine.is_none()), stand) {
                (None, _) => machine.unwrap_or(if host.is_pending() {
                    Because::NamePending
                } else {
                    Because::EntryBroken
                }),
                (Some(_), NodeOfHost::Contested(nodes)) => contested(nodes),
                (Some(_), NodeOfHost::Node(node)) if node.kind == Kind::OtherSystem => {
                    Because::OtherSystem
                }
                (Some(_), NodeOfHost::Node(node)) if node.kind == Kind::FromMachine => {
                    Because::MachineBehind
                }
                (Some(first), stand) => {
                    let first = taken.get_mut(first).map(|first| *first.get_or_insert(address));
                    let shown = || match stand {
                        NodeOfHost::Nobody => matching.maybe_same_host(host, hosts, evidence),
                        NodeOfHost::Node(_) | NodeOfHost::Contested(_) => None,
                    };
                    let seen = || host.listed_first.and_then(|first| hosts.numbered(first));
                    let other = first.filter(|first| *first != address);
                    let other = other.or_else(|| Some(seen().or_else(shown)?.address));
                    match (other, hosts.damaged_record_of(host)) {
                        (Some(other), _) => Because::SameNode { address: other.to_owned() },
                        (None, Some(damaged)) => {
                            Because::RecordDamaged { address: damaged.to_owned() }
                        }
                        (None, None) => Because::Listed,
                    }
                }
            };
            let intent = match because {
                Because::Listed => Intent::Configure(None),
                _ => Intent::Leave,
            };
            // It is listed again, so a later removal needs a new confirmation.
            if host.removal_confirmed {
                out.changes.insert(address.to_owned(), RecordChange::RemovalConfirmed(false));
            }
            if intent != Intent::Leave && is_unseen(host) {
                look_due.get_or_insert(address);
            }
            out.instances.push(Assignment {
                address: address.to_owned(),
                formerly: host.former.iter().map(|former| former.address.to_owned()).collect(),
                instance: host.instance(),
                node: node.map(|node| node.facts),
                confirmed: matching.is_confirmed(host),
                intent,
                because,
            });
        }
    }
    look_due
}

/// Whether no login to the host has ever succeeded or been tried.
fn is_unseen(host: &Host<'_>) -> bool {
    host.is_never_contacted && host.kept.record.is_none_or(|record| record.pinned.is_none())
}
