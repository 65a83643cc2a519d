//! Inputs of an instance's worker.

use std::sync::Arc;

use super::{Desired, KnownAs, NodeMarks, Release};
use crate::digest::Sha256;
use crate::facts::NodeFacts;
use crate::fleet::{Assignment, Rotation};
use crate::host_key::HostKey;
use crate::host_record::{HostRecord, KnownHosts, ListedHost, RecordChange, calls};
use crate::instances::OfMachine;
use crate::login_keys::LoginKeys;
use crate::reach::{Reach, Unreachable, reach};

/// All facts about the cluster that an instance's worker needs.
///
/// ```
/// use std::sync::Arc;
///
/// use wmco_core::cluster_identity::ClusterIdentity;
/// use wmco_core::digest::Sha256;
/// use wmco_core::fleet;
/// use wmco_core::host_record::KnownHosts;
/// use wmco_core::instances::{Resolutions, parse};
/// use wmco_core::login_keys::LoginKeys;
/// use wmco_core::node::{InstanceInputs, Login, Release, Rest, WorkerState};
///
/// // What people wrote ...
/// let entries = parse([("10.0.0.5", "username=core")], &Resolutions::default());
/// let desired = fleet::Desired::new(Some(&entries), "2.0.0");
/// // ... and what there is give an assignment for each instance,
/// let hosts = KnownHosts::default();
/// let observed = fleet::Observed { hosts: &hosts, ..fleet::Observed::new(&[]) };
/// let assignments = fleet::reconcile(&desired, &observed);
///
/// // which goes to its worker with what every host gets and how we log in.
/// let cluster = ClusterIdentity::new("11111111-aaaa");
/// let release = Arc::new(Release::new("2.0.0", Sha256::of(b"agent"), cluster));
/// let keys = LoginKeys::one(Sha256::of(b"public key"));
/// let login = Login {
///     keys: &keys,
///     rotation: assignments.rotation.as_ref(),
///     username: Some("encrypted"),
///     decrypt: &|_| None,
/// };
/// let inputs = InstanceInputs::of(&assignments.instances[0], &release, &hosts, login);
///
/// let (mut worker, now) = (WorkerState::default(), jiff::Timestamp::UNIX_EPOCH);
/// let plan = worker.plan(&inputs, now);
/// assert_eq!(plan.steps[0].action.verb(), "probe-with-ours");
/// // A step that fails is tried again later, unless people ask for something else meanwhile.
/// let rest = Rest::after_failure(now);
/// assert_eq!(rest.ended_by(&inputs, &inputs), None);
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct InstanceInputs {
    /// The instance's identifier, as in [`Assignment::address`].
    pub address: String,
    /// The Machine whose host it is; `None` for an instance that is or was listed.
    pub machine: Option<OfMachine>,
    /// The desired state.
    pub desired: Desired,
    /// The instance's Node.
    pub node: Option<NodeFacts>,
    /// The way to its host.
    pub reach: Result<Reach, Unreachable>,
    /// Hashes of the public keys that are offered to its host, in order.
    pub keys: Vec<Sha256>,
    /// The record of its host, under this address or a former one.
    pub record: Option<HostRecord>,
    /// Whether the ConfigMap of host keys has its key or its record.
    pub on_record: bool,
}

/// The login data that decisions need.
#[derive(Clone, Copy)]
pub struct Login<'a> {
    /// The keys for logins.
    pub keys: &'a LoginKeys,
    /// Progress of the key exchange.
    pub rotation: Option<&'a Rotation>,
    /// The encrypted user name of the instance, see [`LoginKeys::sealing`]; `None` if it is not needed.
    pub username: Option<&'a str>,
    /// Decrypts user names.
    pub decrypt: &'a dyn Fn(&str) -> Option<String>,
}

impl InstanceInputs {
    /// Makes the inputs from the decision about an instance.
    pub fn of(
        assignment: &Assignment<'_>,
        release: &Arc<Release>,
        hosts: &KnownHosts,
        login: Login<'_>,
    ) -> Self {
        let record = assignment.record(hosts);
        let reach = reach(assignment, hosts, login.decrypt);
        let way = reach.as_ref().ok();
        let marks = assignment.instance.zip(login.username).map(|(entry, username)| NodeMarks {
            listed_as: entry.machine.is_none().then_some(&entry.address),
            username,
            key_hash: login.keys.sealing(record),
            host_key: way.and_then(|way| Some(&way.host_key.as_ref()?.key)),
        });
        let on_record = record.and_then(|record| record.node.clone());
        let machine = assignment.instance.and_then(|instance| instance.machine.as_ref());
        let host_name = machine.and_then(|machine| machine.host_name.clone());
        // The identifier of a Machine's host is not a name of its Node.
        let called =
            host_name.clone().or_else(|| machine.is_none().then(|| assignment.address.clone()));
        let known_as = KnownAs {
            names: on_record.into_iter().chain(called).collect(),
            ipv4: way.map(|way| way.address),
        };
        let (release, intent) = (Arc::clone(release), assignment.intent.clone());
        let pinned = way.and_then(|way| Some(way.host_key.as_ref()?.key.fingerprint()));
        let shows_its_key = record.filter(|record| pinned.is_some() && record.pinned == pinned);
        Self {
            address: assignment.address.clone(),
            machine: machine.cloned(),
            desired: Desired {
                is_made_for_us: machine.is_some(),
                has_listed_key: assignment.instance.is_some_and(|entry| entry.host_key.is_some()),
                host_name,
                name_on_record: shows_its_key.and_then(|record| record.host_name.clone()),
                exchange: login.rotation.and_then(|rotation| {
                    record.filter(|_| assignment.instance.is_some())?;
                    rotation.due(login.keys, assignment.proof(hosts))
                }),
                ..Desired::new(release, intent, known_as, marks.as_ref())
            },
            node: assignment.node.cloned(),
            keys: login.keys.offered(record),
            record: record.cloned(),
            on_record: hosts.record(&assignment.address).is_some()
                || hosts.pin(&assignment.address).is_some(),
            reach,
        }
    }

