//! What a pass would begin with, for people who ask before they act.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Assignment, Desired, Observed, reconcile};
use crate::content::Release;
use crate::node::{self, HostSeen, KnownAs, Plan};

/// What would be done with one instance.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Preview {
    /// What is wanted of it, and why.
    #[serde(flatten)]
    pub assignment: Assignment,
    /// Its first steps. No host has been asked, so for a host that would be changed that is a probe;
    /// everything after depends on what it finds.
    pub plan: Plan,
}

/// What one pass would begin with, without asking a host.
pub fn preview(
    desired: &Desired<'_>,
    observed: &Observed<'_>,
    release: &Release,
    now: Timestamp,
) -> Vec<Preview> {
    let first_steps = |assignment: Assignment| {
        let node = observed.nodes.iter().find(|node| Some(&node.name) == assignment.node.as_ref());
        let seen = node::Observed {
            node: node.cloned(),
            pods: None,
            node_sought: false,
            host: HostSeen::Unknown,
            on_record: false,
            known_closed: false,
            waiting: None,
            drain: node::DrainSeen::default(),
            registration: node::Registration::default(),
        };
        let wanted = release.desired(assignment.intent.clone(), KnownAs::default(), None);
        let plan = node::reconcile(&wanted, &seen, now);
        Preview { assignment, plan }
    };
    reconcile(desired, observed).instances.into_iter().map(first_steps).collect()
}

impl fmt::Display for Preview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.assignment)?;
        for step in &self.plan.steps {
            write!(f, "\n  would {}, because {}", step.action, step.because)?;
        }
        Ok(())
    }
}
