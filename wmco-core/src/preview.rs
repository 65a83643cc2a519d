//! What a pass would begin with, for people who ask before they act.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::fleet::Assignment;
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
}

/// What one pass would begin with, without asking a host.
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
/// #   refused: &none, unanswered: &none, user_data_ready: true, hosts: &hosts, host_names: &names, untried: &none };
/// # let release = Arc::new(node::Release { version: "2.0.0".into(), agent: Sha256::of(b"agent"),
/// #   files: [].into(), daemon_arguments: vec![], manifest: Default::default(),
/// #   bootstrap_services: vec![], known_manifests: vec![],
/// #   drain_timeout: wmco_core::limits::DRAIN_TIMEOUT });
/// # let now = jiff::Timestamp::UNIX_EPOCH;
/// let assignments = reconcile(&desired, &observed);
/// let text = preview(&assignments.instances, &release, now)[0].to_string();
/// assert!(text.starts_with("10.0.0.5: configure, because it is listed\n  would probe-with-ours"));
/// ```
pub fn preview<'a>(
    assignments: &[Assignment<'a>],
    release: &Arc<Release>,
    now: Timestamp,
) -> Vec<Preview<'a>> {
    let first_steps = |assignment: &Assignment<'a>| {
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
        let plan = node::reconcile(&wanted, &seen, now);
        Preview { assignment: assignment.clone(), plan }
    };
    assignments.iter().map(first_steps).collect()
}

impl fmt::Display for Preview<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.assignment)?;
        for step in &self.plan.steps {
            write!(f, "\n  would {}, because {}", step.action, step.because)?;
        }
        Ok(())
    }
}
