//! A preview of the first steps of a pass, for a dry run.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use semver::Version;
use serde::Serialize;

use crate::digest::Sha256;
use crate::facts::NodeFacts;
use crate::fleet::{Assignment, Assignments, Desired, Held, Intent, Observed, held_if_refusing};
use crate::host_record::KnownHosts;
use crate::limits;
use crate::login_keys::{KeyExchange, LoginKeys};
use crate::names::machine_api::{INFRASTRUCTURE_KIND, MACHINE_SET_KIND};
use crate::names::objects::{
    HOST_KEYS_CONFIG_MAP, INSTANCES_CONFIG_MAP, MACHINE, PRIVATE_KEY_SECRET,
};
use crate::names::{self, host};
use crate::node::{InstanceInputs, Login, Plan, Release, WorkerState};
use crate::text::{cut, printable};

/// The planned work on an instance.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Preview<'a> {
    /// The intent for the instance, with its reason.
    #[serde(flatten)]
    pub assignment: Assignment<'a>,
    /// Its first steps. No host was asked, so for a host to change the first step is a probe; everything else
    /// depends on the result.
    pub plan: Plan,
    /// Why nobody can take the steps on its host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreachable: Option<String>,
    /// What the probe leads to if the host is as its Node tells; `None` if there is no probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then: Option<Then>,
    /// Whether that waits until the cluster is fit for new work.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub then_waits: bool,
    /// The effect of the login keys on it; `None` if there is none, or the keys are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyPreview>,
}

/// What follows the probe of a host.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Then {
    /// The host becomes a node.
    SetUp,
    /// The node gets another version, in a slot of the disruption budget.
    ChangeVersion {
        /// The version that it has.
        from: String,
        /// The version that it gets.
        to: String,
    },
    /// The node is set up anew in a slot of the disruption budget: its daemon was told to follow another version.
    SetUpAnew {
        /// The version that the daemon was told.
        told: String,
    },
    /// The host restarts in a slot of the disruption budget, as somebody asked.
    Restart,
    /// The node goes back into service: its work is done, and it still holds a slot or our cordon.
    PutBack,
    /// The host is given back and the Node deleted, in a slot of the disruption budget.
    Remove,
    /// Nothing: the cluster is not fit for new nodes, and the host was only to be looked at.
    LookedAt,
    /// Nothing, unless the host differs from what is wanted.
    Nothing,
}

/// The effect of changed login keys on the host of an instance.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum KeyPreview {
    /// A rotation exchanges the key once its host has no other work.
    Exchange(KeyExchange),
    /// Its Node was configured with another key, so its host may refuse the present keys.
    MayRefuse {
        /// Whether its Machine is replaced in that case; otherwise an administrator has to add the new key to its
        /// host.
        replaced: bool,
        /// What forbids that now, should the hosts of all Machines refuse that may, for as long as is waited.
        #[serde(skip_serializing_if = "Option::is_none")]
        held: Option<Held>,
    },
}

/// Previews the first steps of a pass, without asking a host. `assignments` are what it decides of `desired` and
/// `observed`.
///
/// ```
/// use std::sync::Arc;
///
/// use wmco_core::cluster_identity::ClusterIdentity;
/// use wmco_core::digest::Sha256;
/// use wmco_core::fleet::{Desired, Observed, reconcile};
/// use wmco_core::host_record::KnownHosts;
/// use wmco_core::instances::{Resolutions, parse};
/// use wmco_core::node::Release;
/// use wmco_core::preview::preview;
///
/// // One host is listed, and the cluster has no Node.
/// let entries = parse([("10.0.0.5", "username=core")], &Resolutions::default());
/// let desired = Desired::new(Some(&entries), "2.0.0");
/// let hosts = KnownHosts::default();
/// let observed = Observed { hosts: &hosts, ..Observed::new(&[]) };
/// let cluster = ClusterIdentity::new("11111111-aaaa");
/// let release = Arc::new(Release::new("2.0.0", Sha256::of(b"agent"), cluster));
///
/// let now = jiff::Timestamp::UNIX_EPOCH;
/// let assignments = reconcile(&desired, &observed);
/// let text = preview(&assignments, &desired, &observed, &release, now)[0].to_string();
/// assert!(text.starts_with("10.0.0.5: configure, because it is listed\n  would probe-with-ours"));
/// ```
pub fn preview<'a>(
    assignments: &Assignments<'a>,
    desired: &Desired<'_>,
    observed: &Observed<'_>,
    release: &Arc<Release>,
    now: Timestamp,
) -> Vec<Preview<'a>> {
    let (keys, hosts) = (desired.keys, observed.hosts);
    let key = |assignment: &Assignment<'_>| key(assignment, assignments, hosts, keys?);
    // A host into which nobody can log in refuses nothing.
    let is_reached =
        |assignment: &Assignment<'_>| inputs(assignment, release, hosts, keys).reach.is_ok();
    let refusing = assignments.instances.iter().filter(|assignment| {
        matches!(key(assignment), Some(KeyPreview::MayRefuse { replaced: true, .. }))
            && is_reached(assignment)
    });
    let refusing = refusing.map(|assignment| assignment.address.clone()).collect();
    let held = held(&refusing, desired, observed);
    let preview = |assignment: &Assignment<'a>| {
        let inputs = inputs(assignment, release, hosts, keys);
        let plan = WorkerState::default().plan(&inputs, now);
        let asks_host = plan.steps.iter().any(|step| step.action.is_on_host());
        let unreachable = inputs.reach.as_ref().err().filter(|_| asks_host);
        let unreachable = unreachable.map(ToString::to_string);
        let is_asked = asks_host && unreachable.is_none();
        let then = is_asked.then(|| Then::of(assignment, &release.version));
        let (plan, key) = match &unreachable {
            Some(_) => (Plan::settled(), None),
            None => (plan, key(assignment).map(|key| key.held(held.get(&assignment.address)))),
        };
        let then_waits = desired.blocked && then.as_ref().is_some_and(Then::is_disruption);
        let then_waits = then_waits && !assignment.node.is_some_and(NodeFacts::holds_slot);
        Preview { assignment: assignment.clone(), plan, unreachable, then, then_waits, key }
    };
    assignments.instances.iter().map(preview).collect()
}

