//! Which instance claims which name and which address, and how that is known.
//!
//! Names come from three sources, best first: the address under which an administrator listed the
//! instance, the host name that it reported over a pinned connection, and reverse DNS. Who gets a
//! name that several claim is decided in [`owners`](super::owners).

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

use wmco_core::facts::Facts;
use wmco_core::instances::Resolve as _;
use wmco_core::limits;

use super::{View, fold};

/// How it is known that an instance has a name, best first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Source {
    /// It is listed under it.
    Address,
    /// Its host reported it as its host name.
    HostName,
    /// Reverse DNS says so, and forward DNS does not object.
    ReverseDns,
}

/// One instance that the operator was asked to make a node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Instance {
    /// As it is listed.
    pub(crate) address: String,
    /// The IP address that it is listed by, if it is one.
    literal: Option<IpAddr>,
    /// The address that it is listed by or resolves to, if that is known.
    pub(crate) ipv4: Option<Ipv4Addr>,
    /// The port of its SSH server, which tells hosts behind one address apart.
    port: u16,
    /// The host name that its host reported, folded.
    pub(crate) host_name: Option<String>,
    /// The addresses that its host reported; `None` if it was not asked.
    pub(crate) addresses: Option<Vec<IpAddr>>,
    /// The names that reverse DNS gives for its address and that do not lead elsewhere, folded.
    pub(crate) pointers: Vec<String>,
}

/// All instances, by the names and addresses that their nodes may have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Instances {
    list: Vec<Instance>,
    by_name: HashMap<String, Claims>,
    /// By what they are listed by or resolve to.
    by_address: HashMap<IpAddr, Vec<usize>>,
    /// By what their hosts reported.
    by_report: HashMap<IpAddr, Vec<usize>>,
    /// Where the DNS leads the names that somebody claims.
    leads: HashMap<String, Vec<IpAddr>>,
    /// How many have not reported their host name yet.
    unnamed: usize,
}

/// Who claims one name. What is listed is looked up for each of the others.
#[derive(Clone, Debug, Default)]
struct Claims {
    listed: Vec<Claim>,
    others: Vec<Claim>,
}

/// The claim of an instance to a name.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    instance: usize,
    pub(crate) source: Source,
    /// The full name whose first label the name is; `None` if it is the full name itself.
    pub(crate) whole: Option<String>,
}

impl View {
    /// Replaces all instances: each address as it is listed, with the address that it resolves to
    /// where that is known. What `facts` says about other addresses is of no interest.
    pub fn set_instances<'i>(
        &mut self,
        instances: impl IntoIterator<Item = (&'i str, Option<Ipv4Addr>)>,
        facts: &Facts,
    ) {
        let resolve = |(address, ipv4)| Instance::new(address, ipv4, limits::SSH_PORT, facts);
        self.instances = Instances::new(instances.into_iter().map(resolve).collect(), facts);
    }
}

impl Instance {
    pub(super) fn new(address: &str, ipv4: Option<Ipv4Addr>, port: u16, facts: &Facts) -> Self {
        let literal: Option<IpAddr> = address.parse().ok();
        let own_ipv4 = match literal {
            Some(IpAddr::V4(ipv4)) => Some(ipv4),
            Some(IpAddr::V6(_)) | None => None,
        };
        let host_name = facts.hostnames.get(address).map(|name| fold(name));
        let reported = facts.addresses.as_ref().and_then(|all| all.get(address));
        let pointers = literal.map_or(&[][..], |address| facts.reverse(address));
        // Whoever runs reverse DNS could claim any name, so a forward answer that disagrees wins.
        let agrees = |name: &String| {
            let forward = facts.leads_to(name);
            forward.is_empty() || literal.is_some_and(|address| forward.contains(&address))
        };
        Self {
            address: address.to_owned(),
            literal,
            ipv4: ipv4.or(own_ipv4).or_else(|| facts.resolve(address).ok()),
            port,
            host_name: host_name.filter(|name| is_name(name)),
            addresses: reported.map(|list| list.iter().map(IpAddr::to_canonical).collect()),
            pointers: pointers.iter().map(|name| fold(name)).filter(agrees).collect(),
        }
    }

    /// The DNS name that it is listed by, as it is written.
    pub(crate) fn listed_name(&self) -> Option<&str> {
        self.literal.is_none().then_some(self.address.as_str())
    }

    /// Whether a person wrote down that it has `address`.
    pub(crate) fn is_listed_by(&self, address: IpAddr) -> bool {
        self.literal == Some(address)
    }

    /// Whether it is listed by `address` or by a name that leads there.
    pub(crate) fn is_reached_at(&self, address: IpAddr) -> bool {
        self.is_listed_by(address) || self.ipv4.map(IpAddr::V4) == Some(address)
    }

