//! Decides which hosts and Nodes are removed because they are no longer listed.

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;

use super::because::first;
use super::identity::{ClaimedEntries, Host, Identities, Kind, Node, shows};
use super::{Assignment, Assignments, Because, Intent, Observed, shown_address};
use crate::facts::NodeFacts;
use crate::host_record::{RecordChange, forms};
use crate::machines::name_in;
use crate::names;

/// Decides about every recorded host and every Node of ours without an entry. `look_due` is an entry that is about
/// to be contacted for the first time.
pub(super) fn decide<'a>(
    known: &Identities<'a, '_>,
    observed: &Observed<'a>,
    look_due: Option<&'a str>,
    out: &mut Assignments<'a>,
) {
    let is_ours =
        |node: &Node<'_>| node.kind == Kind::FromEntry && known.matching.host_of(*node).is_none();
    let nodes: Vec<Node<'a>> = known.evidence.nodes().iter().copied().filter(is_ours).collect();
    let hosts = known.hosts;
    if nodes.is_empty() && hosts.left().is_empty() {
        return;
    }
    let leaving = Leaving {
        known,
        observed,
        entries: ClaimedEntries::of(hosts),
        of_machines: names_of_machines(observed),
        look_due,
    };
    for host in hosts.left() {
        leaving.host(host, out);
    }
    let at = nodes_at_addresses_of(&nodes, observed.nodes);
    for node in nodes {
        leaving.node(node, &at, out);
    }
}

/// Inputs of the decision.
struct Leaving<'a, 'b> {
    known: &'b Identities<'a, 'b>,
    observed: &'b Observed<'a>,
    entries: ClaimedEntries<'a, 'b>,
    /// Names of Machines' hosts, in all forms in lower case.
    of_machines: HashSet<String>,
    /// An entry that is about to be contacted for the first time.
    look_due: Option<&'a str>,
}

/// All Nodes at the addresses of leaving Nodes whose hosts would be adopted, sorted by name.
type NodesAt<'a> = HashMap<Ipv4Addr, Vec<&'a NodeFacts>>;

