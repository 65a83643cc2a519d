//! Log files that programs have open.
//!
//! The folders may belong to others, who could put links there. So each folder on the way is held open, which
//! keeps it from being moved, while a file in it is opened; and what was opened is looked at, not its name.
#![expect(unsafe_code, reason = "identity and number of names are the Windows API's only")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::windows::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::os::windows::io::AsRawHandle as _;

use jiff::Timestamp;
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT,
    FILE_LIST_DIRECTORY, FILE_READ_ATTRIBUTES, FILE_SHARE_DELETE, FILE_SHARE_READ,
    FILE_SHARE_WRITE, GetFileInformationByHandle,
};
use wmco_core::winpath::WindowsPath;
use wmco_services::windows::{EntryKind, FileIdentity, Files as _, LogFile, Logs, WindowsError};

use super::{failure, files};

/// How much is copied at once.
const PIECE_BYTES: usize = 256 * 1024;

/// Opens a link itself, and folders, too.
const PLAIN: u32 = FILE_FLAG_OPEN_REPARSE_POINT | FILE_FLAG_BACKUP_SEMANTICS;

/// What programs that have the file open, or open it, may do with it.
const SHARED: u32 = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

/// Logs on the disks of this host.
#[derive(Default)]
pub(super) struct DiskLogs;

fn failed<'a>(
    what: &'a str,
    path: &'a WindowsPath,
) -> impl Fn(io::Error) -> WindowsError + use<'a> {
    move |error| failure::file(what, path.as_str(), error)
}

/// Describes an open file or folder.
fn describe(path: &WindowsPath, file: &File) -> io::Result<LogFile> {
    let mut seen = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the handle is open as long as `file` lives, and `seen` receives the answer.
    let ok = unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut seen) };
    if ok == 0 {
        return Err(io::Error::last_os_error());
    }
    let whole = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    let metadata = file.metadata()?;
    let modified = metadata.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
    Ok(LogFile {
        path: path.clone(),
        kind: files::kind(&metadata),
        identity: FileIdentity {
            volume: seen.dwVolumeSerialNumber.into(),
            index: whole(seen.nFileIndexHigh, seen.nFileIndexLow),
        },
        bytes: metadata.file_size(),
        hard_links: seen.nNumberOfLinks,
        modified: modified.unwrap_or(Timestamp::UNIX_EPOCH),
    })
}

/// The folder and those above it, held so that nobody can put anything else in their place; `None` when
/// one of them is missing.
fn hold(folder: &WindowsPath) -> Result<Option<Vec<File>>, WindowsError> {
    let mut held = Vec::new();
    let mut next = Some(folder.clone());
    while let Some(path) = next {
        next = path.parent();
        if next.is_none() {
            break; // the drive itself
        }
        let mut options = OpenOptions::new();
        // A right that counts for sharing: without deletion shared nobody moves the folder.
        options.access_mode(FILE_LIST_DIRECTORY | FILE_READ_ATTRIBUTES);
        options.share_mode(FILE_SHARE_READ | FILE_SHARE_WRITE).custom_flags(PLAIN);
        let opened = match options.open(path.as_str()) {
            Ok(opened) => opened,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("hold the folder", &path)(error)),
        };
        let metadata = opened.metadata().map_err(failed("look at", &path))?;
        if files::kind(&metadata) != EntryKind::Directory {
            return Err(refused(&path, "it is a link or a file in the place of a folder"));
        }
        held.push(opened);
    }
    Ok(Some(held))
}

fn hold_above(path: &WindowsPath) -> Result<Option<Vec<File>>, WindowsError> {
    path.parent().map_or(Ok(None), |folder| hold(&folder))
}

fn refused(path: &WindowsPath, why: &'static str) -> WindowsError {
    WindowsError::other(format!("work on the log {path}"), io::Error::other(why))
}

/// Opens what stands at `path`, links not followed.
fn open(path: &WindowsPath, write: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(write).share_mode(SHARED).custom_flags(PLAIN).open(path.as_str())
}

/// Copies from where `log` stands to its end, with what is written meanwhile, until it is longer than
/// `most_length`.
fn copy_on(log: &mut File, copy: &mut File, most_length: u64) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = log.read(&mut piece)?;
        if read == 0 || log.metadata()?.len() > most_length {
            return Ok(());
        }
        copy.write_all(piece.get(..read).unwrap_or_default())?;
    }
}

