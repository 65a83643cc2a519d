//! The file tree of a fake host, with a limited disk.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use wmco_core::protocol::Access;
use wmco_core::winpath::WindowsPath;

use crate::windows::{EntryKind, WindowsError};

/// A file, folder or link.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Node {
    /// Its kind and content.
    pub content: Content,
    /// The accounts that may access it.
    pub access: Access,
    /// Time of its last write.
    pub modified: Timestamp,
    /// File identity; a move keeps it.
    pub identity: u64,
}

/// The kind of a node, with its content.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Content {
    /// A folder; its entries have their own paths.
    Directory,
    /// A file with its bytes.
    File(Arc<Vec<u8>>),
    /// A symbolic link.
    Link(WindowsPath),
}

/// All files, folders and links, by path; paths ignore case.
#[derive(Clone, Debug)]
pub struct Tree {
    nodes: BTreeMap<WindowsPath, Node>,
    /// Files that a program holds although no service runs them.
    pub(super) locked: BTreeSet<WindowsPath>,
    /// Number of other hard links of files.
    pub(super) other_hard_links: BTreeMap<WindowsPath, u32>,
    /// Last assigned identity.
    identities: u64,
    /// Files that everybody may write to while their access is inherited.
    pub(super) open: BTreeSet<WindowsPath>,
    /// Most bytes of all files together.
    pub(super) disk_bytes: Option<u64>,
    /// Modification time of writes.
    pub(super) now: Timestamp,
}

impl Tree {
    /// Creates a drive with the folders that every host has.
    pub(super) fn new() -> Self {
        let mut tree = Self {
            nodes: BTreeMap::new(),
            locked: BTreeSet::new(),
            other_hard_links: BTreeMap::new(),
            identities: 0,
            open: BTreeSet::new(),
            disk_bytes: None,
            now: Timestamp::UNIX_EPOCH,
        };
        for folder in ["C:", r"C:\Windows", r"C:\Windows\System32", r"C:\Users", r"C:\ProgramData"]
        {
            if let Ok(folder) = folder.parse() {
                tree.insert(folder, Content::Directory, Access::Inherited);
            }
        }
        tree
    }

    /// Returns the node at `path`.
    pub fn node(&self, path: &WindowsPath) -> Option<&Node> {
        self.nodes.get(path)
    }

    /// Returns all nodes, sorted by path.
    pub fn nodes(&self) -> impl Iterator<Item = (&WindowsPath, &Node)> {
        self.nodes.iter()
    }

    /// Returns the kind of the node at `path`.
    pub fn kind(&self, path: &WindowsPath) -> Option<EntryKind> {
        self.node(path).map(|node| node.content.kind())
    }

    /// Returns the bytes of the file at `path`; follows a link once.
    pub fn file(&self, path: &WindowsPath) -> Option<&Arc<Vec<u8>>> {
        match &self.node(path)?.content {
            Content::File(bytes) => Some(bytes),
            Content::Link(target) => match &self.node(target)?.content {
                Content::File(bytes) => Some(bytes),
                Content::Directory | Content::Link(_) => None,
            },
            Content::Directory => None,
        }
    }

    /// Whether everybody may write to the file at `path`.
    pub fn others_may_write(&self, path: &WindowsPath) -> bool {
        let inherits = |node: &Node| node.access == Access::Inherited;
        self.open.contains(path) && self.node(path).is_some_and(inherits)
    }

