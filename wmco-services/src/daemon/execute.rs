//! Takes the steps of a daemon's plan that concern the host.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use wmco_core::text::chain;
use wmco_core::winpath::WindowsPath;

use super::{
    About, Action, Asked, Glance, ManifestState, Note, Observed, Plan, observe, reconcile,
};
use crate::lifecycle;
use crate::manifest::Manifest;
use crate::services::{self, ScriptResults};
use crate::windows::{Windows, WindowsError};
use crate::{certs, env};

/// What one pass of the daemon did and what is left for the caller.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Pass {
    /// What was planned, with when to look again.
    pub plan: Plan,
    /// Annotations that the caller now sets on the Node. Those planned after a step that failed are not
    /// among them.
    pub annotations: BTreeMap<String, String>,
    /// The services as the pass found them; when they change by themselves, the next pass is due.
    pub glance: Glance,
    /// What failed, one line each. With any, the caller pauses before the next pass, and longer each
    /// time.
    pub failures: Vec<String>,
}

impl Pass {
    /// The patch that sets the annotations, or `None` if there are none. `node` is the Node that the
    /// pass was about: when it has changed since, the API answers 409 and the next pass decides anew,
    /// so that a node is never marked for what it was asked before.
    pub fn patch(&self, node: &Value) -> Option<Value> {
        let version = node.pointer("/metadata/resourceVersion").cloned().unwrap_or_default();
        let metadata = json!({"annotations": self.annotations, "resourceVersion": version});
        (!self.annotations.is_empty()).then(|| json!({ "metadata": metadata }))
    }
}

/// What a pass works with.
#[derive(Clone, Copy)]
pub struct Means<'a> {
    /// The host.
    pub windows: &'a dyn Windows,
    /// The file with the roots to trust, if any.
    pub bundle: Option<&'a WindowsPath>,
    /// Asked before each step; after a no, nothing more is done.
    pub go_on: &'a dyn Fn() -> bool,
}

/// One pass: observes the host, plans, and takes the host's part of the plan.
///
/// # Errors
/// [`WindowsError`] when the host cannot be observed; nothing was changed.
pub fn pass(
    means: Means<'_>,
    asked: Asked<'_>,
    results: &mut ScriptResults,
    now: Timestamp,
) -> Result<Pass, WindowsError> {
    let Means { windows, bundle, go_on } = means;
    let nothing = Manifest::empty();
    let manifest = match asked.manifest {
        ManifestState::Read(manifest) => manifest,
        ManifestState::Missing | ManifestState::Held | ManifestState::Refused(_) => &nothing,
    };
    let observed = observe(windows, manifest, bundle, now)?;
    let mut plan = reconcile(asked, &observed, results, now);
    let mut notes = Vec::new();
    let mut annotations = BTreeMap::new();
    let mut failures = Vec::new();
    for step in &plan.steps {
        // What is later relies on what was before, above all what the Node is told.
        if !failures.is_empty() || !go_on() {
            break;
        }
        match &step.action {
            Action::AnnotateNode { annotations: more } => annotations.extend(more.clone()),
            action => {
                failures = act(action, means, manifest, &observed, results, now);
                // Nothing goes on without the roots, so the Node says so.
                if matches!(action, Action::Roots { .. }) {
                    let note = |text: &String| Note { about: About::Roots, text: text.clone() };
                    notes.extend(failures.iter().map(note));
                }
            }
        }
    }
    plan.notes.extend(notes);
    let glance = Glance::of(&observed.services, manifest);
    Ok(Pass { plan, annotations, glance, failures })
}

/// Takes one step on the host; returns what failed.
fn act(
    action: &Action,
    means: Means<'_>,
    manifest: &Manifest,
    observed: &Observed,
    results: &mut ScriptResults,
    now: Timestamp,
) -> Vec<String> {
    let windows = means.windows;
    let outcome = match action {
        Action::Environment { plan } => env::execute(plan, manifest, windows),
        Action::Roots { plan } => certs::execute(plan, &observed.bundle, &observed.roots, windows),
        Action::Services { plan } => {
            let done = services::execute(plan, windows, results, now, means.go_on);
            return lifecycle::problems(&done.failures).collect();
        }
        Action::RemoveFile { path } => windows.files().remove_file(path).or_else(|error| {
            // It costs disk space and nothing else.
            tracing::warn!(%path, error = %chain(&error), "cannot remove an old certificate");
            Ok(false)
        }),
        Action::AnnotateNode { .. } => Ok(false),
    };
    outcome.err().map(|error| chain(&error)).into_iter().collect()
}
