//! Hosts that administrators list in [`INSTANCES_CONFIG_MAP`](crate::names::objects::INSTANCES_CONFIG_MAP).
//!
//! A key is an IPv4 address or a DNS name. Its value starts with `username=NAME`; lines `port=N`,
//! `hostKey=KEY`, `via=[USER@]HOST[:PORT]` (a jump host), `viaHostKey=KEY` and `names=NAME-OR-ADDRESS,..` (further
//! names of the host) may follow, for example:
//!
//! ```text
//! win-1.example.test: |
//!   username=Administrator
//!   port=2222
//!   hostKey=ssh-ed25519 AAAAC3Nza...
//!   via=core@bastion.example.test
//! ```
//!
//! A value of one line has the same meaning as for the original operator. Source: `docs/contract/instances.md`,
//! INST9 and INST10; the other lines are additions of this operator.
//!
//! # Guarantees
//! - Every key gives exactly one result; an invalid entry does not affect the others.
//! - The order of the entries does not matter. Of two entries for one machine, the entry whose key sorts first
//!   counts.
//! - No I/O: names are resolved before; see [`Resolve`] and [`names`].

mod also;
mod error;
mod host;
mod jump;
mod nodes;
mod resolve;
mod value;
mod warning;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::Ipv4Addr;

use serde::Serialize;

use crate::cluster_addresses::ClusterAddresses;
use crate::host_key::HostKey;
use crate::names::objects::MACHINE_KEY_SUFFIX;
use crate::reserved::cluster_name;

pub use also::{AlsoNamed, BadAlsoNamed, BadItem};
pub use error::{EntryError, Field, Problem};
pub use host::{BadHost, Host};
pub use jump::{BadJump, Jump};
pub use nodes::{UsernameError, username_of};
pub use resolve::{Resolutions, Resolve, Unresolved, canonical};
pub use warning::{Warning, warnings};

/// Reads all entries of the ConfigMap's `data`, from address to value.
///
/// ```
/// use wmco_core::instances::{Resolutions, parse};
///
/// let data = [("10.0.0.5", "username=Administrator"), ("10.0.0.6", "username=")];
/// let entries = parse(data, &Resolutions::default());
/// assert_eq!(entries.instances().count(), 1);
/// assert_eq!(
///     entries.errors().next().unwrap().to_string(),
///     "entry `10.0.0.6` of ConfigMap windows-instances, username: \
///      it has no value, write one after the `=`"
/// );
/// ```
pub fn parse<K, V>(data: impl IntoIterator<Item = (K, V)>, names: &impl Resolve) -> Entries
where
    K: AsRef<str>,
    V: AsRef<str>,
{
    let read = |(address, value): (K, V)| {
        let (address, value) = (address.as_ref(), value.as_ref());
        let result = instance_of(address, value::parse(value), names);
        (address.to_owned(), result, value::readable_names(value))
    };
    let (mut results, mut names) = (BTreeMap::new(), BTreeMap::new());
    for (address, result, also) in data.into_iter().map(read) {
        if !also.is_empty() {
            names.insert(address.clone(), also);
        }
        results.insert(address, result);
    }
    refuse_duplicates(&mut results);
    refuse_shared_names(&mut results, &names);
    Entries { results, names }
}

/// Names that have to be resolved before `data` can be read, each once, in [`canonical`] form.
pub fn names<K: AsRef<str>, V>(data: impl IntoIterator<Item = (K, V)>) -> BTreeSet<String> {
    let name = |(address, _): (K, V)| match address.as_ref().parse() {
        Ok(Host::Name(name)) => Some(canonical(&name)),
        Ok(Host::Ipv4(_)) | Err(_) => None,
    };
    data.into_iter().filter_map(name).collect()
}

/// IPv4 addresses that `data` lists, for reverse look-ups.
pub fn addresses<K: AsRef<str>, V>(data: impl IntoIterator<Item = (K, V)>) -> BTreeSet<Ipv4Addr> {
    let address = |(address, _): (K, V)| match address.as_ref().parse() {
        Ok(Host::Ipv4(address)) => Some(address),
        Ok(Host::Name(_)) | Err(_) => None,
    };
    data.into_iter().filter_map(address).collect()
}

