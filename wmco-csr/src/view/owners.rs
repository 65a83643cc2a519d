//! Decides which instance owns a name or an address that several claim.
//!
//! - The list of instances and the Machine API outrank the reports of hosts and the DNS.
//! - A report counts for its own host only: it takes nothing from an entry, a Node or a Machine.
//! - If two claims have the same weight, neither gets the name.
//!
//! Every decision takes a few hash look-ups, whatever the size of the cluster.

use std::collections::BTreeSet;
use std::net::IpAddr;

use wmco_core::instances::{AlsoNamed, Resolve as _};
use wmco_core::names::{IGNORE_LABEL, OS_WINDOWS};

use super::conflict::{Against, Conflict, Dispute, Owner};
use super::instances::Claim;
use super::{Instance, MachineFacts, NodeIdentity, Source, View, fold};

/// The owner of a node name, according to the list of instances.
#[derive(Debug)]
pub(crate) enum Found<'a> {
    /// This instance, known from this source.
    One(&'a Instance, Source),
    /// The name is claimed, but the claimant may not have it.
    Disputed(Conflict<'a>),
    /// No instance claims it; with the number of instances whose host name is not known yet.
    None { unnamed: usize },
}

impl View {
    /// Finds the instance whose Node has the name `name` (lower case). `node` is the existing Node of that name, if
    /// the caller wants the host that it runs on.
    pub(crate) fn find(&self, name: &str, node: Option<&NodeIdentity>) -> Found<'_> {
        let may_be = |(claim, _): &(&Claim, &Instance)| self.may_be_node_name(claim);
        if let Some(what) = self.cluster.reserves_name(name) {
            let against = Against::Owner(Owner::Reserved(what));
            let claim = self.instances.claims(name).find(may_be);
            let in_vain = |(claim, instance): (&Claim, _)| {
                Found::Disputed(Conflict { claimant: (instance, claim.source), against })
            };
            return claim.map_or(Found::None { unnamed: 0 }, in_vain);
        }
        let (listed, short) = self.listed(name);
        let found = choose(listed.filter(may_be)).or_else(|| choose(short.filter(may_be)));
        if let Some(found) = found {
            return self.unless_shown(name, found);
        }
        let mut rivals = Vec::new();
        let mut disputed = None;
        for (claim, instance) in self.instances.told(name).filter(may_be) {
            let by_dns = claim.source == Source::ReverseDns;
            let is_elsewhere = |node: &NodeIdentity| {
                self.is_on_another_host(node, instance)
                    || by_dns && self.shows_another_host(node, instance)
            };
            if node.is_some_and(is_elsewhere) {
                continue;
            }
            let rival = || self.node_at_its_address(name, instance);
            if let Some(against) = node.filter(|_| by_dns).and_then(|_| rival()) {
                let conflict = Conflict { claimant: (instance, claim.source), against };
                disputed.get_or_insert(Found::Disputed(conflict));
                continue;
            }
            let owner = self.listed_elsewhere(name, instance, name);
            let of_node = || self.other_node_called(name, instance).map(Owner::Node);
            match owner.or_else(of_node) {
                None => rivals.push((claim, instance)),
                Some(owner) => {
                    let against = Against::Owner(owner);
                    let conflict = Conflict { claimant: (instance, claim.source), against };
                    disputed.get_or_insert(Found::Disputed(conflict));
                }
            }
        }
        // If hosts disagree, the DNS does not decide, because the DNS may be forged.
        let chosen = match choose(rivals.iter().copied()) {
            Some(Found::One(..)) => {
                let mut sound = Vec::new();
                for (claim, instance) in rivals {
                    match self.contradicted_by_dns(name, claim, instance) {
                        None => sound.push((claim, instance)),
                        Some(against) => {
                            let conflict = Conflict { claimant: (instance, claim.source), against };
                            disputed.get_or_insert(Found::Disputed(conflict));
                        }
                    }
                }
                choose(sound.into_iter())
            }
            chosen => chosen,
        };
        chosen.or(disputed).unwrap_or(Found::None { unnamed: self.instances.unnamed() })
    }

    /// `found`, unless it is by `names=` of an entry and another Node shows the name.
    fn unless_shown<'a>(&'a self, name: &str, found: Found<'a>) -> Found<'a> {
        let Found::One(instance, source @ Source::Names) = found else { return found };
        match self.other_node_with(&AlsoNamed::Name(name.to_owned()), instance, name) {
            Some(other) => {
                let against = Against::Owner(Owner::Node(other));
                Found::Disputed(Conflict { claimant: (instance, source), against })
            }
            None => found,
        }
    }

    /// A Node of another host than that of `instance`, and other than `node`, that shows this name or address: no
    /// person gives it away by `names=`, who may have mistaken it. A Windows Node at the address of the host is one
    /// that the host had before.
    fn other_node_with(&self, what: &AlsoNamed, instance: &Instance, node: &str) -> Option<&str> {
        let runs_there = |other: &NodeIdentity| {
            let is_there = |address: &IpAddr| instance.is_first_at(*address);
            other.os.as_deref() == Some(OS_WINDOWS) && other.addresses.iter().any(is_there)
        };
        let (names, addresses) = match what {
            AlsoNamed::Name(name) => (Some(self.nodes_by_name.holders(name.as_str())), None),
            AlsoNamed::Address(address) => (None, Some(self.nodes_by_address.holders(address))),
        };
        let holders = names.into_iter().flatten().chain(addresses.into_iter().flatten());
        let mut others = holders.map(String::as_str).filter(|other| *other != node);
        others.find(|other| !self.node(other).is_some_and(runs_there))
    }

    /// The instances that the list or the Machine API gives the name `name`, and those with a name that starts with
    /// it.
    fn listed(
        &self,
        name: &str,
    ) -> (
        impl Iterator<Item = (&Claim, &Instance)> + Clone,
        impl Iterator<Item = (&Claim, &Instance)> + Clone,
    ) {
        let listed = self.instances.listed(name);
        let full = listed.clone().filter(|(claim, _)| claim.whole.is_none());
        (full, listed.filter(|(claim, _)| claim.whole.is_some()))
    }

    /// Whether the cluster would name the Node of the claiming host so.
    fn may_be_node_name(&self, claim: &Claim) -> bool {
        let is_given = claim.source != Source::MachineName || self.cluster.hosts_named_as_machines;
        is_given && claim.whole.as_ref().is_none_or(|whole| self.cluster.node_names.shortens(whole))
    }

    /// Whether a Node runs on the host of an entry that is not `instance`.
    fn is_on_another_host(&self, node: &NodeIdentity, instance: &Instance) -> bool {
        !node.addresses.iter().any(|address| instance.is_reached_at(*address))
            && self.shows_another_host(node, instance)
    }

    /// Whether a Node has the address of an entry or a Machine other than `instance`. The DNS alone then does not
    /// tie the Node to `instance`: both may be forged.
    fn shows_another_host(&self, node: &NodeIdentity, instance: &Instance) -> bool {
        let of_others = |address: &IpAddr| {
            self.instances.at(*address).any(|other| !other.is_reached_as(instance))
        };
        node.addresses.iter().any(of_others)
    }

    /// A Node other than `name` that has this name in its status, or a name that starts with it, and does not run on
    /// the host of `instance`.
    fn other_node_called(&self, name: &str, instance: &Instance) -> Option<&str> {
        let runs_there = |node: &NodeIdentity| {
            node.addresses.iter().any(|address| instance.is_reached_at(*address))
                || node.names.iter().any(|name| instance.is_called(name))
        };
        let (named, labelled) = (&self.nodes_by_name, &self.nodes_by_label);
        let holders = named.holders(name).chain(labelled.holders(name)).map(String::as_str);
        let mut others = holders.filter(|other| *other != name);
        others.find(|other| !self.node(other).is_some_and(runs_there))
    }

    /// A Node other than `name` at the address of `instance`, to which the DNS leads `name`: one of the two Nodes
    /// is not on that host.
    fn node_at_its_address(&self, name: &str, instance: &Instance) -> Option<Against<'_>> {
        let address = instance.ipv4.map(IpAddr::V4)?;
        Some(Against::Dns(address, Some(Owner::Node(self.other_node_at(instance, name)?))))
    }

    /// The DNS answer that contradicts the claim of `instance` to `name`.
    fn contradicted_by_dns(
        &self,
        name: &str,
        claim: &Claim,
        instance: &Instance,
    ) -> Option<Against<'_>> {
        let names = [Some(name), claim.whole.as_deref()];
        names.into_iter().flatten().find_map(|of| self.led_elsewhere(of, name, instance))
    }

    /// The other instance that the list or the Machine API gives `name`, or a name that starts with it.
    fn listed_elsewhere(&self, name: &str, instance: &Instance, node: &str) -> Option<Owner<'_>> {
        let (full, short) = self.listed(name);
        let is_own = |(claim, listed): (&Claim, &Instance)| match claim.source {
            // The DNS may lead the key of another entry here, which does not give this host its further names.
            Source::Names => listed.address == instance.address,
            Source::Address
            | Source::Machine
            | Source::MachineName
            | Source::HostName
            | Source::ReverseDns => self.is_one_host(listed, instance, node),
        };
        let is_entry = |(_, other): &(&Claim, &Instance)| other.machine.is_none();
        if instance.machine.is_some()
            && let Some((_, entry)) = full.clone().find(is_entry)
        {
            return Some(Owner::Instance(entry));
        }
        let mut others = full.clone().chain(short.clone());
        let is_full = full.clone().next().is_some();
        // Two entries cannot both have a further name; an entry with the name as its key has it.
        let own = full.clone().filter(|claim| is_own(*claim)).map(|(claim, _)| claim.source).min();
        if own == Some(Source::Names) {
            let other = full.clone().find(|claim| !is_own(*claim));
            return other.map(|(_, other)| Owner::Instance(other));
        }
        if own.is_some() || (!is_full && short.clone().any(is_own)) {
            return None;
        }
        others.next().map(|(_, other)| Owner::Instance(other))
    }

    /// Whether `other` is a second entry for the host of `instance`, on which the Node `node` runs.
    ///
    /// The same SSH server is not enough, because the DNS of either entry may be wrong: `other` must also claim the
    /// name of the Node, or the host there must report that it is `instance`. The latter does not count against an
    /// entry by address.
    fn is_one_host(&self, other: &Instance, instance: &Instance, node: &str) -> bool {
        let claims_node = || {
            let mut claims = self.instances.claims(node);
            claims.any(|(_, claimant)| claimant.address == other.address)
        };
        let outranks = || other.listed_name().is_some() && instance.calls_itself_as_listed();
        other.address == instance.address
            || (other.is_reached_as(instance) && (claims_node() || outranks()))
    }

    /// The DNS answer for `name`, if it leads anywhere but to the host of `instance`. Each resolver completes a
    /// single label in its own way, so for a single label only an address with another owner counts.
    fn led_elsewhere(&self, name: &str, node: &str, instance: &Instance) -> Option<Against<'_>> {
        let leads = self.leads(name);
        let elsewhere = leads.clone().filter(|address| !instance.is_reached_at(*address));
        let is_led_here = || leads.clone().any(|address| instance.is_reached_at(address));
        let owned = elsewhere.into_iter().find_map(|address| {
            let reserved = || self.cluster.reserves_address(address).map(Owner::Reserved);
            let stranger = self.other_owner_of_address(address, instance, node);
            // Beside its own address, a host may register those of its pod network.
            let is_beside = || instance.has(address) && is_led_here();
            let owner = stranger.or_else(|| reserved().filter(|_| !is_beside()));
            Some(Against::Dns(address, Some(owner?)))
        });
        let unknown = || {
            let first = leads.clone().next().filter(|_| name.contains('.'))?;
            let own = leads.clone().any(|address| instance.has(address));
            (!own).then_some(Against::Dns(first, None))
        };
        owned.or_else(unknown)
    }

    /// The DNS answer for `name`; empty without an answer.
    fn leads(&self, name: &str) -> impl Iterator<Item = IpAddr> + Clone {
        self.facts.leads_to(name).iter().map(IpAddr::to_canonical)
    }

    /// Whether the DNS leads `name` to the host of `instance`, on which the Node `node` runs, and nowhere else.
    /// Addresses that only the host itself reports do not suffice, because then the host could choose whose names it
    /// gets; nor do those that are the cluster's or somebody else's, whoever shows them.
    pub(crate) fn is_led_to(&self, name: &str, instance: &Instance, node: &str) -> bool {
        let is_its_own = |address: IpAddr| {
            instance.has(address)
                && self.cluster.reserves_address(address).is_none()
                && !self.is_of_another_system(address, node)
                && self.other_owner_of_address(address, instance, node).is_none()
        };
        let mut leads = self.leads(name);
        leads.clone().any(|address| instance.is_reached_at(address)) && leads.all(is_its_own)
    }

    /// Whether a Node other than `node` has `address` and does not run Windows, whatever entry has it, too.
    fn is_of_another_system(&self, address: IpAddr, node: &str) -> bool {
        let os = |other: &String| self.node(other).and_then(|facts| facts.os.as_deref());
        let mut holders = self.nodes_by_address.holders(&address);
        holders.any(|other| other != node && os(other) != Some(OS_WINDOWS))
    }

    /// A Node other than `node` at the address of `instance`.
    pub(crate) fn other_node_at(&self, instance: &Instance, node: &str) -> Option<&str> {
        let address = instance.ipv4.map(IpAddr::V4)?;
        self.nodes_by_address.holders(&address).map(String::as_str).find(|other| *other != node)
    }

    /// The entry that leads to an address of the Node `node`.
    pub(crate) fn instance_of_node(&self, node: &str) -> Option<&Instance> {
        let addresses = self.node(node).into_iter().flat_map(|node| &node.addresses);
        let mut at = addresses.flat_map(|address| self.instances.at(*address));
        at.find(|instance| instance.machine.is_none())
    }

    /// Whether the DNS has answered for `name`, be it that there is none.
    pub(crate) fn is_answered(&self, name: &str) -> bool {
        self.facts.dns.forward.contains_key(name)
    }

    /// Whether reverse DNS has answered for `address`, be it that it has no name.
    pub(crate) fn is_pointed(&self, address: IpAddr) -> bool {
        self.facts.dns.reverse.contains_key(&address)
    }

    /// The names that reverse DNS gives for `address`, in lower case.
    pub(crate) fn pointers(&self, address: IpAddr) -> impl Iterator<Item = String> {
        self.facts.reverse(address).iter().map(|name| fold(name))
    }

    /// Finds another owner of `address`, for the Node `node` on the host of `instance` that asks for it.
    pub(crate) fn other_owner_of_address(
        &self,
        address: IpAddr,
        instance: &Instance,
        node: &str,
    ) -> Option<Owner<'_>> {
        if let Some(machine) = self.machines.other_with_address(address, instance) {
            return Some(Owner::Machine(&machine.name));
        }
        // The list has it: neither the DNS nor another Node can take it away.
        if instance.is_listed_by(address) {
            return None;
        }
        if instance.is_also_at(address) {
            let mut listed = self.instances.at(address);
            let other = listed.find(|other| other.address != instance.address);
            let shown = || {
                let what = AlsoNamed::Address(address);
                self.other_node_with(&what, instance, node)
                    .filter(|_| !instance.is_first_at(address))
            };
            return other.map(Owner::Instance).or_else(|| shown().map(Owner::Node));
        }
        // The Machine API has it: only the list can take it away.
        if instance.is_given(address) {
            return self.listed_by(address).map(Owner::Instance);
        }
        let is_other = |other: &&Instance| {
            let is_further = other.reserves(address) && other.address != instance.address;
            is_further || !self.is_one_host(other, instance, node)
        };
        if let Some(other) = self.instances.at(address).find(is_other) {
            return Some(Owner::Instance(other));
        }
        let is_reached = instance.is_reached_at(address);
        // The host at this address reported that it is the entry, so claims of other listed hosts do not count.
        let is_sure = is_reached && instance.calls_itself_as_listed();
        let counts = |name: &&String| *name != node && !(is_sure && self.is_of_a_host(name));
        if let Some(other) = self.nodes_by_address.holders(&address).find(counts) {
            return Some(Owner::Node(other));
        }
        if is_reached {
            return None;
        }
        let report = self.instances.reporting(address).find(is_other);
        report.map(Owner::Report)
    }

    /// The entry whose listed address is `address` itself.
    pub(crate) fn listed_by(&self, address: IpAddr) -> Option<&Instance> {
        self.instances.at(address).find(|instance| instance.is_listed_by(address))
    }

    /// Whether a Node runs Windows and has a name that an instance claims.
    fn is_of_a_host(&self, node: &str) -> bool {
        let os = self.node(node).and_then(|facts| facts.os.as_deref());
        os == Some(OS_WINDOWS) && self.instances.claims(node).next().is_some()
    }

    /// Returns the fact that contradicts giving `name` (lower case) to the Node `node` on the host of `instance`.
    pub(crate) fn against_name(
        &self,
        name: &str,
        instance: &Instance,
        node: &str,
    ) -> Option<Against<'_>> {
        // Another rule has already decided about this name.
        if name == node {
            return None;
        }
        let owner = Against::Owner;
        if let Some((other, _)) = self.nodes.get_key_value(name) {
            return Some(owner(Owner::Node(other)));
        }
        if let Some(machine) = self.other_with_name(name, instance) {
            return Some(owner(Owner::Machine(&machine.name)));
        }
        if let Some(other) = self.listed_elsewhere(name, instance, node) {
            return Some(owner(other));
        }
        if instance.is_first_called(name) {
            return None;
        }
        if instance.is_called(name) {
            let what = AlsoNamed::Name(name.to_owned());
            let other = self.other_node_with(&what, instance, node);
            return other.map(|other| owner(Owner::Node(other)));
        }
        let (named, labelled) = (&self.nodes_by_name, &self.nodes_by_label);
        let mut holders = named.holders(name).chain(labelled.holders(name));
        if let Some(other) = holders.find(|other| *other != node) {
            return Some(owner(Owner::Node(other)));
        }
        let is_others = |(claim, other): &(&Claim, &Instance)| {
            let is_given =
                claim.source != Source::MachineName || self.cluster.hosts_named_as_machines;
            is_given && !other.is_reached_as(instance)
        };
        let mut claims = self.instances.claims(name).filter(is_others);
        let report = claims.next().map(|(_, other)| owner(Owner::Report(other)));
        report.or_else(|| self.led_elsewhere(name, node, instance))
    }

    /// Every name that several hosts claim or that a host claims in vain, and every address of a Machine that an
    /// entry or another Machine has too; sorted. Scans all instances, so call it only when they change.
    pub fn disputes(&self) -> Vec<Dispute> {
        let names: BTreeSet<&str> = self.instances.names().collect();
        let mut disputes: Vec<Dispute> =
            names.into_iter().filter_map(|name| self.dispute(name)).collect();
        let machines = self.machines.iter().filter(|m| m.host.is_some() && !m.is_ignored());
        let addresses: BTreeSet<IpAddr> =
            machines.flat_map(|machine| machine.addresses.iter().copied()).collect();
        let shared = addresses.into_iter();
        disputes.extend(shared.filter_map(|address| self.dispute_of_address(address)));
        disputes.sort();
        disputes
    }

    fn dispute(&self, name: &str) -> Option<Dispute> {
        let conflict = match self.find(name, None) {
            Found::Disputed(conflict) => conflict,
            Found::None { .. } => return None,
            Found::One(owner, Source::Address | Source::Names) => self.vain_claim(name, owner)?,
            Found::One(claimant, source) => {
                let owner = self.owner_outside_the_list(name, claimant);
                let against = owner.map(|owner| Conflict {
                    claimant: (claimant, source),
                    against: Against::Owner(owner),
                });
                let vain = || match source {
                    Source::Machine | Source::MachineName => self.vain_claim(name, claimant),
                    Source::Address | Source::Names | Source::HostName | Source::ReverseDns => None,
                };
                against.or_else(vain)?
            }
        };
        Some(Dispute { name: name.to_owned(), message: conflict.of(name).to_string() })
    }

    /// The dispute about a Windows Machine's address that an entry or another Machine has as well.
    fn dispute_of_address(&self, address: IpAddr) -> Option<Dispute> {
        let machines: Vec<&MachineFacts> =
            self.machines.with_address(address).map(AsRef::as_ref).collect();
        let message = match *machines {
            [one, other, ..] => format!(
                "{} and {} both have the address {address}, delete the Machine that lost it",
                one.title(),
                other.title()
            ),
            [machine] => {
                let entry = self.instances.at(address).find(|other| other.machine.is_none())?;
                format!(
                    "{} is the host of {}, remove the entry or label the Machine {IGNORE_LABEL}=true",
                    entry.title(),
                    machine.title()
                )
            }
            [] => return None,
        };
        Some(Dispute { name: address.to_string(), message })
    }

    /// The claim of another host to a name that the list or the Machine API gives to `owner`.
    fn vain_claim<'a>(&'a self, name: &str, owner: &'a Instance) -> Option<Conflict<'a>> {
        // The address shows whether an entry is the host of a Machine.
        let is_one = |other: &Instance| {
            other.is_reached_as(owner) || owner.machine.as_ref().is_some_and(|m| other.is_on(m))
        };
        let mut others = self
            .instances
            .told(name)
            .filter(|(claim, other)| self.may_be_node_name(claim) && !is_one(other));
        let (claim, instance) = others.next()?;
        let against = Against::Owner(Owner::Instance(owner));
        Some(Conflict { claimant: (instance, claim.source), against })
    }

    /// The Machine or the Node of another host that has the name, for a `claimant` that is not listed by it.
    fn owner_outside_the_list(&self, name: &str, claimant: &Instance) -> Option<Owner<'_>> {
        if let Some(machine) = self.other_with_name(name, claimant) {
            return Some(Owner::Machine(&machine.name));
        }
        let (name, node) = self.nodes.get_key_value(name)?;
        let runs_windows = node.os.as_deref() == Some(OS_WINDOWS);
        let is_others = !runs_windows || self.is_on_another_host(node, claimant);
        is_others.then_some(Owner::Node(name))
    }
}

/// Returns the best of several claims; disputed if they are of different hosts.
fn choose<'a>(
    claims: impl Iterator<Item = (&'a Claim, &'a Instance)> + Clone,
) -> Option<Found<'a>> {
    let best = claims.clone().min_by_key(|(claim, _)| (claim.source, claim.whole.is_some()));
    let (claim, instance) = best?;
    let mut others = claims.filter(|(_, other)| !other.is_reached_as(instance));
    Some(match others.next() {
        None => Found::One(instance, claim.source),
        Some((claim_of_other, other)) => Found::Disputed(Conflict {
            claimant: (instance, claim.source),
            against: Against::Claim(other, claim_of_other.source),
        }),
    })
}
