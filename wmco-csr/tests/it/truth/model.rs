//! A cluster whose truth is known: which machine there is, which names and addresses are its own;
//! and what hosts, Nodes and the DNS say about that, truly or not.

mod owners;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use proptest::sample::select;
use wmco_core::cluster_addresses::ClusterAddresses;
use wmco_core::instances::{self, Entries};
use wmco_core::machines::key;
use wmco_csr::{
    ClusterFacts, Facts, MachineFacts, NodeIdentity, NodeNames, Reference, Unfit, View,
};

/// What a machine is to the cluster.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Sort {
    /// Listed in windows-instances.
    Listed,
    /// A Linux node.
    Linux,
    /// A Windows node of a Machine that lacks the label of Windows.
    Machine,
    /// The host of a Machine with the label of Windows.
    Windows,
    /// A Windows node that somebody else made.
    Stranger,
}

/// How a host is listed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Listing {
    Address,
    FullName,
    Alias,
}

/// What the DNS answers for the names of a machine.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Dns {
    Right,
    Missing,
    /// To the first address of this machine.
    Leads(usize),
}

/// Which machine reverse DNS gives for the address of one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Reverse {
    Missing,
    Right,
    Of(usize),
}

/// By what name a machine has registered its Node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Registered {
    No,
    ByRight,
    Invented,
}

/// A name or an address of its host that an entry has in `names=`. People who list a host know it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Further {
    Alias,
    Second,
    Ipv6,
}

/// How far a Windows Machine is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Standing {
    Ready,
    Deleted,
    Provisioning,
}

/// Which Node the Machine API found for a Windows Machine.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Referred {
    Missing,
    Right,
    /// One of its name that is gone.
    Former,
    /// That of this machine.
    Of(usize),
}

/// A name or an address that somebody claims and that need not be his.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Lie {
    FullName(usize),
    Label(usize),
    Alias(usize),
    Address(usize),
    Second(usize),
    Ipv6(usize),
    Reserved(usize),
    Invented,
}

const RESERVED: [&str; 10] = [
    "kubernetes",
    "kubernetes.default.svc",
    "web.shop.svc.cluster.local",
    "localhost",
    "*.corp.example",
    "api-int.corp.example",
    "172.30.0.1",
    "127.0.0.1",
    "fd02::1",
    "169.254.1.1",
];

#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) sort: Sort,
    pub(super) domain: &'static str,
    pub(super) listing: Listing,
    /// Of a listed host.
    further: Vec<Further>,
    /// Of a listed host: another line of its entry, which may be wrong.
    line: &'static str,
    shouts: bool,
    pub(super) dns: Dns,
    reverse: Reverse,
    node: Registered,
    /// Whether the operator has asked the host since it started.
    pub(super) was_asked: bool,
    /// Of a Windows Machine.
    pub(super) standing: Standing,
    /// Of a Windows Machine.
    pub(super) referred: Referred,
    /// Of a listed host: that it is also a Windows Machine that people asked to leave alone.
    is_also_ignored: bool,
    /// What it reports as its host name instead of its own.
    false_name: Option<Lie>,
    /// What it reports beside its own addresses.
    false_addresses: Vec<Lie>,
    /// What its Node's status holds beside its own.
    false_status: Vec<Lie>,
}

#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) platform: NodeNames,
    pub(super) hosts_named_as_machines: bool,
    pub(super) machines: Vec<Machine>,
}

/// Worlds in which nobody lies and the DNS is right.
pub(super) fn honest_worlds() -> impl Strategy<Value = World> {
    worlds(false)
}

/// Worlds in which anybody may lie, and the DNS too.
pub(super) fn any_worlds() -> impl Strategy<Value = World> {
    worlds(true)
}

fn worlds(lies: bool) -> impl Strategy<Value = World> {
    let platforms = vec![NodeNames::FirstLabel, NodeNames::Full, NodeNames::FullOrShort];
    (select(platforms), any::<bool>(), 2..7_usize).prop_flat_map(move |(platform, named, count)| {
        let machines = proptest::collection::vec(any_machine(count, lies), count);
        machines.prop_map(move |machines| World {
            platform,
            hosts_named_as_machines: named,
            machines,
        })
    })
}

