//! Decides how the Windows services of a host change, and changes them.
//!
//! [`reconcile`] compares a manifest with the observed services and returns the steps to take now; [`remove`] plans the
//! removal of all our services. [`execute`] takes the steps, [`settle`] repeats observing, planning and executing until
//! nothing is left to do.
//!
//! # Guarantees
//! - A service is stopped only when it or a dependency changes or is removed; dependents stop first, and restart in
//!   start order.
//! - Fields that the process depends on are changed only while the service is stopped, and all differences of a service
//!   at once.
//! - Processes that a service left behind are ended before it starts again or is removed, except those of programs that
//!   another service may run.
//! - A service that is not the owner's (no tag, not in the manifest) is never changed, at most stopped and restarted
//!   with a dependency.
//! - A service that cannot start blocks only its dependents.
//! - A running service keeps the earlier results of its scripts when they fail later.
//!
//! Source: `docs/contract/wicd.md`, WICD70 to WICD76.

mod answers;
mod execute;
mod graph;
mod leftovers;
mod plan;
mod resolve;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;
use wmco_core::protocol::ServiceRunState;
use wmco_core::text::chain;

use crate::limits;
use crate::manifest::{self, Manifest};
use crate::owner::Owner;
use crate::windows::{LOCAL_SYSTEM, Service, ServiceConfig, ServiceName};

use graph::Graph;
use leftovers::Commands;

pub use execute::{Execution, Failure, Settled, execute, settle};
pub use plan::{Action, Because, Blocked, Plan, ScriptsDue, ServiceField, Step};
pub use resolve::{ResolveError, Script, ScriptResult, ScriptResults, recovery};

/// Selects the services of a manifest that are managed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scope {
    /// Only bootstrap services, which start before there is a Node.
    Bootstrap,
    /// All services.
    All,
}

/// The desired services.
#[derive(Clone, Copy, Debug)]
pub struct Desired<'a> {
    /// The current manifest.
    pub manifest: &'a Manifest,
    /// Selects its services.
    pub scope: Scope,
    /// The owner of the services.
    pub owner: &'a Owner,
}

/// The observed services.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// All services of the host.
    pub services: &'a [Service],
    /// The Node as JSON, once there is one.
    pub node: Option<&'a Value>,
    /// Results of scripts so far.
    pub results: &'a ScriptResults,
}

/// Whether a service's configuration is known.
enum Readiness {
    /// The desired configuration is known.
    Ready(ServiceConfig),
    /// Its scripts run in this plan; the configuration follows.
    Pending,
    /// It is blocked until something else changes.
    Blocked,
}

/// Returns the steps to take now. After a plan with [`Action::RunScripts`] the next pass is due at once, since commands
/// depend on script results.
pub fn reconcile(desired: Desired<'_>, observed: Observed<'_>, now: Timestamp) -> Plan {
    let graph = Graph::new(observed.services);
    let commands = Commands::new(desired.owner, observed.services, [desired.manifest]);
    let mut plan = Plan::default();
    let wanted: Vec<&manifest::Service> = desired
        .manifest
        .start_order()
        .filter(|service| service.bootstrap || desired.scope == Scope::All)
        .collect();
    let readiness: BTreeMap<&ServiceName, Readiness> = wanted
        .iter()
        .map(|service| {
            (&service.name, ready(service, desired.owner, &graph, observed, now, &mut plan))
        })
        .collect();

    let mut to_change: BTreeMap<&ServiceName, Because> = BTreeMap::new();
    for service in &wanted {
        if let (Some(Readiness::Ready(config)), Some(seen)) =
            (readiness.get(&service.name), graph.service(&service.name))
            && let Some(because) = drift(config, seen, observed.results.get(&service.name))
        {
            to_change.insert(&service.name, because);
        }
    }
    let known: BTreeSet<&ServiceName> =
        desired.manifest.services().iter().map(|service| &service.name).collect();
    let foreign: Vec<&ServiceName> = graph
        .dependents_first()
        .filter(|service| desired.owner.has(service) && !known.contains(&service.name))
        .map(|service| &service.name)
        .collect();
    let mut roots = to_change.clone();
    roots.retain(|_, because| because.needs_a_stop());
    roots.extend(foreign.iter().map(|name| (*name, Because::NotInManifest)));
    let stopped = graph.stop(&roots, &mut plan);
    for name in &foreign {
        plan.end_leftovers(name, &commands, Because::NotInManifest);
        plan.push(Action::Delete { service: (*name).clone() }, Because::NotInManifest);
    }

    for service in &wanted {
        if let Some(Readiness::Ready(config)) = readiness.get(&service.name) {
            let (service, config) = (service.name.clone(), config.clone());
            match (graph.service(&service), to_change.get(&service)) {
                (None, _) => plan.push(Action::Create { service, config }, Because::Missing),
                (Some(_), Some(Because::Differs { fields })) => {
                    let because = Because::Differs { fields: fields.clone() };
                    plan.push(Action::Configure { service, config }, because);
                }
                (Some(_), _) => {}
            }
        }
    }
    start(&wanted, &readiness, &graph, &commands, &stopped, &mut plan);
    // Other services that had to stop with a changed one restart at the end.
    let gone: BTreeSet<&ServiceName> = foreign.into_iter().collect();
    for name in stopped.iter().rev() {
        let comes_back = !wanted.iter().any(|w| w.name == **name) && !gone.contains(name);
        if let (true, Some(service)) = (comes_back, graph.service(name)) {
            let needs = service.config.dependencies.clone();
            if !needs.iter().any(|need| gone.contains(need)) {
                let action = Action::Start { service: (*name).clone(), needs };
                plan.push(action, Because::StoppedForChange);
            }
        }
    }
    plan
}