    /// Returns the entries directly in `folder`.
    pub fn children<'a>(
        &'a self,
        folder: &'a WindowsPath,
    ) -> impl Iterator<Item = (&'a WindowsPath, &'a Node)> {
        self.nodes.iter().filter(move |(path, _)| path.parent().as_ref() == Some(folder))
    }

    /// Returns everything below `folder`, without the folder itself.
    pub fn below<'a>(
        &'a self,
        folder: &'a WindowsPath,
    ) -> impl Iterator<Item = (&'a WindowsPath, &'a Node)> {
        self.nodes.iter().filter(move |(path, _)| *path != folder && path.is_within(folder))
    }

    /// Inserts a node at `path` without any check.
    pub fn insert(&mut self, path: WindowsPath, content: Content, access: Access) {
        self.identities += 1;
        let node = Node { content, access, modified: self.now, identity: self.identities };
        self.nodes.remove(&path); // so that the new spelling of the name counts
        self.nodes.insert(path, node);
    }

    /// Creates a folder and its missing parents.
    pub fn make_folders(&mut self, path: &WindowsPath) {
        if let Some(parent) = path.parent() {
            self.make_folders(&parent);
        }
        if self.node(path).is_none() {
            self.insert(path.clone(), Content::Directory, Access::Inherited);
        }
    }

    /// Writes a file as a program would: its folder must exist and the disk must have room.
    ///
    /// # Errors
    /// [`WindowsError::Missing`], [`WindowsError::DiskFull`]; nothing is changed then.
    pub fn write(
        &mut self,
        path: &WindowsPath,
        access: Access,
        bytes: Vec<u8>,
    ) -> Result<(), WindowsError> {
        self.check_folder(path)?;
        self.check_room(path, bytes.len() as u64)?;
        self.insert(path.clone(), Content::File(Arc::new(bytes)), access);
        Ok(())
    }

    /// Writes `bytes` into a file at `offset`, as SFTP does; creates a missing file and fills a gap with zeros.
    ///
    /// # Errors
    /// As [`Self::write`]; earlier writes stay.
    pub fn write_at(
        &mut self,
        path: &WindowsPath,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), WindowsError> {
        if self.node(path).is_none() {
            self.write(path, Access::Inherited, Vec::new())?;
        }
        let missing = || WindowsError::Missing { object: path.to_string() };
        let old = self.file(path).ok_or_else(missing)?.len() as u64;
        let end = offset.saturating_add(bytes.len() as u64);
        self.check_room(path, end.saturating_sub(old))?;
        let now = self.now;
        let node = self.nodes.get_mut(path).ok_or_else(missing)?;
        node.modified = now;
        let Content::File(file) = &mut node.content else { return Err(missing()) };
        let file = Arc::make_mut(file);
        let full = || WindowsError::DiskFull { object: path.to_string() };
        let (start, end) = (
            usize::try_from(offset).map_err(|_| full())?,
            usize::try_from(end).map_err(|_| full())?,
        );
        if file.len() < end {
            file.resize(end, 0);
        }
        if let Some(place) = file.get_mut(start..end) {
            place.copy_from_slice(bytes);
        }
        Ok(())
    }

    /// Truncates a file to `length` bytes, or extends it with zeros.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn set_length(&mut self, path: &WindowsPath, length: u64) -> Result<(), WindowsError> {
        let missing = || WindowsError::Missing { object: path.to_string() };
        let old = self.file(path).ok_or_else(missing)?.len() as u64;
        self.check_room(path, length.saturating_sub(old))?;
        let length = usize::try_from(length)
            .map_err(|_| WindowsError::DiskFull { object: path.to_string() })?;
        if let Some(Node { content: Content::File(file), .. }) = self.nodes.get_mut(path) {
            Arc::make_mut(file).resize(length, 0);
        }
        Ok(())
    }

    /// Removes the node at `path` and everything below it; returns whether there was any.
    pub fn remove(&mut self, path: &WindowsPath) -> bool {
        let before = self.nodes.len();
        self.nodes.retain(|other, _| !other.is_within(path));
        self.nodes.len() != before
    }

    /// Moves the node at `from` and everything below it to `to`, replacing a file there.
    ///
    /// # Errors
    /// [`WindowsError::Missing`] if `from` or the parent of `to` does not exist, [`WindowsError::Exists`] if `to` is a
    /// folder.
    pub fn rename(&mut self, from: &WindowsPath, to: &WindowsPath) -> Result<(), WindowsError> {
        if self.node(from).is_none() {
            return Err(WindowsError::Missing { object: from.to_string() });
        }
        self.check_folder(to)?;
        if from != to && self.kind(to) == Some(EntryKind::Directory) {
            return Err(WindowsError::Exists { object: to.to_string() });
        }
        let moved: Vec<WindowsPath> =
            self.nodes.keys().filter(|path| path.is_within(from)).cloned().collect();
        let nodes: Vec<_> = moved.iter().filter_map(|path| self.nodes.remove_entry(path)).collect();
        for (path, node) in nodes {
            let rest = path.as_str().get(from.as_str().len()..).unwrap_or_default();
            if let Ok(path) = format!("{to}{rest}").parse() {
                self.nodes.remove(&path);
                self.nodes.insert(path, node);
            }
        }
        Ok(())
    }

    pub(super) fn set_access(
        &mut self,
        path: &WindowsPath,
        access: Access,
    ) -> Result<(), WindowsError> {
        let node = self
            .nodes
            .get_mut(path)
            .ok_or_else(|| WindowsError::Missing { object: path.to_string() })?;
        node.access = access;
        Ok(())
    }

    fn check_folder(&self, path: &WindowsPath) -> Result<(), WindowsError> {
        match path.parent() {
            Some(parent) if self.kind(&parent) != Some(EntryKind::Directory) => {
                Err(WindowsError::Missing { object: parent.to_string() })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn check_room(&self, path: &WindowsPath, more: u64) -> Result<(), WindowsError> {
        let size = |node: &Node| match &node.content {
            Content::File(bytes) => bytes.len() as u64,
            Content::Directory | Content::Link(_) => 0,
        };
        let used: u64 = self.nodes.values().map(size).sum();
        match self.disk_bytes {
            Some(limit) if used.saturating_add(more) > limit => {
                Err(WindowsError::DiskFull { object: path.to_string() })
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl Content {
    /// Returns the kind of the entry.
    pub const fn kind(&self) -> EntryKind {
        match self {
            Self::Directory => EntryKind::Directory,
            Self::File(_) => EntryKind::File,
            Self::Link(_) => EntryKind::Link,
        }
    }
}