/// A host that the cluster may use as a node.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Instance {
    /// The identifier of the host: the entry's key as written, or the key of its Machine.
    pub address: String,
    /// The address that `address` resolves to, and that identifies its Node.
    pub ipv4: Ipv4Addr,
    /// TCP port of its SSH server.
    pub port: u16,
    /// SSH user, not empty, without control characters.
    pub username: String,
    /// The expected host key; without it the first key seen is trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_key: Option<HostKey>,
    /// The jump host; `None` for a direct connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<Jump>,
    /// Like `host_key`, for the jump host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via_host_key: Option<HostKey>,
    /// The Machine whose host it is; `None` for a listed host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<OfMachine>,
}

/// The Machine of an instance.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OfMachine {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// The name that the host is to get, if the operator sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_name: Option<String>,
}

/// Displays an instance's identifier for administrators: `machine NAME`, or the entry's address.
///
/// ```
/// use wmco_core::instances::Called;
///
/// assert_eq!(Called("win-x7k2p_machine").to_string(), "machine win-x7k2p");
/// assert_eq!(Called("10.0.0.5").to_string(), "10.0.0.5");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Called<'a>(pub &'a str);

impl fmt::Display for Called<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.strip_suffix(MACHINE_KEY_SUFFIX) {
            Some(name) => write!(f, "machine {name}"),
            None => f.write_str(self.0),
        }
    }
}

/// The result for each key, in the order of the keys.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Entries {
    results: BTreeMap<String, Result<Instance, EntryError>>,
    /// Of the entries that have some.
    names: BTreeMap<String, BTreeSet<AlsoNamed>>,
}

static NO_NAMES: BTreeSet<AlsoNamed> = BTreeSet::new();

impl Entries {
    /// Turns entries with a name or an address of the cluster itself into errors.
    #[must_use]
    pub fn without(mut self, cluster: &ClusterAddresses) -> Self {
        for (address, entry) in &mut self.results {
            let Ok(instance) = entry else { continue };
            let also = self.names.get(address).into_iter().flatten();
            let own = AlsoNamed::Address(instance.ipv4.into());
            let key = AlsoNamed::Name(canonical(address));
            let keys = [own, key].into_iter().map(|own| (Field::Address, own));
            let mut all = keys.chain(also.map(|also| (Field::Names, also.clone())));
            let found = all.find_map(|(field, own)| {
                let owner = match own {
                    AlsoNamed::Address(own) => cluster.owner(own),
                    AlsoNamed::Name(own) => cluster.owner_of_name(&own),
                };
                Some((field, owner?))
            });
            if let Some((field, owner)) = found {
                let problem = Problem::OfCluster(owner);
                *entry = Err(EntryError { address: address.clone(), field, problem });
            }
        }
        self
    }

    /// All keys with their results.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Result<Instance, EntryError>)> {
        self.results.iter().map(|(address, entry)| (address.as_str(), entry))
    }

    /// The result for `address`.
    pub fn get(&self, address: &str) -> Option<&Result<Instance, EntryError>> {
        self.results.get(address)
    }

    /// The further names and addresses of the entry `address`, as far as they can be read: an entry with a mistake
    /// keeps them, wherever the mistake is.
    pub fn names_of(&self, address: &str) -> &BTreeSet<AlsoNamed> {
        self.names.get(address).unwrap_or(&NO_NAMES)
    }

    /// The valid entries.
    pub fn instances(&self) -> impl Iterator<Item = &Instance> {
        self.results.values().filter_map(|entry| entry.as_ref().ok())
    }

    /// The errors of the invalid entries.
    pub fn errors(&self) -> impl Iterator<Item = &EntryError> {
        self.results.values().filter_map(|entry| entry.as_ref().err())
    }
}

