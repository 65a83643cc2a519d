//! What the Service Control Manager does when a service fails.
//!
//! Wine takes recovery actions and forgets them. So that one host is read like the other, they are then
//! kept by us, in the registry, where Windows itself keeps them.

use std::io;
use std::time::Duration;

use windows_service::Error;
use windows_service::service::{
    Service as Handle, ServiceAction, ServiceActionType, ServiceFailureActions,
    ServiceFailureResetPeriod,
};
use windows_sys::Win32::Foundation::ERROR_INVALID_LEVEL;
use winreg::enums::{KEY_QUERY_VALUE, KEY_SET_VALUE, REG_BINARY};
use winreg::{RegKey, RegValue};
use wmco_services::windows::{Recovery, ServiceName};

use super::scm::{absent_is_default, code, registry};
use crate::recovery::{ACTIONS, ON_ERROR_EXIT, decode, encode};

/// What happens when the service fails; `None` also for what we could not have set.
pub(super) fn of(name: &ServiceName, service: &Handle) -> Result<Option<Recovery>, Error> {
    let actions = match service.get_failure_actions() {
        Ok(actions) => actions,
        Err(error) if code(&error) == Some(ERROR_INVALID_LEVEL) => {
            return kept(name).map_err(Error::Winapi);
        }
        Err(_) => return Ok(None),
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

/// Sets what happens when the service fails; `None`: nothing.
pub(super) fn set(
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
        Err(error) if code(&error) == Some(ERROR_INVALID_LEVEL) => {
            keep(name, recovery).map_err(Error::Winapi)
        }
        outcome => outcome,
    }
}

fn kept(name: &ServiceName) -> io::Result<Option<Recovery>> {
    let key = registry(name, KEY_QUERY_VALUE)?;
    let actions =
        absent_is_default(key.get_raw_value(ACTIONS).map(|value| value.bytes.into_owned()))?;
    let on_error_exit: u32 = absent_is_default(key.get_value(ON_ERROR_EXIT))?;
    Ok(decode(&actions, on_error_exit != 0))
}

fn keep(name: &ServiceName, recovery: Option<&Recovery>) -> io::Result<()> {
    let key = registry(name, KEY_SET_VALUE)?;
    let Some(recovery) = recovery else { return forget(&key) };
    key.set_value(ON_ERROR_EXIT, &u32::from(recovery.on_error_exit))?;
    key.set_raw_value(ACTIONS, &RegValue { bytes: encode(recovery).into(), vtype: REG_BINARY })
}

fn forget(key: &RegKey) -> io::Result<()> {
    [ACTIONS, ON_ERROR_EXIT]
        .into_iter()
        .try_for_each(|name| absent_is_default(key.delete_value(name)))
}
