//! The Service Control Manager of a fake host. Source: `docs/contract/wicd.md`, WICD70 to WICD74.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use jiff::SignedDuration;
use wmco_core::protocol::ServiceRunState;
use wmco_core::winpath::WindowsPath;

use super::faults::Call;
use super::{FakeEvent, FakeWindows, State};
use crate::windows::{
    LOCAL_SYSTEM, Service, ServiceConfig, ServiceManager, ServiceName, StartType, Wait,
    WindowsError,
};

/// Services and their special behaviour.
#[derive(Debug, Default)]
pub(super) struct Scm {
    pub(super) services: BTreeMap<ServiceName, Service>,
    /// Services that end with this code right after each start.
    ends_with: BTreeMap<ServiceName, u32>,
    /// Services whose last program keeps running when the first one crashes.
    leave_a_child: BTreeSet<ServiceName>,
    /// Services that stop only when their process is ended, after this time.
    stop_takes: BTreeMap<ServiceName, Duration>,
    /// Failures of each service since the host started.
    failures: BTreeMap<ServiceName, usize>,
    next_process: u32,
}

impl Scm {
    pub(super) fn with_windows_services() -> Self {
        let mut scm = Self { next_process: 100, ..Self::default() };
        for (name, needs) in [("RpcSs", None), ("LanmanServer", Some("RpcSs")), ("sshd", None)] {
            let config = ServiceConfig {
                command: format!("svchost -k {name}"),
                description: format!("{name} of windows"),
                dependencies: needs.and_then(|name| name.parse().ok()).into_iter().collect(),
                start: StartType::Automatic,
                recovery: None,
            };
            if let Ok(name) = name.parse::<ServiceName>() {
                let mut service = stopped(&name, &config);
                scm.next_process += 1;
                service.state = ServiceRunState::Running;
                service.process = Some(scm.next_process);
                scm.services.insert(name, service);
            }
        }
        scm
    }

    /// Whether a running service executes the file at `path`, as its own program or as a child.
    pub(super) fn runs_image(&self, path: &WindowsPath) -> bool {
        self.services.values().any(|service| {
            service.state != ServiceRunState::Stopped
                && images(&service.config.command).any(|image| image == *path)
        })
    }

    fn find(&mut self, name: &ServiceName) -> Result<&mut Service, WindowsError> {
        self.services
            .get_mut(name)
            .ok_or_else(|| WindowsError::Missing { object: format!("service {name}") })
    }
}

/// Returns the programs on a command line: every word that is the path of an executable.
pub(super) fn images(command: &str) -> impl Iterator<Item = WindowsPath> + '_ {
    command
        .split_whitespace()
        .map(|word| word.trim_matches('"'))
        .filter(|word| word.to_ascii_lowercase().ends_with(".exe"))
        .filter_map(|word| word.parse().ok())
}

/// Returns the program that the Service Control Manager starts for a command line.
pub(super) fn first_image(command: &str) -> Option<WindowsPath> {
    images(command).next()
}

fn stopped(name: &ServiceName, config: &ServiceConfig) -> Service {
    Service {
        name: name.clone(),
        config: config.clone(),
        account: LOCAL_SYSTEM.to_owned(),
        display_name: name.to_string(),
        own_process: true,
        errors_ignored: true,
        state: ServiceRunState::Stopped,
        exit_code: 0,
        process: None,
    }
}

impl State {
    /// Changes a service's state and records the event.
    pub(super) fn set_service(
        &mut self,
        name: &ServiceName,
        state: ServiceRunState,
        exit_code: u32,
    ) {
        self.scm.next_process += 1;
        let process = self.scm.next_process;
        if let Some(service) = self.scm.services.get_mut(name)
            && service.state != state
        {
            service.state = state;
            service.exit_code = exit_code;
            service.process = (state != ServiceRunState::Stopped).then_some(process);
            self.events.push(FakeEvent::ServiceChanged {
                name: service.name.clone(),
                state,
                command: service.config.command.clone(),
            });
        }
    }

