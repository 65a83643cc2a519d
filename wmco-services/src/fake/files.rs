//! The file system of a fake host.

use std::io::{self, Read};
use std::sync::Arc;

use wmco_core::protocol::Access;
use wmco_core::winpath::WindowsPath;

use super::faults::Call;
use super::tree::{Content, Tree};
use super::{FakeWindows, State};
use crate::windows::{Entry, EntryKind, Files, TEMPORARY_SUFFIX, WindowsError};

impl FakeWindows {
    /// Refuses to replace or remove a file that a program holds.
    fn check_free(&self, state: &State, path: &WindowsPath) -> Result<(), WindowsError> {
        let held = *path == self.executable
            || state.tree.locked.contains(path)
            || state.processes.contains(path)
            || state.scm.runs_image(path);
        if held { Err(WindowsError::Locked { object: path.to_string() }) } else { Ok(()) }
    }
}

fn missing(path: &WindowsPath) -> WindowsError {
    WindowsError::Missing { object: path.to_string() }
}

fn beside(path: &WindowsPath) -> Result<WindowsPath, WindowsError> {
    format!("{path}{TEMPORARY_SUFFIX}")
        .parse()
        .map_err(|error| WindowsError::other(format!("write {path}"), error))
}

/// Removes an empty folder; does nothing if there is none.
fn remove_empty(tree: &mut Tree, path: &WindowsPath) -> Result<bool, WindowsError> {
    match tree.kind(path) {
        None => Ok(false),
        Some(EntryKind::Directory) if tree.children(path).next().is_some() => {
            Err(WindowsError::DirectoryNotEmpty { object: path.to_string() })
        }
        Some(EntryKind::Directory) => Ok(tree.remove(path)),
        Some(EntryKind::File | EntryKind::Link) => {
            Err(WindowsError::other(format!("remove {path}"), io::Error::other("no folder")))
        }
    }
}

impl Files for FakeWindows {
    fn kind(&self, path: &WindowsPath) -> Result<Option<EntryKind>, WindowsError> {
        self.act(Call::FilesOpen, path.as_str(), |state| Ok(state.tree.kind(path)))
    }

    fn open(&self, path: &WindowsPath) -> Result<Box<dyn Read + Send>, WindowsError> {
        self.act(Call::FilesOpen, path.as_str(), |state| {
            let bytes = state.tree.file(path).ok_or_else(|| missing(path))?;
            Ok(Box::new(io::Cursor::new(Shared(Arc::clone(bytes)))) as Box<dyn Read + Send>)
        })
    }

    fn write(
        &self,
        path: &WindowsPath,
        access: Access,
        content: &mut dyn Read,
    ) -> Result<(), WindowsError> {
        let beside = beside(path)?;
        let mut bytes = Vec::new();
        let read = content.read_to_end(&mut bytes);
        let half = bytes.get(..bytes.len() / 2).unwrap_or_default().to_vec();
        self.act_or_die(
            Call::FilesWrite,
            path.as_str(),
            |state| {
                if let Err(source) = read {
                    return Err(WindowsError::Content { object: path.to_string(), source });
                }
                self.check_free(state, path)?;
                if state.tree.kind(path) == Some(EntryKind::Directory) {
                    return Err(WindowsError::Exists { object: path.to_string() });
                }
                state.tree.remove(&beside);
                state.tree.write(&beside, access, bytes)?;
                state.tree.rename(&beside, path)
            },
            |state| {
                // A real process that dies here leaves only a partly written file beside.
                let _ = state.tree.write(&beside, access, half);
            },
        )
    }

    fn link(&self, path: &WindowsPath, target: &WindowsPath) -> Result<(), WindowsError> {
        self.act(Call::FilesLink, path.as_str(), |state| {
            self.check_free(state, path)?;
            if state.tree.kind(path) == Some(EntryKind::Directory) {
                return Err(WindowsError::Exists { object: path.to_string() });
            }
            if state.tree.file(target).is_none() {
                return Err(missing(target));
            }
            state.tree.insert(path.clone(), Content::Link(target.clone()), Access::Inherited);
            Ok(())
        })
    }

    fn remove_file(&self, path: &WindowsPath) -> Result<bool, WindowsError> {
        self.act(Call::FilesRemoveFile, path.as_str(), |state| match state.tree.kind(path) {
            None => Ok(false),
            Some(EntryKind::File | EntryKind::Link) => {
                self.check_free(state, path)?;
                Ok(state.tree.remove(path))
            }
            Some(EntryKind::Directory) => {
                Err(WindowsError::other(format!("remove {path}"), io::Error::other("a folder")))
            }
        })
    }

