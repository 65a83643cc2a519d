//! Starts, stops and deletes services, and waits until that has happened.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use windows_service::Error;
use windows_service::service::{
    Service as Handle, ServiceAccess, ServiceState, ServiceStatus, ServiceType,
};
use windows_sys::Win32::Foundation::{
    ERROR_DEPENDENT_SERVICES_RUNNING, ERROR_PROCESS_ABORTED, ERROR_SERVICE_ALREADY_RUNNING,
    ERROR_SERVICE_CANNOT_ACCEPT_CTRL, ERROR_SERVICE_DEPENDENCY_DELETED,
    ERROR_SERVICE_MARKED_FOR_DELETE, ERROR_SERVICE_NOT_ACTIVE, ERROR_SERVICE_REQUEST_TIMEOUT,
};
use wmco_core::protocol::ServiceRunState;
use wmco_services::windows::{Progress, ServiceManager, ServiceName, Wait, WindowsError};

use super::handle::{code, demand, exit_code, failed, open, run_state, true_status};
use crate::windows::processes::Process;

/// Pause between two looks at a service that is on its way.
const LOOK: Duration = Duration::from_millis(100);

/// How long a stopped service's process may stay before it is ended, too.
const LINGER: Duration = Duration::from_secs(5);

/// A wait in progress.
struct Waiting<'a> {
    wait: Wait<'a>,
    begun: Instant,
}

impl<'a> Waiting<'a> {
    fn begin(wait: Wait<'a>) -> Self {
        Self { wait, begun: Instant::now() }
    }

    fn is_at_its_end(&self, progressing: bool) -> bool {
        self.begun.elapsed() >= self.wait.limit_of(progressing).unsigned_abs()
    }

    /// See [`Progress::update`].
    fn update(&self, progress: &mut Progress, status: &ServiceStatus) -> bool {
        let state = run_state(status.current_state as u32);
        progress.update(state, status.checkpoint, status.wait_hint, self.begun.elapsed())
    }

    /// Pauses before the next look, if anybody wants one.
    fn pause(&self, what: &str, name: &ServiceName) -> Result<(), WindowsError> {
        self.wait.check(|| format!("{what} of service {name}"))?;
        std::thread::park_timeout(LOOK);
        Ok(())
    }
}

/// See [`start`](wmco_services::windows::ServiceManager::start).
pub(super) fn start(
    scm: &dyn ServiceManager,
    name: &ServiceName,
    wait: Wait<'_>,
) -> Result<(), WindowsError> {
    start_after(scm, name, &Waiting::begin(wait), &mut Vec::new())
}

/// Starts what the service needs and what that needs; `above` are the services that wait for it.
fn start_after(
    scm: &dyn ServiceManager,
    name: &ServiceName,
    waiting: &Waiting<'_>,
    above: &mut Vec<ServiceName>,
) -> Result<(), WindowsError> {
    let Some(seen) = scm.query(name)? else {
        return Err(match above.last() {
            Some(service) => WindowsError::MissingDependency {
                service: service.to_string(),
                dependency: name.to_string(),
            },
            None => WindowsError::Missing { object: format!("service {name}") },
        });
    };
    if seen.state == ServiceRunState::Running || above.contains(name) {
        return Ok(());
    }
    above.push(name.clone());
    for dependency in &seen.config.dependencies {
        start_after(scm, dependency, waiting, above)?;
    }
    above.pop();
    start_one(name, waiting)
}

/// Starts one service whose dependencies run, and waits.
fn start_one(name: &ServiceName, waiting: &Waiting<'_>) -> Result<(), WindowsError> {
    let rights = ServiceAccess::START | ServiceAccess::QUERY_STATUS;
    let service = demand(name, rights)?;
    let mut ordered = false;
    let mut progress = Progress::default();
    loop {
        let status = true_status(&service).map_err(failed("look at", name))?;
        let progressing = waiting.update(&mut progress, &status);
        match status.current_state {
            ServiceState::Running => return Ok(()),
            ServiceState::Stopped if ordered => {
                let code = exit_code(&status);
                return Err(WindowsError::ServiceEnded { service: name.to_string(), code });
            }
            ServiceState::Stopped => {
                let started = service.start::<OsString>(&[]);
                match started.as_ref().map_err(code) {
                    // A process that ended before it became a service: the next look tells its code.
                    Ok(()) | Err(Some(ERROR_PROCESS_ABORTED | ERROR_SERVICE_REQUEST_TIMEOUT)) => {
                        ordered = true;
                        continue;
                    }
                    // Somebody else was quicker, or the manager does not know yet that it has ended.
                    Err(Some(ERROR_SERVICE_ALREADY_RUNNING)) => {}
                    Err(Some(ERROR_SERVICE_DEPENDENCY_DELETED)) => {
                        return Err(WindowsError::MissingDependency {
                            service: name.to_string(),
                            dependency: "another service".to_owned(),
                        });
                    }
                    Err(_) => started.map_err(failed("start", name))?,
                }
            }
            ServiceState::StartPending
            | ServiceState::StopPending
            | ServiceState::ContinuePending
            | ServiceState::PausePending
            | ServiceState::Paused => {}
        }
        if waiting.is_at_its_end(progressing) {
            return Err(WindowsError::TimedOut {
                object: format!("start of service {name}"),
                limit: waiting.wait.limit_of(progressing),
            });
        }
        waiting.pause("start", name)?;
    }
}

