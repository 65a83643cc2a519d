//! Processes of the host.
#![expect(unsafe_code, reason = "Windows has no other way to look at processes")]

use std::collections::BTreeSet;
use std::io;
use std::mem::zeroed;
use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle};
use std::time::Duration;

use windows_sys::Win32::Foundation::{
    ERROR_INVALID_PARAMETER, ERROR_NO_MORE_FILES, FILETIME, INVALID_HANDLE_VALUE, WAIT_OBJECT_0,
};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW, TH32CS_SNAPPROCESS,
};
use windows_sys::Win32::System::Threading::{
    GetProcessTimes, OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE,
    PROCESS_TERMINATE, QueryFullProcessImageNameW, TerminateProcess, WaitForSingleObject,
};

use wmco_core::winpath::WindowsPath;

use super::failure::is;
use super::text::narrow;

/// How long Windows may take to end a process that was told to.
const END: Duration = Duration::from_secs(10);

/// Exit code of what we end.
const ENDED: u32 = 1;

/// Longest image path that Windows has, in UTF-16 units.
const PATH_UNITS: usize = 32 * 1024;

/// A process that cannot be mistaken for a later one with the same number.
pub(super) struct Process {
    handle: OwnedHandle,
    id: u32,
}

impl Process {
    /// Opens a process; `None` when there is none of that number.
    pub(super) fn open(id: u32) -> io::Result<Option<Self>> {
        let rights = PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE | PROCESS_TERMINATE;
        // SAFETY: a plain call without pointers.
        let handle = unsafe { OpenProcess(rights, 0, id) };
        if handle.is_null() {
            let error = io::Error::last_os_error();
            return if is(&error, ERROR_INVALID_PARAMETER) { Ok(None) } else { Err(error) };
        }
        // SAFETY: the handle is open and nobody else's.
        Ok(Some(Self { handle: unsafe { OwnedHandle::from_raw_handle(handle) }, id }))
    }

    /// Waits until the process has ended; tells whether it has.
    pub(super) fn ended_within(&self, limit: Duration) -> bool {
        let milliseconds = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX - 1);
        // SAFETY: the handle is open while `self` lives.
        let state = unsafe { WaitForSingleObject(self.handle.as_raw_handle(), milliseconds) };
        state == WAIT_OBJECT_0
    }

    /// Ends the process and everything that it started. A process that has ended already is no error.
    pub(super) fn end_tree(&self) -> io::Result<()> {
        // Children that are found after their parent is gone could not be told from strangers.
        let children = self.children()?;
        self.end()?;
        children.iter().try_for_each(Self::end_tree)
    }

    fn end(&self) -> io::Result<()> {
        // SAFETY: the handle is open while `self` lives and has the right to terminate.
        let ok = unsafe { TerminateProcess(self.handle.as_raw_handle(), ENDED) };
        let refused = io::Error::last_os_error();
        if self.ended_within(END) {
            return Ok(());
        }
        Err(if ok == 0 { refused } else { io::ErrorKind::TimedOut.into() })
    }

    /// Processes that this one started and that still run.
    fn children(&self) -> io::Result<Vec<Self>> {
        let born = self.born()?;
        let mut children = Vec::new();
        for (id, parent) in all()? {
            if parent != self.id || id == self.id || id == std::process::id() {
                continue;
            }
            // Protected processes cannot be opened, and are not ours.
            let Ok(Some(child)) = Self::open(id) else { continue };
            // Windows uses numbers again: a child is younger than its parent.
            if child.born().is_ok_and(|child| child >= born) {
                children.push(child);
            }
        }
        Ok(children)
    }

    /// When the process started, in units of Windows.
    fn born(&self) -> io::Result<u64> {
        let empty = FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 };
        let (mut born, mut ended, mut kernel, mut user) = (empty, empty, empty, empty);
        // SAFETY: the handle is open and the four places are ours.
        let ok = unsafe {
            GetProcessTimes(
                self.handle.as_raw_handle(),
                &raw mut born,
                &raw mut ended,
                &raw mut kernel,
                &raw mut user,
            )
        };
        if ok == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(u64::from(born.dwHighDateTime) << 32 | u64::from(born.dwLowDateTime))
    }

    /// Path of the program.
    fn image(&self) -> io::Result<String> {
        let mut path = vec![0; PATH_UNITS];
        let mut units = u32::try_from(path.len()).unwrap_or(u32::MAX);
        // SAFETY: the handle is open, and the buffer is as long as `units` says.
        let ok = unsafe {
            QueryFullProcessImageNameW(
                self.handle.as_raw_handle(),
                0,
                path.as_mut_ptr(),
                &raw mut units,
            )
        };
        if ok == 0 { Err(io::Error::last_os_error()) } else { Ok(narrow(&path)) }
    }
}

/// Numbers of all processes, each with that of its parent.
fn all() -> io::Result<Vec<(u32, u32)>> {
    // SAFETY: a plain call without pointers.
    let snapshot = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0) };
    if snapshot == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle is open and nobody else's.
    let snapshot = unsafe { OwnedHandle::from_raw_handle(snapshot) };
    // SAFETY: the structure is plain numbers, for which zero is fine.
    let mut entry: PROCESSENTRY32W = unsafe { zeroed() };
    entry.dwSize = u32::try_from(size_of::<PROCESSENTRY32W>()).unwrap_or_default();
    let mut found = Vec::new();
    // SAFETY: the handle is open, and the entry says how big it is.
    let mut more = unsafe { Process32FirstW(snapshot.as_raw_handle(), &raw mut entry) };
    while more != 0 {
        found.push((entry.th32ProcessID, entry.th32ParentProcessID));
        // SAFETY: as above.
        more = unsafe { Process32NextW(snapshot.as_raw_handle(), &raw mut entry) };
    }
    let end = io::Error::last_os_error();
    if is(&end, ERROR_NO_MORE_FILES) || !found.is_empty() { Ok(found) } else { Err(end) }
}

/// Ends every process that runs one of `programs`, with its children, but never this one; tells how many
/// there were.
pub(super) fn end_all(programs: &BTreeSet<WindowsPath>) -> io::Result<usize> {
    let mut count = 0;
    for (id, _) in all()? {
        if id == std::process::id() {
            continue;
        }
        let Ok(Some(process)) = Process::open(id) else { continue };
        let image = process.image().ok().and_then(|path| path.parse().ok());
        if image.is_some_and(|image: WindowsPath| programs.contains(&image)) {
            process.end_tree()?;
            count += 1;
        }
    }
    Ok(count)
}