fn any_machine(count: usize, lies: bool) -> impl Strategy<Value = Machine> {
    let sort = prop_oneof![
        5 => Just(Sort::Listed),
        1 => Just(Sort::Linux),
        1 => Just(Sort::Machine),
        3 => Just(Sort::Windows),
        1 => Just(Sort::Stranger),
    ];
    let listing = select(&[Listing::Address, Listing::FullName, Listing::Alias][..]);
    let dns = prop_oneof![
        4 => Just(Dns::Right),
        1 => Just(Dns::Missing),
        2 => (0..count).prop_map(Dns::Leads),
    ];
    let lie = || {
        prop_oneof![
            (0..count).prop_map(Lie::FullName),
            (0..count).prop_map(Lie::Label),
            (0..count).prop_map(Lie::Alias),
            (0..count).prop_map(Lie::Address),
            (0..count).prop_map(Lie::Second),
            (0..count).prop_map(Lie::Ipv6),
            (0..RESERVED.len()).prop_map(Lie::Reserved),
            Just(Lie::Invented),
        ]
    };
    let some = || proptest::collection::vec(lie(), 0..4);
    let said = (
        proptest::option::of(lie()),
        some(),
        some(),
        any::<bool>(),
        dns,
        proptest::option::of(proptest::option::of(0..count)),
    );
    let plain = (
        sort,
        select(&["", "corp.example", "lab.example"][..]),
        listing,
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    );
    let of_machine = (
        prop_oneof![4 => Just(Standing::Ready), 1 => Just(Standing::Deleted), 1 => Just(Standing::Provisioning)],
        prop_oneof![
            2 => Just(Referred::Missing),
            4 => Just(Referred::Right),
            1 => Just(Referred::Former),
            2 => (0..count).prop_map(Referred::Of),
        ],
        any::<bool>(),
    );
    let further = prop_oneof![
        2 => Just(Vec::new()),
        3 => proptest::sample::subsequence(&[Further::Alias, Further::Second, Further::Ipv6][..], 1..=3),
    ];
    let of_entry = (further, proptest::bool::weighted(0.2));
    (plain, said, of_machine, of_entry).prop_map(move |(plain, said, of_machine, of_entry)| {
        let (further, is_misspelt) = of_entry;
        let (standing, referred, is_also_ignored) = of_machine;
        let (sort, domain, listing, shouts, has_node, was_asked, is_liar) = plain;
        let (name, addresses, status, node, dns, reverse) = said;
        let is_liar = is_liar && lies;
        Machine {
            sort,
            domain,
            listing,
            further,
            line: if is_misspelt && lies { "\nport=x" } else { "" },
            shouts,
            dns: if lies { dns } else { Dns::Right },
            reverse: match reverse {
                None => Reverse::Missing,
                Some(Some(other)) if lies => Reverse::Of(other),
                Some(_) => Reverse::Right,
            },
            standing: if lies { standing } else { Standing::Ready },
            referred: match has_node {
                _ if lies => referred,
                true => Referred::Right,
                false => Referred::Missing,
            },
            is_also_ignored,
            node: match has_node || !matches!(sort, Sort::Listed | Sort::Windows) {
                true if node && is_liar && sort == Sort::Listed => Registered::Invented,
                true => Registered::ByRight,
                false => Registered::No,
            },
            was_asked: was_asked || !lies,
            false_name: name.filter(|_| is_liar),
            false_addresses: if is_liar { addresses } else { Vec::new() },
            false_status: if is_liar { status } else { Vec::new() },
        }
    })
}

impl Machine {
    pub(super) fn has_node(&self) -> bool {
        self.node != Registered::No
    }
}

impl World {
    fn number(place: usize) -> u8 {
        u8::try_from(place + 1).unwrap()
    }

    pub(super) fn label(place: usize) -> String {
        format!("h{place}")
    }

    pub(super) fn full_name(&self, place: usize) -> String {
        match self.machines[place].domain {
            "" => Self::label(place),
            domain => format!("{}.{domain}", Self::label(place)),
        }
    }

    fn alias(place: usize) -> String {
        format!("alias{place}.corp.example")
    }

    pub(super) fn address(place: usize) -> IpAddr {
        Ipv4Addr::new(10, 0, 0, Self::number(place)).into()
    }

    fn second(place: usize) -> IpAddr {
        Ipv4Addr::new(10, 1, 0, Self::number(place)).into()
    }

