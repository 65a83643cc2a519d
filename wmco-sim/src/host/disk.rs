//! Operations of the SFTP server on the model's file tree.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use wmco_core::protocol::{Access, ServiceRunState};
use wmco_core::winpath::WindowsPath;
use wmco_services::fake::{Content, FakeWindows, Node};
use wmco_services::windows::{EntryKind, Files as _, ServiceManager as _, WindowsError};

/// The files of a host.
#[derive(Clone, Debug)]
pub(super) struct Disk(FakeWindows);

/// The entry at a path. A link looks like its target file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stat {
    Directory,
    File { size: u64 },
}

/// Why the disk refused, in the precision of SFTP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum DiskError {
    Denied,
    Failed,
    Missing,
}

/// The program that accesses the files for a client.
const SERVER: &str = r"C:\Windows\System32\OpenSSH\sftp-server.exe";

impl Disk {
    pub(super) fn new(model: &FakeWindows) -> Self {
        Self(SERVER.parse().map_or_else(|_| model.clone(), |server| model.running_as(server)))
    }

    pub(super) fn stat(&self, path: &WindowsPath) -> Option<Stat> {
        self.0.with_tree(|tree| match tree.kind(path)? {
            EntryKind::Directory => Some(Stat::Directory),
            EntryKind::File | EntryKind::Link => tree.file(path).map(size),
        })
    }

    /// Returns the names in a folder, in order.
    pub(super) fn list(&self, folder: &WindowsPath) -> Result<Vec<(String, Stat)>, DiskError> {
        if self.stat(folder) != Some(Stat::Directory) {
            return Err(DiskError::Missing);
        }
        let stat = |node: &Node| match &node.content {
            Content::Directory => Stat::Directory,
            Content::File(bytes) => size(bytes),
            Content::Link(_) => Stat::File { size: 0 },
        };
        Ok(self.0.with_tree(|tree| {
            let children = tree.children(folder);
            children.map(|(path, node)| (path.file_name().to_owned(), stat(node))).collect()
        }))
    }

    /// Creates an empty file, or truncates an existing one.
    pub(super) fn create(&self, path: &WindowsPath) -> Result<(), DiskError> {
        self.check_free(path)?;
        self.0.set_now(Timestamp::now());
        self.0.with_tree(|tree| match tree.kind(path) {
            None => tree.write(path, Access::Inherited, Vec::new()),
            Some(_) => tree.set_length(path, 0),
        })?;
        Ok(())
    }

    /// Reads at most `length` bytes from `offset` on; none at or after the end.
    pub(super) fn read(
        &self,
        path: &WindowsPath,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>, DiskError> {
        let bytes = self.0.file(path).ok_or(DiskError::Missing)?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let end = start.saturating_add(length).min(bytes.len());
        Ok(bytes.get(start..end).unwrap_or_default().to_vec())
    }

    /// Writes at `offset`, or at the end if it is `None`.
    pub(super) fn write(
        &self,
        path: &WindowsPath,
        offset: Option<u64>,
        data: &[u8],
    ) -> Result<(), DiskError> {
        self.check_free(path)?;
        self.0.set_now(Timestamp::now());
        self.0.with_tree(|tree| {
            let end = tree.file(path).map(|bytes| bytes.len() as u64);
            let end = end.ok_or_else(|| WindowsError::Missing { object: path.to_string() })?;
            tree.write_at(path, offset.unwrap_or(end), data)
        })?;
        Ok(())
    }

    pub(super) fn resize(&self, path: &WindowsPath, size: u64) -> Result<(), DiskError> {
        self.check_free(path)?;
        Ok(self.0.with_tree(|tree| tree.set_length(path, size))?)
    }

    /// Moves a file or folder, replacing an existing file.
    pub(super) fn rename(&self, from: &WindowsPath, to: &WindowsPath) -> Result<(), DiskError> {
        self.check_free(from)?;
        self.check_free(to)?;
        Ok(self.0.with_tree(|tree| tree.rename(from, to))?)
    }

    pub(super) fn remove(&self, path: &WindowsPath) -> Result<(), DiskError> {
        if self.0.remove_file(path)? { Ok(()) } else { Err(DiskError::Missing) }
    }

    pub(super) fn make_directory(&self, path: &WindowsPath) -> Result<(), DiskError> {
        if self.0.make_directory(path)? { Ok(()) } else { Err(DiskError::Failed) }
    }

    pub(super) fn remove_directory(&self, path: &WindowsPath) -> Result<(), DiskError> {
        if self.0.remove_directory(path)? { Ok(()) } else { Err(DiskError::Missing) }
    }

    /// Windows prevents the program of a running process from being written to or moved.
    fn check_free(&self, path: &WindowsPath) -> Result<(), DiskError> {
        let running = self.0.list()?.into_iter().filter(|s| s.state != ServiceRunState::Stopped);
        let images: BTreeSet<WindowsPath> = running
            .flat_map(|service| programs(&service.config.command))
            .chain(self.0.processes())
            .collect();
        if images.contains(path) { Err(DiskError::Denied) } else { Ok(()) }
    }
}

/// Returns the programs on a command line: some services start another program that it names.
fn programs(command: &str) -> Vec<WindowsPath> {
    let words = command.split_whitespace().map(|word| word.trim_matches('"'));
    words
        .filter_map(|word| word.parse().ok())
        .filter(|path: &WindowsPath| path.file_name().to_ascii_lowercase().ends_with(".exe"))
        .collect()
}

fn size(bytes: &Arc<Vec<u8>>) -> Stat {
    Stat::File { size: bytes.len() as u64 }
}

impl From<WindowsError> for DiskError {
    fn from(error: WindowsError) -> Self {
        match error {
            WindowsError::AccessDenied { .. } | WindowsError::Locked { .. } => Self::Denied,
            WindowsError::Missing { .. } => Self::Missing,
            _ => Self::Failed,
        }
    }
}