    /// Starts a service after its dependencies; `above` are the services that wait for it.
    pub(super) fn start_service(
        &mut self,
        name: &ServiceName,
        above: &mut Vec<ServiceName>,
    ) -> Result<(), WindowsError> {
        let service = self.scm.find(name)?;
        if service.state == ServiceRunState::Running {
            return Ok(());
        }
        if service.config.start == StartType::Disabled || above.contains(name) {
            return Err(WindowsError::other(
                format!("start service {name}"),
                "it is disabled or needs itself",
            ));
        }
        let (dependencies, command) =
            (service.config.dependencies.clone(), service.config.command.clone());
        above.push(name.clone());
        for dependency in &dependencies {
            if !self.scm.services.contains_key(dependency) {
                return Err(WindowsError::MissingDependency {
                    service: name.to_string(),
                    dependency: dependency.to_string(),
                });
            }
            self.start_service(dependency, above)?;
        }
        above.pop();
        if let Some(image) = first_image(&command)
            && self.tree.file(&image).is_none()
        {
            return Err(WindowsError::Missing { object: image.to_string() });
        }
        self.set_service(name, ServiceRunState::Running, 0);
        // A process left over from an earlier start holds this one's ports.
        let beside = images(&command).last().filter(|image| self.processes.contains(image));
        let ends = self.scm.ends_with.get(name).copied().or_else(|| beside.map(|_| 1));
        if let Some(code) = ends {
            self.set_service(name, ServiceRunState::Stopped, code);
            return Err(WindowsError::ServiceEnded { service: name.to_string(), code });
        }
        Ok(())
    }

    /// Ends every service at once.
    pub(super) fn end_all_services(&mut self) {
        let names: Vec<_> = self.scm.services.keys().cloned().collect();
        for name in names {
            self.set_service(&name, ServiceRunState::Stopped, 0);
        }
        self.scm.failures.clear();
    }

    /// Starts the automatic services; a service that cannot start stays stopped.
    pub(super) fn start_automatic_services(&mut self) {
        let automatic: Vec<_> = self
            .scm
            .services
            .values()
            .filter(|service| service.config.start == StartType::Automatic)
            .map(|service| service.name.clone())
            .collect();
        for name in automatic {
            let _ = self.start_service(&name, &mut Vec::new());
        }
    }
}

impl FakeWindows {
    /// Adds a foreign service in the given state.
    pub fn add_service(&self, name: &ServiceName, config: &ServiceConfig, state: ServiceRunState) {
        self.act_freely(|host| {
            host.scm.services.insert(name.clone(), stopped(name, config));
            host.set_service(name, state, 0);
        });
    }

    /// Sets a service's state, as if it had changed by itself.
    pub fn set_service_state(&self, name: &ServiceName, state: ServiceRunState) {
        self.act_freely(|host| host.set_service(name, state, 0));
    }

    /// Changes a service as a person could.
    pub fn change_service(&self, name: &ServiceName, change: impl FnOnce(&mut Service)) {
        self.act_freely(|host| host.scm.services.get_mut(name).map(change));
    }

    /// Makes a service end with `code` right after every start; `None`: run again.
    pub fn set_ends_on_start(&self, name: &ServiceName, code: Option<u32>) {
        let mut state = self.state();
        match code {
            Some(code) => state.scm.ends_with.insert(name.clone(), code),
            None => state.scm.ends_with.remove(name),
        };
    }

    /// Sets whether the wrapped program keeps running when the service's process crashes. A service with such a
    /// left-over program ends right after its start.
    pub fn set_leaves_a_child(&self, name: &ServiceName, leaves: bool) {
        let mut state = self.state();
        if leaves {
            state.scm.leave_a_child.insert(name.clone());
        } else {
            state.scm.leave_a_child.remove(name);
        }
    }

    /// Makes the service, once told to stop, stay in the state "stopping" until its process is ended after this time;
    /// `None`: stop at once again.
    pub fn set_stop_takes(&self, name: &ServiceName, time: Option<Duration>) {
        let mut state = self.state();
        match time {
            Some(time) => state.scm.stop_takes.insert(name.clone(), time),
            None => state.scm.stop_takes.remove(name),
        };
    }

