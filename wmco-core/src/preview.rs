//! What a pass would begin with, for people who ask before they act.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::fleet::{Assignment, Assignments};
use crate::host_record::KnownHosts;
use crate::login_keys::{KeyExchange, LoginKeys};
use crate::names::{self, host};
use crate::node::{self, HostSeen, KnownAs, Plan, Release};

/// What would be done with one instance.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Preview<'a> {
    /// What is wanted of it, and why.
    #[serde(flatten)]
    pub assignment: Assignment<'a>,
    /// Its first steps. No host has been asked, so for a host that would be changed that is a probe;
    /// everything after depends on what it finds.
    pub plan: Plan,
    /// What the keys that are to let us in mean for it; none where nothing changes, or nobody tells them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyPreview>,
}

/// What other keys than before mean for the host of an instance.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum KeyPreview {
    /// A rotation asks for this once its host has nothing else to do.
    Exchange(KeyExchange),
    /// Its Node was configured with another key, so its host may refuse those that there are.
    MayRefuse {
        /// Whether its Machine is made anew then; else people have to put the new key on its host.
        replaced: bool,
    },
}

/// What one pass would begin with, without asking a host.
///
/// `hosts` is the ConfigMap of host keys.
///
/// ```
/// # use std::sync::Arc;
/// # use wmco_core::{digest::Sha256, fleet::*, host_record::KnownHosts, instances::*, node};
/// use wmco_core::preview::preview;
///
/// # let entries = parse([("10.0.0.5", "username=core")], &Resolutions::default());
/// # let machines = Default::default();
/// # let desired = Desired { entries: Some(&entries), machines: &machines, version: "2.0.0", budget: 1,
/// #   guard: RemovalGuard::default(), keys: None };
/// # let (none, names, hosts) = ([].into(), [].into(), KnownHosts::default());
/// # let observed = Observed { nodes: &[], claims: &none, granted: &none, replaced: &none,
/// #   refused: &none, unanswered: &none, user_data_ready: true, hosts: &hosts, host_names: &names,
/// #   untried: &none };
/// # let release = Arc::new(node::Release { version: "2.0.0".into(), agent: Sha256::of(b"agent"),
/// #   files: [].into(), daemon_arguments: vec![], manifest: Default::default(),
/// #   bootstrap_services: vec![], known_manifests: vec![],
/// #   drain_timeout: wmco_core::limits::DRAIN_TIMEOUT });
/// # let now = jiff::Timestamp::UNIX_EPOCH;
/// let assignments = reconcile(&desired, &observed);
/// let text = preview(&assignments, &hosts, desired.keys, &release, now)[0].to_string();
/// assert!(text.starts_with("10.0.0.5: configure, because it is listed\n  would probe-with-ours"));
/// ```
pub fn preview<'a>(
    assignments: &Assignments<'a>,
    hosts: &KnownHosts,
    keys: Option<&LoginKeys>,
    release: &Arc<Release>,
    now: Timestamp,
) -> Vec<Preview<'a>> {
    let preview = |assignment: &Assignment<'a>| Preview {
        assignment: assignment.clone(),
        plan: first_steps(assignment, release, now),
        key: keys.and_then(|keys| key(assignment, assignments, hosts, keys)),
    };
    assignments.instances.iter().map(preview).collect()
}

fn first_steps(assignment: &Assignment<'_>, release: &Arc<Release>, now: Timestamp) -> Plan {
    let seen = node::Observed {
        node: assignment.node.cloned(),
        pods: None,
        node_sought: false,
        host: HostSeen::Unknown,
        on_record: false,
        known_closed: false,
        waiting: None,
        drain: node::DrainSeen::default(),
        registration: node::Registration::default(),
    };
    let (release, intent) = (Arc::clone(release), assignment.intent.clone());
    let wanted = node::Desired::new(release, intent, KnownAs::default(), None);
    node::reconcile(&wanted, &seen, now)
}

/// What these keys mean for the host of an instance that people or the Machine API ask for.
fn key(
    assignment: &Assignment<'_>,
    assignments: &Assignments<'_>,
    hosts: &KnownHosts,
    keys: &LoginKeys,
) -> Option<KeyPreview> {
    let instance = assignment.instance.filter(|_| assignment.has_work())?;
    let record = assignment.record(hosts);
    if let Some((rotation, progress)) = keys.rotation().zip(assignments.rotation.as_ref()) {
        return progress.due(rotation, assignment.proof(hosts)).map(KeyPreview::Exchange);
    }
    let before = assignment.node?.annotation(names::PUBLIC_KEY_HASH_ANNOTATION)?;
    let is_other = before != keys.sealing(record).to_string();
    is_other.then(|| KeyPreview::MayRefuse { replaced: instance.machine.is_some() })
}

impl fmt::Display for Preview<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.assignment)?;
        for step in &self.plan.steps {
            write!(f, "\n  would {}, because {}", step.action, step.because)?;
        }
        self.key.as_ref().map_or(Ok(()), |key| write!(f, "\n  {key}"))
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
            Self::MayRefuse { replaced: true } => f.write_str(
                "was configured with another key: if its host refuses the one in the secret, its machine is \
                 made anew, within the disruption budget",
            ),
            Self::MayRefuse { replaced: false } => write!(
                f,
                "was configured with another key: if its host refuses the one in the secret, it stays as it \
                 is until that is in {} there",
                host::AUTHORIZED_KEYS
            ),
        }
    }
}