/// The inputs of the instance's worker. Which keys let us in does not matter before the host is asked.
fn inputs(
    assignment: &Assignment<'_>,
    release: &Arc<Release>,
    hosts: &KnownHosts,
    keys: Option<&LoginKeys>,
) -> InstanceInputs {
    let unknown = LoginKeys::one(Sha256::of(&[]));
    let keys = keys.unwrap_or(&unknown);
    // A user name on record is taken for readable.
    let decrypt = |text: &str| Some(text.to_owned());
    let login = Login { keys, rotation: None, username: None, decrypt: &decrypt };
    InstanceInputs::of(assignment, release, hosts, login)
}

impl Then {
    fn of(assignment: &Assignment<'_>, version: &str) -> Self {
        match assignment.intent {
            Intent::Remove(_) => return Self::Remove,
            Intent::Look => return Self::LookedAt,
            Intent::Configure(_) | Intent::Replace(_) | Intent::Leave => {}
        }
        let node = assignment.node.and_then(|node| Some((node, node.version()?)));
        let Some((node, from)) = node else { return Self::SetUp };
        let told = node.desired_version().filter(|told| *told != version);
        if from != version {
            Self::ChangeVersion { from: from.to_owned(), to: version.to_owned() }
        } else if let Some(told) = told {
            Self::SetUpAnew { told: told.to_owned() }
        } else if node.wants_restart() {
            Self::Restart
        } else if node.holds_slot() || node.annotation(names::CORDONED_ANNOTATION).is_some() {
            Self::PutBack
        } else {
            Self::Nothing
        }
    }
}

impl Then {
    /// Whether it takes a node out of service that does not leave.
    const fn is_disruption(&self) -> bool {
        match self {
            Self::ChangeVersion { .. } | Self::SetUpAnew { .. } | Self::Restart => true,
            Self::SetUp | Self::PutBack | Self::Remove | Self::LookedAt | Self::Nothing => false,
        }
    }
}

/// The effect of these keys on the host of a listed instance or of a Machine.
fn key(
    assignment: &Assignment<'_>,
    assignments: &Assignments<'_>,
    hosts: &KnownHosts,
    keys: &LoginKeys,
) -> Option<KeyPreview> {
    let instance = assignment.instance.filter(|_| assignment.has_work())?;
    let record = assignment.record(hosts);
    if let Some(progress) = &assignments.rotation {
        return progress.due(keys, assignment.proof(hosts)).map(KeyPreview::Exchange);
    }
    let before = assignment.node?.annotation(names::PUBLIC_KEY_HASH_ANNOTATION)?;
    let is_other = before != keys.sealing(record).to_string();
    let replaced = instance.machine.is_some();
    is_other.then_some(KeyPreview::MayRefuse { replaced, held: None })
}

/// Why Machines are not replaced though their hosts are `refusing`, by address. Where the input lacks their MachineSet,
/// only that the cluster is fit for nothing.
fn held(
    refusing: &BTreeSet<String>,
    desired: &Desired<'_>,
    observed: &Observed<'_>,
) -> BTreeMap<String, Held> {
    if refusing.is_empty() {
        return BTreeMap::new();
    }
    let machines = desired.machines;
    let is_known = |address: &str| {
        let owner = machines.with_key(address).and_then(|it| it.facts.machine_set.as_ref());
        owner.is_none_or(|owner| machines.set(&owner.name).is_some())
    };
    let held = held_if_refusing(desired, observed, refusing).into_iter();
    let held = held.filter_map(|(address, held)| match held {
        _ if !is_known(&address) => desired.blocked.then_some((address, Held::ClusterUnfit)),
        // Which one goes first depends on who refuses first.
        Held::RecordDue | Held::ReplacedFirst { .. } => None,
        held => Some((address, held)),
    });
    held.collect()
}

