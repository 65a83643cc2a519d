//! What Windows' error codes mean to us.

use std::io::{self, ErrorKind};

use windows_sys::Win32::Foundation::{ERROR_LOCK_VIOLATION, ERROR_SHARING_VIOLATION};
use wmco_services::windows::WindowsError;

/// The error of a call on the file or folder `object`; `what` says what was tried.
pub(super) fn file(what: &str, object: &str, error: io::Error) -> WindowsError {
    let object = object.to_owned();
    if [ERROR_SHARING_VIOLATION, ERROR_LOCK_VIOLATION].into_iter().any(|code| is(&error, code)) {
        return WindowsError::Locked { object };
    }
    match error.kind() {
        ErrorKind::NotFound => WindowsError::Missing { object },
        ErrorKind::PermissionDenied => WindowsError::AccessDenied { object },
        ErrorKind::AlreadyExists => WindowsError::Exists { object },
        ErrorKind::DirectoryNotEmpty => WindowsError::DirectoryNotEmpty { object },
        ErrorKind::StorageFull => WindowsError::DiskFull { object },
        _ => WindowsError::other(format!("{what} {object}"), error),
    }
}

/// Whether Windows gave this code.
pub(super) fn is(error: &io::Error, code: u32) -> bool {
    error.raw_os_error().map(i32::cast_unsigned) == Some(code)
}

/// An error from the code that a call returned.
pub(super) fn from_code(code: u32) -> io::Error {
    io::Error::from_raw_os_error(code.cast_signed())
}
