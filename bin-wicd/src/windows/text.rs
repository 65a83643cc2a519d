//! Text as Windows takes it: UTF-16 with a zero at the end.
#![expect(unsafe_code, reason = "text that Windows allocated is read through a pointer")]

use std::ffi::OsStr;
use std::os::windows::ffi::OsStrExt as _;

/// `text` with a zero at the end.
pub(super) fn wide(text: impl AsRef<OsStr>) -> Vec<u16> {
    text.as_ref().encode_wide().chain(Some(0)).collect()
}

/// The text that a buffer holds up to its first zero.
pub(super) fn narrow(buffer: &[u16]) -> String {
    let end = buffer.iter().position(|unit| *unit == 0).unwrap_or(buffer.len());
    String::from_utf16_lossy(buffer.get(..end).unwrap_or_default())
}

/// The text at `start`; empty for a null pointer.
///
/// # Safety
/// `start` is null or points to text that ends with a zero and stays unchanged during the call.
pub(super) unsafe fn from_pointer(start: *const u16) -> String {
    if start.is_null() {
        return String::new();
    }
    let mut length = 0;
    // SAFETY: the caller promises a zero at the end, and nothing behind it is read.
    while unsafe { *start.add(length) } != 0 {
        length += 1;
    }
    // SAFETY: the loop above has read exactly these units.
    String::from_utf16_lossy(unsafe { std::slice::from_raw_parts(start, length) })
}