impl KeyPreview {
    /// The same, with what forbids that a Machine is replaced.
    fn held(self, by: Option<&Held>) -> Self {
        match self {
            Self::MayRefuse { replaced, .. } => Self::MayRefuse { replaced, held: by.cloned() },
            Self::Exchange(_) => self,
        }
    }
}

/// An object of an input that could change its plan.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum InputObject {
    /// The ConfigMap of host keys, with the record of each host.
    Hosts,
    /// The cluster's Infrastructure: its platform, and what belongs to the API server and the ingress.
    Infrastructure,
    /// The Secret with the keys that let us in.
    Keys,
    /// The MachineSets of the Machines whose hosts may refuse the present keys.
    MachineSets,
    /// The list of hosts.
    List,
    /// Machines; an empty list of them tells that there is none.
    Machines,
    /// The cluster's networks, in which no host may be.
    Networks,
    /// Nodes; an empty list of them tells that there is none.
    Nodes,
}

/// The objects that an input lacks and that could change its plan. `given` are those that it has, where
/// [`Desired`] and [`Observed`] do not tell.
pub fn missing_objects(
    desired: &Desired<'_>,
    observed: &Observed<'_>,
    given: &BTreeSet<InputObject>,
) -> Vec<InputObject> {
    let ours = || observed.nodes.iter().filter(|node| node.is_windows());
    let has_entries = desired.entries.is_some_and(|entries| entries.iter().next().is_some());
    let has_machines = desired.machines.iter().next().is_some();
    let has_hosts = has_entries || has_machines || ours().next().is_some();
    let was_sealed =
        |node: &NodeFacts| node.annotation(names::PUBLIC_KEY_HASH_ANNOTATION).is_some();
    let lacks = |object| !given.contains(&object);
    let checks = [
        (InputObject::Hosts, has_hosts && lacks(InputObject::Hosts)),
        (InputObject::List, desired.entries.is_none()),
        (InputObject::Nodes, has_hosts && lacks(InputObject::Nodes)),
        (InputObject::Machines, has_hosts && !has_machines && lacks(InputObject::Machines)),
        (InputObject::Keys, desired.keys.is_none() && ours().any(was_sealed)),
        (InputObject::MachineSets, lacks_sets(desired, observed)),
        (InputObject::Networks, has_entries && lacks(InputObject::Networks)),
        (InputObject::Infrastructure, has_hosts && lacks(InputObject::Infrastructure)),
    ];
    checks.into_iter().filter(|(_, is_missing)| *is_missing).map(|(object, _)| object).collect()
}

/// Whether a Machine may be replaced for its host refuses the present keys, and its MachineSet is not in the input.
fn lacks_sets(desired: &Desired<'_>, observed: &Observed<'_>) -> bool {
    let (Some(keys), machines) = (desired.keys, desired.machines) else { return false };
    let sealed = keys.sealing(None).to_string();
    let hashes: BTreeMap<&str, &str> = observed
        .nodes
        .iter()
        .filter_map(|it| Some((it.uid.as_str(), it.annotation(names::PUBLIC_KEY_HASH_ANNOTATION)?)))
        .collect();
    machines.iter().any(|machine| {
        let node = machine.facts.node.as_ref().and_then(|node| hashes.get(node.uid.as_str()));
        let owner = machine.facts.machine_set.as_ref();
        node.is_some_and(|hash| *hash != sealed)
            && owner.is_some_and(|owner| machines.set(&owner.name).is_none())
    })
}

impl InputObject {
    /// What it could change, where its name does not tell.
    const fn effect(self) -> Option<&'static str> {
        match self {
            Self::Infrastructure => Some(
                "an entry may have an address of the API server or the ingress, and the platform names \
                 users and hosts",
            ),
            Self::Machines => Some(
                "an entry may mean the host of one; an empty MachineList says that there is none",
            ),
            Self::MachineSets => Some("they make the replacement of a machine, or not"),
            Self::List => {
                Some("an entry may mean the host of a Machine; one without data lists none")
            }
            Self::Hosts | Self::Keys | Self::Networks | Self::Nodes => None,
        }
    }
}