fn instance_of(
    address: &str,
    value: Result<value::Value, (Field, Problem)>,
    names: &impl Resolve,
) -> Result<Instance, EntryError> {
    let error = |(field, problem)| EntryError { address: address.to_owned(), field, problem };
    let in_address = |problem| error((Field::Address, problem));
    let ipv4 = match address.parse().map_err(|bad: BadHost| in_address(bad.into()))? {
        Host::Ipv4(ip) => ip,
        Host::Name(name) => {
            // As a key, `localhost` is a host that a warning is about.
            if let Some(owner) = cluster_name(&canonical(&name)) {
                return Err(in_address(Problem::OfCluster(owner)));
            }
            names.resolve(&name).map_err(|unresolved| in_address(unresolved.into()))?
        }
    };
    let value::Value { username, port, host_key, via, via_host_key } = value.map_err(error)?;
    let itself = |jump: &Jump| {
        let host = jump.host.to_string();
        jump.port == port && (host == ipv4.to_string() || canonical(&host) == canonical(address))
    };
    if via.as_ref().is_some_and(itself) {
        return Err(error((Field::Via, Problem::Itself)));
    }
    Ok(Instance {
        address: address.to_owned(),
        ipv4,
        port,
        username,
        host_key,
        via,
        via_host_key,
        machine: None,
    })
}

/// Keeps the first entry for each machine and turns the others into errors.
fn refuse_duplicates(entries: &mut BTreeMap<String, Result<Instance, EntryError>>) {
    let mut seen = BTreeMap::new();
    for (address, entry) in entries {
        let Ok(instance) = entry else { continue };
        let first = seen.entry((instance.ipv4, instance.port)).or_insert(address);
        if *first != address {
            *entry = Err(EntryError {
                address: address.clone(),
                field: Field::Address,
                problem: Problem::Duplicate { first: (*first).clone() },
            });
        }
    }
}

