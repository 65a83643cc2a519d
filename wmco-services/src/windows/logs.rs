//! Log files that programs write to while the daemon limits their size.

use jiff::Timestamp;
use wmco_core::winpath::WindowsPath;

use super::{EntryKind, WindowsError};

/// The identity of a file, independent of its names.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct FileIdentity {
    /// The volume.
    pub volume: u64,
    /// The file's index on the volume.
    pub index: u64,
}

/// The entry at a log's path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LogFile {
    /// Its path.
    pub path: WindowsPath,
    /// Its kind; links are not followed.
    pub kind: EntryKind,
    /// Its identity.
    pub identity: FileIdentity,
    /// Current length. The length in a folder listing can be outdated while the file is open.
    pub bytes: u64,
    /// Number of hard links.
    pub hard_links: u32,
    /// Time of the last write.
    pub modified: Timestamp,
}

/// Log files of a host, in folders that others may write to.
///
/// # Guarantees of implementations
/// - No link is followed, neither as the file nor in its path: during a call, nobody can replace a folder in the path.
/// - Programs that have a file open, and share writing as Go programs do, are not disturbed.
pub trait Logs: Send + Sync {
    /// Returns the names of all entries in `folder`; none if it is missing.
    fn names(&self, folder: &WindowsPath) -> Result<Vec<String>, WindowsError>;

    /// Returns the entry at `path`; `None` if there is none. Cheap enough for several calls a second.
    fn stat(&self, path: &WindowsPath) -> Result<Option<LogFile>, WindowsError>;

    /// Whether a file begins with a zero byte, as no log does. That happens when a file is truncated while a program
    /// writes at its own offset, not at the end.
    fn begins_with_zeros(&self, path: &WindowsPath) -> Result<bool, WindowsError>;

    /// Copies the last `most_bytes` of `log` into the new file `copy` beside it, with what is written meanwhile, and
    /// then truncates `log` to 0 bytes. The copy ends early when the log has grown by more than `most_growth`. Output
    /// that is not copied by then, or is written between the last read and the truncation, is lost. Returns whether
    /// there is a copy: on a full disk there is none. A process that dies in between leaves a partial copy.
    ///
    /// [`WindowsError::Exists`] when `copy` exists; also an error when the entry at the path is not the file that `log`
    /// describes, or has got another hard link. Nothing is truncated then.
    fn copy_and_truncate(
        &self,
        log: &LogFile,
        copy: &WindowsPath,
        most_bytes: u64,
        most_growth: u64,
    ) -> Result<bool, WindowsError>;

    /// Replaces the file or link at `path`, in one of our folders, with a symbolic link to `target`. Where the system
    /// cannot create links, `path` becomes a hard link to the file.
    ///
    /// # Errors
    /// [`WindowsError::Locked`] when `path` is a hard link to a file that a program has open.
    fn link(&self, path: &WindowsPath, target: &WindowsPath) -> Result<(), WindowsError>;

    /// Removes a file; returns whether it existed.
    ///
    /// # Errors
    /// An error when the entry is no plain file.
    fn remove(&self, path: &WindowsPath) -> Result<bool, WindowsError>;
}
