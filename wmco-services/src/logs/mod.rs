//! Limits the size of service logs without restarting a service.
//!
//! [`reconcile`] compares the files of a log with its [`Bounds`] and returns the steps. A log that has reached its size
//! is copied and truncated in place, since a Go program keeps its log open in a mode that forbids renaming it. Files
//! that we or the log runner have rotated are limited together in count, bytes and age.
//!
//! # Guarantees
//! - A log takes at most [`limits::LOG_FILES`] times the size of a file: the current file, two rotated files, and room
//!   for two more, for output between two checks ([`limits::LOG_POLL`]) or during a copy. The output of a program
//!   that writes faster, a gigabyte per second or more, exceeds this until the next check.
//! - A copy is complete if the log grows by less than half a file between the check and the end of the copy. If it
//!   grows faster than it is copied, the copy ends early and the rest of the log is lost.
//! - Only files of known names in known folders are touched, never a link or its target, and no file with other hard
//!   links.
//! - Pure and level-triggered: an incomplete copy is a rotated file like others.
//!
//! # Assumptions
//! - Programs append: each write goes to the current end of the file. The log runner, containerd, the exporter and
//!   csi-proxy (for its first 1,800 MiB since its start) are assumed to. Otherwise the file begins with zeros after a
//!   truncation, and is soon as long as before. A system that seeks and writes in two steps, as Wine does, can cause that
//!   once; when it happens repeatedly ([`limits::LOG_FUTILE_TRUNCATIONS`]), it is reported and the file left alone.
//! - The hybrid overlay does not append, and rotates its log itself at 100 MiB: see [`Bounds::of`].
//! - Each log has its own folder, and only the node's services write logs there.
//!
//! Source: `docs/contract/host.md`, HOST40 to HOST48.

mod plan;
mod rotation;

use jiff::{SignedDuration, Timestamp};
use wmco_core::names::host;
use wmco_core::winpath::WindowsPath;

use crate::limits;
use crate::windows::{EntryKind, LogFile};

pub use plan::{Action, Because, Plan, Step};
pub use rotation::Rotation;

/// Limits of a log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Bounds {
    /// Bytes at which a file is rotated; `None`: no limit.
    pub file_bytes: Option<u64>,
    /// Age at which a rotated file is removed; `None`: never.
    pub age: Option<SignedDuration>,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { file_bytes: Some(limits::LOG_BYTES), age: None }
    }
}

impl Bounds {
    /// Converts the daemon's flags: a missing value means the default, and 0 no limit.
    ///
    /// ```
    /// use wmco_services::limits;
    /// use wmco_services::logs::Bounds;
    ///
    /// assert_eq!(Bounds::new(None, None).file_bytes, Some(limits::LOG_BYTES));
    /// assert_eq!(Bounds::new(Some(5), None).file_bytes, Some(5_000_000));
    /// assert_eq!(Bounds::new(Some(0), None).file_bytes, None);
    /// ```
    pub fn new(megabytes: Option<u64>, age: Option<SignedDuration>) -> Self {
        let bytes = megabytes.map_or(limits::LOG_BYTES, |m| m.saturating_mul(1_000_000));
        Self {
            file_bytes: Some(bytes).filter(|bytes| *bytes > 0),
            age: age.filter(SignedDuration::is_positive),
        }
    }

    /// The limits of this log. That of the hybrid overlay is cut only when it is so long that its program cannot have
    /// rotated it, because the program writes at an offset of its own.
    #[must_use]
    pub fn of(self, log: &WindowsPath) -> Self {
        let rotates_itself = log.as_str().eq_ignore_ascii_case(host::HYBRID_OVERLAY_LOG);
        let least = if rotates_itself { 2 * limits::LOG_BYTES } else { 0 };
        Self { file_bytes: self.file_bytes.map(|bytes| bytes.max(least)), ..self }
    }

    /// Returns the oldest of `files` beyond `count` or `bytes` in total, and all that are too old. `files` are sorted,
    /// oldest first.
    pub fn surplus<'a, T>(
        &self,
        files: &'a [T],
        facts: impl Fn(&T) -> (u64, Timestamp),
        (count, bytes): (usize, u64),
        now: Timestamp,
    ) -> Vec<(&'a T, Because)> {
        let mut kept = 0;
        let mut kept_bytes: u64 = 0;
        let mut surplus = Vec::new();
        for file in files.iter().rev() {
            let (size, modified) = facts(file);
            kept_bytes = kept_bytes.saturating_add(size);
            if self.age.is_some_and(|age| now.duration_since(modified) > age) {
                surplus.push((file, Because::TooOld));
            } else if self.file_bytes.is_some() && (kept == count || kept_bytes > bytes) {
                surplus.push((file, Because::TooMuch));
            } else {
                kept += 1;
            }
        }
        surplus.reverse();
        surplus
    }
}

/// Rotated files of a log that are kept. One more file is current; the rest is room.
const KEPT: usize = limits::LOG_FILES - 3;

/// The files of a log as observed.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Observed {
    /// The file at the log's path.
    pub current: Option<LogFile>,
    /// Truncations in a row after which the file began with zeros when it reached its size again.
    pub futile_truncations: u32,
    /// Other entries with a rotated name of this log.
    pub rotated: Vec<LogFile>,
    /// The entry at the path where people look for the log.
    pub link: Option<LogFile>,
}

