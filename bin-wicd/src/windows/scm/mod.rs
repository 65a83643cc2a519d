//! The Service Control Manager.

mod call;
mod handle;
mod moves;
mod recovery;

use std::io::{self, ErrorKind};

use windows_service::Error;
use windows_service::service::{
    Service as Handle, ServiceAccess, ServiceDependency, ServiceErrorControl, ServiceInfo,
    ServiceStartType, ServiceType,
};
use windows_service::service_manager::ServiceManagerAccess;
use winreg::RegKey;
use winreg::enums::KEY_READ;
use wmco_services::windows::{
    Service, ServiceConfig, ServiceManager, ServiceName, ServiceStatus, StartType, Wait,
    WindowsError,
};

use handle::{connect, demand, exit_code, failed, open, registry, run_state, true_status};

/// The Service Control Manager of this host. Connections and handles live for one call only, so that
/// no deleted service hangs on them.
#[derive(Default)]
pub(super) struct Scm;

/// Everything that we know about an open service.
fn look(name: &ServiceName, service: &Handle) -> Result<Service, Error> {
    let config = service.query_config()?;
    let status = true_status(service)?;
    let key = registry(name, KEY_READ);
    let mut dependencies: Vec<ServiceName> =
        config.dependencies.iter().filter_map(dependency).collect();
    if dependencies.is_empty() {
        // Wine answers with no dependencies, but keeps them where Windows does.
        dependencies = listed(&key, "DependOnService").map_err(Error::Winapi)?;
    }
    Ok(Service {
        name: name.clone(),
        config: ServiceConfig {
            command: config.executable_path.to_string_lossy().into_owned(),
            description: text(&key, "Description").map_err(Error::Winapi)?,
            dependencies,
            start: match config.start_type {
                ServiceStartType::OnDemand => StartType::Manual,
                ServiceStartType::Disabled => StartType::Disabled,
                ServiceStartType::AutoStart
                | ServiceStartType::SystemStart
                | ServiceStartType::BootStart => StartType::Automatic,
            },
            recovery: recovery::read(service, &key)?,
        },
        account: config.account_name.unwrap_or_default().to_string_lossy().into_owned(),
        display_name: config.display_name.to_string_lossy().into_owned(),
        own_process: config.service_type == ServiceType::OWN_PROCESS,
        errors_ignored: config.error_control == ServiceErrorControl::Ignore,
        state: run_state(status.current_state as u32),
        exit_code: exit_code(&status),
        process: status.process_id,
    })
}

/// A text value of the key; empty when it is not there.
fn text(key: &io::Result<RegKey>, name: &str) -> io::Result<String> {
    absent_is_default(key.as_ref().map_or_else(|_| Ok(String::new()), |key| key.get_value(name)))
}

/// Names of services in a value of the key; none when it is not there.
fn listed(key: &io::Result<RegKey>, name: &str) -> io::Result<Vec<ServiceName>> {
    let names: io::Result<Vec<String>> =
        key.as_ref().map_or_else(|_| Ok(Vec::new()), |key| key.get_value(name));
    Ok(absent_is_default(names)?.iter().filter_map(|name| name.parse().ok()).collect())
}

fn absent_is_default<T: Default>(result: io::Result<T>) -> io::Result<T> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(T::default()),
        result => result,
    }
}

fn dependency(dependency: &ServiceDependency) -> Option<ServiceName> {
    match dependency {
        ServiceDependency::Service(name) => name.to_str()?.parse().ok(),
        ServiceDependency::Group(_) => None,
    }
}

/// Sets everything that we decide about an open service.
fn apply(name: &ServiceName, service: &Handle, config: &ServiceConfig) -> Result<(), Error> {
    let dependencies: Vec<&str> = config.dependencies.iter().map(ServiceName::as_str).collect();
    let start = match config.start {
        StartType::Automatic => ServiceStartType::AutoStart,
        StartType::Manual => ServiceStartType::OnDemand,
        StartType::Disabled => ServiceStartType::Disabled,
    };
    call::change(service, name.as_str(), &config.command, &dependencies, start.to_raw())
        .map_err(Error::Winapi)?;
    service.set_description(&config.description)?;
    recovery::write(name, service, config.recovery.as_ref())
}

/// Rights to change and look at a service.
fn all_rights() -> ServiceAccess {
    ServiceAccess::QUERY_CONFIG
        | ServiceAccess::CHANGE_CONFIG
        | ServiceAccess::QUERY_STATUS
        | ServiceAccess::START
        | ServiceAccess::DELETE
}

impl ServiceManager for Scm {
    fn list(&self) -> Result<Vec<Service>, WindowsError> {
        let all = call::all().map_err(|e| WindowsError::other("list the services", e))?;
        let mut services = Vec::with_capacity(all.len());
        for name in all.iter().filter_map(|(name, ..)| name.parse().ok()) {
            match self.query(&name) {
                Ok(service) => services.extend(service),
                // Protected services are none of ours.
                Err(WindowsError::AccessDenied { .. }) => {}
                Err(error) => tracing::debug!(service = %name, %error, "cannot read a service"),
            }
        }
        Ok(services)
    }

    fn statuses(&self) -> Result<Vec<ServiceStatus>, WindowsError> {
        let all = call::all().map_err(|e| WindowsError::other("list the services", e))?;
        let status = |(name, state, process): &(String, u32, u32)| {
            Some(ServiceStatus {
                name: name.parse().ok()?,
                state: run_state(*state),
                process: (*process != 0).then_some(*process),
            })
        };
        Ok(all.iter().filter_map(status).collect())
    }

    fn query(&self, name: &ServiceName) -> Result<Option<Service>, WindowsError> {
        let rights = ServiceAccess::QUERY_CONFIG | ServiceAccess::QUERY_STATUS;
        let service = open(name, rights).map_err(failed("open", name))?;
        service.map(|service| look(name, &service)).transpose().map_err(failed("look at", name))
    }

    fn create(&self, name: &ServiceName, config: &ServiceConfig) -> Result<(), WindowsError> {
        // The command line is set afterwards, since the library would quote it as one word.
        let stub = ServiceInfo {
            name: name.as_str().into(),
            display_name: name.as_str().into(),
            service_type: ServiceType::OWN_PROCESS,
            start_type: ServiceStartType::OnDemand,
            error_control: ServiceErrorControl::Ignore,
            executable_path: config.command.split(' ').next().unwrap_or_default().into(),
            launch_arguments: Vec::new(),
            dependencies: Vec::new(),
            account_name: None,
            account_password: None,
        };
        let service = connect(ServiceManagerAccess::CREATE_SERVICE)
            .and_then(|manager| manager.create_service(&stub, all_rights()))
            .map_err(failed("create", name))?;
        apply(name, &service, config).map_err(|error| {
            if let Err(error) = service.delete() {
                tracing::warn!(service = %name, %error, "cannot remove a half made service");
            }
            failed("configure", name)(error)
        })
    }

    fn configure(&self, name: &ServiceName, config: &ServiceConfig) -> Result<(), WindowsError> {
        let service = demand(name, all_rights())?;
        apply(name, &service, config).map_err(failed("configure", name))
    }

    fn start(&self, name: &ServiceName, wait: Wait<'_>) -> Result<(), WindowsError> {
        moves::start(self, name, wait)
    }

    fn stop(&self, name: &ServiceName, wait: Wait<'_>) -> Result<(), WindowsError> {
        moves::stop(self, name, wait)
    }

    fn delete(&self, name: &ServiceName, wait: Wait<'_>) -> Result<bool, WindowsError> {
        moves::delete(name, wait)
    }
}