/// Plans the removal of every service of the owner: those with its tag, and those in a manifest that were created only
/// partly and have no description. Left-over processes are ended too, also of manifest services that no longer exist.
pub fn remove(owner: &Owner, manifests: &[Manifest], services: &[Service]) -> Plan {
    let graph = Graph::new(services);
    let commands = Commands::new(owner, services, manifests);
    let named = |service: &Service| {
        let listed = manifests.iter().any(|manifest| manifest.service(&service.name).is_some());
        let command = service.config.command.trim_matches(['"', ' ']).to_lowercase();
        let ours =
            command.is_empty() || command.starts_with(&format!(r"{}\", owner.root).to_lowercase());
        listed && ours && service.config.description.is_empty()
    };
    let going: Vec<&ServiceName> = graph
        .dependents_first()
        .filter(|service| owner.has(service) || named(service))
        .map(|service| &service.name)
        .collect();
    let mut plan = Plan::default();
    graph.stop(&going.iter().map(|name| (*name, Because::Removal)).collect(), &mut plan);
    let named = manifests.iter().flat_map(Manifest::services).map(|service| &service.name);
    for name in named.filter(|name| graph.service(name).is_none()).collect::<BTreeSet<_>>() {
        plan.end_leftovers(name, &commands, Because::Removal);
    }
    for name in going {
        plan.end_leftovers(name, &commands, Because::Removal);
        plan.push(Action::Delete { service: name.clone() }, Because::Removal);
    }
    plan
}

/// Plans to stop a service after its dependents, and to end its left-over processes.
pub fn stop(owner: &Owner, name: &ServiceName, services: &[Service]) -> Plan {
    let mut plan = Plan::default();
    Graph::new(services).stop(&[(name, Because::HostWork)].into(), &mut plan);
    plan.end_leftovers(name, &Commands::new(owner, services, []), Because::HostWork);
    plan
}

/// Determines the desired configuration of a service, or plans the scripts that it depends on.
fn ready(
    service: &manifest::Service,
    owner: &Owner,
    graph: &Graph<'_>,
    observed: Observed<'_>,
    now: Timestamp,
    plan: &mut Plan,
) -> Readiness {
    let name = &service.name;
    let seen = graph.service(name);
    let scripts = match resolve::scripts(service, owner, seen, observed.node) {
        Ok(scripts) => scripts,
        Err(error) => return plan.block(name, chain(&error), None),
    };
    let none = BTreeMap::new();
    let values = if scripts.is_empty() {
        &none
    } else {
        let running = seen.is_some_and(|seen| seen.state == ServiceRunState::Running);
        match (observed.results.get(name), due(observed.results.get(name), &scripts, running, now))
        {
            (_, Some(reason)) => {
                let watched = resolve::watched(service, owner);
                let action = Action::RunScripts { service: name.clone(), scripts, watched };
                plan.push(action, Because::ScriptsDue { reason });
                return Readiness::Pending;
            }
            (Some(ScriptResult { values: Some(values), problem, .. }), None)
                if problem.is_none() || running =>
            {
                values
            }
            (Some(result), None) => {
                let reason = result.problem.clone().unwrap_or_default();
                return plan.block(name, reason, Some(result.at + limits::SCRIPT_RETRY));
            }
            (None, None) => &none,
        }
    };
    match resolve::config(service, owner, observed.node, values) {
        Ok(config) => Readiness::Ready(config),
        Err(error) => plan.block(name, chain(&error), None),
    }
}

/// Returns why scripts must run before their results are used; `None` if the results are usable.
fn due(
    result: Option<&ScriptResult>,
    scripts: &[Script],
    running: bool,
    now: Timestamp,
) -> Option<ScriptsDue> {
    let Some(result) = result else { return Some(ScriptsDue::FirstTime) };
    if result.inputs != resolve::inputs(scripts) {
        return Some(ScriptsDue::Changed);
    }
    let age = now.duration_since(result.at);
    let (pause, reason) = match (&result.problem, &result.values, running) {
        // A running service keeps working with the earlier values.
        (Some(_), Some(_), true) => (limits::SCRIPT_RECHECK, ScriptsDue::Retry),
        (Some(_), _, _) => (limits::SCRIPT_RETRY, ScriptsDue::Retry),
        (None, _, true) => (limits::SCRIPT_REFRESH, ScriptsDue::Old),
        (None, _, false) => (limits::SCRIPT_RECHECK, ScriptsDue::Old),
    };
    (age >= pause).then_some(reason)
}

/// Returns the fields in which a service differs from all our services, whatever the manifest says.
///
/// Source: `docs/contract/wicd.md`, WICD70.
pub(crate) fn foreign_fields(seen: &Service) -> Vec<ServiceField> {
    let name = seen.name.as_str();
    let all = [
        (ServiceField::Account, !seen.account.eq_ignore_ascii_case(LOCAL_SYSTEM)),
        (ServiceField::DisplayName, !seen.display_name.eq_ignore_ascii_case(name)),
        (ServiceField::ErrorControl, !seen.errors_ignored),
        (ServiceField::ServiceType, !seen.own_process),
    ];
    all.into_iter().filter(|(_, differs)| *differs).map(|(field, _)| field).collect()
}

/// Returns why a service must be changed or restarted, if it must.
fn drift(config: &ServiceConfig, seen: &Service, result: Option<&ScriptResult>) -> Option<Because> {
    let set = |names: &[ServiceName]| names.iter().cloned().collect::<BTreeSet<_>>();
    let all = [
        (ServiceField::Command, config.command != seen.config.command),
        (ServiceField::Dependencies, set(&config.dependencies) != set(&seen.config.dependencies)),
        (ServiceField::Description, config.description != seen.config.description),
        (ServiceField::Recovery, config.recovery != seen.config.recovery),
        (ServiceField::StartType, config.start != seen.config.start),
    ];
    let differing = all.into_iter().filter(|(_, differs)| *differs).map(|(field, _)| field);
    let fields: Vec<ServiceField> = foreign_fields(seen).into_iter().chain(differing).collect();
    if !fields.is_empty() {
        Some(Because::Differs { fields })
    } else if seen.state == ServiceRunState::Running
        && result.is_some_and(|result| result.process_is_stale)
    {
        Some(Because::FilesChanged)
    } else if seen.state == ServiceRunState::Paused {
        // Only a restart reliably resumes a paused service.
        Some(Because::NotRunning { state: seen.state, exit_code: seen.exit_code })
    } else {
        None
    }
}

/// Plans the starts, in order, of all ready services that do not run.
fn start(
    wanted: &[&manifest::Service],
    readiness: &BTreeMap<&ServiceName, Readiness>,
    graph: &Graph<'_>,
    commands: &Commands<'_>,
    stopped: &[&ServiceName],
    plan: &mut Plan,
) {
    // Services that do not run after this plan, although others may depend on them.
    let mut down: BTreeSet<&ServiceName> = BTreeSet::new();
    for service in wanted {
        let name = &service.name;
        let seen = graph.service(name);
        let runs = seen.is_some_and(|seen| seen.state == ServiceRunState::Running)
            && !stopped.contains(&name);
        let Some(Readiness::Ready(config)) = readiness.get(name) else {
            if !runs {
                down.insert(name);
            }
            continue;
        };
        if runs {
            continue;
        }
        let created = |need: &ServiceName| wanted.iter().any(|other| other.name == *need);
        let missing = |need: &&ServiceName| graph.service(need).is_none() && !created(need);
        if let Some(need) = config.dependencies.iter().find(missing) {
            let reason = format!("it needs service {need}, which does not exist; install it");
            plan.block(name, reason, None);
            down.insert(name);
        } else if let Some(need) = config.dependencies.iter().find(|need| down.contains(need)) {
            // While the dependency is only pending, the next plan follows at once and does not block this service.
            if !matches!(readiness.get(need), Some(Readiness::Pending)) {
                plan.block(name, format!("it needs service {need}, which waits itself"), None);
            }
            down.insert(name);
        } else {
            let because = match seen {
                None => Because::Missing,
                Some(_) if stopped.contains(&name) => Because::StoppedForChange,
                Some(seen) => Because::NotRunning { state: seen.state, exit_code: seen.exit_code },
            };
            // A starting or stopping service still has a process.
            let at_rest = seen.is_none_or(|seen| seen.state == ServiceRunState::Stopped);
            if at_rest || stopped.contains(&name) {
                plan.end_leftovers(name, commands, Because::ProcessLeft);
            }
            let needs = config.dependencies.clone();
            plan.push(Action::Start { service: name.clone(), needs }, because);
        }
    }
}

impl Plan {
    fn push(&mut self, action: Action, because: Because) {
        self.steps.push(Step { action, because });
    }

    /// Plans to end the service's left-over processes, if it has programs of its own.
    fn end_leftovers(&mut self, service: &ServiceName, commands: &Commands<'_>, why: Because) {
        let programs = commands.own(service);
        if !programs.is_empty() {
            self.push(Action::EndLeftovers { service: service.clone(), programs }, why);
        }
    }

    fn block(
        &mut self,
        service: &ServiceName,
        reason: String,
        until: Option<Timestamp>,
    ) -> Readiness {
        self.blocked.push(Blocked { service: service.clone(), reason, until });
        Readiness::Blocked
    }
}

#[cfg(test)]
mod tests;
