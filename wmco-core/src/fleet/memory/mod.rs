//! What passes leave to the next, and one pass with it: what the world shows becomes decisions.

mod grants;
mod logins;
#[cfg(test)]
mod remembered;
mod since;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::Ipv4Addr;
use std::ops::Range;
use std::time::Duration;

use grants::Grants;
use logins::Logins;
pub use logins::{LoginResult, LoginTry};
#[cfg(test)]
pub(super) use remembered::Remembered;
use since::Since;

use super::{Assignments, Desired, Observed, Replacement, decide};
use crate::facts::{MachineFacts, NodeFacts};
use crate::host_record::KnownHosts;
use crate::limits;
use crate::login_keys::LoginKeys;
use crate::machines::Machines;

/// What passes leave to the next. If it is lost, as when the operator starts again, records and marks tell the rest: work is
/// delayed, and permits whose marks are not visible yet are forgotten.
///
/// Times are those of a monotonic clock with any start.
///
/// ```
/// use std::time::Duration;
/// use wmco_core::fleet::{Desired, Intent, Memory, Observed};
/// use wmco_core::instances::{Resolutions, parse};
///
/// // One host is listed, and the cluster has no Node.
/// let entries = parse([("10.0.0.5", "username=core")], &Resolutions::default());
/// let observed = Observed { right_user_data: Some("4711"), ..Observed::new(&[]) };
/// let mut memory = Memory::default();
/// let decided = memory.pass(&Desired::new(Some(&entries), "2.0.0"), &observed, Duration::ZERO);
/// assert_eq!(decided.instances[0].intent, Intent::Configure(None));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Memory {
    patience: Patience,
    logins: Logins,
    grants: Grants,
    /// Machines without a ready Node, told apart by UID.
    unready: Since,
    /// User data with every key of ours, by their versions.
    user_data: Since,
    /// Replacements of the last pass, from [`Assignments::replacing`]. After a restart the records tell; while the operator
    /// runs, nobody can make it forget one.
    replacing: BTreeMap<String, Replacement>,
    /// The time of the first pass.
    began: Option<Duration>,
    /// The time of the pass.
    now: Duration,
}

/// The user data of new Machines, as far as our keys are concerned: whether a Machine that is made now would let us in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum UserData {
    /// They lack a key of ours.
    Due,
    /// They have every key of ours, and were written a moment ago: who changed them may do so again.
    Fresh,
    /// They have had every key of ours for as long as a host may refuse us, and nobody has written them since.
    Settled,
}

/// The name of user data, of which there are those of new Machines alone.
const USER_DATA: &str = "";