/// See [`stop`](wmco_services::windows::ServiceManager::stop).
pub(super) fn stop(
    scm: &dyn ServiceManager,
    name: &ServiceName,
    wait: Wait<'_>,
) -> Result<(), WindowsError> {
    let rights = ServiceAccess::STOP | ServiceAccess::QUERY_STATUS;
    let Some(service) = open(name, rights).map_err(failed("open", name))? else {
        return Ok(());
    };
    let status = true_status(&service).map_err(failed("look at", name))?;
    if status.current_state == ServiceState::Stopped {
        return Ok(());
    }
    let process = own_process(name, &service, &status)?;
    let waiting = Waiting::begin(wait);
    let mut told: Option<Instant> = None;
    let mut progress = Progress::default();
    let linger = loop {
        let status = true_status(&service).map_err(failed("look at", name))?;
        let progressing = waiting.update(&mut progress, &status);
        if status.current_state == ServiceState::Stopped {
            break LINGER;
        }
        if told.is_none() {
            let stopped = service.stop();
            match stopped.as_ref().map_err(code) {
                Ok(_) => told = Some(Instant::now()),
                Err(Some(ERROR_SERVICE_NOT_ACTIVE)) => break LINGER,
                Err(Some(ERROR_DEPENDENT_SERVICES_RUNNING)) => {
                    return Err(WindowsError::DependentsRun {
                        service: name.to_string(),
                        dependents: running_dependents(scm, name)?,
                    });
                }
                // It is on its way up or down; it is asked again.
                Err(Some(ERROR_SERVICE_CANNOT_ACCEPT_CTRL)) => {}
                Err(_) => {
                    stopped.map_err(failed("stop", name))?;
                }
            }
        }
        let state = run_state(status.current_state as u32);
        let is_over = |told: Instant| wait.is_over(state, told.elapsed(), progressing);
        if waiting.is_at_its_end(progressing) || told.is_some_and(is_over) {
            break Duration::ZERO;
        }
        waiting.pause("stop", name)?;
    };
    match process {
        Some(process) if !process.ended_within(linger) => {
            tracing::warn!(service = %name, "the service's process does not end by itself");
            process.end_tree().map_err(|e| failed("end", name)(Error::Winapi(e)))
        }
        _ => Ok(()),
    }
}

/// The process that a service has to itself, so that it can be ended later; what shares its process with
/// other services is left alone. Opened before the stop, and believed only if the manager still names it
/// after that, so that another process which got its number is never ended.
fn own_process(
    name: &ServiceName,
    service: &Handle,
    status: &ServiceStatus,
) -> Result<Option<Process>, WindowsError> {
    let own = status.service_type.contains(ServiceType::OWN_PROCESS);
    let Some(id) = status.process_id.filter(|_| own) else { return Ok(None) };
    let process = Process::open(id).map_err(|e| failed("stop", name)(Error::Winapi(e)))?;
    let still = true_status(service).map_err(failed("look at", name))?.process_id == Some(id);
    Ok(process.filter(|_| still))
}

/// See [`delete`](wmco_services::windows::ServiceManager::delete).
pub(super) fn delete(name: &ServiceName, wait: Wait<'_>) -> Result<bool, WindowsError> {
    let rights = ServiceAccess::DELETE | ServiceAccess::QUERY_STATUS;
    let Some(service) = open(name, rights).map_err(failed("open", name))? else {
        return Ok(false);
    };
    match service.delete() {
        Err(error) if code(&error) != Some(ERROR_SERVICE_MARKED_FOR_DELETE) => {
            return Err(failed("delete", name)(error));
        }
        Ok(()) | Err(_) => drop(service),
    }
    // It is gone when the last handle is closed, in whichever process.
    let waiting = Waiting::begin(wait);
    while open(name, ServiceAccess::QUERY_STATUS).map_err(failed("open", name))?.is_some() {
        if waiting.is_at_its_end(false) {
            return Err(WindowsError::MarkedForDeletion { service: name.to_string() });
        }
        waiting.pause("deletion", name)?;
    }
    Ok(true)
}

/// Services that need this one and are not stopped.
fn running_dependents(
    scm: &dyn ServiceManager,
    name: &ServiceName,
) -> Result<Vec<String>, WindowsError> {
    let mut running = Vec::new();
    for dependent in scm.dependents(name)? {
        let seen = scm.query(&dependent)?;
        if seen.is_some_and(|service| service.state != ServiceRunState::Stopped) {
            running.push(dependent.to_string());
        }
    }
    Ok(running)
}
