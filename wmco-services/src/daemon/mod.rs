//! The daemon's whole next step.
//!
//! [`reconcile`] compares what the cluster asks of this node ([`Asked`]) with the host as it is
//! ([`Observed`]) and returns what can be done now. It knows no Kubernetes client: what concerns the
//! Node is data ([`Action::AnnotateNode`]), so that the real daemon and the simulated one share it.
//!
//! # Guarantees
//! - Pure and level-triggered: what a killed daemon had in mind does not matter.
//! - While a restart is asked for, nothing on the host changes.
//! - Content that the Node is not released for changes nothing, and does not mark the Node.
//! - The version annotation comes last: variables and roots are in force, or people are told why no
//!   restart brings a variable into force; all services run, the Node is ready.
//!
//! Source: `spec/wicd.md`, sections 9 and 23.3.

mod certificates;
mod claim;
mod content;
mod execute;
mod glance;
mod health;
mod node;
mod plan;
mod search;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;
use wmco_core::names;
use wmco_core::text::chain;
use wmco_core::winpath::WindowsPath;

use crate::certs::{self, Bundle};
use crate::env;
use crate::limits;
use crate::manifest::Manifest;
use crate::services::{self, Desired, Scope, ScriptResults};
use crate::windows::{Service, Windows, WindowsError};

pub use claim::NodeClaim;
pub use content::{Found, Released};
pub use execute::{Means, Pass, pass};
pub use glance::Glance;
pub use node::{NodeFacts, concern};
pub use plan::{About, Action, Awaited, Because, Next, Note, Plan, Step};
pub use search::{
    Marks, NodeSearchError, Search, find_node, marks, names_to_ask, own_addresses, settles,
};

/// The services ConfigMap of the desired version, as it was found.
#[derive(Clone, Copy, Debug)]
pub enum ManifestState<'a> {
    /// There is none of that version.
    Missing,
    /// There is one, but its content is not released for this node.
    Held,
    /// There is one, but it is refused; the text says why.
    Refused(&'a str),
    /// It is good.
    Read(&'a Manifest),
}

/// What the cluster asks of this node.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The Node as JSON; `None` when there is none.
    pub node: Option<&'a Value>,
    /// The ConfigMap of the version that the Node desires.
    pub manifest: ManifestState<'a>,
}

/// The host as it is.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Variables.
    pub environment: env::Observed,
    /// Trusted roots.
    pub roots: certs::Observed,
    /// The roots that the node shall trust.
    pub bundle: Bundle,
    /// All services.
    pub services: Vec<Service>,
    /// Services that run but do not answer, one line each.
    pub unhealthy: Vec<String>,
    /// Client certificates that were replaced long ago.
    pub stale_certificates: Vec<WindowsPath>,
}

/// Looks at everything on the host that [`reconcile`] needs. `bundle` is the file with the roots to
/// trust; without one, none are trusted beyond those of Windows. A bundle that cannot be read is no
/// reason to take roots away, so it is reported and nothing is removed.
///
/// # Errors
/// [`WindowsError`] of the first thing that cannot be read.
pub fn observe(
    windows: &dyn Windows,
    manifest: &Manifest,
    bundle: Option<&WindowsPath>,
    now: Timestamp,
) -> Result<Observed, WindowsError> {
    let bundle = match bundle {
        None => Bundle::default(),
        Some(path) => match windows.files().read(path, limits::BUNDLE_BYTES) {
            Ok(Some(text)) => Bundle::parse(&text),
            Ok(None) => Bundle::unread(format!("the CA bundle {path} is not there")),
            Err(error) => {
                Bundle::unread(format!("the CA bundle cannot be read: {}", chain(&error)))
            }
        },
    };
    let services = windows.services().list()?;
    Ok(Observed {
        environment: env::observe(manifest, windows)?,
        roots: certs::observe(&bundle, windows)?,
        bundle,
        unhealthy: health::observe(windows, &services)?,
        services,
        stale_certificates: certificates::stale(windows.files(), now)?,
    })
}

