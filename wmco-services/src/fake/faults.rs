//! Planned faults of a fake host.

use std::io;

use crate::windows::WindowsError;

/// A call of one of the traits in [`windows`](crate::windows).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[expect(missing_docs, reason = "each is named after its trait and method")]
pub enum Call {
    EnvironmentGet,
    EnvironmentRemove,
    EnvironmentSet,
    FilesLink,
    FilesMakeDirectory,
    FilesOpen,
    FilesRemoveDirectory,
    FilesRemoveFile,
    FilesRemoveTree,
    FilesRename,
    FilesSetAccess,
    FilesWalk,
    FilesWrite,
    LogsTruncate,
    LogsStat,
    LogsRemove,
    MachineAddRoute,
    MachineEnableContainers,
    MachineEndProcesses,
    MachineFacts,
    MachineRemoveNetwork,
    MachineRename,
    MachineRestart,
    PowerShellRun,
    RootsAdd,
    RootsList,
    RootsRemove,
    ServicesConfigure,
    ServicesCreate,
    ServicesDelete,
    ServicesList,
    ServicesStart,
    ServicesStop,
}

impl Call {
    /// Every call, for tests that try each.
    pub const ALL: [Self; 33] = [
        Self::EnvironmentGet,
        Self::EnvironmentRemove,
        Self::EnvironmentSet,
        Self::FilesLink,
        Self::FilesMakeDirectory,
        Self::FilesOpen,
        Self::FilesRemoveDirectory,
        Self::FilesRemoveFile,
        Self::FilesRemoveTree,
        Self::FilesRename,
        Self::FilesSetAccess,
        Self::FilesWalk,
        Self::FilesWrite,
        Self::LogsTruncate,
        Self::LogsStat,
        Self::LogsRemove,
        Self::MachineAddRoute,
        Self::MachineEnableContainers,
        Self::MachineEndProcesses,
        Self::MachineFacts,
        Self::MachineRemoveNetwork,
        Self::MachineRename,
        Self::MachineRestart,
        Self::PowerShellRun,
        Self::RootsAdd,
        Self::RootsList,
        Self::RootsRemove,
        Self::ServicesConfigure,
        Self::ServicesCreate,
        Self::ServicesDelete,
        Self::ServicesList,
        Self::ServicesStart,
        Self::ServicesStop,
    ];

    /// Whether the call may change the host.
    pub const fn changes(self) -> bool {
        !matches!(
            self,
            Self::EnvironmentGet
                | Self::FilesOpen
                | Self::FilesWalk
                | Self::LogsStat
                | Self::MachineFacts
                | Self::RootsList
                | Self::ServicesList
        )
    }
}

/// The way in which a call fails.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// The process lacks the right; nothing changes.
    AccessDenied,
    /// The disk is full; nothing changes.
    DiskFull,
    /// Another program holds the object; nothing changes.
    Locked,
    /// The call succeeds, but its result is lost.
    Lost,
    /// A program still has a handle to the service.
    MarkedForDeletion,
    /// Windows reports an unknown error; nothing changes.
    Other,
}

impl Fault {
    pub(super) fn error(self, object: &str) -> WindowsError {
        let object = object.to_owned();
        match self {
            Self::AccessDenied => WindowsError::AccessDenied { object },
            Self::DiskFull => WindowsError::DiskFull { object },
            Self::Locked => WindowsError::Locked { object },
            Self::MarkedForDeletion => WindowsError::MarkedForDeletion { service: object },
            Self::Lost => WindowsError::other(
                format!("learn what became of {object}"),
                io::Error::other("the answer was lost"),
            ),
            Self::Other => {
                WindowsError::other(format!("work on {object}"), io::Error::other("told to fail"))
            }
        }
    }
}

/// The planned faults and the calls so far.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// Call, part of the object's name, remaining times, fault.
    planned: Vec<(Call, String, usize, Fault)>,
    /// Changing calls until the process dies.
    cut_after: Option<usize>,
    /// Changing calls and their objects, in order.
    pub(super) log: Vec<(Call, String)>,
}

/// The outcome of a call.
pub(super) enum Fate {
    /// It succeeds.
    Works,
    /// It succeeds, but the caller gets an error.
    Lost,
    /// It fails.
    Fails(WindowsError),
    /// The process dies in the middle of it.
    Dies(WindowsError),
}

impl Faults {
    pub(super) fn plan(&mut self, call: Call, object: &str, times: usize, fault: Fault) {
        self.planned.push((call, object.to_lowercase(), times, fault));
    }

    pub(super) fn cut_after(&mut self, changes: usize) {
        self.cut_after = Some(changes);
    }

    pub(super) fn is_cut(&self) -> bool {
        self.cut_after == Some(usize::MAX)
    }

    pub(super) fn clear(&mut self) {
        self.planned.clear();
        self.cut_after = None;
    }

    pub(super) fn fate(&mut self, call: Call, object: &str) -> Fate {
        let dead = || WindowsError::other(format!("touch {object}"), io::Error::other("cut off"));
        match &mut self.cut_after {
            Some(0) if call.changes() => {
                // The first call beyond the limit dies half way, all later ones fail at once.
                self.cut_after = Some(usize::MAX);
                return Fate::Dies(dead());
            }
            Some(usize::MAX) => return Fate::Fails(dead()),
            Some(left) if call.changes() => *left -= 1,
            Some(_) | None => {}
        }
        let lower = object.to_lowercase();
        let hit = self.planned.iter_mut().find(|(planned, part, left, _)| {
            *planned == call && *left > 0 && lower.contains(part.as_str())
        });
        let fate = match hit {
            None => Fate::Works,
            Some((_, _, left, fault)) => {
                *left -= 1;
                match fault {
                    Fault::Lost => Fate::Lost,
                    other => Fate::Fails(other.error(object)),
                }
            }
        };
        if call.changes() && matches!(fate, Fate::Works | Fate::Lost) {
            self.log.push((call, object.to_owned()));
        }
        fate
    }
}
