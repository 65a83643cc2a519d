//! Plans the daemon's next steps.
//!
//! [`reconcile`] compares what the cluster asks of this node ([`Desired`]) with the observed host ([`Observed`]) and
//! returns the steps to take now. It uses no Kubernetes client: changes of the Node are data
//! ([`Action::AnnotateNode`]), so the real and the simulated daemon share it.
//!
//! # Guarantees
//! - Pure and level-triggered: the plans of a killed daemon do not matter.
//! - While a restart is requested, nothing on the host changes.
//! - Services or roots whose content is not released for the Node change nothing, and the version annotation is not set
//!   for them.
//! - The version annotation comes last: variables and roots are in force, or a note says why no restart brings a
//!   variable into force; all services run and the Node is ready.
//!
//! Source: `docs/contract/wicd.md`, WICD51 to WICD53.

mod certificates;
mod claim;
mod content;
mod execute;
mod health;
mod node;
mod plan;
mod search;
mod watched;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;
use wmco_core::names;
use wmco_core::winpath::WindowsPath;

use crate::certs::{self, Bundle};
use crate::env;
use crate::limits;
use crate::manifest::Manifest;
use crate::owner::Owner;
use crate::routes::{self, RouteDecision};
use crate::scripts::METADATA_SERVICE;
use crate::services::{self, Scope, ScriptResults};
use crate::windows::{Route, Service, Windows, WindowsError};

pub use claim::NodeClaim;
pub use content::{Found, Released};
pub use execute::{Pass, PassContext, pass};
pub use node::{NodeIntent, pass_inputs};
pub use plan::{About, Action, Awaited, Because, Next, Note, Plan, Step};
pub use search::{
    HostIdentity, NodeSearchError, Search, find_node, host_identity, names_to_ask, own_addresses,
    search_result_of,
};
pub use watched::WatchedServices;

/// The services ConfigMap of the desired version, as observed.
#[derive(Clone, Copy, Debug)]
pub enum ManifestState<'a> {
    /// There is no ConfigMap for that version.
    Missing,
    /// The ConfigMap exists, but its content is not released for this node.
    Held,
    /// The ConfigMap is refused; the text says why.
    Refused(&'a str),
    /// The ConfigMap is valid.
    Read(&'a Manifest),
}

/// The desired state of this node.
#[derive(Clone, Copy, Debug)]
pub struct Desired<'a> {
    /// The Node as JSON; `None` if there is none.
    pub node: Option<&'a Value>,
    /// The ConfigMap of the Node's desired version.
    pub manifest: ManifestState<'a>,
}

/// The host as observed.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Variables.
    pub environment: env::Observed,
    /// Trusted roots.
    pub roots: certs::Observed,
    /// The roots that the node should trust.
    pub bundle: Bundle,
    /// All services.
    pub services: Vec<Service>,
    /// All routes; `None` if the manifest needs no route of its own.
    pub routes: Option<Vec<Route>>,
    /// Running services whose health check fails, one line each.
    pub unhealthy: Vec<String>,
    /// Client certificates that were replaced long ago.
    pub stale_certificates: Vec<WindowsPath>,
}

/// Observes everything on the host that [`reconcile`] needs. `bundle` is the file with the roots to trust; without it,
/// only those of Windows are trusted. A bundle that cannot be read is reported, and no root is removed.
///
/// # Errors
/// [`WindowsError`] of the first read that fails.
pub fn observe(
    windows: &dyn Windows,
    manifest: &Manifest,
    bundle: Option<&WindowsPath>,
    now: Timestamp,
) -> Result<Observed, WindowsError> {
    let bundle = match bundle {
        None => Bundle::default(),
        Some(path) => Bundle::read(path, windows.files()),
    };
    let services = windows.services().list()?;
    Ok(Observed {
        environment: env::observe(manifest, Owner::ours(), windows)?,
        roots: certs::observe(&bundle, Owner::ours(), windows)?,
        bundle,
        routes: routes::observe(windows, manifest)?,
        unhealthy: health::observe(windows, &services)?,
        services,
        stale_certificates: certificates::stale(windows.files(), now)?,
    })
}

/// Adds to `plan` the route to the metadata service if it is missing.
fn with_route(mut plan: Plan, observed: &Observed) -> Plan {
    match routes::reconcile(observed.routes.as_deref()) {
        RouteDecision::Fine => {}
        RouteDecision::Add(via) => plan.push(Action::AddRoute { via }, Because::RouteMissing),
        RouteDecision::NoWayOut => {
            let text =
                format!("{METADATA_SERVICE} cannot be reached: no default route has a gateway");
            plan = plan.note(About::Routes, text);
        }
    }
    plan
}

/// Returns the steps to take now. Conditions are checked in order; the first unmet one decides.
pub fn reconcile(
    desired: Desired<'_>,
    observed: &Observed,
    results: &ScriptResults,
    now: Timestamp,
) -> Plan {
    let resync = now + limits::DAEMON_RESYNC;
    let Some(node) = desired.node else { return Plan::wait(Awaited::Node, resync) };
    let facts = NodeIntent::of(node);
    if facts.reboot_requested {
        return Plan::wait(Awaited::Restart, resync);
    }
    let Some(version) = facts.desired_version else {
        return Plan::wait(Awaited::DesiredVersion, resync);
    };
    let manifest = match desired.manifest {
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
    // Held roots are released together with the variables that change with them, so both share one restart.
    let roots_held = facts
        .released_roots
        .is_some_and(|released| released != observed.bundle.digest().to_string());
    let mut roots = certs::reconcile(&observed.bundle, &observed.roots);
    if roots_held {
        (roots.steps, roots.restart_needed) = (Vec::new(), false);
    }
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
        // Services inherit variables and cache roots, so only a restart brings changes into force.
        plan.annotate(names::REBOOT_ANNOTATION, "", Because::RestartNeeded);
        return plan;
    }

    // The route comes before the services whose scripts use it.
    plan = with_route(plan, observed);
    let wanted = services::Desired { manifest, scope: Scope::All, owner: Owner::ours() };
    let seen = services::Observed { services: &observed.services, node: Some(node), results };
    let services = services::reconcile(wanted, seen, now);
    for wait in &services.blocked {
        plan = plan.note(About::Service, format!("service {}: {}", wait.service, wait.reason));
    }
    let blocked = !services.blocked.is_empty();
    // Changes of the Node or the host trigger the next pass; scripts have to be tried again.
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
    // A running service that fails its health check does not work; the Node shows that only later.
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
    if facts.version.as_ref() != Some(&version) && roots_held {
        let text = "the certificates in the CA bundle are not released for this node yet";
        plan.next = Next::Await { what: Awaited::Release, deadline: resync };
        return plan.note(About::Service, text.to_owned());
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
