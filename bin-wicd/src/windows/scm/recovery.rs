//! Recovery actions of a service that fails.

use std::io::{self, ErrorKind};
use std::time::Duration;

use windows_service::Error;
use windows_service::service::{
    Service as Handle, ServiceAction, ServiceActionType, ServiceFailureActions,
    ServiceFailureResetPeriod,
};
use windows_sys::Win32::Foundation::ERROR_INVALID_LEVEL;
use winreg::enums::{KEY_SET_VALUE, REG_BINARY};
use winreg::{RegKey, RegValue};
use wmco_services::windows::{Recovery, ServiceName};

use super::handle::registry;
use crate::failure_actions;
use crate::windows::failure::is;

/// Whether the manager does not know the question, as Wine's does not.
fn is_unknown(error: &Error) -> bool {
    matches!(error, Error::Winapi(cause) if is(cause, ERROR_INVALID_LEVEL))
}

/// What happens when the service fails; `None` also for what we could not have set.
pub(super) fn read(service: &Handle, key: &io::Result<RegKey>) -> Result<Option<Recovery>, Error> {
    let actions = match service.get_failure_actions() {
        Err(error) if is_unknown(&error) => return kept(key).map_err(Error::Winapi),
        actions => actions?,
    };
    let restarts: Option<Vec<u32>> = actions
        .actions
        .unwrap_or_default()
        .iter()
        .map(|action| match action.action_type {
            ServiceActionType::Restart => u32::try_from(action.delay.as_millis()).ok(),
            ServiceActionType::None | ServiceActionType::Reboot | ServiceActionType::RunCommand => {
                None
            }
        })
        .collect();
    let reset_seconds = match actions.reset_period {
        ServiceFailureResetPeriod::Never => u32::MAX,
        ServiceFailureResetPeriod::After(time) => u32::try_from(time.as_secs()).unwrap_or(u32::MAX),
    };
    match restarts {
        Some(restart_delays_ms) if !restart_delays_ms.is_empty() => Ok(Some(Recovery {
            restart_delays_ms,
            reset_seconds,
            on_error_exit: service.get_failure_actions_on_non_crash_failures()?,
        })),
        _ => Ok(None),
    }
}

/// What the registry says.
fn kept(key: &io::Result<RegKey>) -> io::Result<Option<Recovery>> {
    let Ok(key) = key else { return Ok(None) };
    let flag = match key.get_value::<u32, _>(failure_actions::FLAG) {
        Err(error) if error.kind() == ErrorKind::NotFound => 0,
        flag => flag?,
    };
    match key.get_raw_value(failure_actions::VALUE) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        value => Ok(failure_actions::decode(&value?.bytes, flag != 0)),
    }
}

/// Sets what happens when the service fails.
pub(super) fn write(
    name: &ServiceName,
    service: &Handle,
    recovery: Option<&Recovery>,
) -> Result<(), Error> {
    let (delays, reset_seconds, on_error_exit) = recovery.map_or_else(
        || ([].as_slice(), 0, false),
        |recovery| {
            (recovery.restart_delays_ms.as_slice(), recovery.reset_seconds, recovery.on_error_exit)
        },
    );
    let restart = |delay: &u32| ServiceAction {
        action_type: ServiceActionType::Restart,
        delay: Duration::from_millis(u64::from(*delay)),
    };
    service.update_failure_actions(ServiceFailureActions {
        reset_period: ServiceFailureResetPeriod::After(Duration::from_secs(reset_seconds.into())),
        reboot_msg: None,
        command: None,
        actions: Some(delays.iter().map(restart).collect()),
    })?;
    match service.set_failure_actions_on_non_crash_failures(on_error_exit) {
        Err(error) if is_unknown(&error) => keep(name, recovery).map_err(Error::Winapi),
        set => set,
    }
}

/// Writes into the registry what the manager does not keep.
fn keep(name: &ServiceName, recovery: Option<&Recovery>) -> io::Result<()> {
    let key = registry(name, KEY_SET_VALUE)?;
    let Some(recovery) = recovery else {
        return match key.delete_value(failure_actions::VALUE) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    };
    let bytes = failure_actions::encode(recovery);
    key.set_raw_value(
        failure_actions::VALUE,
        &RegValue { bytes: bytes.into(), vtype: REG_BINARY },
    )?;
    key.set_value(failure_actions::FLAG, &u32::from(recovery.on_error_exit))
}