impl fmt::Display for InputObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hosts => write!(f, "ConfigMap {HOST_KEYS_CONFIG_MAP}")?,
            Self::Infrastructure => write!(f, "{INFRASTRUCTURE_KIND}s.config.openshift.io")?,
            Self::Keys => write!(f, "Secret {PRIVATE_KEY_SECRET}")?,
            Self::List => write!(f, "ConfigMap {INSTANCES_CONFIG_MAP}")?,
            Self::MachineSets => write!(f, "{MACHINE_SET_KIND}s.{}", MACHINE.0)?,
            Self::Machines => write!(f, "{}s.{}", MACHINE.2, MACHINE.0)?,
            Self::Networks => f.write_str("Networks.config.openshift.io")?,
            Self::Nodes => f.write_str("Nodes")?,
        }
        self.effect().map_or(Ok(()), |effect| write!(f, " ({effect})"))
    }
}

impl fmt::Display for Preview<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = self.plan.steps.iter();
        let steps = steps.map(|step| format!("would {}, because {}", step.action, step.because));
        let unreachable = self.unreachable.iter().map(|why| format!("would not log in: {why}"));
        let waits =
            if self.then_waits { ", and not before the cluster is fit for new work" } else { "" };
        let then = self.then.iter().map(|then| format!("{then}{waits}"));
        let key = self.key.iter().map(ToString::to_string);
        // Nodes and records hold what others wrote: it must not look like a line of ours.
        f.write_str(&printable(&self.assignment.to_string()))?;
        let mut lines = steps.chain(unreachable).chain(then).chain(key);
        lines.try_for_each(|line| write!(f, "\n  {}", printable(&line)))
    }
}

impl fmt::Display for Then {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SetUp => f.write_str("would then set the host up as a node"),
            Self::ChangeVersion { from, to } => write!(
                f,
                "would then {} it from {} to {to}, drained, once it has a slot of the disruption budget",
                verb_of_change(from, to),
                foreign_version(from)
            ),
            Self::SetUpAnew { told } => write!(
                f,
                "would then set it up anew, drained, once it has a slot of the disruption budget, because its daemon \
                 was told to follow version {}",
                foreign_version(told)
            ),
            Self::Restart => f.write_str(
                "would then restart it, drained, once it has a slot of the disruption budget, as its node asks",
            ),
            Self::PutBack => {
                f.write_str("would then put the node back into service, once it is ready")
            }
            Self::Remove => f.write_str(
                "would then give the host back and delete its node, once it has a slot of the disruption budget",
            ),
            Self::LookedAt => f.write_str("would then do nothing else there"),
            Self::Nothing => f.write_str("would then do nothing, unless the host differs"),
        }
    }
}

/// Most bytes of a Node's version that are shown.
const VERSION_BYTES: usize = 64;

/// A version that somebody else may have written: in quotes if it is none.
fn foreign_version(text: &str) -> String {
    let shown = cut(text, VERSION_BYTES);
    let rest = if shown == text { "" } else { ".." };
    if Version::parse(text).is_ok() { format!("{shown}{rest}") } else { format!("{shown:?}{rest}") }
}

/// What a change of versions is called. Builds of one version are not older or newer than each other: what follows the
/// three numbers is the commit.
fn verb_of_change(from: &str, to: &str) -> &'static str {
    let numbers = |text| Version::parse(text).ok().map(|it| (it.major, it.minor, it.patch));
    match numbers(from).zip(numbers(to)).map(|(from, to)| from.cmp(&to)) {
        Some(Ordering::Greater) => "downgrade",
        Some(Ordering::Less) => "upgrade",
        Some(Ordering::Equal) | None => "bring",
    }
}

impl fmt::Display for KeyPreview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exchange(KeyExchange { add, remove: None }) => write!(
                f,
                "would then add key {} to {} and log in with it, because the key that lets us in is exchanged",
                add.fingerprint(),
                host::AUTHORIZED_KEYS
            ),
            Self::Exchange(KeyExchange { add, remove: Some(remove) }) => write!(
                f,
                "would then log in with key {} and remove key {} from {}, because every host lets the next \
                 key in",
                add.fingerprint(),
                remove.fingerprint(),
                host::AUTHORIZED_KEYS
            ),
            Self::MayRefuse { replaced: true, held: Some(held) } => write!(
                f,
                "was configured with another key: if its host refuses the one in the secret, its machine is \
                 not replaced now, because {held}",
            ),
            Self::MayRefuse { replaced: true, held: None } => write!(
                f,
                "was configured with another key: if its host refuses the one in the secret, its machine is \
                 replaced, within the disruption budget and one of its machineset at a time, once the user data of \
                 new machines have let our keys in for {} minutes",
                limits::LOGIN_REFUSED.as_mins()
            ),
            Self::MayRefuse { replaced: false, .. } => write!(
                f,
                "was configured with another key: if its host refuses the one in the secret, it stays as it \
                 is until that is in {} there",
                host::AUTHORIZED_KEYS
            ),
        }
    }
}
