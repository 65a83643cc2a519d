//! The file system.

use std::fs::{self, File, FileType, Metadata};
use std::io::{self, ErrorKind, Read, Write as _};
use std::os::windows::fs::{FileTypeExt as _, MetadataExt as _};

use jiff::Timestamp;
use windows_sys::Win32::Storage::FileSystem::FILE_ATTRIBUTE_REPARSE_POINT;
use wmco_core::protocol::Access;
use wmco_core::winpath::WindowsPath;
use wmco_services::windows::{Entry, EntryKind, Files, TEMPORARY_SUFFIX, WindowsError};

use super::{acl, failure, held};
use crate::sddl;

/// How much is copied at once.
const PIECE_BYTES: usize = 256 * 1024;

/// The disks of this host.
#[derive(Default)]
pub(super) struct Disk;

fn failed<'a>(
    what: &'a str,
    path: &'a WindowsPath,
) -> impl Fn(io::Error) -> WindowsError + use<'a> {
    move |error| failure::file(what, path.as_str(), error)
}

/// What it is; links are not followed.
pub(super) fn kind(metadata: &Metadata) -> EntryKind {
    if metadata.file_attributes() & FILE_ATTRIBUTE_REPARSE_POINT != 0 {
        EntryKind::Link
    } else if metadata.is_dir() {
        EntryKind::Directory
    } else {
        EntryKind::File
    }
}

/// Where something is made before it takes the place of `path`.
fn beside(path: &WindowsPath) -> Result<WindowsPath, WindowsError> {
    format!("{path}{TEMPORARY_SUFFIX}")
        .parse()
        .map_err(|bad| WindowsError::other(format!("write {path}"), bad))
}

/// `false` instead of an error when there was nothing.
fn was_there(result: io::Result<()>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes a file or a link to whatever it points to.
fn unlink(path: &str, kind: FileType) -> io::Result<bool> {
    let removed = if kind.is_symlink_dir() || kind.is_dir() {
        was_there(fs::remove_dir(path))
    } else {
        was_there(fs::remove_file(path))
    };
    match removed {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            // Perhaps it is only marked as read-only.
            let mut permissions = fs::symlink_metadata(path)?.permissions();
            if !permissions.readonly() {
                return Err(error);
            }
            #[expect(clippy::permissions_set_readonly_false, reason = "an attribute on Windows")]
            permissions.set_readonly(false);
            fs::set_permissions(path, permissions)?;
            was_there(fs::remove_file(path))
        }
        removed => removed,
    }
}

/// Removes what is in a folder and the folder, as far as it goes; the first failure is reported.
fn remove_all(folder: &str) -> io::Result<()> {
    let mut first = Ok(());
    for entry in fs::read_dir(folder)? {
        let removed = entry.and_then(|entry| {
            let path = entry.path();
            let metadata = fs::symlink_metadata(&path)?;
            let path = path.to_string_lossy();
            if kind(&metadata) == EntryKind::Directory {
                remove_all(&path)
            } else {
                unlink(&path, metadata.file_type()).map(drop)
            }
        });
        if first.is_ok() {
            first = removed;
        }
    }
    first?;
    fs::remove_dir(folder)
}

/// Copies `content` into a new file and sees to it that the disk has it.
fn fill(path: &WindowsPath, mut file: File, content: &mut dyn Read) -> Result<(), WindowsError> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = match content.read(&mut piece) {
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(source) => return Err(WindowsError::Content { object: path.to_string(), source }),
        };
        match piece.get(..read) {
            None | Some([]) => break,
            Some(bytes) => file.write_all(bytes).map_err(failed("write", path))?,
        }
    }
    file.sync_all().map_err(failed("write", path))
}

impl Files for Disk {
    fn kind(&self, path: &WindowsPath) -> Result<Option<EntryKind>, WindowsError> {
        match fs::symlink_metadata(path.as_str()) {
            Ok(metadata) => Ok(Some(kind(&metadata))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("look at", path)(error)),
        }
    }

    fn open(&self, path: &WindowsPath) -> Result<Box<dyn Read + Send>, WindowsError> {
        let file = File::open(path.as_str()).map_err(failed("open", path))?;
        Ok(Box::new(file))
    }

    fn write(
        &self,
        path: &WindowsPath,
        access: Access,
        content: &mut dyn Read,
    ) -> Result<(), WindowsError> {
        let beside = beside(path)?;
        self.remove_file(&beside)?;
        let sddl = match access {
            Access::Administrators => Some(sddl::ADMINISTRATORS_FILE),
            Access::Inherited => None,
        };
        let file = acl::create_file(beside.as_str(), sddl).map_err(failed("create", &beside))?;
        let written = fill(path, file, content).and_then(|()| {
            fs::rename(beside.as_str(), path.as_str()).map_err(|error| {
                // This is how Windows says that the program there is running.
                let runs = error.kind() == ErrorKind::PermissionDenied
                    && self.kind(path).is_ok_and(|kind| kind == Some(EntryKind::File));
                if runs {
                    WindowsError::Locked { object: path.to_string() }
                } else {
                    failed("replace", path)(error)
                }
            })
        });
        if written.is_err()
            && let Err(error) = self.remove_file(&beside)
        {
            tracing::warn!(path = %beside, %error, "cannot remove a half written file");
        }
        written
    }

