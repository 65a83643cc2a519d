//! Which instance has which name, and how that is known.
//!
//! Names come from three sources, best first: the host name that the instance itself reported over
//! a pinned connection, the address under which an administrator listed it, and reverse DNS. DNS is
//! evidence and never a veto: an address without a name, or with a wrong one, takes nothing away
//! from what the other sources say, or from other instances.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

use wmco_core::facts::Facts;
use wmco_core::instances::Resolve as _;

use super::{View, fold};

/// How it is known that an instance has a name, best first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Source {
    /// The instance reported it as its host name.
    HostName,
    /// It is listed under it.
    Address,
    /// Reverse DNS says so, and forward DNS does not object.
    ReverseDns,
}

/// One instance that the operator was asked to make a node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Instance {
    /// As it is listed.
    pub(crate) address: String,
    /// The address that it resolves to, if that is known.
    pub(crate) ipv4: Option<Ipv4Addr>,
    /// The host name that it reported, folded.
    pub(crate) host_name: Option<String>,
}

/// All instances, by the names that their nodes may have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Instances {
    list: Vec<Instance>,
    by_name: HashMap<String, Match>,
    /// How many have not reported their host name yet.
    unnamed: usize,
}

/// The best claim to a name. Full names are better than first labels of the same source, and the
/// two sources that we trust come before reverse DNS, whatever part of the name it is.
#[derive(Clone, Copy, Debug)]
struct Match {
    rank: (bool, bool, Source),
    instance: usize,
    /// Whether a different instance has a claim that is just as good.
    ambiguous: bool,
}

/// What the instances say about a node name.
#[derive(Debug)]
pub(crate) enum Found<'a> {
    /// Several instances could be meant.
    Several,
    /// This one, known from there.
    One(&'a Instance, Source),
    /// None of them; the number of those whose host name is not known yet.
    None { unnamed: usize },
}

impl View {
    /// Replaces all instances: each address as it is listed, with the address that it resolves to
    /// where that is known. What `facts` says about other addresses is of no interest.
    pub fn set_instances<'i>(
        &mut self,
        instances: impl IntoIterator<Item = (&'i str, Option<Ipv4Addr>)>,
        facts: &Facts,
    ) {
        let list = instances.into_iter().map(|(address, ipv4)| resolve(address, ipv4, facts));
        self.instances = Instances::new(list.collect(), facts);
    }
}

fn resolve(address: &str, ipv4: Option<Ipv4Addr>, facts: &Facts) -> Instance {
    let literal = || address.parse().ok();
    let looked_up = || facts.resolve(address).ok();
    let host_name = facts.hostnames.get(address).map(|name| fold(name));
    Instance {
        address: address.to_owned(),
        ipv4: ipv4.or_else(literal).or_else(looked_up),
        host_name: host_name.filter(|name| !name.is_empty() && name.parse::<IpAddr>().is_err()),
    }
}

impl Instances {
    fn new(list: Vec<Instance>, facts: &Facts) -> Self {
        let unnamed = list.iter().filter(|instance| instance.host_name.is_none()).count();
        let mut instances = Self { list: Vec::new(), by_name: HashMap::new(), unnamed };
        for (index, instance) in list.iter().enumerate() {
            for (source, name) in claims(instance, facts) {
                if let Some((label, _)) = name.split_once('.') {
                    let rank = (source == Source::ReverseDns, true, source);
                    instances.claim(&list, label, rank, index);
                }
                let rank = (source == Source::ReverseDns, false, source);
                instances.claim(&list, &name, rank, index);
            }
        }
        instances.list = list;
        instances
    }

    fn claim(&mut self, list: &[Instance], name: &str, rank: (bool, bool, Source), index: usize) {
        let claim = Match { rank, instance: index, ambiguous: false };
        let Some(known) = self.by_name.get_mut(name) else {
            self.by_name.insert(name.to_owned(), claim);
            return;
        };
        if rank < known.rank {
            *known = claim;
        } else if rank == known.rank {
            // A host may be listed twice, by name and by address.
            let host = |at: usize| list.get(at).map(|i| (i.ipv4, i.ipv4.is_none().then_some(at)));
            known.ambiguous |= host(known.instance) != host(index);
        }
    }

    /// The instance whose node would be called `name` (lower case).
    pub(crate) fn find(&self, name: &str) -> Found<'_> {
        let found = self.by_name.get(name).map(|found| (found, self.list.get(found.instance)));
        match found {
            Some((Match { ambiguous: true, .. }, _)) => Found::Several,
            Some((found, Some(instance))) => Found::One(instance, found.rank.2),
            Some((_, None)) | None => Found::None { unnamed: self.unnamed },
        }
    }
}

/// The full names of an instance, folded.
fn claims(instance: &Instance, facts: &Facts) -> Vec<(Source, String)> {
    let mut claims = Vec::new();
    if let Some(name) = &instance.host_name {
        claims.push((Source::HostName, name.clone()));
    }
    let Ok(address) = instance.address.parse::<IpAddr>() else {
        claims.push((Source::Address, fold(&instance.address)));
        return claims;
    };
    let pointers = facts.reverse(address).iter().map(|name| fold(name));
    // Whoever runs reverse DNS could claim any name, so a forward answer that disagrees wins.
    let agreed = pointers.filter(|name| facts.resolve(name).map_or(true, |to| to == address));
    claims.extend(agreed.map(|name| (Source::ReverseDns, name)));
    claims
}
