//! Checks all logs regularly.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use wmco_core::names::host;
use wmco_core::text::chain;
use wmco_core::winpath::WindowsPath;

use super::{
    Action, Bounds, Observed, Plan, is_rotated, reconcile, reconcile_link, warrants_check,
};
use crate::limits;
use crate::windows::{LogFile, Logs, Windows, WindowsError};

/// Rotates the logs of a host. Its state only saves work.
#[derive(Debug)]
pub struct Rotation {
    bounds: Bounds,
    /// Truncations in a row of each log that had no effect.
    futile_truncations: BTreeMap<WindowsPath, u32>,
    /// The entry at each log's path at the last check.
    seen: BTreeMap<WindowsPath, Option<LogFile>>,
    /// Time of the next check of all files.
    look: Timestamp,
    /// Problems reported so far.
    reported: BTreeSet<String>,
}

impl Rotation {
    /// Creates a rotation with these bounds and no state.
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            futile_truncations: BTreeMap::new(),
            seen: BTreeMap::new(),
            look: Timestamp::UNIX_EPOCH,
            reported: BTreeSet::new(),
        }
    }

    /// Returns whether [`Self::rotate`] has anything to do. Takes no longer than a few read-only calls.
    pub fn is_due(&self, windows: &dyn Windows, now: Timestamp) -> bool {
        let is_due = |log: WindowsPath| {
            // The next check of all logs reports a log that cannot be read.
            let Ok(current) = windows.logs().stat(&log) else { return false };
            let before = self.seen.get(&log).and_then(Option::as_ref);
            warrants_check(before, current.as_ref(), self.bounds.of(&log))
        };
        self.checks_all(now) || logs().any(is_due)
    }

    /// Whether all files are to be checked. A clock that was set back must not delay that.
    fn checks_all(&self, now: Timestamp) -> bool {
        now >= self.look || now + limits::LOG_FULL_CHECK < self.look
    }

    /// Checks each log and takes the steps that are due. Returns a line for each failure or warning that is not
    /// reported already.
    pub fn rotate(&mut self, windows: &dyn Windows, now: Timestamp) -> Vec<String> {
        let all = self.checks_all(now);
        if all {
            self.look = now + limits::LOG_FULL_CHECK;
        }
        let mut lines = BTreeSet::new();
        for log in logs() {
            match self.rotate_log(windows, &log, all, now) {
                Ok(problems) => lines.extend(problems),
                Err(error) => {
                    lines.insert(format!("cannot look at the log {log}: {}", chain(&error)));
                }
            }
        }
        if all {
            match link_own(windows) {
                Ok(problems) => lines.extend(problems),
                Err(error) => {
                    lines.insert(format!("cannot link the daemon's log: {}", chain(&error)));
                }
            }
        }
        let new = lines.difference(&self.reported).cloned().collect();
        if all {
            self.reported = lines;
        } else {
            self.reported.extend(lines);
        }
        new
    }

    /// Returns one line for each problem.
    fn rotate_log(
        &mut self,
        windows: &dyn Windows,
        log: &WindowsPath,
        all: bool,
        now: Timestamp,
    ) -> Result<Vec<String>, WindowsError> {
        let bounds = self.bounds.of(log);
        let current = windows.logs().stat(log)?;
        let before = self.seen.insert(log.clone(), current.clone()).flatten();
        if !all && !warrants_check(before.as_ref(), current.as_ref(), bounds) {
            return Ok(Vec::new());
        }
        let Ok(link) = format!(r"{}\{}", host::LOG_LINKS, log.file_name()).parse() else {
            return Ok(Vec::new());
        };
        let mut observed = observe(windows.logs(), log, &link, current)?;
        let full = observed.current.as_ref().zip(bounds.file_bytes);
        if full.is_some_and(|(file, most)| file.bytes >= most) {
            let zeros = windows.logs().begins_with_zeros(log)?;
            let before = self.futile_truncations.remove(log).unwrap_or_default();
            observed.futile_truncations = if zeros { before + 1 } else { 0 };
            self.futile_truncations.insert(log.clone(), observed.futile_truncations);
        }
        let mut plan = reconcile(log, &link, &observed, bounds, now);
        let mut problems = std::mem::take(&mut plan.notes);
        problems.extend(execute(&plan, windows));
        Ok(problems)
    }
}

/// Returns the logs of services.
fn logs() -> impl Iterator<Item = WindowsPath> {
    host::SERVICE_LOGS.into_iter().filter_map(|log| log.parse().ok())
}

/// Observes all files of a log.
fn observe(
    logs: &dyn Logs,
    log: &WindowsPath,
    link: &WindowsPath,
    current: Option<LogFile>,
) -> Result<Observed, WindowsError> {
    let mut observed = Observed { link: logs.stat(link)?, current, ..Observed::default() };
    let Some(folder) = log.parent() else { return Ok(observed) };
    for name in logs.names(&folder)?.iter().filter(|name| is_rotated(log, name)) {
        let Ok(path) = folder.join(name) else { continue };
        observed.rotated.extend(logs.stat(&path)?);
    }
    Ok(observed)
}

/// Carries out a plan; returns a line for each failed step. A failure does not stop later steps.
fn execute(plan: &Plan, windows: &dyn Windows) -> Vec<String> {
    let mut problems = Vec::new();
    for step in &plan.steps {
        let done = match &step.action {
            Action::Cut { log, copy, most_bytes, most_growth } => windows
                .logs()
                .copy_and_truncate(log, copy, *most_bytes, *most_growth)
                .map(|copied| {
                    if !copied {
                        problems
                            .push(format!("{} is cut without a copy: the disk is full", log.path));
                    }
                }),
            Action::Remove { path } => windows.logs().remove(path).map(drop),
            Action::Link { path, target } => link(windows, path, target),
            Action::Unlink { path } => windows.files().remove_file(path).map(drop),
        };
        match done {
            Ok(()) => tracing::debug!(because = %step.because, "{}", step.action),
            Err(error) => problems.push(format!("cannot {}: {}", step.action, chain(&error))),
        }
    }
    problems
}

fn link(
    windows: &dyn Windows,
    path: &WindowsPath,
    target: &WindowsPath,
) -> Result<(), WindowsError> {
    if let Some(folder) = path.parent() {
        windows.files().make_directory(&folder)?;
    }
    windows.logs().link(path, target)
}

/// Creates the link to the daemon's own log, which rotates itself. Returns a line for each problem.
fn link_own(windows: &dyn Windows) -> Result<Vec<String>, WindowsError> {
    let (Ok(path), Ok(target)) = (host::WICD_LOG_LINK.parse(), host::WICD_CURRENT_LOG.parse())
    else {
        return Ok(Vec::new());
    };
    let (seen, current) = (windows.logs().stat(&path)?, windows.logs().stat(&target)?);
    Ok(execute(&reconcile_link(&path, seen.as_ref(), &target, current.as_ref()), windows))
}
