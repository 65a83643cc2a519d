//! The names and addresses that each instance claims, and the source of each claim.
//!
//! An instance is the host of an entry that an administrator listed, or of a Machine that runs Windows. Names of an
//! entry's host come from the address in the list, names of a Machine's host from the Machine API; then from the
//! host names that the host reported over a pinned connection; then from reverse DNS. [`owners`](super::owners)
//! decides which instance gets a name that several claim.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use wmco_core::facts::Facts;
use wmco_core::instances::{AlsoNamed, Resolve as _};
use wmco_core::{limits, machines};

use super::{MachineFacts, View, fold};

/// The source of an instance's name, best first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Source {
    /// The list of instances has the name.
    Address,
    /// The entry has it among the further names of its host.
    Names,
    /// The Machine API gives the name to the Machine.
    Machine,
    /// The Machine's own name, on platforms that name hosts as their Machines.
    MachineName,
    /// The host reported it as its host name, or as its name in the cloud.
    HostName,
    /// Reverse DNS, if forward DNS does not contradict it.
    ReverseDns,
}

/// An instance that the operator is asked to make a node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Instance {
    /// The address as it is listed; the Machine's key if the instance is not listed.
    pub(crate) address: String,
    /// The Machine whose host it is; `None` for a listed instance.
    pub(crate) machine: Option<Arc<MachineFacts>>,
    key: Key,
    /// The further names and addresses of its entry, normalized. Nobody else has them, whether or not they count for
    /// the host.
    also: Vec<AlsoNamed>,
    /// Whether the host at hand is the one that the further names were written for, so that they count for it.
    is_met: bool,
    /// The address that is listed or that the listed name resolves to, if known.
    pub(crate) ipv4: Option<Ipv4Addr>,
    /// The port of its SSH server, which distinguishes hosts behind one address.
    port: u16,
    /// The names that the host reported, normalized, each once: its host name, and the one that its cloud's metadata
    /// service gives it.
    pub(crate) host_names: Vec<String>,
    /// The addresses that the host reported; `None` if it was not asked.
    pub(crate) addresses: Option<Vec<IpAddr>>,
    /// The names that reverse DNS gives for its address and that do not lead elsewhere, normalized.
    pub(crate) pointers: Vec<String>,
}

/// What the key of an entry says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Key {
    /// The host has this address.
    Address(IpAddr),
    /// The host has this name.
    Name,
    /// Nothing: it can be neither, or the instance is that of a Machine.
    Nothing,
}

/// All instances, by the names and addresses that their nodes may have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Instances {
    listed: Part,
    of_machines: Part,
}

/// The instances of one kind.
#[derive(Clone, Debug, Default)]
struct Part {
    list: Vec<Instance>,
    by_name: HashMap<String, Claims>,
    /// By the address that is listed, resolved, given by the Machine API or named by the entry.
    by_address: HashMap<IpAddr, Vec<usize>>,
    /// By the addresses that the hosts reported.
    by_report: HashMap<IpAddr, Vec<usize>>,
    /// Number of instances that have not reported their host name yet.
    unnamed: usize,
}

/// The claims to one name. Claims from the list and the Machine API are looked up for each of the others.
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
    /// The full name whose first label is the claimed name; `None` if the claimed name is the full name.
    pub(crate) whole: Option<String>,
}

impl View {
    /// Replaces all instances: each listed address, with the address that it resolves to if known. Other addresses
    /// in `facts` are ignored.
    pub fn set_instances<'i>(
        &mut self,
        instances: impl IntoIterator<Item = (&'i str, Option<Ipv4Addr>)>,
        facts: &Facts,
    ) {
        let resolve =
            |(address, ipv4)| Instance::new(address, ipv4, limits::SSH_PORT, Vec::new(), facts);
        self.set_listed(instances.into_iter().map(resolve).collect(), facts);
    }
}

impl Instance {
    pub(super) fn new(
        address: &str,
        ipv4: Option<Ipv4Addr>,
        port: u16,
        also: Vec<AlsoNamed>,
        facts: &Facts,
    ) -> Self {
        let literal: Option<IpAddr> = address.parse().ok();
        let own_ipv4 = match literal {
            Some(IpAddr::V4(ipv4)) => Some(ipv4),
            Some(IpAddr::V6(_)) | None => None,
        };
        let pointers = literal.map_or(&[][..], |address| facts.reverse(address));
        // The owner of reverse DNS could claim any name, so a contradicting forward answer wins.
        let agrees = |name: &String| {
            let forward = facts.leads_to(name);
            forward.is_empty() || literal.is_some_and(|address| forward.contains(&address))
        };
        let ipv4 = ipv4.or(own_ipv4).or_else(|| facts.resolve(address).ok());
        // Whoever controls the DNS may lead the key to another host. Reports are of hosts that showed the pinned key
        // where the key leads; `None` for all of them says that no host can be asked.
        let was_there = || facts.addresses.as_ref().is_none_or(|all| all.contains_key(address));
        Self {
            machine: None,
            key: literal.map_or(Key::Name, Key::Address),
            also,
            is_met: literal.is_some() || ipv4.is_some() && was_there(),
            ipv4,
            port,
            pointers: pointers.iter().map(|name| fold(name)).filter(agrees).collect(),
            ..Self::reported(address.to_owned(), facts)
        }
    }