impl<'a> Leaving<'a, '_> {
    /// Decides about a recorded host that is not listed: it is cleaned, and its Node is deleted if it has one.
    fn host(&self, host: &Host<'a>, out: &mut Assignments<'a>) {
        let Some(record) = host.kept.record.filter(|record| !record.is_untouched()) else { return };
        let stand = self.known.matching.stand(host);
        let node = stand.node().map(|node| node.facts);
        let (entries, ipv4, may_be) = (&self.entries, record.ipv4, Because::may_be_listed);
        let node_then = record.node.as_deref().map(|node| [node; 2]);
        let called = node_then.or_else(|| record.host_name.as_deref().map(forms));
        let called = || called.into_iter().flatten();
        let because = first(&[
            &|| stand.obstacle(),
            &|| entries.claimed_by(node?).map(may_be),
            &|| entries.called(host.address).map(may_be),
            &|| entries.called(&ipv4?.to_string()).map(may_be),
            &|| called().find_map(|name| entries.of_node(name)).map(may_be),
            &|| {
                // The name that another host reports is a reason to wait only where neither key nor address tells them
                // apart.
                let is_there = |node: &NodeFacts| ipv4.is_some_and(|ipv4| shows(node, ipv4));
                let is_known = record.pinned.is_some() && node.is_none_or(is_there);
                let mut names = node.map(|node| node.name.as_str()).into_iter().chain(called());
                let now = |name| self.known.hosts.called(name).map(|host| host.address);
                let before = |name| entries.reported(name).filter(|_| record.pinned.is_none());
                let entry = names.find_map(|name| now(name).or_else(|| before(name)));
                entry.filter(|_| !is_known).map(may_be)
            },
            &|| entries.unknown().map(may_be),
            &|| self.known.machines.address_of_machine(ipv4?),
            &|| self.look_due(entries.nameless(record.pinned.as_deref())),
        ]);
        let because = because.unwrap_or(Because::Unlisted);
        // Whatever its Node shows while the host is cleaned.
        let joined =
            node.filter(|_| record.node.is_none() && self.known.matching.is_confirmed(host));
        let joined = joined.filter(|_| because == Because::Unlisted);
        out.changes.extend(joined.map(|node| {
            (host.address.to_owned(), RecordChange::Joined { node: node.name.clone() })
        }));
        out.instances.push(assignment(host.address.to_owned(), node, because));
    }

    /// Decides about a Node of ours that belongs to no listed or recorded host.
    fn node(&self, node: Node<'a>, at: &NodesAt<'a>, out: &mut Assignments<'a>) {
        let contested = self.known.matching.contested_host_of(node);
        let (origin, node) = (node.origin(), node.facts);
        let (ipv4, shown) = (usable_ipv4(node), shown_address(node));
        let (known, may_be) = (self.observed.hosts, Because::may_be_listed);
        // Only a Node of the Go operator, which writes no origin, describes its host. A Node of ours had a record,
        // so its own annotations do not count.
        let username = node.annotation(names::USERNAME_ANNOTATION).filter(|_| origin.is_none());
        let adoptable = ipv4.zip(username);
        let because = first(&[
            &|| self.known.hosts.numbered(contested?).map(|host| self.may_be(host.address)),
            &|| self.entries.claimed_by(node).map(may_be),
            &|| self.known.hosts.called(&node.name).map(|host| may_be(host.address)),
            &|| self.entries.unknown().map(may_be),
            &|| self.known.machines.address_of_machine(ipv4?),
            // No record says that it was listed, and its kubelet may have written our label.
            &|| self.is_behind(node, ipv4).then_some(Because::MachineBehind),
            &|| {
                let texts = [origin.map(str::to_owned), ipv4.map(|ip| ip.to_string())];
                let mut texts = texts.into_iter().flatten().chain([shown.clone()]);
                let address = texts.find(|text| known.is_damaged(text))?;
                Some(Because::RecordDamaged { address })
            },
            // Its host was cleaned and forgotten, or is unknown.
            &|| node.is_deleted.then_some(Because::NodeDeleted),
            // The data under this name belongs to another host.
            &|| {
                let is_others = adoptable.is_none() && known.record(&shown).is_some();
                is_others.then(|| self.may_be(&shown))
            },
            // It is unknown how to reach its host; the removal reports that.
            &|| {
                let due = || self.look_due(None).unwrap_or(Because::Unlisted);
                adoptable.is_none().then(due)
            },
            &|| {
                let mut others = at.get(&ipv4?)?.iter().filter(|other| other.name != node.name);
                Some(Because::AddressShared { node: others.next()?.name.clone() })
            },
            &|| self.recorded(&ipv4?.to_string(), out),
            // It is cleaned first, or it is the same one.
            &|| {
                let is_left = |host: &&Host<'_>| !host.is_listed();
                let there = self.known.hosts.at(ipv4?).find(is_left)?.address.to_owned();
                Some(Because::AddressOnRecord { address: there })
            },
        ]);
        let (Some((ipv4, username)), None) = (adoptable, &because) else {
            return out.instances.extend(because.map(|it| assignment(shown, Some(node), it)));
        };
        // A Node of the Go operator is the only source of facts about its host.
        let change =
            RecordChange::Adopted { ipv4, node: node.name.clone(), username: username.to_owned() };
        let address = ipv4.to_string();
        out.changes.insert(address.clone(), change);
        out.instances.push(assignment(address, Some(node), Because::RecordDue));
    }

    /// Whose the record of an address is, if there is one, or one that this pass makes.
    fn recorded(&self, address: &str, out: &Assignments<'_>) -> Option<Because> {
        let record = self.observed.hosts.record(address);
        let node = match (record, out.changes.get(address)) {
            (Some(record), _) => record.node.clone(),
            (None, Some(RecordChange::Adopted { node, .. })) => Some(node.clone()),
            (None, Some(_)) => None,
            (None, None) => return None,
        };
        let is_there = |name: &String| self.observed.nodes.iter().any(|node| node.name == *name);
        let shared = |node| Because::AddressShared { node };
        Some(node.filter(is_there).map_or_else(|| self.may_be(address), shared))
    }

    /// It may be the host at this address, which is listed or on record.
    fn may_be(&self, address: &str) -> Because {
        match self.known.hosts.named(address) {
            Some(host) if host.is_listed() => Because::may_be_listed(address),
            _ => Because::AddressOnRecord { address: address.to_owned() },
        }
    }

    /// Whether a Node that looks listed may be a Machine's.
    fn is_behind(&self, node: &NodeFacts, ipv4: Option<Ipv4Addr>) -> bool {
        self.known.machines.is_ignored(node, ipv4)
            || self.known.machines.may_be_behind(node)
            || self.of_machines.contains(&node.name.to_lowercase())
    }

    /// An entry whose host has never been contacted may be another address of a host, as may the one that is `alike`.
    fn look_due(&self, alike: Option<&str>) -> Option<Because> {
        let address = alike.or(self.look_due)?.to_owned();
        Some(Because::LookDue { address })
    }
}

fn names_of_machines(observed: &Observed<'_>) -> HashSet<String> {
    let known = observed.host_names.iter().filter(|(address, _)| name_in(address).is_some());
    let names = known.flat_map(|(_, names)| names);
    names.flat_map(|name| forms(name)).map(str::to_lowercase).collect()
}

/// All Nodes with the address of one of the `leaving` Nodes.
fn nodes_at_addresses_of<'a>(leaving: &[Node<'a>], nodes: &'a [NodeFacts]) -> NodesAt<'a> {
    let adoptable = leaving.iter().filter(|node| node.origin().is_none());
    let mut at: NodesAt<'a> =
        adoptable.filter_map(|node| Some((usable_ipv4(node.facts)?, Vec::new()))).collect();
    if at.is_empty() {
        return at;
    }
    for node in nodes {
        for ipv4 in node.addresses.iter().filter_map(|shown| shown.parse().ok()) {
            if let Some(there) = at.get_mut(&ipv4) {
                there.push(node);
            }
        }
    }
    for there in at.values_mut() {
        there.sort_by(|a, b| a.name.cmp(&b.name));
    }
    at
}

fn usable_ipv4(node: &NodeFacts) -> Option<Ipv4Addr> {
    node.usable_address()?.parse().ok()
}

fn assignment(address: String, node: Option<&NodeFacts>, because: Because) -> Assignment<'_> {
    let intent = match because {
        Because::Unlisted => Intent::Remove(None),
        _ => Intent::Leave,
    };
    Assignment {
        address,
        formerly: Vec::new(),
        instance: None,
        node,
        confirmed: false,
        intent,
        because,
    }
}
