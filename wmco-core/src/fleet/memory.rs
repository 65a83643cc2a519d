//! One pass: what the world shows, and what earlier passes left, become decisions.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::ops::Range;
use std::time::Duration;

use super::grants::Grants;
use super::logins::Logins;
use super::unready::Unready;
use super::user_data::UserDataSince;
use super::{Assignments, Desired, LoginResult, LoginTry, Observed, Replacement, reconcile};
use crate::facts::NodeFacts;
use crate::host_record::KnownHosts;
use crate::limits;
use crate::login_keys::LoginKeys;

/// What passes leave to the next. If it is lost, as when the operator starts again, work is only delayed: records and
/// marks tell the rest.
///
/// Times are those of a monotonic clock with any start.
///
/// ```
/// use std::collections::{BTreeMap, BTreeSet};
/// use std::time::Duration;
/// use wmco_core::fleet::{Desired, Intent, Memory, Seen};
/// use wmco_core::host_record::KnownHosts;
/// use wmco_core::instances::{Resolutions, parse};
///
/// // One host is listed, and the cluster has no Node.
/// let entries = parse([("10.0.0.5", "username=core")], &Resolutions::default());
/// let seen = Seen {
///     nodes: &[],
///     claims: &BTreeSet::new(),
///     right_user_data: Some("4711"),
///     hosts: &KnownHosts::default(),
///     host_names: &BTreeMap::new(),
///     untried: &BTreeSet::new(),
/// };
/// let mut memory = Memory::default();
/// let decided = memory.pass(&Desired::new(Some(&entries), "2.0.0"), &seen, Duration::ZERO);
/// assert_eq!(decided.instances[0].intent, Intent::Configure(None));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Memory {
    patience: Patience,
    logins: Logins,
    grants: Grants,
    unready: Unready,
    user_data: UserDataSince,
    replacing: BTreeMap<String, Replacement>,
    /// What this pass goes by; its decisions borrow from it.
    recalled: Recalled,
}

/// What is remembered, as a pass goes by it.
#[derive(Clone, Debug, Default)]
struct Recalled {
    granted: BTreeSet<String>,
    replaced: BTreeSet<String>,
    replacing: BTreeMap<String, Replacement>,
    unready: BTreeSet<String>,
    refused: BTreeSet<String>,
    unanswered: BTreeSet<String>,
}

/// How long hosts may fail before that has consequences.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Patience {
    /// How long the host of a Machine may refuse our keys.
    pub refused: Duration,
    /// How long it may not answer while a rotation waits for it.
    pub unanswered: Duration,
}

/// What a pass sees of the world.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// All Nodes of the cluster.
    pub nodes: &'a [NodeFacts],
    /// Names of Nodes that need a permit to continue, by the last result of
    /// [`node::claims_slot`](crate::node::claims_slot).
    pub claims: &'a BTreeSet<String>,
    /// The resource version of the user data of new Machines, if they contain every key of ours.
    pub right_user_data: Option<&'a str>,
    /// Pinned keys and records of hosts.
    pub hosts: &'a KnownHosts,
    /// Names of hosts by listed address, from [`host_names`](super::host_names).
    pub host_names: &'a BTreeMap<String, BTreeSet<String>>,
    /// Addresses of entries whose hosts have never been contacted.
    pub untried: &'a BTreeSet<String>,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            refused: limits::LOGIN_REFUSED.unsigned_abs(),
            unanswered: limits::ROTATION_PATIENCE.unsigned_abs(),
        }
    }
}

impl Memory {
    /// Remembers nothing yet.
    pub fn new(patience: Patience) -> Self {
        Self { patience, ..Self::default() }
    }

    /// Notes what came of a login to the host of an instance, and from when to when that took. Before each pass, all
    /// since the last one are noted.
    pub fn logged_in(
        &mut self,
        instance: &str,
        login: LoginTry,
        result: LoginResult,
        tried: &Range<Duration>,
    ) {
        self.logins.note(instance, login, result, tried);
    }

    /// Decides what to do with the instances now, and remembers it.
    pub fn pass<'a>(
        &'a mut self,
        desired: &Desired<'a>,
        seen: &Seen<'a>,
        now: Duration,
    ) -> Assignments<'a> {
        let Patience { refused, unanswered } = self.patience;
        let Seen { nodes, claims, right_user_data, hosts, host_names, untried } = *seen;
        self.grants.update(nodes, desired.machines, claims, now);
        self.unready.update(nodes, desired.machines, now);
        let right_user_data = right_user_data.filter(|_| desired.keys.is_some());
        let user_data = self.user_data.look(right_user_data, refused, now);
        if let Some(keys) = desired.keys {
            let keys = LoginKeys::id(&keys.offered(None));
            self.logins.keep_only(|instance, login| {
                login.keys == keys && ipv4_of(instance, desired, hosts) == Some(login.at)
            });
        }
        let failed = desired.keys.map(|_| &self.logins);
        self.recalled = Recalled {
            granted: self.grants.nodes(),
            replaced: self.grants.machines(),
            replacing: std::mem::take(&mut self.replacing),
            unready: self.unready.lasting(refused, now),
            refused: failed.map(|logins| logins.refused(refused)).unwrap_or_default(),
            unanswered: failed.map(|logins| logins.unanswered(unanswered)).unwrap_or_default(),
        };
        let Recalled { granted, replaced, replacing, unready, refused, unanswered } =
            &self.recalled;
        let observed = Observed {
            nodes,
            claims,
            granted,
            replaced,
            replacing,
            unready,
            refused,
            unanswered,
            user_data,
            hosts,
            host_names,
            untried,
        };
        let decided = reconcile(desired, &observed);
        self.grants.note(&decided, now);
        self.replacing.clone_from(&decided.replacing);
        decided
    }

    /// When the next pass is due though nothing changes; `None` if no time ends anything.
    pub fn wake_at(&self, now: Duration) -> Option<Duration> {
        let ends = [
            self.grants.next_end(),
            self.unready.next_end(self.patience.refused, now),
            self.user_data.next_end(self.patience.refused, now),
        ];
        ends.into_iter().flatten().min()
    }
}

/// Where the host of an instance is, as people or the Machine API say, or by its record.
fn ipv4_of(instance: &str, desired: &Desired<'_>, hosts: &KnownHosts) -> Option<Ipv4Addr> {
    let entry = desired.entries.and_then(|all| all.get(instance)?.as_ref().ok());
    let machine = || desired.machines.with_key(instance)?.instance.as_ref().ok();
    let asked_for = entry.or_else(machine).map(|instance| instance.ipv4);
    asked_for.or_else(|| hosts.record(instance)?.ipv4)
}