    /// Tells a service with a delayed stop to stop, and waits until its process may be ended.
    fn await_end(&self, name: &ServiceName, wait: Wait<'_>) -> Result<(), WindowsError> {
        let time = self.act_freely(|host| {
            let state = host.scm.services.get(name)?.state;
            let time = *host.scm.stop_takes.get(name)?;
            let runs = state != ServiceRunState::Stopped;
            if runs {
                host.set_service(name, ServiceRunState::Stopping, 0);
            }
            runs.then_some(time)
        });
        let begun = Instant::now();
        while time.is_some_and(|time| begun.elapsed() < time) {
            wait.check(|| format!("stop of service {name}"))?;
            std::thread::park_timeout(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Makes a running service fail; returns the delay after which its recovery actions would restart it. Call
    /// [`Self::recover`] after that delay.
    pub fn crash(&self, name: &ServiceName, code: u32) -> Option<SignedDuration> {
        self.act_freely(|host| {
            let service = host.scm.services.get(name)?;
            if host.scm.leave_a_child.contains(name) && service.state == ServiceRunState::Running {
                host.processes.extend(images(&service.config.command).last());
            }
            host.set_service(name, ServiceRunState::Stopped, code);
            let failures = host.scm.failures.entry(name.clone()).or_default();
            let nth = *failures;
            *failures += 1;
            let delays = &host.scm.services.get(name)?.config.recovery.as_ref()?.restart_delays_ms;
            let delay = delays.get(nth).or_else(|| delays.last())?;
            Some(SignedDuration::from_millis(i64::from(*delay)))
        })
    }

    /// Restarts a failed service by its recovery actions; returns whether it has started.
    pub fn recover(&self, name: &ServiceName) -> bool {
        self.act_freely(|host| {
            let service = host.scm.services.get(name);
            let recovers = service.is_some_and(|service| service.config.recovery.is_some());
            recovers && host.start_service(name, &mut Vec::new()).is_ok()
        })
    }
}

impl ServiceManager for FakeWindows {
    fn list(&self) -> Result<Vec<Service>, WindowsError> {
        self.act(Call::ServicesList, "", |host| Ok(host.scm.services.values().cloned().collect()))
    }

    fn query(&self, name: &ServiceName) -> Result<Option<Service>, WindowsError> {
        self.act(Call::ServicesList, name.as_str(), |host| Ok(host.scm.services.get(name).cloned()))
    }

    fn create(&self, name: &ServiceName, config: &ServiceConfig) -> Result<(), WindowsError> {
        self.act(Call::ServicesCreate, name.as_str(), |host| {
            if host.scm.services.contains_key(name) {
                return Err(WindowsError::Exists { object: format!("service {name}") });
            }
            host.scm.services.insert(name.clone(), stopped(name, config));
            Ok(())
        })
    }

    fn configure(&self, name: &ServiceName, config: &ServiceConfig) -> Result<(), WindowsError> {
        self.act(Call::ServicesConfigure, name.as_str(), |host| {
            let service = host.scm.find(name)?;
            let stopped = stopped(&service.name, config);
            let (state, exit_code, process) = (service.state, service.exit_code, service.process);
            *service = Service { state, exit_code, process, ..stopped };
            Ok(())
        })
    }

    fn start(&self, name: &ServiceName, _wait: Wait<'_>) -> Result<(), WindowsError> {
        self.act(Call::ServicesStart, name.as_str(), |host| {
            host.start_service(name, &mut Vec::new())
        })
    }

    fn stop(&self, name: &ServiceName, wait: Wait<'_>) -> Result<(), WindowsError> {
        self.await_end(name, wait)?;
        self.act(Call::ServicesStop, name.as_str(), |host| {
            let dependents: Vec<String> = host
                .scm
                .services
                .values()
                .filter(|other| other.name != *name && other.state != ServiceRunState::Stopped)
                .filter(|other| other.config.dependencies.contains(name))
                .map(|other| other.name.to_string())
                .collect();
            match host.scm.services.get(name).map(|service| service.state) {
                None | Some(ServiceRunState::Stopped) => Ok(()),
                Some(_) if !dependents.is_empty() => {
                    Err(WindowsError::DependentsRun { service: name.to_string(), dependents })
                }
                Some(_) => {
                    host.set_service(name, ServiceRunState::Stopped, 0);
                    Ok(())
                }
            }
        })
    }

    fn delete(&self, name: &ServiceName, wait: Wait<'_>) -> Result<bool, WindowsError> {
        self.act(Call::ServicesDelete, name.as_str(), |host| {
            match host.scm.services.get(name).map(|service| service.state) {
                None => Ok(false),
                Some(ServiceRunState::Stopped) => {
                    host.scm.services.remove(name);
                    Ok(true)
                }
                // A running service is only marked for deletion, so it still exists when the limit has passed.
                Some(_) => Err(WindowsError::TimedOut {
                    object: format!("deleting service {name}"),
                    limit: wait.limit(),
                }),
            }
        })
    }
}
