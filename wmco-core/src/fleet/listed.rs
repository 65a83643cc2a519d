//! Decides about each entry.

use super::because::first;
use super::identity::{Host, Identities, NodeOfHost};
use super::{Assignment, Assignments, Because, Intent};
use crate::host_record::RecordChange;

/// Decides about all listed hosts. Returns the address of an entry whose host has never been contacted, so that it may be
/// one that left.
pub(super) fn decide<'a>(known: &Identities<'a, '_>, out: &mut Assignments<'a>) -> Option<&'a str> {
    let Identities { hosts, machines, evidence, matching } = known;
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
            let left = first(&[
                &|| machines.address_of_machine(host.ipv4?),
                &|| host.is_pending().then_some(Because::NamePending),
                &|| host.first_at_ipv4.is_none().then_some(Because::EntryBroken),
                &|| stand.obstacle(),
            ]);
            let because = left.unwrap_or_else(|| {
                let there = host.first_at_ipv4.and_then(|first| taken.get_mut(first));
                let there = there.map(|there| *there.get_or_insert(address));
                let there = there.filter(|there| *there != address);
                let same = |address: &str| Because::SameNode { address: address.to_owned() };
                let same = first(&[
                    &|| there.map(same),
                    &|| Some(same(hosts.numbered(host.listed_first?)?.address)),
                    &|| {
                        let is_alone = matches!(stand, NodeOfHost::Nobody);
                        let shown = || matching.maybe_same_host(host, hosts, evidence);
                        Some(same(is_alone.then(shown)??.address))
                    },
                    &|| {
                        let address = hosts.damaged_record_of(host)?.to_owned();
                        Some(Because::RecordDamaged { address })
                    },
                ]);
                same.unwrap_or(Because::Listed)
            });
            let intent = match because {
                Because::Listed => Intent::Configure(None),
                // By key and name. The address may be that of another host meanwhile, which only a look tells.
                Because::SameNode { .. }
                    if host.listed_first.is_some() && is_first_there(&taken, host) =>
                {
                    Intent::Look
                }
                _ => Intent::Leave,
            };
            // It is listed again, so a later removal needs a new confirmation.
            if host.removal_confirmed() == Some(true) {
                out.changes.insert(address.to_owned(), RecordChange::RemovalConfirmed(false));
            }
            let may_have_left = match &because {
                Because::Listed | Because::Contested { .. } => is_unseen(host),
                // What the Node of another host shows is its own word.
                Because::SameNode { .. } => is_first_there(&taken, host) && is_unseen(host),
                // Whatever we saw of it stands in what cannot be read.
                Because::RecordDamaged { .. } => true,
                // What the Node shows here is not what the Machine API says.
                Because::MachineBehind => {
                    is_unseen(host)
                        && node.is_some_and(|node| machines.is_elsewhere(node.facts, host.ipv4))
                }
                _ => false,
            };
            if may_have_left {
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

/// Whether no entry before it leads to its address.
fn is_first_there(taken: &[Option<&str>], host: &Host<'_>) -> bool {
    let there = host.first_at_ipv4.and_then(|first| *taken.get(first)?);
    there == Some(host.address)
}

/// Whether no login to the host has ever succeeded or been tried.
fn is_unseen(host: &Host<'_>) -> bool {
    host.is_never_contacted && host.kept.record.is_none_or(|record| record.pinned.is_none())
}