impl Logs for DiskLogs {
    fn names(&self, folder: &WindowsPath) -> Result<Vec<String>, WindowsError> {
        let Some(_held) = hold(folder)? else { return Ok(Vec::new()) };
        let entries = fs::read_dir(folder.as_str()).map_err(failed("list", folder))?;
        let names = entries.map(|entry| entry.map(|entry| entry.file_name().into_string().ok()));
        let names: io::Result<Vec<Option<String>>> = names.collect();
        Ok(names.map_err(failed("list", folder))?.into_iter().flatten().collect())
    }

    fn stat(&self, path: &WindowsPath) -> Result<Option<LogFile>, WindowsError> {
        let mut options = OpenOptions::new();
        options.access_mode(FILE_READ_ATTRIBUTES).share_mode(SHARED).custom_flags(PLAIN);
        match options.open(path.as_str()) {
            Ok(file) => describe(path, &file).map(Some).map_err(failed("look at", path)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("look at", path)(error)),
        }
    }

    fn begins_with_zeros(&self, path: &WindowsPath) -> Result<bool, WindowsError> {
        let Some(_held) = hold_above(path)? else { return Ok(false) };
        let mut file = open(path, false).map_err(failed("open", path))?;
        let seen = describe(path, &file).map_err(failed("look at", path))?;
        let mut first = [1];
        if seen.kind == EntryKind::File {
            let read = file.read(&mut first);
            read.map_err(failed("read", path))?;
        }
        Ok(first == [0])
    }

    fn link(&self, path: &WindowsPath, target: &WindowsPath) -> Result<(), WindowsError> {
        // Not beside it first: a name of a file that a program has open is not moved.
        files::Disk.remove_file(path)?;
        // Wine only says that it makes symbolic links.
        std::os::windows::fs::symlink_file(target.as_str(), path.as_str())
            .and_then(|()| fs::symlink_metadata(path.as_str()).map(drop))
            .or_else(|_| fs::hard_link(target.as_str(), path.as_str()))
            .map_err(failed("make the link", path))
    }

    fn copy_and_truncate(
        &self,
        log: &LogFile,
        copy: &WindowsPath,
        most_bytes: u64,
        most_growth: u64,
    ) -> Result<bool, WindowsError> {
        let path = &log.path;
        let Some(_held) = hold_above(path)? else {
            return Err(WindowsError::Missing { object: path.to_string() });
        };
        let mut file = open(path, true).map_err(failed("open", path))?;
        let now = describe(path, &file).map_err(failed("look at", path))?;
        if (now.kind, now.identity, now.hard_links)
            != (EntryKind::File, log.identity, log.hard_links)
        {
            return Err(refused(path, "it is another file than before"));
        }
        let mut options = OpenOptions::new();
        let new = options.write(true).create_new(true).custom_flags(FILE_FLAG_OPEN_REPARSE_POINT);
        let made = new.open(copy.as_str());
        let copied = made.and_then(|mut made| {
            file.seek(SeekFrom::Start(now.bytes.saturating_sub(most_bytes)))?;
            copy_on(&mut file, &mut made, now.bytes.saturating_add(most_growth))
        });
        match copied {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::StorageFull => {
                // Whatever was copied is in the way.
                self.remove(copy)?;
                file.set_len(0).map_err(failed("cut", path))?;
                return Ok(false);
            }
            Err(error) => return Err(failed("copy", path)(error)),
        }
        file.set_len(0).map_err(failed("cut", path))?;
        Ok(true)
    }

    fn remove(&self, path: &WindowsPath) -> Result<bool, WindowsError> {
        let Some(_held) = hold_above(path)? else { return Ok(false) };
        let metadata = match fs::symlink_metadata(path.as_str()) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(failed("look at", path)(error)),
        };
        if files::kind(&metadata) != EntryKind::File {
            return Err(refused(path, "it is no file"));
        }
        // Removes a name, whatever stands there by now, and never follows it.
        fs::remove_file(path.as_str()).map(|()| true).map_err(failed("remove", path))
    }
}