    /// The same for an entry whose key is wrong: it keeps further names from others, and its host is not known.
    pub(super) fn without_key(self) -> Self {
        Self { key: Key::Nothing, is_met: false, ipv4: None, pointers: Vec::new(), ..self }
    }

    /// The host of a Machine, if the Machine has a usable host.
    fn of_machine(machine: &Arc<MachineFacts>, facts: &Facts) -> Option<Self> {
        let ipv4 = *machine.host.as_ref()?.as_ref().ok()?;
        Some(Self {
            machine: Some(Arc::clone(machine)),
            ipv4: Some(ipv4),
            ..Self::reported(machines::key(&machine.name), facts)
        })
    }

    /// An instance with only the reported facts of the host known by `address`.
    fn reported(address: String, facts: &Facts) -> Self {
        let told = facts.hostnames.get(&address).into_iter();
        let told = told.chain(facts.metadata_names.get(&address)).map(|name| fold(name));
        let mut host_names: Vec<String> = told.filter(|name| is_name(name)).collect();
        host_names.dedup();
        let reported = facts.addresses.as_ref().and_then(|all| all.get(&address));
        Self {
            machine: None,
            key: Key::Nothing,
            also: Vec::new(),
            is_met: true,
            ipv4: None,
            port: limits::SSH_PORT,
            host_names,
            addresses: reported.map(|list| list.iter().map(IpAddr::to_canonical).collect()),
            pointers: Vec::new(),
            address,
        }
    }