    /// Whether the list, the DNS or the host itself says that it has `address`.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        self.is_reached_at(address)
            || self.addresses.as_ref().is_some_and(|list| list.contains(&address))
    }

    /// Whether both are the same entry, or lead to the same SSH server.
    pub(crate) fn is_reached_as(&self, other: &Self) -> bool {
        self.address == other.address
            || (self.ipv4.is_some() && (self.ipv4, self.port) == (other.ipv4, other.port))
    }

    /// Whether what answers where the DNS leads says that it is what it is listed as.
    pub(crate) fn calls_itself_as_listed(&self) -> bool {
        let label = |name: &str| name.split('.').next().map(str::to_ascii_lowercase);
        let (listed, reported) = (self.listed_name(), self.host_name.as_deref());
        listed.zip(reported).is_some_and(|(listed, reported)| {
            let has_domains = listed.contains('.') && reported.contains('.');
            fold(listed) == reported || (!has_domains && label(listed) == label(reported))
        })
    }

    /// All claims to names: the source, the name, and the full name where that is another.
    fn claims(&self) -> impl Iterator<Item = (Source, String, Option<String>)> {
        let listed = self.listed_name().map(|name| (Source::Address, fold(name)));
        let reported = self.host_name.iter().map(|name| (Source::HostName, name.clone()));
        let pointers = self.pointers.iter().map(|name| (Source::ReverseDns, name.clone()));
        let all = listed.into_iter().chain(reported).chain(pointers);
        all.flat_map(|(source, name)| {
            let label = name.split_once('.').map(|(label, _)| label.to_owned());
            let short = label.map(|label| (source, label, Some(name.clone())));
            [(source, name, None)].into_iter().chain(short)
        })
    }
}

/// A host that calls itself by an address has no name.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.parse::<IpAddr>().is_err()
}

impl Instances {
    pub(super) fn new(list: Vec<Instance>, facts: &Facts) -> Self {
        let mut instances = Self {
            unnamed: list.iter().filter(|instance| instance.host_name.is_none()).count(),
            ..Self::default()
        };
        for (index, instance) in list.iter().enumerate() {
            for (source, name, whole) in instance.claims() {
                // Where its own name leads is what the entry means, so nothing can contradict it.
                for name in [Some(&name), whole.as_ref()].into_iter().flatten() {
                    let leads = facts.leads_to(name);
                    if !leads.is_empty() && !instances.leads.contains_key(name) {
                        let leads = leads.iter().map(IpAddr::to_canonical).collect();
                        instances.leads.insert(name.clone(), leads);
                    }
                }
                let claim = Claim { instance: index, source, whole };
                let claims = instances.by_name.entry(name).or_default();
                match source {
                    Source::Address => claims.listed.push(claim),
                    Source::HostName | Source::ReverseDns => claims.others.push(claim),
                }
            }
            let ipv4 = instance.ipv4.map(IpAddr::V4);
            let reached = instance.literal.filter(|literal| Some(*literal) != ipv4);
            for address in ipv4.into_iter().chain(reached) {
                instances.by_address.entry(address).or_default().push(index);
            }
            for address in instance.addresses.iter().flatten() {
                instances.by_report.entry(*address).or_default().push(index);
            }
        }
        instances.list = list;
        instances
    }

    /// Who claims `name` (lower case).
    pub(crate) fn claims(&self, name: &str) -> impl Iterator<Item = (&Claim, &Instance)> + Clone {
        self.listed(name).chain(self.told(name))
    }

    /// Who is listed by `name`, or by a name that starts with it.
    pub(crate) fn listed(&self, name: &str) -> impl Iterator<Item = (&Claim, &Instance)> + Clone {
        self.with_instances(self.by_name.get(name).map(|claims| &claims.listed))
    }

    /// Who claims `name` by a report or reverse DNS.
    pub(crate) fn told(&self, name: &str) -> impl Iterator<Item = (&Claim, &Instance)> + Clone {
        self.with_instances(self.by_name.get(name).map(|claims| &claims.others))
    }

    fn with_instances<'a>(
        &'a self,
        claims: Option<&'a Vec<Claim>>,
    ) -> impl Iterator<Item = (&'a Claim, &'a Instance)> + Clone {
        let claims = claims.map_or(&[][..], Vec::as_slice).iter();
        claims.filter_map(|claim| Some((claim, self.list.get(claim.instance)?)))
    }

    /// Every name that somebody claims.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// The instances that are listed by `address` or by a name that leads there.
    pub(crate) fn at(&self, address: IpAddr) -> impl Iterator<Item = &Instance> {
        self.among(self.by_address.get(&address))
    }

    /// The instances whose hosts reported `address`.
    pub(crate) fn reporting(&self, address: IpAddr) -> impl Iterator<Item = &Instance> {
        self.among(self.by_report.get(&address))
    }

    fn among(&self, found: Option<&Vec<usize>>) -> impl Iterator<Item = &Instance> {
        found.map_or(&[][..], Vec::as_slice).iter().filter_map(|index| self.list.get(*index))
    }

    /// Where the DNS leads `name`; empty if it does not, or nobody claims the name.
    pub(crate) fn leads(&self, name: &str) -> &[IpAddr] {
        self.leads.get(name).map_or(&[], Vec::as_slice)
    }

    /// How many instances have not reported their host name yet.
    pub(crate) fn unnamed(&self) -> usize {
        self.unnamed
    }
}