/// Turns entries into errors whose `names=` holds what another entry has, by its key or by `names=` of its own.
fn refuse_shared_names(
    entries: &mut BTreeMap<String, Result<Instance, EntryError>>,
    names: &BTreeMap<String, BTreeSet<AlsoNamed>>,
) {
    if names.is_empty() {
        return;
    }
    let mut claims: BTreeMap<AlsoNamed, BTreeSet<String>> = BTreeMap::new();
    for (address, entry) in entries.iter() {
        let key = match address.parse() {
            Ok(Host::Ipv4(key)) => Some(AlsoNamed::Address(key.into())),
            Ok(Host::Name(key)) => Some(AlsoNamed::Name(canonical(&key))),
            Err(_) => None,
        };
        let found = entry.as_ref().ok().map(|instance| AlsoNamed::Address(instance.ipv4.into()));
        let also = names.get(address).into_iter().flatten().cloned();
        for claim in also.chain(key).chain(found) {
            claims.entry(claim).or_default().insert(address.clone());
        }
    }
    for (address, also) in names {
        let claimants = also.iter().filter_map(|claim| claims.get(claim)).flatten();
        let Some(other) = claimants.into_iter().find(|other| *other != address) else { continue };
        if let Some(entry @ Ok(_)) = entries.get_mut(address) {
            *entry = Err(EntryError {
                address: address.clone(),
                field: Field::Names,
                problem: Problem::Shared { other: other.clone() },
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::btree_map;
    use proptest::prelude::*;

    use super::*;

    fn resolutions() -> Resolutions {
        let mut names = Resolutions::default();
        names.insert("localhost", Ok(Ipv4Addr::LOCALHOST));
        names.insert("a.test", Ok(Ipv4Addr::new(10, 0, 0, 1)));
        names.insert("v6.test", Err(Unresolved::NoIpv4));
        names
    }

    #[track_caller]
    fn problem(data: &[(&str, &str)], address: &str) -> Problem {
        let entries = parse(data.iter().copied(), &resolutions());
        entries.get(address).unwrap().as_ref().unwrap_err().problem.clone()
    }

    #[test]
    fn a_name_is_resolved_and_kept_as_written() {
        let entries = parse([("A.test", "username=core")], &resolutions());
        let instance = entries.instances().next().unwrap();
        assert_eq!(instance.address, "A.test");
        assert_eq!(instance.ipv4, Ipv4Addr::new(10, 0, 0, 1));
    }

    #[test]
    fn names_that_do_not_resolve_are_told() {
        let data = [("v6.test", "username=core")];
        assert_eq!(problem(&data, "v6.test"), Unresolved::NoIpv4.into());
    }

    #[test]
    fn a_name_of_every_cluster_is_no_key() {
        for wrong in [
            "kubernetes",
            "Kubernetes.Default.",
            "openshift",
            "foo.svc",
            "kubernetes.default.svc",
            "a.b.svc.cluster.local",
        ] {
            let mut names = resolutions();
            names.insert(wrong, Ok(Ipv4Addr::new(10, 0, 0, 9)));
            let entries = parse([(wrong, "username=core"), ("10.0.0.2", "username=core")], &names);
            let error = entries.get(wrong).unwrap().as_ref().unwrap_err();
            assert!(matches!(error.problem, Problem::OfCluster(_)), "{error}");
            assert_eq!(error.field, Field::Address);
            assert!(entries.get("10.0.0.2").unwrap().is_ok());
        }
        // This one is warned about.
        let entries = parse([("localhost", "username=core")], &resolutions());
        assert!(entries.get("localhost").unwrap().is_ok());
        for host in ["kubernetes-1", "kubernetes.corp.test", "svc.test"] {
            let entries = parse([(host, "username=core")], &resolutions());
            let error = entries.get(host).unwrap().as_ref().unwrap_err();
            assert!(matches!(error.problem, Problem::Unresolved(_)), "{error}");
        }
    }

    #[test]
    fn an_address_of_the_cluster_is_no_hosts() {
        let cluster = ClusterAddresses {
            api: [Ipv4Addr::new(10, 0, 0, 1).into()].into(),
            ..ClusterAddresses::default()
        };
        for wrong in ["10.0.0.1", "A.test"] {
            let data = [(wrong, "username=core"), ("10.0.0.2", "username=core")];
            let entries = parse(data, &resolutions()).without(&cluster);
            let problem = &entries.get(wrong).unwrap().as_ref().unwrap_err().problem;
            assert_eq!(*problem, Problem::OfCluster("an address of the API server"), "{wrong}");
            assert!(entries.get("10.0.0.2").unwrap().is_ok());
        }
    }

    #[test]
    fn an_address_of_the_cluster_is_no_further_name() {
        let cluster = ClusterAddresses {
            ingress: ["2001:db8::2".parse().unwrap()].into(),
            ..ClusterAddresses::default()
        };
        let data = [("10.0.0.2", "username=core\nnames=2001:db8::2")];
        let entries = parse(data, &resolutions()).without(&cluster);
        let error = entries.errors().next().unwrap();
        assert_eq!(error.field, Field::Names);
        assert_eq!(error.problem, Problem::OfCluster("an address of the ingress"));
    }

    /// Neither has it; an entry that has it by its key is not touched.
    #[test]
    fn what_two_entries_claim_is_told() {
        let shared = |other: &str| Problem::Shared { other: other.to_owned() };
        let data = [
            ("10.0.0.5", "username=a\nnames=pub.test"),
            ("10.0.0.6", "username=a\nnames=Pub.test.,10.0.0.9"),
            ("10.0.0.7", "username=a\nnames=A.test"),
            ("10.0.0.8", "username=a\nnames=10.0.0.1"),
            ("a.test", "username=a\nnames=own.test"),
        ];
        assert_eq!(problem(&data, "10.0.0.5"), shared("10.0.0.6"));
        assert_eq!(problem(&data, "10.0.0.6"), shared("10.0.0.5"));
        assert_eq!(problem(&data, "10.0.0.7"), shared("a.test"));
        assert_eq!(problem(&data, "10.0.0.8"), shared("a.test"));
        assert!(parse(data, &resolutions()).get("a.test").unwrap().is_ok());
    }

    /// While its own name is looked up, nobody else gets what its entry says.
    #[test]
    fn an_entry_keeps_its_names_while_it_is_looked_up() {
        let entries = parse([("v6.test", "username=a\nnames=pub.test")], &resolutions());
        assert_eq!(entries.errors().count(), 1);
        assert_eq!(entries.names_of("v6.test").len(), 1);
    }

    #[test]
    fn a_wrong_entry_does_not_block_the_others() {
        let data = [("10.0.0.1", "username"), ("10.0.0.2", "username=a"), ("::1", "username=a")];
        let entries = parse(data, &resolutions());
        let good: Vec<_> = entries.instances().map(|i| i.address.as_str()).collect();
        assert_eq!(good, ["10.0.0.2"]);
        assert_eq!(entries.errors().count(), 2);
    }

    #[test]
    fn a_machine_that_is_listed_twice_is_told_with_the_first_entry() {
        let data = [("localhost", "username=a"), ("127.0.0.1", "username=b")];
        let first = "127.0.0.1".to_owned();
        assert_eq!(problem(&data, "localhost"), Problem::Duplicate { first });
    }

    #[test]
    fn a_host_is_not_reached_through_itself() {
        for (address, via) in
            [("10.0.0.5", "10.0.0.5"), ("A.test.", "a.test"), ("a.test", "10.0.0.1")]
        {
            let value = format!("username=a\nvia={via}");
            assert_eq!(problem(&[(address, &value)], address), Problem::Itself, "{address}");
        }
        let data = [("10.0.0.5", "username=a\nvia=10.0.0.5:2222")];
        assert_eq!(parse(data, &resolutions()).errors().count(), 0, "another port may be another");
    }

    #[test]
    fn a_wrong_entry_is_nobodys_first() {
        let data = [("127.0.0.1", "username="), ("localhost", "username=a")];
        assert_eq!(parse(data, &resolutions()).instances().count(), 1);
    }

    #[test]
    fn other_ports_are_other_machines() {
        let data = [("localhost", "username=a\nport=23"), ("127.0.0.1", "username=b")];
        assert_eq!(parse(data, &resolutions()).errors().count(), 0);
    }

    #[test]
    fn only_names_are_looked_up() {
        let data = [("10.0.0.1", ""), ("B.test.", ""), ("b.test", ""), ("::1", ""), ("-x", "")];
        assert_eq!(names(data), BTreeSet::from(["b.test".to_owned()]));
    }

    /// Entries that are mostly valid, sometimes of the same machine, and sometimes arbitrary.
    fn any_data() -> impl Strategy<Value = BTreeMap<String, String>> {
        let address = prop_oneof![
            4 => "10\\.0\\.0\\.[0-4]",
            2 => "(localhost|A\\.test|a\\.test\\.|v6\\.test|gone\\.test)",
            1 => any::<String>(),
        ];
        let value = prop_oneof![
            4 => "username=[a-c]?(\nport=2[23])?",
            1 => "(username|port|hostKey)=\\PC{0,6}(\n(username|port|hostKey|x)=?.{0,6}){0,3}",
            1 => any::<String>(),
        ];
        btree_map(address, value, 0..8)
    }

    fn machine(instance: &Instance) -> (Ipv4Addr, u16) {
        (instance.ipv4, instance.port)
    }

    proptest! {
        /// Every key gives one result, the same as the entry gives alone, unless an entry with a smaller key is for
        /// the same machine.
        #[test]
        fn entries_stand_for_themselves(data in any_data()) {
            let entries = parse(&data, &resolutions());
            prop_assert!(entries.iter().map(|(key, _)| key).eq(data.keys()));
            for (key, entry) in entries.iter() {
                let alone = parse([(key, &data[key])], &resolutions());
                let alone = alone.get(key).unwrap();
                let first = alone.as_ref().ok().and_then(|instance| {
                    entries.instances().find(|other| machine(other) == machine(instance))
                });
                match first {
                    Some(first) if first.address != key => {
                        prop_assert!(first.address.as_str() < key);
                        let problem = &entry.as_ref().unwrap_err().problem;
                        let first = first.address.clone();
                        prop_assert_eq!(problem, &Problem::Duplicate { first });
                    }
                    Some(_) | None => prop_assert_eq!(entry, alone),
                }
            }
        }

        /// No two instances are the same machine.
        #[test]
        fn machines_are_listed_once(data in any_data()) {
            let entries = parse(&data, &resolutions());
            let machines: BTreeSet<_> = entries.instances().map(machine).collect();
            prop_assert_eq!(machines.len(), entries.instances().count());
        }

        /// The order in which entries arrive does not matter.
        #[test]
        fn order_does_not_matter(
            (data, shuffled) in any_data()
                .prop_map(|data| data.into_iter().collect::<Vec<_>>())
                .prop_flat_map(|data| (Just(data.clone()), Just(data).prop_shuffle())),
        ) {
            prop_assert_eq!(parse(data, &resolutions()), parse(shuffled, &resolutions()));
        }
    }
}
