//! Takes the steps of a services plan on a host.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;
use wmco_core::digest::Sha256;
use wmco_core::limits as core_limits;
use wmco_core::protocol::ServiceRunState;
use wmco_core::text::chain;
use wmco_core::winpath::WindowsPath;

use super::{
    Action, Desired, Observed, Plan, Script, ScriptResult, ScriptResults, answers, reconcile,
    resolve,
};
use crate::limits;
use crate::windows::{ServiceName, Wait, Windows, WindowsError};

/// A failed step.
#[derive(Debug)]
pub struct Failure {
    /// The step's service.
    pub service: ServiceName,
    /// [`Action::verb`] of the step.
    pub verb: &'static str,
    /// The cause.
    pub error: WindowsError,
}

/// The result of executing a plan.
#[derive(Debug, Default)]
pub struct Execution {
    /// Failed steps. Later steps of the same service and of its dependents were not taken.
    pub failures: Vec<Failure>,
    /// Whether a step changed the host; running a script does not count.
    pub changed: bool,
}

/// Takes the steps in order and stores script results in `results`. A failure skips only later steps of that service
/// and starts of its dependents. `should_continue` is called before each step and while a step waits; once it returns false, the
/// remaining steps are not taken.
pub fn execute(
    plan: &Plan,
    windows: &dyn Windows,
    results: &mut ScriptResults,
    now: Timestamp,
    should_continue: &dyn Fn() -> bool,
) -> Execution {
    let mut done = Execution::default();
    let mut held_back: BTreeSet<ServiceName> = BTreeSet::new();
    let services = windows.services();
    let starting = Wait::at_most(core_limits::SERVICE_START).as_long_as(should_continue);
    let stopping = Wait::at_most(core_limits::SERVICE_STOP).as_long_as(should_continue);
    for step in &plan.steps {
        if !should_continue() {
            break;
        }
        let service = step.action.service();
        let needs_failed = match &step.action {
            Action::Start { needs, .. } => needs.iter().any(|need| held_back.contains(need)),
            Action::RunScripts { .. }
            | Action::Stop { .. }
            | Action::EndLeftovers { .. }
            | Action::Delete { .. }
            | Action::Create { .. }
            | Action::Configure { .. } => false,
        };
        if needs_failed || held_back.contains(service) {
            held_back.insert(service.clone());
            continue;
        }
        let outcome = match &step.action {
            Action::RunScripts { scripts, watched, .. } => {
                let before = digests(watched, windows);
                let values = run(scripts, windows, should_continue);
                if !should_continue() {
                    break;
                }
                let was_stale = results.get(service).is_some_and(|old| old.process_is_stale);
                let process_is_stale = was_stale || digests(watched, windows) != before;
                let inputs = resolve::inputs(scripts);
                let kept = results.remove(service).filter(|old| old.inputs == inputs);
                let (values, problem) = match values {
                    Ok(values) => (Some(values), None),
                    Err(problem) => {
                        tracing::warn!(%service, problem, "a service's scripts failed");
                        (kept.and_then(|old| old.values), Some(problem))
                    }
                };
                let result = ScriptResult { inputs, at: now, values, problem, process_is_stale };
                results.insert(service.clone(), result);
                continue;
            }
            Action::Stop { .. } => services.stop(service, stopping).map(|()| true),
            Action::EndLeftovers { programs, .. } => end_leftovers(service, programs, windows),
            Action::Delete { .. } => services.delete(service, stopping).map(|_| true),
            Action::Create { config, .. } => services.create(service, config).map(|()| true),
            Action::Configure { config, .. } => services.configure(service, config).map(|()| true),
            Action::Start { .. } => services.start(service, starting).map(|()| true),
        };
        match outcome {
            Ok(changed) => {
                done.changed |= changed;
                let ends_process =
                    matches!(step.action, Action::Stop { .. } | Action::Start { .. });
                if let (true, Some(result)) = (ends_process, results.get_mut(service)) {
                    result.process_is_stale = false;
                }
            }
            // The step was interrupted, not failed; a later pass takes the rest.
            Err(WindowsError::Interrupted { .. }) => break,
            Err(error) => {
                held_back.insert(service.clone());
                let failure = Failure { service: service.clone(), verb: step.action.verb(), error };
                done.failures.push(failure);
            }
        }
    }
    done
}

