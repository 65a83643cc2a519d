//! The real Windows: one adapter for each trait of `wmco_services::windows`.
//!
//! Everything that only Windows has is in here, so that the rest of the crate compiles and is tested
//! on every platform. An adapter decides nothing; what it reads is interpreted by portable code
//! beside this folder where that takes more than a comparison.

#[cfg(windows)]
mod acl;
#[cfg(windows)]
mod addresses;
#[cfg(windows)]
mod boot;
#[cfg(windows)]
mod environment;
#[cfg(windows)]
mod failure;
#[cfg(windows)]
mod files;
#[cfg(windows)]
mod held;
#[cfg(windows)]
mod hns;
#[cfg(windows)]
mod libraries;
#[cfg(windows)]
mod logs;
#[cfg(windows)]
mod machine;
#[cfg(windows)]
mod powershell;
#[cfg(windows)]
mod processes;
#[cfg(windows)]
mod programs;
#[cfg(windows)]
mod roots;
#[cfg(windows)]
mod scm;
#[cfg(windows)]
mod service;
#[cfg(windows)]
mod text;

use std::sync::Arc;

use wmco_services::windows::Windows;

use crate::service::{Outcome, Work};

/// Takes libraries that are loaded from now on from the system's folder only, not from this program's.
///
/// # Errors
/// What Windows says.
#[cfg(windows)]
pub(crate) fn trust_system_libraries_only() -> std::io::Result<()> {
    libraries::only_from_the_system()
}

/// Elsewhere there is no such choice.
///
/// # Errors
/// None.
#[cfg(not(windows))]
#[expect(clippy::unnecessary_wraps, reason = "Windows may refuse")]
pub(crate) fn trust_system_libraries_only() -> std::io::Result<()> {
    Ok(())
}

/// The host that this process runs on. `as_service`: whether it works only if the Service Control Manager
/// started it, so that it knows what services inherit.
///
/// # Errors
/// On anything but Windows.
#[cfg(windows)]
#[expect(clippy::unnecessary_wraps, reason = "other platforms have no host to give")]
pub(crate) fn host(as_service: bool) -> anyhow::Result<Arc<dyn Windows>> {
    Ok(Arc::new(real::RealWindows::new(as_service)))
}

/// The host that this process runs on.
///
/// # Errors
/// On anything but Windows.
#[cfg(not(windows))]
pub(crate) fn host(_: bool) -> anyhow::Result<Arc<dyn Windows>> {
    anyhow::bail!("this program works on Windows only, run it on a Windows host")
}

/// Does `work` as a Windows service; returns when that has stopped.
///
/// # Errors
/// On anything but Windows, and when the process was not started as a service.
#[cfg(windows)]
pub(crate) fn run_service(work: Work) -> anyhow::Result<Outcome> {
    service::run(work)
}

/// Does `work` as a Windows service; returns when that has stopped.
///
/// # Errors
/// On anything but Windows, and when the process was not started as a service.
#[cfg(not(windows))]
pub(crate) fn run_service(_: Work) -> anyhow::Result<Outcome> {
    anyhow::bail!("only Windows has such services, leave out --windows-service")
}

#[cfg(windows)]
mod real {
    use wmco_services::windows::{
        Environment, Files, Logs, Machine, PowerShell, RootStore, ServiceManager, Windows,
    };

    use super::{environment, files, logs, machine, powershell, roots, scm};

    /// All adapters.
    #[derive(Default)]
    pub(super) struct RealWindows {
        files: files::Disk,
        logs: logs::DiskLogs,
        services: scm::Scm,
        environment: environment::SystemVariables,
        roots: roots::MachineRoots,
        powershell: powershell::WindowsPowerShell,
        machine: machine::ThisMachine,
    }

    impl RealWindows {
        pub(super) fn new(as_service: bool) -> Self {
            let environment = if as_service {
                environment::SystemVariables::of_service()
            } else {
                environment::SystemVariables::default()
            };
            Self { environment, ..Self::default() }
        }
    }

    impl Windows for RealWindows {
        fn files(&self) -> &dyn Files {
            &self.files
        }

        fn logs(&self) -> &dyn Logs {
            &self.logs
        }

        fn services(&self) -> &dyn ServiceManager {
            &self.services
        }

        fn environment(&self) -> &dyn Environment {
            &self.environment
        }

        fn roots(&self) -> &dyn RootStore {
            &self.roots
        }

        fn powershell(&self) -> &dyn PowerShell {
            &self.powershell
        }

        fn machine(&self) -> &dyn Machine {
            &self.machine
        }
    }
}
