//! Calls of the Service Control Manager that `windows-service` does not offer: it quotes command
//! lines, cannot empty a list of dependencies, and does not list services.
#![expect(unsafe_code, reason = "raw calls on handles that windows-service owns")]

use std::io;
use std::ptr::{null, null_mut};

use windows_service::service::Service;
use windows_sys::Win32::Foundation::ERROR_MORE_DATA;
use windows_sys::Win32::System::Services::{
    ChangeServiceConfigW, CloseServiceHandle, ENUM_SERVICE_STATUS_PROCESSW, EnumServicesStatusExW,
    OpenSCManagerW, SC_ENUM_PROCESS_INFO, SC_MANAGER_CONNECT, SC_MANAGER_ENUMERATE_SERVICE,
    SERVICE_ERROR_IGNORE, SERVICE_STATE_ALL, SERVICE_WIN32, SERVICE_WIN32_OWN_PROCESS,
};
use wmco_services::windows::LOCAL_SYSTEM;

use crate::windows::failure::is;
use crate::windows::text::{from_pointer, wide};

/// Size of the buffer for the list of services; what does not fit is asked for again.
const LIST_BYTES: usize = 64 * 1024;

/// All services in any state: name, state as Windows numbers it, process.
pub(super) fn all() -> io::Result<Vec<(String, u32, u32)>> {
    // SAFETY: null means this host and the one database.
    let manager = unsafe {
        OpenSCManagerW(null(), null(), SC_MANAGER_CONNECT | SC_MANAGER_ENUMERATE_SERVICE)
    };
    if manager.is_null() {
        return Err(io::Error::last_os_error());
    }
    let mut services = Vec::new();
    let mut resume = 0;
    // Of 64-bit units, so that it is aligned for the structures.
    let mut buffer = vec![0_u64; LIST_BYTES / 8];
    let listed = loop {
        let (mut needed, mut count) = (0, 0);
        let bytes = u32::try_from(buffer.len() * 8).unwrap_or(u32::MAX);
        // SAFETY: the handle is open and the buffer is as long as `bytes` says.
        let ok = unsafe {
            EnumServicesStatusExW(
                manager,
                SC_ENUM_PROCESS_INFO,
                SERVICE_WIN32,
                SERVICE_STATE_ALL,
                buffer.as_mut_ptr().cast(),
                bytes,
                &raw mut needed,
                &raw mut count,
                &raw mut resume,
                null(),
            )
        };
        let error = io::Error::last_os_error();
        let more = ok == 0 && is(&error, ERROR_MORE_DATA);
        if ok == 0 && !more {
            break Err(error);
        }
        let first = buffer.as_ptr().cast::<ENUM_SERVICE_STATUS_PROCESSW>();
        for index in 0..count as usize {
            // SAFETY: the call has filled in `count` entries, whose names lie in the buffer.
            services.push(unsafe {
                let entry = first.add(index);
                let status = (*entry).ServiceStatusProcess;
                (from_pointer((*entry).lpServiceName), status.dwCurrentState, status.dwProcessId)
            });
        }
        if !more {
            break Ok(());
        }
        if count == 0 {
            buffer.resize(buffer.len() + (needed as usize).div_ceil(8), 0);
        }
    };
    // SAFETY: the handle is open and not used after.
    unsafe { CloseServiceHandle(manager) };
    listed.map(|()| services)
}

/// Makes a service have exactly this command line and these dependencies, run as LocalSystem in a
/// process of its own, start as `start` says and without trouble for the host, and be shown as `shown`.
pub(super) fn change(
    service: &Service,
    shown: &str,
    command: &str,
    dependencies: &[&str],
    start: u32,
) -> io::Result<()> {
    let command = wide(command);
    // Each name ends with a zero and the list with one more. An empty list takes two: a null pointer
    // would leave the list as it is.
    let mut list: Vec<u16> = dependencies.iter().flat_map(wide).collect();
    list.extend([0; 2]);
    let (account, password, shown) = (wide(LOCAL_SYSTEM), wide(""), wide(shown));
    // SAFETY: the handle is open while `service` lives; all texts end as the call asks for and
    // outlive it; null means to leave group and tag.
    let ok = unsafe {
        ChangeServiceConfigW(
            service.raw_handle(),
            SERVICE_WIN32_OWN_PROCESS,
            start,
            SERVICE_ERROR_IGNORE,
            command.as_ptr(),
            null(),
            null_mut(),
            list.as_ptr(),
            account.as_ptr(),
            password.as_ptr(),
            shown.as_ptr(),
        )
    };
    if ok == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