    /// The name of the instance in messages.
    pub(crate) fn title(&self) -> Cow<'_, str> {
        match &self.machine {
            None => Cow::Borrowed(&self.address),
            Some(machine) => Cow::Owned(machine.title().to_string()),
        }
    }

    /// The listed DNS name, as it is written.
    pub(crate) fn listed_name(&self) -> Option<&str> {
        (self.key == Key::Name).then_some(self.address.as_str())
    }

    /// Whether it is the host of `machine`, or an entry that means that host: an entry with its address, or with
    /// its name if the Machine has the ignore label so that its host can be listed.
    pub(crate) fn is_on(&self, machine: &Arc<MachineFacts>) -> bool {
        if let Some(own) = &self.machine {
            return Arc::ptr_eq(own, machine);
        }
        let is_there = self.ipv4.is_some_and(|ipv4| machine.addresses.contains(&ipv4.into()));
        let is_listed_as = || {
            let listed = self.listed_name().map(fold);
            listed.is_some_and(|listed| {
                listed == fold(&machine.name) || machine.names.contains(&listed)
            })
        };
        is_there || (machine.is_ignored() && is_listed_as())
    }

    /// Whether the Machine API gives `address` to its Machine.
    pub(crate) fn is_given(&self, address: IpAddr) -> bool {
        self.machine.as_ref().is_some_and(|machine| machine.addresses.contains(&address))
    }

    /// Whether the list or the Machine API gives it the name `name` (lower case).
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.is_first_called(name) || self.met_names().any(|own| own == name)
    }

    /// The same, by other than the further names of its entry.
    pub(super) fn is_first_called(&self, name: &str) -> bool {
        let is_given = |machine: &Arc<MachineFacts>| machine.names.iter().any(|own| own == name);
        self.machine.as_ref().is_some_and(is_given)
            || self.listed_name().is_some_and(|listed| fold(listed) == name)
    }

    /// Whether its entry has `name` (lower case) or `address` among further names that do not count for the host at
    /// hand: nobody knows yet whether that is the host of the entry.
    pub(crate) fn is_promised(&self, what: &AlsoNamed) -> bool {
        !self.is_met && self.also.contains(what)
    }

    /// Whether further names of its entry count. Source: `docs/contract/certificate-requests.md`, CSR55.
    pub(crate) fn is_met(&self) -> bool {
        self.is_met
    }

    /// The further names of its entry that count.
    fn met_names(&self) -> impl Iterator<Item = &str> {
        self.also_names().filter(|_| self.is_met)
    }

    /// The further names of its entry.
    fn also_names(&self) -> impl Iterator<Item = &str> {
        self.also.iter().filter_map(|also| match also {
            AlsoNamed::Address(_) => None,
            AlsoNamed::Name(name) => Some(name.as_str()),
        })
    }

    /// Whether its entry has `address` as its key.
    pub(crate) fn is_listed_by(&self, address: IpAddr) -> bool {
        self.key == Key::Address(address)
    }

    /// Whether its entry has `address` among the further names that count.
    pub(crate) fn is_also_at(&self, address: IpAddr) -> bool {
        self.is_met && self.reserves(address)
    }

    /// Whether its entry has `address` among the further names of its host.
    pub(super) fn reserves(&self, address: IpAddr) -> bool {
        self.also.contains(&AlsoNamed::Address(address))
    }

    /// Every full name that a person, the Machine API, the host or reverse DNS gives it (lower case).
    pub(crate) fn full_names(&self) -> impl Iterator<Item = String> {
        self.sources().map(|(_, name)| name).filter(|name| name.contains('.'))
    }

    /// Whether the list or the Machine API gives it a name that starts with the label `label` (lower case) and that
    /// `counts`.
    pub(super) fn has_first_label(&self, label: &str, counts: impl Fn(&str) -> bool) -> bool {
        let given = self.machine.iter().flat_map(|machine| machine.names.iter().cloned());
        let also = self.met_names().map(str::to_owned);
        let mut names = self.listed_name().map(fold).into_iter().chain(also).chain(given);
        names.any(|name| {
            let rest = name.strip_prefix(label);
            rest.is_some_and(|rest| rest.starts_with('.')) && counts(&name)
        })
    }

    /// Whether it is listed by `address` or by a name that leads there, or its Machine has the address.
    pub(crate) fn is_reached_at(&self, address: IpAddr) -> bool {
        self.is_first_at(address) || self.is_also_at(address)
    }

    /// The same, by other than the further names of its entry.
    pub(super) fn is_first_at(&self, address: IpAddr) -> bool {
        self.is_listed_by(address)
            || self.ipv4.map(IpAddr::V4) == Some(address)
            || self.is_given(address)
    }

    /// Whether the list, the DNS, the Machine API or the host itself gives it `address`.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        self.is_reached_at(address) || self.reports(address)
    }

    /// Whether the host itself reported `address`.
    pub(crate) fn reports(&self, address: IpAddr) -> bool {
        self.addresses.as_ref().is_some_and(|list| list.contains(&address))
    }

    /// Whether both are the same entry or the same Machine, or two entries that lead to the same SSH server. A
    /// Machine and another Machine or an entry at the same address do not count as the same.
    pub(crate) fn is_reached_as(&self, other: &Self) -> bool {
        match (&self.machine, &other.machine) {
            (None, None) => {
                self.address == other.address
                    || (self.ipv4.is_some() && (self.ipv4, self.port) == (other.ipv4, other.port))
            }
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            (None, Some(_)) | (Some(_), None) => false,
        }
    }

    /// Whether the host that answers at the listed DNS name reports that same name.
    pub(crate) fn calls_itself_as_listed(&self) -> bool {
        let label = |name: &str| name.split('.').next().map(str::to_ascii_lowercase);
        let Some(listed) = self.listed_name() else { return false };
        self.host_names.iter().any(|reported| {
            let has_domains = listed.contains('.') && reported.contains('.');
            fold(listed) == *reported || (!has_domains && label(listed) == label(reported))
        })
    }

    /// All names, with the source of each.
    fn sources(&self) -> impl Iterator<Item = (Source, String)> {
        let listed = self.listed_name().map(|name| (Source::Address, fold(name)));
        let also = self.also_names().map(|name| (Source::Names, name.to_owned()));
        let given = self.machine.iter().flat_map(|machine| {
            let names = machine.names.iter().map(|name| (Source::Machine, name.clone()));
            names.chain([(Source::MachineName, fold(&machine.name))])
        });
        let reported = self.host_names.iter().map(|name| (Source::HostName, name.clone()));
        let pointers = self.pointers.iter().map(|name| (Source::ReverseDns, name.clone()));
        listed.into_iter().chain(also).chain(given).chain(reported).chain(pointers)
    }

    /// All claims to names: the source, the name, and the full name if it differs.
    fn claims(&self) -> impl Iterator<Item = (Source, String, Option<String>)> {
        self.sources().flat_map(|(source, name)| {
            let label = name.split_once('.').map(|(label, _)| label.to_owned());
            let short = label.map(|label| (source, label, Some(name.clone())));
            [(source, name, None)].into_iter().chain(short)
        })
    }
}

/// Whether `name` is a host name; a host that reports an address as its name has no name.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.parse::<IpAddr>().is_err()
}