/// Returns the steps to take now. Conditions are checked in order; the first unmet one decides.
pub fn reconcile(
    asked: Asked<'_>,
    observed: &Observed,
    results: &ScriptResults,
    now: Timestamp,
) -> Plan {
    let resync = now + limits::DAEMON_RESYNC;
    let Some(node) = asked.node else { return Plan::wait(Awaited::Node, resync) };
    let facts = NodeFacts::of(node);
    if facts.reboot_requested {
        return Plan::wait(Awaited::Restart, resync);
    }
    let Some(version) = facts.desired_version else {
        return Plan::wait(Awaited::DesiredVersion, resync);
    };
    let manifest = match asked.manifest {
        ManifestState::Read(manifest) => manifest,
        ManifestState::Missing => {
            let text = format!("there is no services ConfigMap for version {version} yet");
            return Plan::wait(Awaited::Manifest, resync).note(About::Service, text);
        }
        ManifestState::Held => {
            let text = "the content of the services ConfigMap is not released for this node yet";
            return Plan::wait(Awaited::Release, resync).note(About::Service, text.to_owned());
        }
        ManifestState::Refused(why) => {
            let text = format!("the services ConfigMap for version {version} is refused: {why}");
            return Plan::wait(Awaited::Manifest, resync).note(About::Manifest, text);
        }
    };

    let mut plan = Plan::wait(Awaited::Restart, resync);
    let variables = env::reconcile(manifest, &observed.environment);
    let roots = certs::reconcile(&observed.bundle, &observed.roots);
    for problem in &roots.problems {
        plan = plan.note(About::Roots, problem.clone());
    }
    for problem in &variables.problems {
        plan = plan.note(About::Variables, problem.clone());
    }
    let restart_needed = variables.restart_needed || roots.restart_needed;
    if !variables.steps.is_empty() {
        plan.push(Action::Environment { plan: variables }, Because::VariablesDiffer);
    }
    if !roots.steps.is_empty() {
        plan.push(Action::Roots { plan: roots }, Because::RootsDiffer);
    }
    if restart_needed {
        // Services inherit variables and cache roots, so only a restart brings them into force.
        plan.annotate(names::REBOOT_ANNOTATION, "", Because::RestartNeeded);
        return plan;
    }

    let desired = Desired { manifest, scope: Scope::All };
    let seen = services::Observed { services: &observed.services, node: Some(node), results };
    let services = services::reconcile(desired, seen, now);
    for wait in &services.blocked {
        plan = plan.note(About::Service, format!("service {}: {}", wait.service, wait.reason));
    }
    let blocked = !services.blocked.is_empty();
    // What the Node or the host lacks is noticed when it comes; scripts have to be tried.
    let retry = services.blocked.iter().filter_map(|wait| wait.until).min();
    if !services.steps.is_empty() {
        plan.push(Action::Services { plan: services }, Because::ServicesDiffer);
        plan.next = Next::Now;
        return plan;
    }
    if blocked {
        let deadline = retry.map_or(resync, |retry| retry.clamp(now, resync));
        plan.next = Next::Await { what: Awaited::Services, deadline };
        return plan;
    }
    for path in &observed.stale_certificates {
        plan.push(Action::RemoveFile { path: path.clone() }, Because::CertificateReplaced);
    }
    // A service that runs and does not answer does not work; a Node says so only later.
    if facts.version.as_ref() != Some(&version) && !observed.unhealthy.is_empty() {
        for text in &observed.unhealthy {
            plan = plan.note(About::Service, text.clone());
        }
        let deadline = now + limits::DAEMON_RECHECK;
        plan.next = Next::Await { what: Awaited::Health, deadline };
        return plan;
    }
    if !facts.ready {
        plan.next = Next::Await { what: Awaited::NodeReady, deadline: resync };
        return plan;
    }
    if facts.version.as_ref() != Some(&version) {
        plan.annotate(names::VERSION_ANNOTATION, &version, Because::Configured);
    }
    plan.next = Next::Settled { resync };
    plan
}

impl Plan {
    fn wait(what: Awaited, deadline: Timestamp) -> Self {
        let next = Next::Await { what, deadline };
        Self { steps: Vec::new(), notes: Vec::new(), next }
    }

    fn note(mut self, about: About, text: String) -> Self {
        self.notes.push(Note { about, text });
        self
    }

    fn push(&mut self, action: Action, because: Because) {
        self.steps.push(Step { action, because });
    }

    fn annotate(&mut self, name: &str, value: &str, because: Because) {
        let annotations = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        self.push(Action::AnnotateNode { annotations }, because);
    }
}

#[cfg(test)]
mod tests;