/// Returns the steps for the log at `log`; `link` should point to it.
pub fn reconcile(
    log: &WindowsPath,
    link: &WindowsPath,
    observed: &Observed,
    bounds: Bounds,
    now: Timestamp,
) -> Plan {
    let mut plan = Plan::default();
    let Observed { current, rotated, .. } = observed;
    let mut rotated: Vec<&LogFile> =
        rotated.iter().filter(|file| file.kind == EntryKind::File).collect();
    rotated.sort_by(|a, b| (a.modified, &a.path).cmp(&(b.modified, &b.path)));

    let due = current.as_ref().zip(bounds.file_bytes).filter(|(file, most)| file.bytes >= *most);
    let cut = due.and_then(|(file, most)| match why_not(file, observed) {
        None => Some((file, most)),
        Some(problem) => {
            plan.notes.push(format!("{log} is not kept short: {problem}"));
            None
        }
    });
    // Files are removed before the copy is made, to make room for it. A log exceeds its size before that is noticed, so
    // the limit has half a file more for all copies together.
    let size = bounds.file_bytes.unwrap_or_default();
    let most_bytes = size.saturating_add(size / 2);
    let copied = cut.map_or(0, |(file, _)| file.bytes.min(most_bytes));
    let files = KEPT - usize::from(cut.is_some());
    let bytes = size.saturating_mul(KEPT as u64).saturating_add(size / 2).saturating_sub(copied);
    let facts = |file: &&LogFile| (file.bytes, file.modified);
    for (file, because) in bounds.surplus(&rotated, facts, (files, bytes), now) {
        plan.push(Action::Remove { path: file.path.clone() }, because);
    }
    if let Some((file, size)) = cut {
        let most_growth = size / 2;
        match copy_name(log, &observed.rotated, now) {
            Some(copy) => plan.push(
                Action::Cut { log: file.clone(), copy, most_bytes, most_growth },
                Because::Full,
            ),
            None => plan.notes.push(format!("{log} is not kept short: no name for a copy is free")),
        }
    }
    // We did not create a log that is a link.
    let target = current.as_ref().filter(|file| file.kind == EntryKind::File);
    plan.link(link, log, target, observed.link.as_ref());
    plan
}

/// Returns the steps that make `link` point to the file at `target`.
pub fn reconcile_link(
    link: &WindowsPath,
    seen: Option<&LogFile>,
    target: &WindowsPath,
    current: Option<&LogFile>,
) -> Plan {
    let mut plan = Plan::default();
    plan.link(link, target, current, seen);
    plan
}

/// Decides whether a change of the file at a log's path warrants a check of all its files: it has reached its size, or
/// the program began a new file.
pub fn warrants_check(before: Option<&LogFile>, now: Option<&LogFile>, bounds: Bounds) -> bool {
    let identity = |file: Option<&LogFile>| file.map(|file| file.identity);
    let full = now.zip(bounds.file_bytes).is_some_and(|(file, most)| file.bytes >= most);
    full || identity(before) != identity(now)
}

/// Returns why a log that has reached its size must not be truncated.
fn why_not(file: &LogFile, observed: &Observed) -> Option<&'static str> {
    let link = observed.link.as_ref();
    let ours = link.is_some_and(|l| l.kind == EntryKind::File && l.identity == file.identity);
    match file.kind {
        EntryKind::Directory => Some("it is a folder, remove it"),
        EntryKind::Link => Some("it is a link, remove it"),
        EntryKind::File if file.hard_links > 1 + u32::from(ours) => {
            Some("the file has names elsewhere, remove this one or those")
        }
        EntryKind::File if observed.futile_truncations >= limits::LOG_FUTILE_TRUNCATIONS => Some(
            "its program does not write at the end of the file, so what is cut comes back as zeros; stop \
             the service and remove the file",
        ),
        EntryKind::File => None,
    }
}

/// Whether `name` is that of a rotated file of the log: such as `kubelet-20260131-235959.log` of the log runner and of us,
/// or `hybrid-overlay-2026-01-31T23-59-59.000.log.gz` of a program that rotates its own.
///
/// Source: `docs/contract/host.md`, HOST48.
pub fn is_rotated(log: &WindowsPath, name: &str) -> bool {
    let (start, end) = halves(log);
    let name = name.to_ascii_lowercase();
    let stamp = name.strip_prefix(&start.to_ascii_lowercase()).and_then(|rest| {
        rest.strip_suffix(".gz").unwrap_or(rest).strip_suffix(&end.to_ascii_lowercase())
    });
    stamp.is_some_and(|stamp| {
        ["-00000000-000000", "-0000-00-00t00-00-00.000"].into_iter().any(|form| {
            stamp.len() == form.len()
                && stamp.bytes().zip(form.bytes()).all(|(byte, pattern)| match pattern {
                    b'0' => byte.is_ascii_digit(),
                    _ => byte == pattern,
                })
        })
    })
}

/// Splits the name of a log into its stem and its extension with the dot.
fn halves(log: &WindowsPath) -> (&str, &str) {
    let name = log.file_name();
    name.rfind('.').map_or((name, ""), |dot| name.split_at(dot))
}

/// Returns an unused name for a copy made `now`, in the format of the log runner.
fn copy_name(log: &WindowsPath, taken: &[LogFile], now: Timestamp) -> Option<WindowsPath> {
    let (start, end) = halves(log);
    let folder = log.parent()?;
    // Further copies within a second get the names of the following seconds.
    (0..=taken.len()).find_map(|nth| {
        let at = now.checked_add(SignedDuration::from_secs(i64::try_from(nth).ok()?)).ok()?;
        let name = format!("{start}-{}{end}", at.strftime("%Y%m%d-%H%M%S"));
        let path = folder.join(&name).ok()?;
        (!taken.iter().any(|file| file.path == path)).then_some(path)
    })
}

/// Most bytes that the logs of a node's services and of the daemon take with the default bounds.
pub const ALL_BYTES: u64 =
    (host::SERVICE_LOGS.len() as u64 + 1) * limits::LOG_FILES as u64 * limits::LOG_BYTES;

#[cfg(test)]
mod tests;
