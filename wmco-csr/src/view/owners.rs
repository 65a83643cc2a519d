//! To whom a name or an address belongs when several claim it.
//!
//! - What a person listed outranks what hosts report and what the DNS says.
//! - A report decides about its own host alone: it takes nothing from an entry, a Node or a Machine.
//! - Two claims of the same weight give the name to neither.
//!
//! Every question is a few hash look-ups, whatever the size of the cluster.

use std::fmt;
use std::net::IpAddr;

use wmco_core::names::OS_WINDOWS;

use super::instances::Claim;
use super::{Instance, NodeFacts, Source, View};

/// Who owns a node name, as far as the list of instances tells.
#[derive(Debug)]
pub(crate) enum Found<'a> {
    /// This instance, known from there.
    One(&'a Instance, Source),
    /// Somebody claims it, and may not have it.
    Disputed(Conflict<'a>),
    /// Nobody; the number of instances whose host name is not known yet.
    None { unnamed: usize },
}

/// Why an instance is not given a name that it claims.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conflict<'a> {
    claimant: (&'a Instance, Source),
    against: Against<'a>,
}

/// What speaks against a claim.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Against<'a> {
    /// Another instance has a claim that is as good.
    Claim(&'a Instance, Source),
    /// The DNS leads the name to an address that is not the host's, but its owner's if there is one.
    Dns(IpAddr, Option<Owner<'a>>),
    /// It is somebody else's.
    Owner(Owner<'a>),
}

/// Who has a name or an address, other than the host that asks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner<'a> {
    /// The entry with this address as it is listed.
    Entry(&'a str),
    /// A Machine.
    Machine,
    /// The Node of this name.
    Node(&'a str),
    /// The host of this entry reported it.
    Report(&'a str),
    /// No host may have it.
    Reserved(&'static str),
}

/// Hosts that claim one name, or one host that claims the name of another.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Dispute {
    /// The name.
    pub name: String,
    /// Who claims it, what speaks against that, and what to do. One line.
    pub message: String,
}

impl View {
    /// The instance whose Node is called `name` (lower case). `node` is the Node of that name, if the
    /// question is which host it runs on.
    pub(crate) fn find(&self, name: &str, node: Option<&NodeFacts>) -> Found<'_> {
        let shortens = |(claim, _): &(&Claim, &Instance)| self.may_be_node_name(claim);
        let (listed, short) = self.listed(name);
        if let Some(found) = choose(listed).or_else(|| choose(short.filter(shortens))) {
            return found;
        }
        let mut rivals = Vec::new();
        let mut disputed = None;
        for (claim, instance) in self.instances.told(name).filter(shortens) {
            if node.is_some_and(|node| self.is_on_another_host(node, instance)) {
                continue;
            }
            match self.listed_elsewhere(name, instance, name) {
                None => rivals.push((claim, instance)),
                Some(owner) => {
                    let against = Against::Owner(owner);
                    let conflict = Conflict { claimant: (instance, claim.source), against };
                    disputed.get_or_insert(Found::Disputed(conflict));
                }
            }
        }
        // Where hosts disagree, the DNS does not decide: it may be what was forged.
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

    /// The entries that are listed by `name`, and those by a name that starts with it.
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

    /// Whether the cluster would give that name to the Node of the claiming host.
    fn may_be_node_name(&self, claim: &Claim) -> bool {
        claim.whole.as_ref().is_none_or(|whole| self.cluster.node_names.shortens(whole))
    }

    /// Whether a Node runs on the host of an entry that is not `instance`.
    fn is_on_another_host(&self, node: &NodeFacts, instance: &Instance) -> bool {
        let of_others = |address: &IpAddr| {
            self.instances.at(*address).any(|other| !other.is_reached_as(instance))
        };
        !node.addresses.iter().any(|address| instance.is_reached_at(*address))
            && node.addresses.iter().any(of_others)
    }

    /// What the DNS says against the claim of `instance` to `name`.
    fn contradicted_by_dns(
        &self,
        name: &str,
        claim: &Claim,
        instance: &Instance,
    ) -> Option<Against<'_>> {
        let names = [Some(name), claim.whole.as_deref()];
        names.into_iter().flatten().find_map(|of| self.led_elsewhere(of, name, instance))
    }

    /// The other entry that is listed by `name`, or by a name that starts with it.
    fn listed_elsewhere(&self, name: &str, instance: &Instance, node: &str) -> Option<Owner<'_>> {
        let (full, short) = self.listed(name);
        let is_own = |(_, listed): (&Claim, &Instance)| self.is_one_host(listed, instance, node);
        let mut entries = full.clone().chain(short.clone());
        let is_full = full.clone().next().is_some();
        if full.clone().any(is_own) || (!is_full && short.clone().any(is_own)) {
            return None;
        }
        entries.next().map(|(_, other)| Owner::Entry(&other.address))
    }

    /// Whether `other` is a second entry for the host of `instance`, on which the Node `node` runs.
    ///
    /// That both lead to one SSH server is not enough, for the DNS of either may be wrong: `other` has
    /// to claim the name of the Node as well, or what answers there has to say that it is `instance`.
    /// Against an entry by address the latter counts nothing.
    fn is_one_host(&self, other: &Instance, instance: &Instance, node: &str) -> bool {
        let claims_node = || {
            let mut claims = self.instances.claims(node);
            claims.any(|(_, claimant)| claimant.address == other.address)
        };
        let outranks = || other.listed_name().is_some() && instance.calls_itself_as_listed();
        other.address == instance.address
            || (other.is_reached_as(instance) && (claims_node() || outranks()))
    }

    /// Where the DNS leads `name`, if not to the host of `instance` alone. A single label is completed
    /// by each resolver in its own way, so there only an address that somebody has speaks against it.
    fn led_elsewhere(&self, name: &str, node: &str, instance: &Instance) -> Option<Against<'_>> {
        let leads = self.instances.leads(name);
        let elsewhere = || leads.iter().filter(|address| !instance.is_reached_at(**address));
        let owned = elsewhere().find_map(|address| {
            let reserved = || self.cluster.reserves_address(*address).map(Owner::Reserved);
            let stranger = self.other_owner_of_address(*address, instance, node);
            let owner = stranger.or_else(|| reserved().filter(|_| !instance.has(*address)));
            Some(Against::Dns(*address, Some(owner?)))
        });
        let unknown = || {
            let first = leads.first().filter(|_| name.contains('.'))?;
            let own = leads.iter().any(|address| instance.has(*address));
            (!own).then_some(Against::Dns(*first, None))
        };
        owned.or_else(unknown)
    }

    /// Who else has `address`, when the Node `node` on the host of `instance` asks for it.
    pub(crate) fn other_owner_of_address(
        &self,
        address: IpAddr,
        instance: &Instance,
        node: &str,
    ) -> Option<Owner<'_>> {
        if self.machines.has_other_with_address(address, instance) {
            return Some(Owner::Machine);
        }
        // A person wrote it down: neither the DNS nor another Node can take it away.
        if instance.is_listed_by(address) {
            return None;
        }
        let is_other = |other: &&Instance| !self.is_one_host(other, instance, node);
        if let Some(entry) = self.instances.at(address).find(is_other) {
            return Some(Owner::Entry(&entry.address));
        }
        let is_reached = instance.is_reached_at(address);
        // Where what answers there has said that it is the entry, other hosts of ours claim in vain.
        let is_sure = is_reached && instance.calls_itself_as_listed();
        let counts = |name: &&String| *name != node && !(is_sure && self.is_of_a_host(name));
        if let Some(other) = self.nodes_by_address.holders(&address).find(counts) {
            return Some(Owner::Node(other));
        }
        if is_reached {
            return None;
        }
        let report = self.instances.reporting(address).find(is_other);
        report.map(|entry| Owner::Report(&entry.address))
    }

    /// Whether a Node is a Windows node by a name that a listed host claims.
    fn is_of_a_host(&self, node: &str) -> bool {
        let os = self.node(node).and_then(|facts| facts.os.as_deref());
        os == Some(OS_WINDOWS) && self.instances.claims(node).next().is_some()
    }

    /// What speaks against giving `name` (lower case) to the Node `node` on the host of `instance`.
    pub(crate) fn against_name(
        &self,
        name: &str,
        instance: &Instance,
        node: &str,
    ) -> Option<Against<'_>> {
        // That it may be called so is decided already.
        if name == node {
            return None;
        }
        let owner = Against::Owner;
        if let Some((other, _)) = self.nodes.get_key_value(name) {
            return Some(owner(Owner::Node(other)));
        }
        if self.machines.has_other_with_name(name, instance) {
            return Some(owner(Owner::Machine));
        }
        if let Some(entry) = self.listed_elsewhere(name, instance, node) {
            return Some(owner(entry));
        }
        if instance.listed_name().is_some_and(|listed| super::fold(listed) == name) {
            return None;
        }
        if let Some(other) = self.nodes_by_name.holders(name).find(|other| *other != node) {
            return Some(owner(Owner::Node(other)));
        }
        let mut claims = self.instances.claims(name).filter(|(claim, other)| {
            self.may_be_node_name(claim) && !other.is_reached_as(instance)
        });
        let report = claims.next().map(|(_, other)| owner(Owner::Report(&other.address)));
        report.or_else(|| self.led_elsewhere(name, node, instance))
    }

    /// Every name that is claimed by more than one host, or by a host that it does not belong to;
    /// sorted. Looks at all instances: to be asked when they change.
    pub fn disputes(&self) -> Vec<Dispute> {
        let mut disputes: Vec<Dispute> =
            self.instances.names().filter_map(|name| self.dispute(name)).collect();
        disputes.sort();
        disputes
    }

    fn dispute(&self, name: &str) -> Option<Dispute> {
        let conflict = match self.find(name, None) {
            Found::Disputed(conflict) => conflict,
            Found::None { .. } => return None,
            Found::One(owner, Source::Address) => self.vain_claim(name, owner)?,
            Found::One(claimant, source) => {
                let owner = self.owner_outside_the_list(name, claimant)?;
                Conflict { claimant: (claimant, source), against: Against::Owner(owner) }
            }
        };
        Some(Dispute { name: name.to_owned(), message: conflict.of(name).to_string() })
    }

    /// The claim of another host to a name that the entry `owner` is listed by.
    fn vain_claim<'a>(&'a self, name: &str, owner: &'a Instance) -> Option<Conflict<'a>> {
        let mut others = self
            .instances
            .told(name)
            .filter(|(claim, other)| self.may_be_node_name(claim) && !other.is_reached_as(owner));
        let (claim, instance) = others.next()?;
        let against = Against::Owner(Owner::Entry(&owner.address));
        Some(Conflict { claimant: (instance, claim.source), against })
    }

    /// The Machine or the Node of another host that has the name, which `claimant` is not listed by.
    fn owner_outside_the_list(&self, name: &str, claimant: &Instance) -> Option<Owner<'_>> {
        if self.machines.has_other_with_name(name, claimant) {
            return Some(Owner::Machine);
        }
        let (name, node) = self.nodes.get_key_value(name)?;
        let runs_windows = node.os.as_deref() == Some(OS_WINDOWS);
        let is_others = !runs_windows || self.is_on_another_host(node, claimant);
        is_others.then_some(Owner::Node(name))
    }
}

