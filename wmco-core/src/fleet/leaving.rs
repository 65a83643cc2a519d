//! Which hosts and Nodes leave the cluster, because nobody lists them any more.

use std::net::Ipv4Addr;

use super::hosts::Hosts;
use super::matching::{Index, Matching, Stand};
use super::{Assignment, Assignments, Because, Listed, Observed, shown_address};
use crate::content::usable_address;
use crate::host_record::HostRecord;
use crate::names;
use crate::node::{Intent, NodeFacts};

/// All that the question depends on.
pub(super) struct Leaving<'a, 'b> {
    pub(super) entries: &'b [&'a Listed],
    pub(super) hosts: &'b Hosts<'a>,
    pub(super) index: &'b Index<'a>,
    pub(super) matching: &'b Matching<'a>,
}

impl Leaving<'_, '_> {
    /// Decides about every host on record and every Node of ours that no entry stands for.
    pub(super) fn decide(&self, observed: &Observed<'_>, out: &mut Assignments) {
        for (address, record) in &self.hosts.unlisted {
            self.host(address, record, out);
        }
        let ours = |node: &&NodeFacts| {
            node.is_windows() && node.is_byoh() && self.matching.host_of(&node.name).is_none()
        };
        let nodes: Vec<&NodeFacts> = observed.nodes.iter().filter(ours).collect();
        for node in nodes {
            self.node(node, observed, out);
        }
    }

    /// A host on record that nobody lists: it is cleaned, and its Node goes, if it has one.
    fn host(&self, address: &str, record: &HostRecord, out: &mut Assignments) {
        if record.is_untouched() {
            return;
        }
        let stand = self.matching.stand(address);
        let because = match &stand {
            Stand::Contested(nodes) => Because::contested(nodes),
            Stand::Node(node) if !node.is_windows() => Because::OtherSystem,
            Stand::Node(node) if node.belongs_to_machine() => Because::MachineBehind,
            Stand::Node(_) | Stand::Nobody => {
                let claimed = stand.node().and_then(|node| self.claimed_entry(node));
                match claimed.or_else(|| self.broken_entry_of(address, record.ipv4)) {
                    Some(entry) => Because::MayBeListed { address: entry.address.clone() },
                    None => Because::Unlisted,
                }
            }
        };
        let node = stand.node().map(|node| node.name.clone());
        out.instances.push(assignment(address.to_owned(), node, because));
    }

    /// A Node of ours that stands for no host that is listed or on record.
    fn node(&self, node: &NodeFacts, observed: &Observed<'_>, out: &mut Assignments) {
        let name = Some(node.name.clone());
        let leave = |because| assignment(shown_address(node), name.clone(), because);
        let contested = self.matching.contested_host_of(&node.name).map(str::to_owned);
        let ipv4 = usable_address(node).and_then(|text| text.parse().ok());
        let claimed = self.claimed_entry(node).or_else(|| {
            let made_from = node.annotation(names::INSTANCE_ANNOTATION).unwrap_or(&node.name);
            self.broken_entry_of(made_from, ipv4)
        });
        if let Some(address) = contested.or_else(|| Some(claimed?.address.clone())) {
            out.instances.push(leave(Because::MayBeListed { address }));
            return;
        }
        let username = node.annotation(names::USERNAME_ANNOTATION);
        let origin = node.annotation(names::INSTANCE_ANNOTATION);
        // Only a Node of the Go operator, which writes no origin, tells of its host. One of ours had a
        // record, so what it says now is worth nothing.
        let (Some(ipv4), Some(username), None) = (ipv4, username, origin) else {
            // What is kept under that name is another host's.
            let shown = shown_address(node);
            let is_entry = self.entries.iter().any(|entry| entry.address == shown);
            let others = is_entry || observed.hosts.record(&shown).is_some();
            // Otherwise nobody knows how to reach its host, which people are told when it is tried.
            let because = Because::MayBeListed { address: shown };
            out.instances.push(leave(if others { because } else { Because::Unlisted }));
            return;
        };
        let address = ipv4.to_string();
        let others = self.index.at(&ipv4.to_string()).iter().find(|other| other.name != node.name);
        let recorded = observed.hosts.record(&address).or_else(|| out.records.get(&address));
        let recorded =
            recorded.map(|record| record.node.clone().unwrap_or_else(|| address.clone()));
        if let Some(other) = others.map(|other| other.name.clone()).or(recorded) {
            out.instances.push(leave(Because::AddressShared { node: other }));
            return;
        }
        // It comes from the Go operator, which knows nothing but the Node.
        let record = HostRecord {
            ipv4: Some(ipv4),
            node: name.clone(),
            username: Some(username.to_owned()),
            ..HostRecord::default()
        };
        out.records.insert(address.clone(), record);
        out.instances.push(assignment(address, name, Because::RecordDue));
    }

    /// The entry whose address a Node shows, that it says it was made from, or that has it on record.
    fn claimed_entry(&self, node: &NodeFacts) -> Option<&Listed> {
        let made_from = node.annotation(names::INSTANCE_ANNOTATION);
        self.entries.iter().copied().find(|entry| {
            let recorded = self.hosts.of_entry(&entry.address).and_then(|r| r.node.as_deref());
            made_from == Some(&entry.address)
                || recorded == Some(&node.name)
                || node.addresses.contains(&entry.address)
                || entry
                    .ipv4
                    .or_else(|| self.hosts.of_entry(&entry.address)?.ipv4)
                    .is_some_and(|ip| node.addresses.contains(&ip.to_string()))
        })
    }

    /// A broken entry that may mean the host on record or at an address: one that is its address, or
    /// any name of which nothing is known.
    fn broken_entry_of(&self, address: &str, ipv4: Option<Ipv4Addr>) -> Option<&Listed> {
        let unknown = |entry: &Listed| {
            entry.address.parse::<Ipv4Addr>().is_err()
                && self.hosts.of_entry(&entry.address).is_none()
        };
        self.entries.iter().copied().filter(|entry| entry.ipv4.is_none()).find(|entry| {
            entry.address == address
                || ipv4.is_some_and(|ip| entry.address == ip.to_string())
                || unknown(entry)
        })
    }
}

fn assignment(address: String, node: Option<String>, because: Because) -> Assignment {
    let intent = match because {
        Because::Unlisted => Intent::Remove(None),
        _ => Intent::Leave,
    };
    Assignment { address, formerly: None, node, confirmed: false, intent, because }
}
