//! The host's side of the protocol with the operator: `wicd probe` and `wicd apply`.
//!
//! [`Agent::probe`] describes the host, [`Agent::apply`] carries out a
//! [`HostPlan`] and reports line by line.
//!
//! # Guarantees
//! - Every step may be repeated. A process that dies between or in steps leaves no partly written file under a final
//!   name, and nothing on the host that the state file does not record.
//! - A secret is written only to a file that only administrators may read, from its first byte on.
//! - Content is hashed and unpacked piece by piece; memory does not grow with the size of files.
//! - Outside our folders, only files that the state file records and that can be ours are removed.
//! - Files found below an open root are not trusted: they are moved away or rewritten.
//!
//! Source: `docs/contract/wicd.md`, WICD10 to WICD15; `docs/contract/host.md`.

mod error;
mod foreign;
mod install;
mod keys;
mod ours;
mod place;
mod plan_file;
mod probe;
mod quarantine;
mod remove;
mod root;
mod staging;
mod state;
mod vacancy;
mod verified;

use jiff::Timestamp;
use wmco_core::protocol::{HostPlan, HostStep, Probe, ReportLine};
use wmco_core::text::chain;
use wmco_core::winpath::WindowsPath;

use crate::windows::Windows;

pub use error::AgentError;
use state::Record;

/// The agent on one host, for one command.
#[derive(Clone, Copy)]
pub struct Agent<'a> {
    windows: &'a dyn Windows,
    version: &'a str,
    now: Timestamp,
}

impl<'a> Agent<'a> {
    /// Creates an agent of build `version` whose current time is `now`.
    pub fn new(windows: &'a dyn Windows, version: &'a str, now: Timestamp) -> Self {
        Self { windows, version, now }
    }

    /// Describes the host. An agent that runs from outside our root was uploaded in this connection and first takes
    /// over the root: afterwards only administrators may write there, and foreign files are moved away.
    ///
    /// # Errors
    /// [`AgentError`] when a fact cannot be read or the root cannot be closed; there is no partial result.
    pub fn probe(&self) -> Result<Probe, AgentError> {
        if root::is_uploaded(self.windows)? {
            if self.windows.machine().is_administrator().is_ok_and(|it| !it) {
                return Err(AgentError::NoRights);
            }
            root::take_over(self.windows, self.now)?;
            staging::put_own(self.windows)?;
        }
        probe::probe(self.windows, self.version, self.now)
    }

    /// Reads the plan at `plan`, deletes it, carries it out and reports every event. The last line is a new probe of
    /// the host, even after a failure. Returns whether every step succeeded.
    ///
    /// # Errors
    /// [`AgentError`] when that last probe fails; the report then ends without it, which shows the operator that it was
    /// cut short.
    pub fn apply(
        &self,
        plan: &WindowsPath,
        report: &mut dyn FnMut(ReportLine),
    ) -> Result<bool, AgentError> {
        let taken = plan_file::take(self.windows, plan)
            .and_then(|plan| vacancy::check(self.windows, &plan).map(|()| plan));
        let done = match taken {
            Ok(plan) => self.carry_out(&plan, report),
            Err(error) => {
                report(ReportLine::Refused { error: chain(&error) });
                false
            }
        };
        report(ReportLine::Probed(Box::new(self.probe()?)));
        Ok(done)
    }

    fn carry_out(&self, plan: &HostPlan, report: &mut dyn FnMut(ReportLine)) -> bool {
        let mut record = match state::record_ahead(self.windows, &plan.steps) {
            Ok(record) => record,
            Err(error) => {
                report(ReportLine::Started { step: 0 });
                report(ReportLine::Failed { step: 0, error: chain(&error) });
                return false;
            }
        };
        for (number, step) in plan.steps.iter().enumerate() {
            report(ReportLine::Started { step: number });
            let later = plan.steps.get(number + 1..).unwrap_or_default();
            match self.step(step, later, &mut record) {
                Ok(changed) => {
                    tracing::debug!(step = step.verb(), changed, "step done");
                    report(ReportLine::Done { step: number, changed });
                }
                Err(error) => {
                    let error = chain(&error);
                    tracing::warn!(step = step.verb(), %error, "step failed");
                    report(ReportLine::Failed { step: number, error });
                    record.note_believed(self.windows);
                    return false;
                }
            }
        }
        record.note_believed(self.windows);
        // Leftovers only cost disk space, so they do not fail the plan.
        if let Err(error) = staging::sweep(self.windows, self.now) {
            tracing::warn!(error = %chain(&error), "cannot tidy the staging folder");
        }
        true
    }

    /// Takes one step; returns whether it changed anything. `later` are the steps after it.
    fn step(
        &self,
        step: &HostStep,
        later: &[HostStep],
        record: &mut Record,
    ) -> Result<bool, AgentError> {
        let windows = self.windows;
        match step {
            HostStep::JoinCluster { id } => record.change(windows, |state| state.join(id)),
            HostStep::InstallAgent => install::agent(windows, record),
            HostStep::EnsureDirectory { path, access } => place::directory(windows, path, *access),
            HostStep::PlaceFile { path, sha256, access } => {
                place::file(windows, path, *sha256, *access, later, record)
            }
            HostStep::RemoveFile { path } => {
                let changed = remove::file(windows, path)?;
                record.forget(path);
                Ok(changed)
            }
            HostStep::RemoveDirectory { path } => {
                let changed = remove::directory(windows, path)?;
                record.forget(path);
                Ok(changed)
            }
            HostStep::EnsureAuthorizedKeys { add, remove } => keys::exchange(windows, add, remove),
            HostStep::EnableContainers => install::containers(windows),
            HostStep::RenameComputer { name } => install::computer_name(windows, name),
            HostStep::StopKubelet => vacancy::stop_kubelet(windows),
            HostStep::RemoveDaemon => install::no_daemon(windows),
            HostStep::RemoveServices { manifests } => remove::services(windows, manifests),
            HostStep::Bootstrap { manifest } => install::bootstrap(windows, manifest, self.now),
            HostStep::EnsureDaemon { arguments } => install::daemon(windows, arguments),
            HostStep::RemoveNetwork { name } => Ok(windows.machine().remove_network(name)?),
            HostStep::RemoveInstallation => remove::installation(windows, record),
            HostStep::Restart => {
                windows.machine().restart()?;
                Ok(true)
            }
        }
    }
}

/// Parses a constant path of [`host`].
#[expect(clippy::expect_used, reason = "called with constants that a test of names parses")]
fn known(text: &'static str) -> WindowsPath {
    text.parse().expect("a constant path is valid")
}

#[cfg(test)]
mod tests;
