//! Takes the steps of a daemon's plan that concern the host.

use std::collections::BTreeMap;

use jiff::Timestamp;
use wmco_core::winpath::WindowsPath;

use super::{Action, Asked, ManifestState, Observed, Plan, observe, reconcile};
use crate::lifecycle;
use crate::manifest::Manifest;
use crate::services::{self, ScriptResults};
use crate::text::one_line;
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
    /// What failed, one line each. With any, the caller pauses before the next pass, and longer each
    /// time.
    pub failures: Vec<String>,
}

/// One pass: observes the host, plans, and takes the host's part of the plan.
///
/// # Errors
/// [`WindowsError`] when the host cannot be observed; nothing was changed.
pub fn pass(
    windows: &dyn Windows,
    asked: Asked<'_>,
    bundle: Option<&WindowsPath>,
    results: &mut ScriptResults,
    now: Timestamp,
) -> Result<Pass, WindowsError> {
    let nothing = Manifest::empty();
    let manifest = match asked.manifest {
        ManifestState::Read(manifest) => manifest,
        ManifestState::Missing | ManifestState::Refused(_) => &nothing,
    };
    let observed = observe(windows, manifest, bundle, now)?;
    let plan = reconcile(asked, &observed, results, now);
    let mut annotations = BTreeMap::new();
    let mut failures = Vec::new();
    for step in &plan.steps {
        match &step.action {
            Action::AnnotateNode { annotations: more } => annotations.extend(more.clone()),
            action => failures.extend(act(action, windows, manifest, &observed, results, now)),
        }
        if !failures.is_empty() {
            // What is later relies on this step, above all what the Node is told.
            break;
        }
    }
    Ok(Pass { plan, annotations, failures })
}

/// Takes one step on the host; returns what failed.
fn act(
    action: &Action,
    windows: &dyn Windows,
    manifest: &Manifest,
    observed: &Observed,
    results: &mut ScriptResults,
    now: Timestamp,
) -> Vec<String> {
    let outcome = match action {
        Action::Environment { plan } => env::execute(plan, manifest, windows),
        Action::Roots { plan } => certs::execute(plan, &observed.bundle, &observed.roots, windows),
        Action::Services { plan } => {
            let done = services::execute(plan, windows, results, now);
            return lifecycle::problems(&done.failures).collect();
        }
        Action::RemoveFile { path } => windows.files().remove_file(path).or_else(|error| {
            // It costs disk space and nothing else.
            tracing::warn!(%path, error = %one_line(&error), "cannot remove an old certificate");
            Ok(false)
        }),
        Action::AnnotateNode { .. } => Ok(false),
    };
    outcome.err().map(|error| one_line(&error)).into_iter().collect()
}