/// The best of claims that weigh the same, unless they are those of different hosts.
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

impl Source {
    /// As in "known by ...".
    pub(crate) fn how(self) -> &'static str {
        match self {
            Self::Address => "by its address",
            Self::HostName => "by its host name",
            Self::ReverseDns => "by reverse DNS",
        }
    }
}

impl<'a> Conflict<'a> {
    /// In words, for the name that it is about.
    pub(crate) fn of(&self, name: &str) -> impl fmt::Display {
        let Self { claimant: (instance, source), against } = self;
        let (address, how) = (&instance.address, source.how());
        match against {
            Against::Claim(other, source) => format!(
                "{address} ({how}) and {} ({}) both claim the name {name}, rename one of the hosts or \
                 correct the DNS",
                other.address,
                source.how()
            ),
            Against::Dns(..) | Against::Owner(_) => format!(
                "{address} ({how}) claims the name {name}, but {against}; rename the host or correct \
                 the DNS"
            ),
        }
    }

    /// What speaks against the claim.
    pub(crate) fn against(&self) -> Against<'a> {
        self.against
    }
}

impl<'a> Against<'a> {
    /// The Node that speaks against it, if it is one.
    pub(crate) fn node(&self) -> Option<&'a str> {
        match self {
            Self::Dns(_, Some(Owner::Node(node))) | Self::Owner(Owner::Node(node)) => Some(node),
            Self::Claim(..) | Self::Dns(..) | Self::Owner(_) => None,
        }
    }
}

impl fmt::Display for Against<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claim(other, source) => {
                write!(f, "{} claims it {}, too", other.address, source.how())
            }
            Self::Dns(to, None) => write!(f, "the DNS leads it to {to}"),
            Self::Dns(to, Some(owner)) => write!(f, "the DNS leads it to {to}, and {owner}"),
            Self::Owner(owner) => owner.fmt(f),
        }
    }
}

impl fmt::Display for Owner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry(address) => write!(f, "that is entry {address}'s"),
            Self::Machine => f.write_str("that is a Machine's"),
            Self::Node(name) => write!(f, "that is node {name}'s"),
            Self::Report(address) => write!(f, "the host of entry {address} reports it, too"),
            Self::Reserved(what) => write!(f, "that is {what}"),
        }
    }
}
