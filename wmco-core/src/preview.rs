//! What a pass would begin with, for people who ask before they act.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::fleet::{Assignment, Desired, Observed, reconcile};
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
pub fn preview<'a>(
    desired: &Desired<'a>,
    observed: &Observed<'a>,
    release: &Arc<Release>,
    now: Timestamp,
) -> Vec<Preview<'a>> {
    let first_steps = |assignment: Assignment<'a>| {
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
        Preview { assignment, plan }
    };
    reconcile(desired, observed).instances.into_iter().map(first_steps).collect()
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