    fn link(&self, path: &WindowsPath, target: &WindowsPath) -> Result<(), WindowsError> {
        let beside = beside(path)?;
        self.remove_file(&beside)?;
        // Not everybody may make symbolic links, and Wine only says that it does.
        std::os::windows::fs::symlink_file(target.as_str(), beside.as_str())
            .and_then(|()| fs::symlink_metadata(beside.as_str()).map(drop))
            .or_else(|_| fs::hard_link(target.as_str(), beside.as_str()))
            .and_then(|()| fs::rename(beside.as_str(), path.as_str()))
            .map_err(failed("make the link", path))
    }

    fn remove_file(&self, path: &WindowsPath) -> Result<bool, WindowsError> {
        match fs::symlink_metadata(path.as_str()) {
            Ok(metadata) if kind(&metadata) == EntryKind::Directory => {
                Err(WindowsError::other(format!("remove {path}"), io::Error::other("a folder")))
            }
            Ok(metadata) => {
                unlink(path.as_str(), metadata.file_type()).map_err(|error| match error.kind() {
                    ErrorKind::PermissionDenied => {
                        WindowsError::Locked { object: path.to_string() }
                    }
                    _ => failed("remove", path)(error),
                })
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed("look at", path)(error)),
        }
    }

    fn make_directory(&self, path: &WindowsPath) -> Result<bool, WindowsError> {
        match fs::create_dir(path.as_str()) {
            Ok(()) => Ok(true),
            Err(error)
                if error.kind() == ErrorKind::AlreadyExists
                    && self.kind(path)? == Some(EntryKind::Directory) =>
            {
                Ok(false)
            }
            Err(error) => Err(failed("make folder", path)(error)),
        }
    }

    fn make_private_directory(&self, path: &WindowsPath) -> Result<(), WindowsError> {
        let sddl = sddl::ADMINISTRATORS_FOLDER;
        acl::create_directory(path.as_str(), sddl).map_err(failed("make folder", path))
    }

    fn rename(&self, from: &WindowsPath, to: &WindowsPath) -> Result<(), WindowsError> {
        held::rename(from.as_str(), to.as_str()).map_err(|error| match error.kind() {
            // This is how Windows says that something in a folder is open.
            ErrorKind::PermissionDenied => WindowsError::Locked { object: from.to_string() },
            _ => failed("move", from)(error),
        })
    }

    fn is_held(&self, path: &WindowsPath) -> Result<bool, WindowsError> {
        match held::is_held(path.as_str()) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            held => held.map_err(failed("open", path)),
        }
    }

    fn remove_directory(&self, path: &WindowsPath) -> Result<bool, WindowsError> {
        was_there(fs::remove_dir(path.as_str())).map_err(failed("remove folder", path))
    }

    fn remove_tree(&self, path: &WindowsPath) -> Result<bool, WindowsError> {
        match self.kind(path)? {
            None => Ok(false),
            Some(EntryKind::Directory) => {
                remove_all(path.as_str()).map_err(failed("remove folder", path))?;
                Ok(true)
            }
            Some(EntryKind::File | EntryKind::Link) => self.remove_file(path),
        }
    }

    fn walk_around(
        &self,
        folder: &WindowsPath,
        around: Option<&WindowsPath>,
    ) -> Result<Vec<Entry>, WindowsError> {
        let mut found = Vec::new();
        let mut folders = vec![folder.clone()];
        while let Some(folder) = folders.pop() {
            let entries = match fs::read_dir(folder.as_str()) {
                Ok(entries) => entries,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(failed("list", &folder)(error)),
            };
            for entry in entries {
                let entry = entry.map_err(failed("list", &folder))?;
                let name = entry.file_name();
                let Some(path) = name.to_str().and_then(|name| folder.join(name).ok()) else {
                    continue;
                };
                // What goes away meanwhile is not there.
                let Ok(metadata) = entry.metadata() else { continue };
                let modified = metadata.modified().ok();
                let modified = modified.and_then(|time| Timestamp::try_from(time).ok());
                let kind = kind(&metadata);
                if kind == EntryKind::Directory && Some(&path) != around {
                    folders.push(path.clone());
                }
                let modified = modified.unwrap_or(Timestamp::UNIX_EPOCH);
                found.push(Entry { path, kind, modified });
            }
        }
        Ok(found)
    }

    fn access(&self, path: &WindowsPath) -> Result<Access, WindowsError> {
        let sddl = acl::read(path.as_str()).map_err(failed("read the access of", path))?;
        Ok(if sddl::is_administrators_only(&sddl) {
            Access::Administrators
        } else {
            Access::Inherited
        })
    }

    fn others_may_write(&self, path: &WindowsPath) -> Result<bool, WindowsError> {
        let failed = failed("read the access of", path);
        let sddl = acl::read(path.as_str()).map_err(&failed)?;
        Ok(sddl::others_may_write(&sddl, &acl::own_identifier().map_err(&failed)?))
    }

    fn set_access(&self, path: &WindowsPath, access: Access) -> Result<(), WindowsError> {
        let set = match (access, self.kind(path)?) {
            (Access::Inherited, _) => acl::inherit(path.as_str()),
            (Access::Administrators, Some(EntryKind::Directory)) => {
                acl::protect(path.as_str(), sddl::ADMINISTRATORS_FOLDER)
            }
            (Access::Administrators, _) => acl::protect(path.as_str(), sddl::ADMINISTRATORS_FILE),
        };
        set.map_err(failed("set the access of", path))
    }
}
