//! The file system.

use std::io::{self, Read};

use jiff::Timestamp;
use sha2::{Digest as _, Sha256 as Hasher};
use wmco_core::digest::Sha256;
use wmco_core::protocol::Access;
use wmco_core::winpath::WindowsPath;

use super::WindowsError;

/// Suffix of the temporary file that [`Files::write`] writes before it renames it. A process that dies in between
/// leaves such a file; code that removes a file removes its temporary file, too.
pub const TEMPORARY_SUFFIX: &str = ".wmco-new";

/// The kind of a file system entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EntryKind {
    /// A folder.
    Directory,
    /// A file.
    File,
    /// A symbolic link or another reparse point; its target is never followed.
    Link,
}

/// An entry of [`Files::walk`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// Its path.
    pub path: WindowsPath,
    /// Its kind.
    pub kind: EntryKind,
    /// Time of its last write.
    pub modified: Timestamp,
}

/// Computes the digest of `content` in chunks.
///
/// # Errors
/// Returns the error of the reader.
pub fn digest_of(content: &mut dyn Read) -> io::Result<Sha256> {
    let mut hasher = Hasher::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        let read = content.read(&mut piece)?;
        match piece.get(..read) {
            None | Some([]) => return Ok(Sha256::from_bytes(hasher.finalize().into())),
            Some(bytes) => hasher.update(bytes),
        }
    }
}

/// The file system of a host.
pub trait Files: Send + Sync {
    /// Returns the kind of the entry at `path`, without following links; `None` if there is none.
    fn kind(&self, path: &WindowsPath) -> Result<Option<EntryKind>, WindowsError>;

    /// Opens a file for reading, following links.
    ///
    /// # Errors
    /// [`WindowsError::Missing`] if it does not exist.
    fn open(&self, path: &WindowsPath) -> Result<Box<dyn Read + Send>, WindowsError>;

    /// Replaces the file at `path` with `content`, completely or not at all: writes a temporary file (name plus
    /// [`TEMPORARY_SUFFIX`]), sets `access` **before** the first byte, flushes, renames. On any failure, also of
    /// `content`, the temporary file is removed and `path` is unchanged.
    ///
    /// # Errors
    /// [`WindowsError::Content`] when `content` cannot be read, [`WindowsError::DiskFull`], [`WindowsError::Locked`],
    /// [`WindowsError::Missing`] when the parent folder does not exist.
    fn write(
        &self,
        path: &WindowsPath,
        access: Access,
        content: &mut dyn Read,
    ) -> Result<(), WindowsError>;

    /// Replaces the file or link at `path` atomically with a symbolic link to the existing file `target`. Where the
    /// system cannot create links, `path` becomes a hard link to the file.
    fn link(&self, path: &WindowsPath, target: &WindowsPath) -> Result<(), WindowsError>;

    /// Removes a file or a link (not its target); returns whether it existed.
    ///
    /// # Errors
    /// [`WindowsError::Locked`] when a program holds it.
    fn remove_file(&self, path: &WindowsPath) -> Result<bool, WindowsError>;

    /// Creates a folder; returns whether it was missing. Its parent must exist.
    fn make_directory(&self, path: &WindowsPath) -> Result<bool, WindowsError>;

    /// Creates a folder that has [`Access::Administrators`] from the start. Its parent must exist.
    ///
    /// # Errors
    /// [`WindowsError::Exists`] when an entry exists at the path.
    fn make_private_directory(&self, path: &WindowsPath) -> Result<(), WindowsError>;

    /// Moves a file, a folder with its content, or a link (not its target) to a path on the same disk where no entry
    /// exists.
    ///
    /// # Errors
    /// [`WindowsError::Exists`] when an entry exists there, [`WindowsError::Locked`] when a program holds the entry or
    /// something in it, [`WindowsError::Missing`].
    fn rename(&self, from: &WindowsPath, to: &WindowsPath) -> Result<(), WindowsError>;

    /// Whether a program has a handle with which it can write, move or remove the entry, whatever its access list is
    /// now. Running a program from the file does not count. `false` if the entry does not exist.
    fn is_held(&self, path: &WindowsPath) -> Result<bool, WindowsError>;

    /// Removes an empty folder; returns whether it existed.
    ///
    /// # Errors
    /// [`WindowsError::DirectoryNotEmpty`].
    fn remove_directory(&self, path: &WindowsPath) -> Result<bool, WindowsError>;

    /// Removes a folder with its content, links but not their targets; returns whether it existed. Removes as much as
    /// possible before it reports a failure.
    fn remove_tree(&self, path: &WindowsPath) -> Result<bool, WindowsError>;

    /// Returns everything below `folder`, folders before their content; nothing if the folder is missing. Links are
    /// listed but not followed. Names that no [`WindowsPath`] can hold are left out.
    fn walk(&self, folder: &WindowsPath) -> Result<Vec<Entry>, WindowsError> {
        self.walk_around(folder, None)
    }

    /// Like [`Self::walk`], but lists the folder `around` without its content.
    fn walk_around(
        &self,
        folder: &WindowsPath,
        around: Option<&WindowsPath>,
    ) -> Result<Vec<Entry>, WindowsError>;

    /// Returns the access to the file or folder itself.
    fn access(&self, path: &WindowsPath) -> Result<Access, WindowsError>;

    /// Whether accounts other than administrators, the system and the current user may change the file, or grant
    /// themselves that right. Read access does not count.
    fn others_may_write(&self, path: &WindowsPath) -> Result<bool, WindowsError>;

    /// Sets the access to the file or folder itself. Content of a folder with [`Access::Inherited`] is as open as the
    /// folder.
    fn set_access(&self, path: &WindowsPath, access: Access) -> Result<(), WindowsError>;

    /// Returns the digest of a file, read in chunks; `None` if it does not exist.
    fn digest(&self, path: &WindowsPath) -> Result<Option<Sha256>, WindowsError> {
        let mut file = match self.open(path) {
            Ok(file) => file,
            Err(WindowsError::Missing { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let read = digest_of(&mut file);
        read.map(Some).map_err(|error| WindowsError::other(format!("read {path}"), error))
    }

    /// Reads a whole file of at most `most_bytes`; `None` if it does not exist.
    ///
    /// # Errors
    /// [`WindowsError::TooLarge`].
    fn read(&self, path: &WindowsPath, most_bytes: usize) -> Result<Option<Vec<u8>>, WindowsError> {
        let file = match self.open(path) {
            Ok(file) => file,
            Err(WindowsError::Missing { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut content = Vec::new();
        file.take(most_bytes as u64 + 1)
            .read_to_end(&mut content)
            .map_err(|error| WindowsError::other(format!("read {path}"), error))?;
        if content.len() > most_bytes {
            return Err(WindowsError::TooLarge { object: path.to_string(), most_bytes });
        }
        Ok(Some(content))
    }
}
