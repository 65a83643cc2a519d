//! Log files of a fake host.

use std::io;
use std::sync::Arc;

use wmco_core::protocol::Access;
use wmco_core::winpath::WindowsPath;

use super::faults::Call;
use super::tree::{Content, Tree};
use super::{FakeWindows, State};
use crate::windows::{EntryKind, FileIdentity, Files, LogFile, Logs, WindowsError};

impl FakeWindows {
    /// Appends to a file as a program that has it open would; creates a missing file.
    ///
    /// # Errors
    /// As [`Tree::write_at`].
    pub fn append(&self, path: &WindowsPath, bytes: &[u8]) -> Result<(), WindowsError> {
        self.with_tree(|tree| {
            if let Some(folder) = path.parent() {
                tree.make_folders(&folder);
            }
            let end = tree.file(path).map_or(0, |file| file.len() as u64);
            tree.write_at(path, end, bytes)
        })
    }

    /// Sets the number of other hard links of a file.
    pub fn set_other_hard_links(&self, path: &WindowsPath, names: u32) {
        self.state().tree.other_hard_links.insert(path.clone(), names);
    }
}

/// Fails if a folder in the path is a link.
fn check_way(tree: &Tree, path: &WindowsPath) -> Result<(), WindowsError> {
    let mut folder = path.parent();
    while let Some(above) = folder {
        if tree.kind(&above) == Some(EntryKind::Link) {
            return Err(refused(&above, "a link"));
        }
        folder = above.parent();
    }
    Ok(())
}

fn refused(path: &WindowsPath, what: &'static str) -> WindowsError {
    WindowsError::other(format!("work on the log {path}"), io::Error::other(what))
}

fn stat(tree: &Tree, path: &WindowsPath) -> Option<LogFile> {
    let node = tree.node(path)?;
    let bytes = match &node.content {
        Content::File(bytes) => bytes.len() as u64,
        Content::Directory | Content::Link(_) => 0,
    };
    Some(LogFile {
        path: path.clone(),
        kind: node.content.kind(),
        identity: FileIdentity { volume: 0, index: node.identity },
        bytes,
        hard_links: 1 + tree.other_hard_links.get(path).copied().unwrap_or_default(),
        modified: node.modified,
    })
}

/// Copies the end of a log.
fn copy(
    state: &mut State,
    log: &LogFile,
    copy: &WindowsPath,
    most_bytes: u64,
) -> Result<(), WindowsError> {
    check_way(&state.tree, &log.path)?;
    let same = stat(&state.tree, &log.path)
        .is_some_and(|now| (now.identity, now.hard_links) == (log.identity, log.hard_links));
    let bytes = match state.tree.node(&log.path).map(|node| &node.content) {
        Some(Content::File(bytes)) if same => Arc::clone(bytes),
        _ => return Err(refused(&log.path, "another file")),
    };
    if state.tree.kind(copy).is_some() {
        return Err(WindowsError::Exists { object: copy.to_string() });
    }
    let start = bytes.len().saturating_sub(usize::try_from(most_bytes).unwrap_or(usize::MAX));
    let end = bytes.get(start..).unwrap_or_default().to_vec();
    state.tree.write(copy, Access::Inherited, end)
}

impl Logs for FakeWindows {
    fn names(&self, folder: &WindowsPath) -> Result<Vec<String>, WindowsError> {
        self.act(Call::LogsStat, folder.as_str(), |state| {
            if state.tree.kind(folder) == Some(EntryKind::Link) {
                return Err(refused(folder, "a link"));
            }
            check_way(&state.tree, folder)?;
            let children = state.tree.children(folder);
            Ok(children.map(|(path, _)| path.file_name().to_owned()).collect())
        })
    }

    fn stat(&self, path: &WindowsPath) -> Result<Option<LogFile>, WindowsError> {
        self.act(Call::LogsStat, path.as_str(), |state| Ok(stat(&state.tree, path)))
    }

    fn begins_with_zeros(&self, path: &WindowsPath) -> Result<bool, WindowsError> {
        self.act(Call::LogsStat, path.as_str(), |state| {
            check_way(&state.tree, path)?;
            Ok(state.tree.file(path).is_some_and(|bytes| bytes.first() == Some(&0)))
        })
    }

    fn link(&self, path: &WindowsPath, target: &WindowsPath) -> Result<(), WindowsError> {
        Files::link(self, path, target)
    }

    fn copy_and_truncate(
        &self,
        log: &LogFile,
        to: &WindowsPath,
        most_bytes: u64,
        _most_growth: u64,
    ) -> Result<bool, WindowsError> {
        self.act_or_die(
            Call::LogsTruncate,
            log.path.as_str(),
            |state| {
                let copied = match copy(state, log, to, most_bytes) {
                    Err(WindowsError::DiskFull { .. }) => false,
                    copied => copied.map(|()| true)?,
                };
                state.tree.set_length(&log.path, 0)?;
                Ok(copied)
            },
            |state| {
                // A part of the copy is left, and the log is unchanged.
                let _ = copy(state, log, to, most_bytes / 2);
            },
        )
    }

    fn remove(&self, path: &WindowsPath) -> Result<bool, WindowsError> {
        self.act(Call::LogsRemove, path.as_str(), |state| {
            check_way(&state.tree, path)?;
            match state.tree.kind(path) {
                None => Ok(false),
                Some(EntryKind::File) => Ok(state.tree.remove(path)),
                Some(EntryKind::Directory | EntryKind::Link) => Err(refused(path, "no file")),
            }
        })
    }
}
