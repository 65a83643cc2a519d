//! Takes the steps of a daemon's plan that change the host.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use wmco_core::text::chain;
use wmco_core::winpath::WindowsPath;

use super::{
    About, Action, Desired, ManifestState, Note, Observed, Plan, WatchedServices, observe,
    reconcile,
};
use crate::lifecycle;
use crate::manifest::Manifest;
use crate::owner::Owner;
use crate::scripts::METADATA_SERVICE;
use crate::services::{self, ScriptResults};
use crate::windows::{Windows, WindowsError};
use crate::{certs, env};

/// The result of one pass of the daemon, with the annotations that the caller has to set.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Pass {
    /// The plan, with the time of the next pass.
    pub plan: Plan,
    /// Annotations that the caller now sets on the Node, except those planned after a failed step.
    pub annotations: BTreeMap<String, String>,
    /// The services as the pass found them; when they change by themselves, the next pass is due.
    pub services: WatchedServices,
    /// The failures, one line each. With any, the caller pauses before the next pass, each time longer.
    pub failures: Vec<String>,
}

impl Pass {
    /// Renders the patch that sets the annotations; `None` if there are none. `node` is the Node that the pass
    /// observed: if it has changed since, the API answers 409 and the next pass decides anew, so no node gets an
    /// annotation for an outdated request.
    pub fn patch(&self, node: &Value) -> Option<Value> {
        let version = node.pointer("/metadata/resourceVersion").cloned().unwrap_or_default();
        let metadata = json!({"annotations": self.annotations, "resourceVersion": version});
        (!self.annotations.is_empty()).then(|| json!({ "metadata": metadata }))
    }
}

/// The inputs of a pass.
#[derive(Clone, Copy)]
pub struct PassContext<'a> {
    /// The host.
    pub windows: &'a dyn Windows,
    /// The file with the roots to trust, if any.
    pub bundle: Option<&'a WindowsPath>,
    /// Called before each step; once it returns false, no further step is taken.
    pub should_continue: &'a dyn Fn() -> bool,
}

/// Runs one pass: observes the host, plans, and takes the plan's steps on the host.
///
/// # Errors
/// [`WindowsError`] when the host cannot be observed; nothing was changed.
pub fn pass(
    context: PassContext<'_>,
    desired: Desired<'_>,
    results: &mut ScriptResults,
    now: Timestamp,
) -> Result<Pass, WindowsError> {
    let PassContext { windows, bundle, should_continue } = context;
    let nothing = Manifest::empty();
    let manifest = match desired.manifest {
        ManifestState::Read(manifest) => manifest,
        ManifestState::Missing | ManifestState::Held | ManifestState::Refused(_) => &nothing,
    };
    let observed = observe(windows, manifest, bundle, now)?;
    let mut plan = reconcile(desired, &observed, results, now);
    let mut notes = Vec::new();
    let mut annotations = BTreeMap::new();
    let mut failures = Vec::new();
    for step in &plan.steps {
        // Later steps rely on earlier ones, above all the Node's annotations.
        if !failures.is_empty() || !should_continue() {
            break;
        }
        match &step.action {
            Action::AnnotateNode { annotations: more } => annotations.extend(more.clone()),
            action => {
                failures = act(action, context, manifest, &observed, results, now);
                // No step follows failed roots, so their failure is noted on the Node.
                if matches!(action, Action::Roots { .. }) {
                    let note = |text: &String| Note { about: About::Roots, text: text.clone() };
                    notes.extend(failures.iter().map(note));
                }
            }
        }
    }
    plan.notes.extend(notes);
    let services = WatchedServices::of(&observed.services, manifest);
    Ok(Pass { plan, annotations, services, failures })
}

/// Takes one step on the host; returns its failures.
fn act(
    action: &Action,
    context: PassContext<'_>,
    manifest: &Manifest,
    observed: &Observed,
    results: &mut ScriptResults,
    now: Timestamp,
) -> Vec<String> {
    let windows = context.windows;
    let outcome = match action {
        Action::Environment { plan } => env::execute(plan, manifest, Owner::ours(), windows),
        Action::Roots { plan } => {
            certs::execute(plan, &observed.bundle, &observed.roots, Owner::ours(), windows)
        }
        Action::Services { plan } => {
            let done = services::execute(plan, windows, results, now, context.should_continue);
            return lifecycle::problems(&done.failures).collect();
        }
        Action::AddRoute { via } => {
            let added = windows.machine().add_host_route(METADATA_SERVICE, via);
            // A program that needs the route reports its own failure; most programs never need it.
            if let Err(error) = added {
                tracing::warn!(error = %chain(&error), "cannot add a route");
            }
            Ok(true)
        }
        Action::RemoveFile { path } => windows.files().remove_file(path).or_else(|error| {
            // A leftover only costs disk space.
            tracing::warn!(%path, error = %chain(&error), "cannot remove an old certificate");
            Ok(false)
        }),
        Action::AnnotateNode { .. } => Ok(false),
    };
    outcome.err().map(|error| chain(&error)).into_iter().collect()
}