    /// Name of the Node, or the address if there is no Node.
    pub fn node_name(&self) -> &str {
        self.node.as_ref().map_or(&self.address, |node| &node.name)
    }

    /// Returns the change of the host's record that follows from a login with the keys of the hashes `tried`, if
    /// the recorded key was not `accepted`.
    pub fn disproved_by(&self, tried: &[Sha256], accepted: Option<Sha256>) -> Option<RecordChange> {
        let accepted_key = self.record.as_ref()?.accepted_key.filter(|key| tried.contains(key))?;
        // The recorded key is tried first.
        (accepted != Some(accepted_key)).then_some(RecordChange::LetsIn(None))
    }

    /// The pinned key that the host has to show, if there is one.
    pub fn pinned_key(&self) -> Option<&HostKey> {
        Some(&self.reach.as_ref().ok()?.host_key.as_ref()?.key)
    }

    /// Whether our agent found the root folder of the host with the pinned key closed.
    pub fn is_known_closed(&self) -> bool {
        let is_closed = |key| self.record.as_ref().is_some_and(|record| record.is_closed_for(key));
        self.pinned_key().is_some_and(is_closed)
    }

    /// Whether the desired state differs from that in `old`, so that waiting for a retry is pointless. Changes of
    /// the Node by others do not count, and neither does pinning a key that the host has shown.
    pub(super) fn intent_changed_since(&self, old: &Self) -> bool {
        let asked = |inputs: &Self| {
            let Desired { intent, release, .. } = &inputs.desired;
            (intent.verb(), release.version.clone(), release.agent, release.cluster.clone())
        };
        asked(self) != asked(old)
            || self.desired.release.files != old.desired.release.files
            || self.desired.exchange != old.desired.exchange
            || match (&self.reach, &old.reach) {
                (Ok(new), Ok(before)) => !new.only_pins(before) || self.keys != old.keys,
                (Err(_), Err(_)) => false,
                (Ok(_), Err(_)) | (Err(_), Ok(_)) => true,
            }
    }
}

/// What an instance gets after a decision about it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Order {
    /// Nothing is done with its host before this is on record, because it is needed to undo the work.
    Record(RecordChange),
    /// Its worker goes by these inputs.
    Work(Box<InstanceInputs>),
}

impl Order {
    /// The order that follows from the decision; `reported` is the host's own name.
    pub fn of(
        assignment: &Assignment<'_>,
        release: &Arc<Release>,
        hosts: &KnownHosts,
        login: Login<'_>,
        reported: Option<&str>,
    ) -> Self {
        let due = login.username.and_then(|name| due_record(assignment, hosts, name, reported));
        match due {
            Some(due) => Self::Record(RecordChange::Listed(due)),
            None => Self::Work(Box::new(InstanceInputs::of(assignment, release, hosts, login))),
        }
    }
}

/// Returns the record of a listed host if it has to be written before any work on the host. `username` is
/// encrypted, `reported` is the host's own name.
fn due_record(
    assignment: &Assignment<'_>,
    hosts: &KnownHosts,
    username: &str,
    reported: Option<&str>,
) -> Option<ListedHost> {
    let own = hosts.record(&assignment.address);
    let former = assignment.formerly.iter().filter_map(|name| hosts.record(name));
    let known = own.or_else(|| former.clone().next());
    let node = assignment.node.map(|node| node.name.as_str());
    // Of two hosts of one image that swap their addresses only the name tells which one has the Node.
    let registered = |node: &str| known.is_some_and(|known| known.registered(node).is_some());
    let told =
        reported.filter(|told| !node.is_some_and(|node| registered(node) && !calls(told, node)));
    let due = ListedHost {
        node: assignment.confirmed_node().map(str::to_owned),
        host_name: told.map(str::to_owned),
        formerly: assignment.formerly.clone(),
        ..ListedHost::of(assignment.instance?, username)
    };
    (own != Some(&due.record(own, former))).then_some(due)
}
