//! Inputs of a decision about all instances.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::NodeFacts;
use crate::host_record::KnownHosts;
use crate::instances::Entries;
use crate::login_keys::LoginKeys;
use crate::machines::Machines;

static NO_MACHINES: Machines = Machines::none();
static NO_HOSTS: KnownHosts = KnownHosts::none();
static NO_NAMES: BTreeSet<String> = BTreeSet::new();
static NO_HOST_NAMES: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();

/// The desired state.
///
/// ```
/// use wmco_core::fleet::{Desired, Observed, reconcile};
/// use wmco_core::instances::{Resolutions, parse};
///
/// let entries = parse([("10.0.0.5", "username=core")], &Resolutions::default());
/// let desired = Desired { budget: 2, ..Desired::new(Some(&entries), "2.0.0") };
/// let assignments = reconcile(&desired, &Observed::new(&[]));
/// assert_eq!(assignments.instances[0].to_string(), "10.0.0.5: configure, because it is listed");
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Desired<'a> {
    /// All entries, including invalid ones; `None` while the ConfigMap is absent, so that the desired instances are
    /// unknown.
    pub entries: Option<&'a Entries>,
    /// The Machines of the Machine API.
    pub machines: &'a Machines,
    /// The version that nodes are to run.
    pub version: &'a str,
    /// Most nodes that may be disrupted at the same time.
    pub budget: usize,
    /// Whether a [blocking finding](crate::preflight::Finding::blocks) forbids new work.
    pub blocked: bool,
    /// The limit above which removals need a confirmation.
    pub guard: RemovalGuard,
    /// The keys for logins; `None` while they are unknown.
    pub keys: Option<&'a LoginKeys>,
}

/// The observed state: what the world shows now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Observed<'a> {
    /// All Nodes of the cluster.
    pub nodes: &'a [NodeFacts],
    /// Names of Nodes that need a permit to continue, by the last result of
    /// [`node::claims_slot`](crate::node::claims_slot).
    pub claims: &'a BTreeSet<String>,
    /// Whose slots are being taken, by requests that are under way: see
    /// [`Action::takes_slot_of`](crate::node::Action::takes_slot_of). These permits count, given again or not.
    pub taking: &'a BTreeSet<String>,
    /// The resource version of the user data of new Machines, if they contain every key of ours.
    pub right_user_data: Option<&'a str>,
    /// Pinned keys and records of hosts.
    pub hosts: &'a KnownHosts,
    /// Names of hosts by listed address, from [`host_names`](super::host_names): those that they reported over SSH, and
    /// those of the DNS.
    pub host_names: &'a BTreeMap<String, BTreeSet<String>>,
    /// Addresses of entries whose hosts have never been contacted. Such an entry may be another address of a host
    /// that was listed before.
    pub never_contacted: &'a BTreeSet<String>,
}

/// The limit for simultaneous removals. By default there is none, as in the Go operator.
///
/// ```
/// use wmco_core::fleet::RemovalGuard;
///
/// let guard = RemovalGuard { most: Some(2), confirmed: None };
/// assert!(!guard.lets_go(3));
/// assert!(RemovalGuard { confirmed: Some(3), ..guard }.lets_go(3));
/// assert!(RemovalGuard::default().lets_go(100));
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RemovalGuard {
    /// Most removals that may begin at once; `None`: any number.
    pub most: Option<usize>,
    /// The number in the annotation
    /// [`CONFIRM_REMOVAL_ANNOTATION`](crate::names::CONFIRM_REMOVAL_ANNOTATION).
    pub confirmed: Option<usize>,
}

impl RemovalGuard {
    /// Whether `count` removals may begin together.
    pub fn lets_go(&self, count: usize) -> bool {
        self.most.is_none_or(|most| count <= most) || self.confirmed == Some(count)
    }
}

impl<'a> Desired<'a> {
    /// The listed entries in a cluster without Machines, with default settings: one node at a time.
    pub fn new(entries: Option<&'a Entries>, version: &'a str) -> Self {
        Self {
            entries,
            machines: &NO_MACHINES,
            version,
            budget: 1,
            blocked: false,
            guard: RemovalGuard::default(),
            keys: None,
        }
    }
}

impl<'a> Observed<'a> {
    /// These Nodes, without claims, records or reports of hosts.
    pub fn new(nodes: &'a [NodeFacts]) -> Self {
        Self {
            nodes,
            claims: &NO_NAMES,
            taking: &NO_NAMES,
            right_user_data: None,
            hosts: &NO_HOSTS,
            host_names: &NO_HOST_NAMES,
            never_contacted: &NO_NAMES,
        }
    }
}
