//! Clusters of any size, in which every Windows node is listed, configured and recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use wmco_core::cluster_identity::ClusterIdentity;
use wmco_core::digest::Sha256;
use wmco_core::facts::NodeFacts;
use wmco_core::fleet::{Assignment, Assignments, Desired, Memory, Observed, reconcile};
use wmco_core::host_record::{HostRecord, KnownHosts};
use wmco_core::instances::{Entries, Resolutions, parse};
use wmco_core::login_keys::LoginKeys;
use wmco_core::names;
use wmco_core::node::Release;
use wmco_core::pass::{UserNames, World, pass};

/// The input of a pass.
pub struct Fleet {
    /// All parsed entries.
    pub entries: Entries,
    /// The data of the ConfigMap of instances.
    pub listed: BTreeMap<String, String>,
    /// The data of the ConfigMap of host keys.
    pub host_keys: BTreeMap<String, String>,
    nobody_listed: Entries,
    nodes: Vec<NodeFacts>,
    hosts: KnownHosts,
    host_names: BTreeMap<String, BTreeSet<String>>,
    everybody: BTreeSet<String>,
    /// The release for every host.
    pub release: Arc<Release>,
}

impl Fleet {
    /// Creates a cluster of `size` Windows nodes and as many Linux nodes.
    pub fn of(size: u32) -> Self {
        let addresses: Vec<_> = (0..size).map(|n| Ipv4Addr::from(0x0a00_0000 + n)).collect();
        let listed = addresses.iter().map(|ip| (ip.to_string(), "username=core".to_owned()));
        let listed: BTreeMap<_, _> = listed.collect();
        let entries = parse(&listed, &Resolutions::default());
        let windows = addresses.iter().enumerate().map(|(n, ip)| windows(n, *ip));
        let linux = (0..size).map(|n| linux(n, Ipv4Addr::from(0x0b00_0000 + n)));
        let record = |(n, ip): (usize, &Ipv4Addr)| {
            let record = HostRecord {
                ipv4: Some(*ip),
                node: Some(format!("win-{n}")),
                host_name: Some(format!("WIN-{n}")),
                username: Some("sealed".to_owned()),
                pinned: Some(format!("SHA256:{n}")),
                root_closed_with_host_key: Some(format!("SHA256:{n}")),
                ..HostRecord::default()
            };
            let json = serde_json::to_string(&record).unwrap_or_default();
            [(HostRecord::key_name(&ip.to_string()), json), (ip.to_string(), KEY.to_owned())]
        };
        let host_keys: BTreeMap<_, _> = addresses.iter().enumerate().flat_map(record).collect();
        let host_names = addresses.iter().enumerate();
        Self {
            nobody_listed: Entries::default(),
            entries,
            nodes: windows.chain(linux).collect(),
            hosts: KnownHosts::read(&host_keys),
            listed,
            host_keys,
            host_names: host_names
                .map(|(n, ip)| (ip.to_string(), [format!("WIN-{n}")].into()))
                .collect(),
            everybody: (0..size).map(|n| format!("win-{n}")).collect(),
            release: Arc::new(Release::new(
                "2.0.0",
                Sha256::of(b"agent"),
                ClusterIdentity::new("this one"),
            )),
        }
    }

    /// Returns the desired state.
    pub fn desired(&self) -> Desired<'_> {
        Desired::new(Some(&self.entries), "2.0.0")
    }

    /// Returns the desired state when no instance is listed any more.
    pub fn nobody_wanted(&self) -> Desired<'_> {
        Desired { entries: Some(&self.nobody_listed), ..self.desired() }
    }

    /// Returns the observed state.
    pub fn observed(&self) -> Observed<'_> {
        Observed { hosts: &self.hosts, host_names: &self.host_names, ..Observed::new(&self.nodes) }
    }

    /// Returns the observed state when every Windows node waits for a permit, as in an upgrade.
    pub fn all_claim(&self) -> Observed<'_> {
        Observed { claims: &self.everybody, ..self.observed() }
    }

    /// Returns the decisions of a pass.
    pub fn assignments(&self) -> Assignments<'_> {
        reconcile(&self.desired(), &self.observed())
    }

    /// Carries out a whole pass, and returns how many workers have work.
    pub fn pass(&self) -> usize {
        let keys = LoginKeys::one(Sha256::of(b"key"));
        let reported = BTreeMap::new();
        let world = World {
            desired: Desired { keys: Some(&keys), ..self.desired() },
            observed: self.observed(),
            release: Some(&self.release),
            release_to_leave: None,
            reported: &reported,
        };
        pass(&mut Memory::default(), &world, &mut Sealed, Duration::ZERO).work.len()
    }

    /// Reads the data that a pass reads, without deciding anything.
    pub fn look(&self) -> usize {
        let node = |node: &NodeFacts| {
            let texts = node.labels.iter().chain(&node.annotations);
            let texts: usize = texts.map(|(key, value)| last(key) + last(value)).sum();
            texts + last(&node.name) + node.addresses.iter().map(|text| last(text)).sum::<usize>()
        };
        let record = |(address, record): (&str, &HostRecord)| {
            let texts = [&record.node, &record.host_name, &record.pinned];
            last(address) + texts.into_iter().flatten().map(|text| last(text)).sum::<usize>()
        };
        let entries = self.entries.iter().map(|(address, _)| last(address));
        let names = self.host_names.values().flatten().map(|name| last(name));
        self.nodes.iter().map(node).sum::<usize>()
            + self.hosts.records().map(record).sum::<usize>()
            + entries.chain(names).sum::<usize>()
    }

    /// Returns all Nodes.
    pub fn nodes(&self) -> &[NodeFacts] {
        &self.nodes
    }
}

/// User names as they are on record.
struct Sealed;

impl UserNames for Sealed {
    type Error = Infallible;

    fn sealed(
        &mut self,
        _: &Assignment<'_>,
        _: &KnownHosts,
        _: &LoginKeys,
    ) -> Result<Option<String>, Infallible> {
        Ok(Some("sealed".to_owned()))
    }

    fn opened(&self, _: &str) -> Option<String> {
        Some("core".to_owned())
    }
}

fn last(text: &str) -> usize {
    text.bytes().last().map_or(0, usize::from)
}

const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

fn windows(number: usize, ip: Ipv4Addr) -> NodeFacts {
    let mark = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    NodeFacts {
        name: format!("win-{number}"),
        uid: format!("uid-{number}"),
        labels: [mark(names::OS_LABEL, names::OS_WINDOWS), mark(names::BYOH_LABEL, names::TRUE)]
            .into(),
        annotations: [mark(names::INSTANCE_ANNOTATION, &ip.to_string())].into(),
        addresses: vec![ip.to_string(), format!("win-{number}")],
        ready: true,
        ..NodeFacts::default()
    }
}

fn linux(number: u32, ip: Ipv4Addr) -> NodeFacts {
    NodeFacts {
        name: format!("linux-{number}"),
        labels: [(names::OS_LABEL.to_owned(), "linux".to_owned())].into(),
        addresses: vec![ip.to_string(), format!("linux-{number}")],
        ready: true,
        ..NodeFacts::default()
    }
}
