//! The file system.

use std::io::{self, Read};

use jiff::Timestamp;
use sha2::{Digest as _, Sha256 as Hasher};
use wmco_core::digest::Sha256;
use wmco_core::protocol::Access;
use wmco_core::winpath::WindowsPath;

use super::WindowsError;

/// What [`Files::write`] appends to the name of the file that it writes to before it renames it. A
/// process that dies in between leaves such a file; whoever removes a file removes this one too.
pub const TEMPORARY_SUFFIX: &str = ".wmco-new";

/// What stands at a path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EntryKind {
    /// A folder.
    Directory,
    /// A file.
    File,
    /// A symbolic link or another reparse point; what it points to is never followed.
    Link,
}

/// One entry of [`Files::walk`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// Where it is.
    pub path: WindowsPath,
    /// What it is.
    pub kind: EntryKind,
    /// When it was last written.
    pub modified: Timestamp,
}

/// Digest of all that `content` holds, read piece by piece.
///
/// # Errors
/// What reading it says.
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
    /// What stands at `path`, without following links; `None` when nothing does.
    fn kind(&self, path: &WindowsPath) -> Result<Option<EntryKind>, WindowsError>;

    /// Opens a file for reading, following links.
    ///
    /// # Errors
    /// [`WindowsError::Missing`] when it is not there.
    fn open(&self, path: &WindowsPath) -> Result<Box<dyn Read + Send>, WindowsError>;

    /// Replaces the file at `path` by `content`, whole or not at all: writes beside it (name plus
    /// [`TEMPORARY_SUFFIX`]), sets `access` **before** the first byte, flushes, renames. When anything
    /// fails, `content` included, the file beside is removed and `path` is as before.
    ///
    /// # Errors
    /// [`WindowsError::Content`] when `content` cannot be read, [`WindowsError::DiskFull`],
    /// [`WindowsError::Locked`], [`WindowsError::Missing`] when the folder is not there.
    fn write(
        &self,
        path: &WindowsPath,
        access: Access,
        content: &mut dyn Read,
    ) -> Result<(), WindowsError>;

    /// Makes `path` a symbolic link to the file `target`, which is there, in place of the file or link
    /// that stands there: at every moment one of both does. Where the system makes no links, `path`
    /// becomes another name of the same file.
    fn link(&self, path: &WindowsPath, target: &WindowsPath) -> Result<(), WindowsError>;

    /// Removes a file or a link (not what it points to); tells whether it was there.
    ///
    /// # Errors
    /// [`WindowsError::Locked`] when a program holds it.
    fn remove_file(&self, path: &WindowsPath) -> Result<bool, WindowsError>;

    /// Makes one folder; tells whether it was missing. Its parent exists.
    fn make_directory(&self, path: &WindowsPath) -> Result<bool, WindowsError>;

    /// Makes one folder that has [`Access::Administrators`] from its first moment on. Its parent exists.
    ///
    /// # Errors
    /// [`WindowsError::Exists`] when anything stands there.
    fn make_private_directory(&self, path: &WindowsPath) -> Result<(), WindowsError>;

    /// Moves a file, a folder with all that is in it, or a link (not what it points to) to a place on
    /// the same disk where nothing stands.
    ///
    /// # Errors
    /// [`WindowsError::Exists`] when something does, [`WindowsError::Locked`] when a program holds it or
    /// something in it, [`WindowsError::Missing`].
    fn rename(&self, from: &WindowsPath, to: &WindowsPath) -> Result<(), WindowsError>;

    /// Whether a program has it open in a way that lets it write to, move or remove it, whoever may open
    /// it now. Running a program from it does not count. `false` when it is not there.
    fn is_held(&self, path: &WindowsPath) -> Result<bool, WindowsError>;

    /// Removes one empty folder; tells whether it was there.
    ///
    /// # Errors
    /// [`WindowsError::DirectoryNotEmpty`].
    fn remove_directory(&self, path: &WindowsPath) -> Result<bool, WindowsError>;

    /// Removes a folder with all that is in it, links but not their targets; tells whether it was
    /// there. Removes as much as it can before it reports a failure.
    fn remove_tree(&self, path: &WindowsPath) -> Result<bool, WindowsError>;

    /// Everything below `folder`, folders before what is in them; empty when the folder is missing.
    /// Links are listed and not entered. Names that no [`WindowsPath`] can hold are left out.
    fn walk(&self, folder: &WindowsPath) -> Result<Vec<Entry>, WindowsError> {
        self.walk_around(folder, None)
    }

    /// As [`Self::walk`], but the folder `around` is listed and not entered.
    fn walk_around(
        &self,
        folder: &WindowsPath,
        around: Option<&WindowsPath>,
    ) -> Result<Vec<Entry>, WindowsError>;

    /// Who may read the file or folder itself.
    fn access(&self, path: &WindowsPath) -> Result<Access, WindowsError>;

    /// Whether others than administrators, the system and who runs this may change the file, or give
    /// themselves the right to. Many can read it perhaps.
    fn others_may_write(&self, path: &WindowsPath) -> Result<bool, WindowsError>;

    /// Sets who may read the file or folder itself. What lies below a folder and has
    /// [`Access::Inherited`] is as open as the folder.
    fn set_access(&self, path: &WindowsPath, access: Access) -> Result<(), WindowsError>;

    /// Digest of a file, read piece by piece; `None` when it is not there.
    fn digest(&self, path: &WindowsPath) -> Result<Option<Sha256>, WindowsError> {
        let mut file = match self.open(path) {
            Ok(file) => file,
            Err(WindowsError::Missing { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let read = digest_of(&mut file);
        read.map(Some).map_err(|error| WindowsError::other(format!("read {path}"), error))
    }

    /// A whole file of at most `most_bytes`; `None` when it is not there.
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