impl Part {
    fn new(list: Vec<Instance>) -> Self {
        let mut instances = Self {
            unnamed: list.iter().filter(|instance| instance.host_names.is_empty()).count(),
            ..Self::default()
        };
        for (index, instance) in list.iter().enumerate() {
            for (source, name, whole) in instance.claims() {
                let claim = Claim { instance: index, source, whole };
                let claims = instances.by_name.entry(name).or_default();
                match source {
                    Source::Address | Source::Names | Source::Machine | Source::MachineName => {
                        claims.listed.push(claim);
                    }
                    Source::HostName | Source::ReverseDns => claims.others.push(claim),
                }
            }
            let given = instance.machine.iter().flat_map(|machine| machine.addresses.clone());
            let mut reached: Vec<IpAddr> = instance.ipv4.map(IpAddr::V4).into_iter().collect();
            let also = instance.also.iter().filter_map(|also| match also {
                AlsoNamed::Address(address) => Some(*address),
                AlsoNamed::Name(_) => None,
            });
            let listed = match instance.key {
                Key::Address(address) => Some(address),
                Key::Name | Key::Nothing => None,
            };
            for address in listed.into_iter().chain(given).chain(also) {
                if !reached.contains(&address) {
                    reached.push(address);
                }
            }
            for address in reached {
                instances.by_address.entry(address).or_default().push(index);
            }
            for address in instance.addresses.iter().flatten() {
                instances.by_report.entry(*address).or_default().push(index);
            }
        }
        instances.list = list;
        instances
    }

    fn with_instances<'a>(
        &'a self,
        claims: Option<&'a Vec<Claim>>,
    ) -> impl Iterator<Item = (&'a Claim, &'a Instance)> + Clone {
        let claims = claims.map_or(&[][..], Vec::as_slice).iter();
        claims.filter_map(|claim| Some((claim, self.list.get(claim.instance)?)))
    }

    fn among(&self, found: Option<&Vec<usize>>) -> impl Iterator<Item = &Instance> {
        found.map_or(&[][..], Vec::as_slice).iter().filter_map(|index| self.list.get(*index))
    }
}

impl Instances {
    /// Makes the listed instances, without those of Machines.
    pub(super) fn new(listed: Vec<Instance>) -> Self {
        Self { listed: Part::new(listed), of_machines: Part::default() }
    }

    /// Replaces the instances of Machines.
    pub(super) fn set_machines<'m>(
        &mut self,
        machines: impl Iterator<Item = &'m Arc<MachineFacts>>,
        facts: &Facts,
    ) {
        let hosts = machines.filter_map(|machine| Instance::of_machine(machine, facts));
        self.of_machines = Part::new(hosts.collect());
    }

    fn parts(&self) -> impl Iterator<Item = &Part> + Clone {
        [&self.listed, &self.of_machines].into_iter()
    }

    /// The claims to `name` (lower case).
    pub(crate) fn claims(&self, name: &str) -> impl Iterator<Item = (&Claim, &Instance)> + Clone {
        self.listed(name).chain(self.told(name))
    }

    /// The claims to `name`, or to a name that starts with it, from the list and the Machine API.
    pub(crate) fn listed(&self, name: &str) -> impl Iterator<Item = (&Claim, &Instance)> + Clone {
        // Looked up once, however often the iterator is cloned.
        let [listed, of_machines] = [&self.listed, &self.of_machines]
            .map(|part| part.with_instances(part.by_name.get(name).map(|claims| &claims.listed)));
        listed.chain(of_machines)
    }

    /// The claims to `name` from reports and reverse DNS.
    pub(crate) fn told(&self, name: &str) -> impl Iterator<Item = (&Claim, &Instance)> + Clone {
        let [listed, of_machines] = [&self.listed, &self.of_machines]
            .map(|part| part.with_instances(part.by_name.get(name).map(|claims| &claims.others)));
        listed.chain(of_machines)
    }

    /// Every claimed name, some of them twice.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.parts().flat_map(|part| part.by_name.keys().map(String::as_str))
    }

    /// The instances that are listed by `address`, have it among the further names of the entry or are listed by a
    /// name that leads there, and those whose Machine has it.
    pub(crate) fn at(&self, address: IpAddr) -> impl Iterator<Item = &Instance> {
        let [listed, of_machines] =
            [&self.listed, &self.of_machines].map(|part| part.among(part.by_address.get(&address)));
        listed.chain(of_machines)
    }

    /// The instances whose hosts reported `address`.
    pub(crate) fn reporting(&self, address: IpAddr) -> impl Iterator<Item = &Instance> {
        let [listed, of_machines] =
            [&self.listed, &self.of_machines].map(|part| part.among(part.by_report.get(&address)));
        listed.chain(of_machines)
    }

    /// Number of instances that have not reported their host name yet.
    pub(crate) fn unnamed(&self) -> usize {
        self.parts().map(|part| part.unnamed).sum()
    }
}