    fn ipv6(place: usize) -> IpAddr {
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, Self::number(place).into()).into()
    }

    fn own_addresses(place: usize) -> Vec<IpAddr> {
        vec![Self::address(place), Self::second(place), Self::ipv6(place)]
    }

    /// Those that the Machine API knows.
    pub(super) fn given_addresses(place: usize) -> Vec<IpAddr> {
        vec![Self::ipv6(place), Self::address(place)]
    }

    /// What a decision calls the host.
    pub(super) fn title(&self, place: usize) -> String {
        match self.machines[place].sort {
            Sort::Windows => format!("Machine {}", Self::label(place)),
            _ => self.entry(place),
        }
    }

    /// The Node that a Windows Machine refers to: its name and its UID.
    pub(super) fn reference(&self, place: usize) -> Option<(String, String)> {
        let uid = |place: usize| format!("n-{place}");
        match self.machines[place].referred {
            Referred::Missing => None,
            Referred::Right => Some((self.registered(place), uid(place))),
            Referred::Former => Some((self.registered(place), "former".to_owned())),
            Referred::Of(other) => Some((self.registered(other), uid(other))),
        }
    }

    fn machine(&self, place: usize) -> MachineFacts {
        let machine = &self.machines[place];
        let ipv4 = Ipv4Addr::new(10, 0, 0, Self::number(place));
        let host = match (machine.sort, machine.standing) {
            (Sort::Machine, _) => None,
            (Sort::Listed, _) => Some(Err(Unfit::Ignored)),
            (_, Standing::Ready) => Some(Ok(ipv4)),
            (_, Standing::Deleted) => Some(Err(Unfit::Deleted)),
            (_, Standing::Provisioning) => Some(Err(Unfit::Phase("Provisioning".to_owned()))),
        };
        let node = self.reference(place).map(|(name, uid)| Reference { name, uid });
        MachineFacts {
            name: Self::label(place),
            names: match machine.sort {
                Sort::Machine => vec![self.node_name(place), self.full_name(place)],
                _ => vec![self.full_name(place)],
            },
            addresses: match machine.sort {
                Sort::Machine => Self::own_addresses(place),
                _ => Self::given_addresses(place),
            },
            node: node.filter(|_| machine.sort == Sort::Windows),
            host,
        }
    }

    /// The name that the Node of a machine has by right.
    pub(super) fn node_name(&self, place: usize) -> String {
        match self.platform {
            NodeNames::FirstLabel => Self::label(place),
            NodeNames::Full | NodeNames::FullOrShort | NodeNames::Unknown => self.full_name(place),
        }
    }

    /// The name under which its Node is registered, whether by right or not.
    pub(super) fn registered(&self, place: usize) -> String {
        match self.machines[place].node {
            Registered::Invented => format!("invented{place}"),
            Registered::ByRight | Registered::No => self.node_name(place),
        }
    }

    pub(super) fn text(&self, lie: Lie, by: usize) -> String {
        match lie {
            Lie::FullName(of) => self.full_name(of),
            Lie::Label(of) => Self::label(of),
            Lie::Alias(of) => Self::alias(of),
            Lie::Address(of) => Self::address(of).to_string(),
            Lie::Second(of) => Self::second(of).to_string(),
            Lie::Ipv6(of) => Self::ipv6(of).to_string(),
            Lie::Reserved(which) => RESERVED[which].to_owned(),
            Lie::Invented => format!("invented{by}.corp.example"),
        }
    }

    /// The key of its entry.
    pub(super) fn entry(&self, place: usize) -> String {
        let name = match self.machines[place].listing {
            Listing::Address => return Self::address(place).to_string(),
            Listing::FullName => self.full_name(place),
            Listing::Alias => Self::alias(place),
        };
        if self.machines[place].shouts { name.to_ascii_uppercase() } else { name }
    }

    fn listed_name(&self, place: usize) -> Option<String> {
        let machine = &self.machines[place];
        let is_name = machine.sort == Sort::Listed && machine.listing != Listing::Address;
        is_name.then(|| self.entry(place).to_ascii_lowercase())
    }

    /// The machine that a connection to its entry reaches.
    pub(super) fn reached(&self, place: usize) -> Option<usize> {
        match (self.machines[place].listing, self.machines[place].dns) {
            (Listing::Address, _) | (_, Dns::Right) => Some(place),
            (_, Dns::Missing) => None,
            (_, Dns::Leads(to)) => Some(to),
        }
    }

    fn has_further(&self, place: usize, further: Further) -> bool {
        let machine = &self.machines[place];
        machine.sort == Sort::Listed && machine.further.contains(&further)
    }

    /// Whether the DNS led the first login to the entry of `owner` to `place`, so that this is the host of the entry.
    pub(super) fn stands_in(&self, place: usize, owner: usize) -> bool {
        let is_named = self.machines[owner].listing != Listing::Address;
        let reports = self.facts().addresses.unwrap();
        let was_there =
            self.reached(owner) == Some(place) && reports.contains_key(&self.entry(owner));
        self.machines[owner].sort == Sort::Listed && is_named && was_there
    }

    pub(super) fn places(&self, sort: Sort) -> impl Iterator<Item = usize> {
        let is = move |(_, machine): &(usize, &Machine)| machine.sort == sort;
        self.machines.iter().enumerate().filter(is).map(|(place, _)| place)
    }

    /// The hosts that the operator works on.
    pub(super) fn hosts(&self) -> impl Iterator<Item = usize> {
        self.places(Sort::Listed).chain(self.places(Sort::Windows))
    }

    /// All Nodes: names and UIDs.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (String, String)> {
        let all = self.machines.iter().enumerate();
        let with_node = all.filter(|(_, machine)| machine.has_node());
        with_node.map(|(place, _)| (self.registered(place), format!("n-{place}")))
    }

    pub(super) fn has_false_name(&self, place: usize) -> bool {
        self.machines[place].false_name.is_some()
    }

    pub(super) fn lies(&self, place: usize) -> bool {
        let machine = &self.machines[place];
        machine.false_name.is_some()
            || machine.node == Registered::Invented
            || !machine.false_addresses.is_empty()
            || !machine.false_status.is_empty()
    }

    /// Whether the Node of another machine has its first address, which stands in the way until a
    /// person looks: where the DNS is asked, it might be right.
    pub(super) fn is_claimed(&self, place: usize) -> bool {
        self.machines.iter().any(|other| other.false_status.contains(&Lie::Address(place)))
    }

    pub(super) fn is_reserved(text: &str) -> bool {
        RESERVED.contains(&text)
    }

    pub(super) fn data(&self) -> BTreeMap<String, String> {
        let listed = self.places(Sort::Listed);
        let value = |place: usize| {
            let machine = &self.machines[place];
            let further = machine.further.iter().map(|further| match further {
                Further::Alias => Self::alias(place),
                Further::Second => Self::second(place).to_string(),
                Further::Ipv6 => Self::ipv6(place).to_string(),
            });
            let further: Vec<_> = further.collect();
            let names = if further.is_empty() { "" } else { "\nnames=" };
            format!("username=core{}{names}{}", machine.line, further.join(", "))
        };
        listed.map(|place| (self.entry(place), value(place))).collect()
    }

    pub(super) fn entries(&self) -> Entries {
        let facts = Facts { dns: self.dns(), ..Facts::default() };
        instances::parse(self.data(), &facts)
    }

    fn dns(&self) -> wmco_csr::Dns {
        let mut dns = wmco_csr::Dns::default();
        for (place, machine) in self.machines.iter().enumerate() {
            let leads = match machine.dns {
                Dns::Right => Self::address(place),
                Dns::Leads(to) => Self::address(to),
                Dns::Missing => continue,
            };
            dns.forward.insert(self.full_name(place), vec![leads]);
            dns.forward.insert(Self::alias(place), vec![leads]);
        }
        for (place, machine) in self.machines.iter().enumerate() {
            let name = match machine.reverse {
                Reverse::Missing => continue,
                Reverse::Right => self.full_name(place),
                Reverse::Of(other) => self.full_name(other),
            };
            // The operator keeps those that lead back.
            if dns.forward.get(&name) == Some(&vec![Self::address(place)]) {
                dns.reverse.insert(Self::address(place), vec![name]);
            }
        }
        dns
    }

    /// What the operator has been told.
    pub(super) fn facts(&self) -> Facts {
        let mut facts = Facts { dns: self.dns(), ..Facts::default() };
        let mut addresses = BTreeMap::new();
        for (address, entry) in self.entries().iter() {
            let listed = self.places(Sort::Listed).find(|place| self.entry(*place) == address);
            let reached = listed.and_then(|place| self.reached(place));
            // Hosts that are none of ours do not let us in, and a wrong entry is not worked on.
            let answers = |place: &usize| {
                let machine = &self.machines[*place];
                let is_ours = matches!(machine.sort, Sort::Listed | Sort::Machine | Sort::Windows);
                machine.was_asked && is_ours
            };
            let Some(place) = reached.filter(answers).filter(|_| entry.is_ok()) else { continue };
            self.report(place, address, &mut facts.hostnames, &mut addresses);
        }
        // What the host of a Machine said that is none to work on now is passed on to nobody.
        let is_told = |place: &usize| {
            let machine = &self.machines[*place];
            machine.was_asked && machine.standing == Standing::Ready
        };
        for place in self.places(Sort::Windows).filter(is_told) {
            let key = key(&Self::label(place));
            self.report(place, &key, &mut facts.hostnames, &mut addresses);
        }
        facts.addresses = Some(addresses);
        facts
    }

    /// What the host of a machine says of itself, kept as that of `address`.
    fn report(
        &self,
        place: usize,
        address: &str,
        names: &mut BTreeMap<String, String>,
        addresses: &mut BTreeMap<String, Vec<IpAddr>>,
    ) {
        let machine = &self.machines[place];
        let name = match machine.false_name {
            Some(lie) => self.text(lie, place),
            None => self.full_name(place),
        };
        let name = if machine.shouts { name.to_ascii_uppercase() } else { name };
        names.insert(address.to_owned(), name);
        let lies = machine.false_addresses.iter().map(|lie| self.text(*lie, place));
        let lies = lies.filter_map(|text| text.parse().ok());
        let all = Self::own_addresses(place).into_iter().chain(lies).collect();
        addresses.insert(address.to_owned(), all);
    }

    /// What the status of its Node holds.
    pub(super) fn status(&self, place: usize) -> NodeIdentity {
        let machine = &self.machines[place];
        let os = if machine.sort == Sort::Linux { "linux" } else { "windows" };
        let mut facts = NodeIdentity {
            uid: Some(format!("n-{place}")),
            os: Some(os.to_owned()),
            addresses: Self::own_addresses(place),
            names: vec![self.registered(place), self.full_name(place)],
            ..NodeIdentity::default()
        };
        if self.has_further(place, Further::Alias) {
            facts.names.push(Self::alias(place));
        }
        for lie in &machine.false_status {
            let text = self.text(*lie, place);
            match text.parse() {
                Ok(address) => facts.addresses.push(address),
                Err(_) => facts.names.push(text),
            }
        }
        facts
    }

    pub(super) fn view(&self) -> View {
        let mut view = View::new();
        view.set_cluster(ClusterFacts {
            node_names: self.platform,
            hosts_named_as_machines: self.hosts_named_as_machines,
            addresses: ClusterAddresses {
                services: Some(
                    ["172.30.0.0/16", "fd02::/112"].map(|text| text.parse().unwrap()).into(),
                ),
                api_names: ["api-int.corp.example".to_owned()].into(),
                ..ClusterAddresses::default()
            },
        });
        for (place, machine) in self.machines.iter().enumerate() {
            if machine.has_node() {
                view.set_node_identity(&self.registered(place), self.status(place));
            }
        }
        let is_machine = |place: &usize| {
            let machine = &self.machines[*place];
            match machine.sort {
                Sort::Machine | Sort::Windows => true,
                Sort::Listed => machine.is_also_ignored,
                Sort::Linux | Sort::Stranger => false,
            }
        };
        let machines = (0..self.machines.len()).filter(is_machine);
        view.set_machines(machines.map(|place| self.machine(place)));
        view.set_entries(&self.entries(), &self.facts());
        view
    }

    /// Every name that anybody might ask to be called by.
    pub(super) fn all_names(&self) -> BTreeSet<String> {
        let mut names: BTreeSet<String> = BTreeSet::new();
        for (place, machine) in self.machines.iter().enumerate() {
            names.extend([Self::label(place), self.full_name(place), Self::alias(place)]);
            names.insert(format!("alias{place}"));
            names.extend(machine.false_name.map(|lie| self.text(lie, place)));
        }
        names.retain(|name| name.parse::<IpAddr>().is_err() && !name.contains('*'));
        names
    }
}
