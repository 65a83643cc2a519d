//! Opens services, and reads what stands of an open one.

use std::io;
use std::time::Duration;

use windows_service::Error;
use windows_service::service::{
    Service as Handle, ServiceAccess, ServiceExitCode, ServiceState, ServiceStatus,
};
use windows_service::service_manager::{ServiceManager as Manager, ServiceManagerAccess};
use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_PROCESS_ABORTED, ERROR_SERVICE_DOES_NOT_EXIST, ERROR_SERVICE_EXISTS,
    ERROR_SERVICE_MARKED_FOR_DELETE, ERROR_SERVICE_NEVER_STARTED,
};
use windows_sys::Win32::System::Services::{
    SERVICE_CONTINUE_PENDING, SERVICE_PAUSED, SERVICE_START_PENDING, SERVICE_STOP_PENDING,
    SERVICE_STOPPED,
};
use winreg::RegKey;
use winreg::enums::HKEY_LOCAL_MACHINE;
use wmco_core::protocol::ServiceRunState;
use wmco_services::windows::{ServiceName, WindowsError};

use crate::windows::processes::Process;

/// What Windows said, if it was Windows that spoke.
pub(super) fn code(error: &Error) -> Option<u32> {
    match error {
        Error::Winapi(cause) => cause.raw_os_error().map(i32::cast_unsigned),
        _ => None,
    }
}

pub(super) fn failed<'a>(
    what: &'a str,
    name: &'a ServiceName,
) -> impl Fn(Error) -> WindowsError + use<'a> {
    move |error| {
        let object = format!("service {name}");
        match code(&error) {
            Some(ERROR_ACCESS_DENIED) => WindowsError::AccessDenied { object },
            Some(ERROR_SERVICE_DOES_NOT_EXIST) => WindowsError::Missing { object },
            Some(ERROR_SERVICE_EXISTS) => WindowsError::Exists { object },
            Some(ERROR_SERVICE_MARKED_FOR_DELETE) => {
                WindowsError::MarkedForDeletion { service: name.to_string() }
            }
            _ => WindowsError::other(format!("{what} {object}"), error),
        }
    }
}

/// Connects to the manager of this host.
pub(super) fn connect(rights: ServiceManagerAccess) -> Result<Manager, Error> {
    Manager::local_computer(None::<&str>, ServiceManagerAccess::CONNECT | rights)
}

/// Opens a service; `None` when there is none of that name.
pub(super) fn open(name: &ServiceName, rights: ServiceAccess) -> Result<Option<Handle>, Error> {
    let opened = connect(ServiceManagerAccess::empty())?.open_service(name.as_str(), rights);
    match opened {
        Ok(service) => Ok(Some(service)),
        Err(error) if code(&error) == Some(ERROR_SERVICE_DOES_NOT_EXIST) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens a service that has to be there.
pub(super) fn demand(name: &ServiceName, rights: ServiceAccess) -> Result<Handle, WindowsError> {
    open(name, rights)
        .map_err(failed("open", name))?
        .ok_or_else(|| WindowsError::Missing { object: format!("service {name}") })
}

/// What an open service does. One whose process is gone has stopped: Windows notices that a moment
/// later, Wine never.
pub(super) fn true_status(service: &Handle) -> Result<ServiceStatus, Error> {
    let mut status = service.query_status()?;
    let gone = |id| match Process::open(id) {
        Ok(Some(process)) => process.ended_within(Duration::ZERO),
        Ok(None) => true,
        // It is protected, so it is there.
        Err(_) => false,
    };
    if status.current_state != ServiceState::Stopped && status.process_id.is_some_and(gone) {
        status.current_state = ServiceState::Stopped;
        status.process_id = None;
        status.exit_code = ServiceExitCode::Win32(ERROR_PROCESS_ABORTED);
    }
    Ok(status)
}

/// The service's registry key, in which the manager keeps its configuration.
pub(super) fn registry(name: &ServiceName, rights: u32) -> io::Result<RegKey> {
    let path = format!(r"SYSTEM\CurrentControlSet\Services\{name}");
    RegKey::predef(HKEY_LOCAL_MACHINE).open_subkey_with_flags(path, rights)
}

/// A state as Windows numbers it.
pub(super) fn run_state(state: u32) -> ServiceRunState {
    match state {
        SERVICE_STOPPED => ServiceRunState::Stopped,
        SERVICE_START_PENDING => ServiceRunState::Starting,
        SERVICE_STOP_PENDING => ServiceRunState::Stopping,
        SERVICE_PAUSED | SERVICE_CONTINUE_PENDING => ServiceRunState::Paused,
        _ => ServiceRunState::Running,
    }
}

pub(super) fn exit_code(status: &ServiceStatus) -> u32 {
    match status.exit_code {
        // This is how the manager says that the service has not been started yet.
        ServiceExitCode::Win32(ERROR_SERVICE_NEVER_STARTED) => 0,
        ServiceExitCode::Win32(code) | ServiceExitCode::ServiceSpecific(code) => code,
    }
}