    fn make_directory(&self, path: &WindowsPath) -> Result<bool, WindowsError> {
        self.act(Call::FilesMakeDirectory, path.as_str(), |state| {
            match state.tree.kind(path) {
                Some(EntryKind::Directory) => return Ok(false),
                Some(EntryKind::File | EntryKind::Link) => {
                    return Err(WindowsError::Exists { object: path.to_string() });
                }
                None => {}
            }
            match path.parent() {
                Some(parent) if state.tree.kind(&parent) == Some(EntryKind::Directory) => {
                    state.tree.insert(path.clone(), Content::Directory, Access::Inherited);
                    Ok(true)
                }
                Some(parent) => Err(missing(&parent)),
                None => Err(missing(path)),
            }
        })
    }

    fn make_private_directory(&self, path: &WindowsPath) -> Result<(), WindowsError> {
        self.act(Call::FilesMakeDirectory, path.as_str(), |state| {
            if state.tree.kind(path).is_some() {
                return Err(WindowsError::Exists { object: path.to_string() });
            }
            match path.parent() {
                Some(parent) if state.tree.kind(&parent) == Some(EntryKind::Directory) => {
                    state.tree.insert(path.clone(), Content::Directory, Access::Administrators);
                    Ok(())
                }
                Some(parent) => Err(missing(&parent)),
                None => Err(missing(path)),
            }
        })
    }

    fn rename(&self, from: &WindowsPath, to: &WindowsPath) -> Result<(), WindowsError> {
        self.act(Call::FilesRename, from.as_str(), |state| {
            // The file of a running program may be moved, a folder that contains it may not.
            let free = |path| self.check_free(state, path).is_ok();
            let below = state.tree.below(from).all(|(path, _)| free(path));
            if !below || state.tree.locked.contains(from) {
                return Err(WindowsError::Locked { object: from.to_string() });
            }
            if state.tree.kind(to).is_some() {
                return Err(WindowsError::Exists { object: to.to_string() });
            }
            state.tree.rename(from, to)
        })
    }

    fn is_held(&self, path: &WindowsPath) -> Result<bool, WindowsError> {
        self.act(Call::FilesOpen, path.as_str(), |state| Ok(state.tree.locked.contains(path)))
    }

    fn remove_directory(&self, path: &WindowsPath) -> Result<bool, WindowsError> {
        self.act(Call::FilesRemoveDirectory, path.as_str(), |state| {
            remove_empty(&mut state.tree, path)
        })
    }

    fn remove_tree(&self, path: &WindowsPath) -> Result<bool, WindowsError> {
        let leaves = |state: &State| -> Vec<WindowsPath> {
            let mut all: Vec<_> = state.tree.below(path).map(|(path, _)| path.clone()).collect();
            all.push(path.clone());
            // Deeper paths first, so that a folder is empty when its turn comes.
            all.sort_by_key(|path| std::cmp::Reverse(path.as_str().matches('\\').count()));
            all
        };
        let remove = |state: &mut State, most: usize| {
            let there = state.tree.kind(path).is_some();
            let mut first = None;
            for leaf in leaves(state).into_iter().take(most) {
                let result = if state.tree.kind(&leaf) == Some(EntryKind::Directory) {
                    remove_empty(&mut state.tree, &leaf)
                } else {
                    self.check_free(state, &leaf).map(|()| state.tree.remove(&leaf))
                };
                if let Err(error) = result {
                    first.get_or_insert(error);
                }
            }
            first.map_or(Ok(there), Err)
        };
        self.act_or_die(
            Call::FilesRemoveTree,
            path.as_str(),
            |state| remove(state, usize::MAX),
            |state| {
                let half = leaves(state).len() / 2;
                let _ = remove(state, half);
            },
        )
    }

    fn walk_around(
        &self,
        folder: &WindowsPath,
        around: Option<&WindowsPath>,
    ) -> Result<Vec<Entry>, WindowsError> {
        let inside = |path: &WindowsPath| {
            around.is_some_and(|around| path != around && path.is_within(around))
        };
        self.act(Call::FilesWalk, folder.as_str(), |state| {
            let mut entries: Vec<Entry> = state
                .tree
                .below(folder)
                .filter(|(path, _)| !inside(path))
                .map(|(path, node)| Entry {
                    path: path.clone(),
                    kind: node.content.kind(),
                    modified: node.modified,
                })
                .collect();
            entries.sort_by_key(|entry| entry.path.as_str().matches('\\').count());
            Ok(entries)
        })
    }

    fn access(&self, path: &WindowsPath) -> Result<Access, WindowsError> {
        self.act(Call::FilesOpen, path.as_str(), |state| {
            state.tree.node(path).map(|node| node.access).ok_or_else(|| missing(path))
        })
    }

    fn others_may_write(&self, path: &WindowsPath) -> Result<bool, WindowsError> {
        self.act(Call::FilesOpen, path.as_str(), |state| Ok(state.tree.others_may_write(path)))
    }

    fn set_access(&self, path: &WindowsPath, access: Access) -> Result<(), WindowsError> {
        self.act(Call::FilesSetAccess, path.as_str(), |state| state.tree.set_access(path, access))
    }
}

/// Bytes of a file that a reader keeps while the file may change.
struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
