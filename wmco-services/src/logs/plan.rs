//! The plan for a log, as data.

use std::fmt;

use wmco_core::winpath::WindowsPath;

use crate::windows::{EntryKind, LogFile};

/// The steps to take now, in order.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[must_use = "a plan does nothing until an executor runs it"]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
    /// Warnings, one line each.
    pub notes: Vec<String>,
}

/// An action with its reason.
pub type Step = crate::step::Step<Action, Because>;

/// A single side effect.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Action {
    /// Copy the end of a log and truncate the log to 0 bytes.
    Cut {
        /// The log as observed.
        log: LogFile,
        /// Path of the copy.
        copy: WindowsPath,
        /// Most bytes to copy, from the end.
        most_bytes: u64,
        /// Growth of the log during the copy at which the copy ends.
        most_growth: u64,
    },
    /// Create or replace the link where people look for a log.
    Link {
        /// The link.
        path: WindowsPath,
        /// The log.
        target: WindowsPath,
    },
    /// Remove a rotated file.
    Remove {
        /// The file.
        path: WindowsPath,
    },
    /// Remove a hard link to a log that is gone, which would keep its disk space.
    Unlink {
        /// The name.
        path: WindowsPath,
    },
}

/// Why a step is taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Because {
    /// The log has reached its size.
    Full,
    /// The link points to another file or is missing.
    LinkDiffers,
    /// There are too many files, or they take too many bytes together.
    TooMuch,
    /// The file is older than configured.
    TooOld,
}

impl Action {
    /// Short stable name for logs and tests.
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::Cut { .. } => "cut-log",
            Self::Link { .. } => "link-log",
            Self::Remove { .. } => "remove-log",
            Self::Unlink { .. } => "unlink-log",
        }
    }
}

impl Plan {
    pub(super) fn push(&mut self, action: Action, because: Because) {
        self.steps.push(Step { action, because });
    }

    /// Adds the step that makes `link` point to `current`, the file at `target`. A symbolic link always does; a hard
    /// link has to be one of the current file.
    pub(super) fn link(
        &mut self,
        link: &WindowsPath,
        target: &WindowsPath,
        current: Option<&LogFile>,
        seen: Option<&LogFile>,
    ) {
        let name = seen.filter(|seen| seen.kind == EntryKind::File);
        let action = match (current, seen, name) {
            (Some(_), None, _) => Action::Link { path: link.clone(), target: target.clone() },
            (Some(current), _, Some(name)) if name.identity != current.identity => {
                Action::Link { path: link.clone(), target: target.clone() }
            }
            (None, _, Some(_)) => Action::Unlink { path: link.clone() },
            (Some(_) | None, _, _) => return,
        };
        self.push(action, Because::LinkDiffers);
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut { log, copy, .. } => {
                write!(f, "cut {} and keep {}", log.path, copy.file_name())
            }
            Self::Link { path, target } => write!(f, "link {path} to {target}"),
            Self::Remove { path } | Self::Unlink { path } => write!(f, "remove {path}"),
        }
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "it has grown to its size",
            Self::LinkDiffers => "people look for the log there",
            Self::TooMuch => "the log may take no more",
            Self::TooOld => "it is older than asked for",
        })
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Step { action, because } in &self.steps {
            writeln!(f, "{action}, because {because}")?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))
    }
}