/// How long hosts may fail before that has consequences.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Patience {
    /// How long the host of a Machine may refuse our keys.
    pub refused: Duration,
    /// How long it may not answer while a rotation waits for it.
    pub unanswered: Duration,
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
        &mut self,
        desired: &Desired<'a>,
        observed: &Observed<'a>,
        now: Duration,
    ) -> Assignments<'a> {
        self.now = now;
        self.began.get_or_insert(now);
        self.grants.update(desired.machines, observed, now);
        self.unready.update(unready(observed.nodes, desired.machines), now);
        self.user_data.update(observed.right_user_data.map(|version| (USER_DATA, version)), now);
        if let Some(keys) = desired.keys {
            let keys = LoginKeys::id(&keys.offered(None));
            self.logins.keep_only(|instance, login| {
                login.keys == keys && ipv4_of(instance, desired, observed.hosts) == Some(login.at)
            });
        }
        let decided = decide(desired, observed, self);
        self.grants.note(&decided, now);
        self.replacing.clone_from(&decided.replacing);
        decided
    }

    /// When the next pass is due though nothing changes; `None` if no time ends anything.
    pub fn wake_at(&self, now: Duration) -> Option<Duration> {
        let ends = [
            self.has_seen_all_at().filter(|end| now < *end),
            self.grants.next_end(),
            self.unready.next_end(self.patience.refused, now),
            self.user_data.next_end(self.patience.refused, now),
        ];
        ends.into_iter().flatten().min()
    }

    /// Nothing, but user data that have been right for long.
    pub(in crate::fleet) fn of_nothing() -> Self {
        let patience = Patience::default();
        let mut user_data = Since::default();
        user_data.update([(USER_DATA, "")], Duration::ZERO);
        Self { patience, user_data, now: patience.refused, ..Self::default() }
    }

    /// The same, and that the hosts of these instances refuse our keys.
    pub(in crate::fleet) fn of_refusing(instances: &BTreeSet<String>) -> Self {
        let mut memory = Self::of_nothing();
        memory.logins.have_failed(instances.iter().cloned(), LoginResult::Refused);
        memory
    }

    /// Whether a predecessor may have done something a moment ago that is not visible yet.
    pub(in crate::fleet) fn may_have_predecessor(&self) -> bool {
        self.has_seen_all_at().is_some_and(|end| self.now < end)
    }

    fn has_seen_all_at(&self) -> Option<Duration> {
        Some(self.began? + limits::CATCH_UP.unsigned_abs())
    }

    /// Permits whose marks may not be visible yet.
    pub(in crate::fleet) const fn grants(&self) -> &Grants {
        &self.grants
    }

    /// Replacements of the last pass.
    pub(in crate::fleet) const fn replacing(&self) -> &BTreeMap<String, Replacement> {
        &self.replacing
    }

    /// Whether the host of an instance has refused our keys for long.
    pub(in crate::fleet) fn is_refused(&self, instance: &str) -> bool {
        self.logins.is_refused(instance, self.patience.refused)
    }

    /// Whether the host of an instance has not answered for long.
    pub(in crate::fleet) fn is_unanswered(&self, instance: &str) -> bool {
        self.logins.is_unanswered(instance, self.patience.unanswered)
    }

    /// Whether a Machine has had no ready Node for as long as its host may refuse our keys.
    pub(in crate::fleet) fn is_unready(&self, machine: &str) -> bool {
        self.unready.has_lasted(machine, self.patience.refused, self.now) == Some(true)
    }

    /// Whether the user data of new Machines contain every key of ours, and for how long.
    pub(in crate::fleet) fn user_data(&self) -> UserData {
        match self.user_data.has_lasted(USER_DATA, self.patience.refused, self.now) {
            None => UserData::Due,
            Some(false) => UserData::Fresh,
            Some(true) => UserData::Settled,
        }
    }
}

/// Names and UIDs of Machines whose Nodes are absent or not ready.
fn unready<'a>(
    nodes: &'a [NodeFacts],
    machines: &'a Machines,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let mut ready = HashMap::new();
    if machines.iter().next().is_some() {
        ready.extend(nodes.iter().map(|node| (node.uid.as_str(), node.ready)));
    }
    let is_ready = move |machine: &MachineFacts| {
        let node = machine.node.as_ref().and_then(|node| ready.get(node.uid.as_str()));
        node.copied().unwrap_or_default()
    };
    let all = machines.iter().map(|machine| &machine.facts);
    all.filter(move |it| !is_ready(it)).map(|it| (it.name.as_str(), it.uid.as_str()))
}

/// Where the host of an instance is, as people or the Machine API say, or by its record.
fn ipv4_of(instance: &str, desired: &Desired<'_>, hosts: &KnownHosts) -> Option<Ipv4Addr> {
    let entry = desired.entries.and_then(|all| all.get(instance)?.as_ref().ok());
    let machine = || desired.machines.with_key(instance)?.instance.as_ref().ok();
    let asked_for = entry.or_else(machine).map(|instance| instance.ipv4);
    asked_for.or_else(|| hosts.record(instance)?.ipv4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Reference;

    #[test]
    fn a_machine_is_unready_without_a_ready_node_of_its_own() {
        let node = |uid: &str, ready| NodeFacts { uid: uid.into(), ready, ..NodeFacts::default() };
        let machine = |name: &str, node: Option<&str>| MachineFacts {
            name: name.into(),
            uid: format!("of {name}"),
            is_windows: true,
            node: node.map(|uid| Reference { name: "node".into(), uid: uid.into() }),
            ..MachineFacts::default()
        };
        let all = [("a", Some("1")), ("b", Some("2")), ("c", Some("gone")), ("d", None)];
        let machines = Machines::read(all.map(|(name, node)| machine(name, node)), [], "");
        let nodes = [node("1", true), node("2", false), node("3", true)];
        let found: Vec<_> = unready(&nodes, &machines).collect();
        assert_eq!(found, [("b", "of b"), ("c", "of c"), ("d", "of d")]);
    }
}
