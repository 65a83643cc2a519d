//! Moving things, and telling whether a program has them open.
#![expect(unsafe_code, reason = "sharing modes and plain moves are the Windows API's only")]

use std::io;
use std::os::windows::io::{FromRawHandle as _, OwnedHandle};
use std::ptr::{null, null_mut};

use windows_sys::Win32::Foundation::{ERROR_SHARING_VIOLATION, GENERIC_READ, INVALID_HANDLE_VALUE};
use windows_sys::Win32::Storage::FileSystem::{
    CreateFileW, FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT, FILE_SHARE_READ,
    MoveFileExW, OPEN_EXISTING,
};

use super::failure;
use super::text::wide;

/// Moves a file, folder or link within its disk, to where nothing stands.
pub(super) fn rename(from: &str, to: &str) -> io::Result<()> {
    let (from, to) = (wide(from), wide(to));
    // SAFETY: both texts end with a zero. Without flags nothing is replaced or copied.
    let ok = unsafe { MoveFileExW(from.as_ptr(), to.as_ptr(), 0) };
    if ok == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Whether a program has it open for writing, moving or removing it.
///
/// It is opened in a way that shares reading only, which Windows refuses as long as anybody has the
/// other rights on it. A program that runs from it has none.
/// Source: Windows documentation, "Creating and Opening Files".
pub(super) fn is_held(path: &str) -> io::Result<bool> {
    let path = wide(path);
    // SAFETY: `path` ends with a zero; the unused arguments are null, which the call allows.
    let handle = unsafe {
        CreateFileW(
            path.as_ptr(),
            GENERIC_READ,
            FILE_SHARE_READ,
            null(),
            OPEN_EXISTING,
            FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT,
            null_mut(),
        )
    };
    if handle == INVALID_HANDLE_VALUE {
        let error = io::Error::last_os_error();
        return if failure::is(&error, ERROR_SHARING_VIOLATION) { Ok(true) } else { Err(error) };
    }
    // SAFETY: the handle is open and nobody else's.
    drop(unsafe { OwnedHandle::from_raw_handle(handle) });
    Ok(false)
}