/// Ends left-over processes of a service; returns whether there were any. The Service Control Manager may have started
/// the service since it was observed; then none are left over.
fn end_leftovers(
    service: &ServiceName,
    programs: &BTreeSet<WindowsPath>,
    windows: &dyn Windows,
) -> Result<bool, WindowsError> {
    let seen = windows.services().query(service)?;
    if seen.is_some_and(|seen| seen.state != ServiceRunState::Stopped) {
        return Ok(false);
    }
    let count = windows.machine().end_processes(programs)?;
    if count > 0 {
        tracing::warn!(%service, count, "processes that a service left behind are ended");
    }
    Ok(count > 0)
}

/// Returns the digests of the files; a file that cannot be read counts as missing.
fn digests(files: &[WindowsPath], windows: &dyn Windows) -> Vec<Option<Sha256>> {
    files.iter().map(|path| windows.files().digest(path).ok().flatten()).collect()
}

/// Answers or runs the scripts of a service in order, until the first failure.
fn run(
    scripts: &[Script],
    windows: &dyn Windows,
    should_continue: &dyn Fn() -> bool,
) -> Result<BTreeMap<String, String>, String> {
    let wait = Wait::at_most(limits::SCRIPT).as_long_as(should_continue);
    let mut values = BTreeMap::new();
    for script in scripts {
        if let (Some(variable), Some(answer)) =
            (&script.variable, answers::answer(&script.text, windows.machine()))
        {
            let value = match (answer, &script.remembered) {
                (Err(problem), Some(value)) => {
                    tracing::warn!(
                        variable,
                        problem,
                        "a question is not answered, it stays as it was"
                    );
                    value.clone()
                }
                (answer, _) => {
                    answer.map_err(|problem| format!("{variable} is not known: {problem}"))?
                }
            };
            values.insert(variable.clone(), value);
            continue;
        }
        let head = words_of(&script.text);
        let output = windows
            .powershell()
            .run(&script.text, wait)
            .map_err(|error| format!("script `{head}` could not run: {}", chain(&error)))?;
        if output.code != 0 {
            return Err(format!(
                "script `{head}` failed with code {}, look at it on the host: {}",
                output.code,
                words_of(&output.stderr)
            ));
        }
        let Some(variable) = &script.variable else { continue };
        let lines: Vec<&str> =
            output.stdout.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let [value] = lines.as_slice() else {
            return Err(format!(
                "script `{head}` gave {} lines for {variable}, make it give one",
                lines.len()
            ));
        };
        values.insert(variable.clone(), (*value).to_owned());
    }
    Ok(values)
}

/// Returns the start of a text, on one line.
fn words_of(text: &str) -> String {
    const MOST: usize = 160;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// The result of [`settle`].
#[derive(Debug, Default)]
pub struct Settled {
    /// The failures of the last round.
    pub failures: Vec<Failure>,
    /// The plan after the last round; settled if nothing is left to do.
    pub left: Plan,
    /// Whether anything was changed.
    pub changed: bool,
}

/// Observes, plans and executes until no step is left or one fails, for a limited number of rounds.
///
/// # Errors
/// [`WindowsError`] when the services cannot be listed.
pub fn settle(
    windows: &dyn Windows,
    desired: Desired<'_>,
    node: Option<&Value>,
    results: &mut ScriptResults,
    now: Timestamp,
) -> Result<Settled, WindowsError> {
    let mut changed = false;
    let mut round = 0;
    loop {
        let services = windows.services().list()?;
        let observed = Observed { services: &services, node, results };
        let plan = reconcile(desired, observed, now);
        if plan.steps.is_empty() || round == limits::ROUNDS {
            return Ok(Settled { failures: Vec::new(), left: plan, changed });
        }
        let execution = execute(&plan, windows, results, now, &|| true);
        changed |= execution.changed;
        if !execution.failures.is_empty() {
            return Ok(Settled { failures: execution.failures, left: plan, changed });
        }
        round += 1;
    }
}
