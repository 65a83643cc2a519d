//! Steps that install and start the agent, the Containers feature, the services and the daemon.

use std::collections::BTreeSet;

use jiff::Timestamp;
use wmco_core::limits as core_limits;
use wmco_core::names::{host, objects};
use wmco_core::protocol::{Access, FeatureState, ServiceRunState, ServicesData};

use super::state::Record;
use super::verified::Verified;
use super::{AgentError, known, staging};
use crate::lifecycle;
use crate::manifest::Manifest;
use crate::owner::Owner;
use crate::services;
use crate::windows::{ServiceConfig, ServiceName, StartType, Wait, Windows, WindowsError};

/// Copies the running agent to its final place. Stops the daemon first, which runs from there.
pub(super) fn agent(windows: &dyn Windows, record: &mut Record) -> Result<bool, AgentError> {
    let (files, place) = (windows.files(), known(host::AGENT));
    let own = staging::own_digest(windows)?;
    let runs_there = windows.machine().executable()?.as_ref() == Some(&place);
    if runs_there || (files.digest(&place)? == Some(own) && !record.doubts(&place)) {
        return Ok(false);
    }
    stop_daemon(windows)?;
    let mut content = Verified::new(windows.machine().open_executable()?, own);
    files.write(&place, Access::Administrators, &mut content)?;
    record.believe(&place);
    Ok(true)
}

/// Stops the daemon, and ends processes of its program that no service runs.
pub(super) fn stop_daemon(windows: &dyn Windows) -> Result<(), AgentError> {
    windows.services().stop(&daemon_name()?, Wait::at_most(core_limits::SERVICE_STOP))?;
    windows.machine().end_processes(&BTreeSet::from([known(host::AGENT)]))?;
    Ok(())
}

fn daemon_name() -> Result<ServiceName, AgentError> {
    Ok(objects::WICD.parse()?)
}

pub(super) fn containers(windows: &dyn Windows) -> Result<bool, AgentError> {
    match windows.machine().containers()? {
        FeatureState::Enabled | FeatureState::Pending => Ok(false),
        FeatureState::Disabled => {
            windows.machine().enable_containers()?;
            Ok(true)
        }
    }
}

pub(super) fn computer_name(windows: &dyn Windows, name: &str) -> Result<bool, AgentError> {
    let now = windows.machine().host_name()?;
    if now.split('.').next().is_some_and(|first| first.eq_ignore_ascii_case(name)) {
        return Ok(false);
    }
    windows.machine().rename(name)?;
    Ok(true)
}

/// Starts the bootstrap services of the manifest in `data`.
pub(super) fn bootstrap(
    windows: &dyn Windows,
    data: &ServicesData,
    now: Timestamp,
) -> Result<bool, AgentError> {
    Ok(lifecycle::bootstrap(windows, &Manifest::parse(data)?, now)?)
}

/// Returns the configuration of the daemon's service. Source: `docs/contract/wicd.md`, WICD20.
fn daemon_config(arguments: &[String]) -> Result<ServiceConfig, AgentError> {
    let unfit = |argument: &&String| {
        argument.is_empty() || argument.contains(|c: char| c.is_whitespace() || c == '"')
    };
    if let Some(argument) = arguments.iter().find(unfit) {
        return Err(AgentError::Argument { argument: argument.clone() });
    }
    let words: Vec<&str> =
        std::iter::once(host::AGENT).chain(arguments.iter().map(String::as_str)).collect();
    Ok(ServiceConfig {
        command: words.join(" "),
        description: Owner::ours().description(&daemon_name()?),
        dependencies: Vec::new(),
        start: StartType::Automatic,
        recovery: Some(services::recovery()),
    })
}

/// Creates, corrects and starts the daemon's service.
pub(super) fn daemon(windows: &dyn Windows, arguments: &[String]) -> Result<bool, AgentError> {
    let (name, config) = (daemon_name()?, daemon_config(arguments)?);
    let manager = windows.services();
    let Some(seen) = manager.query(&name)? else {
        manager.create(&name, &config)?;
        manager.start(&name, Wait::at_most(core_limits::SERVICE_START))?;
        return Ok(true);
    };
    let foreign_fields = services::foreign_fields(&seen);
    let right = seen.config == config && foreign_fields.is_empty();
    let mut runs = seen.state == ServiceRunState::Running;
    if !right {
        // A running daemon keeps its old arguments until it restarts.
        let same_process = seen.config.command == config.command
            && seen.config.dependencies == config.dependencies
            && !foreign_fields.iter().any(|field| field.needs_a_stop());
        if !same_process {
            manager.stop(&name, Wait::at_most(core_limits::SERVICE_STOP))?;
            runs = false;
        }
        manager.configure(&name, &config)?;
    }
    if !runs {
        manager.start(&name, Wait::at_most(core_limits::SERVICE_START))?;
    }
    Ok(!(right && runs))
}

/// Stops and deletes the daemon's service and ends its process.
pub(super) fn no_daemon(windows: &dyn Windows) -> Result<bool, AgentError> {
    stop_daemon(windows)?;
    match windows.services().delete(&daemon_name()?, Wait::at_most(core_limits::SERVICE_STOP)) {
        Ok(changed) => Ok(changed),
        // Windows deletes the service when the last handle to it is closed; it cannot start any more.
        Err(WindowsError::MarkedForDeletion { .. }) => Ok(true),
        Err(error) => Err(error.into()),
    }
}
