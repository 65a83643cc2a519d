//! The Host Networking Service.
#![expect(unsafe_code, reason = "its library is there only with the containers feature")]

use std::ffi::{CStr, c_void};
use std::io;
use std::ptr::null_mut;

use serde::de::DeserializeOwned;
use windows_sys::Win32::Foundation::{ERROR_MOD_NOT_FOUND, FreeLibrary, HMODULE};
use windows_sys::Win32::System::LibraryLoader::{
    GetProcAddress, LOAD_LIBRARY_SEARCH_SYSTEM32, LoadLibraryExW,
};
use wmco_services::windows::WindowsError;

use super::failure::is;
use super::text::{from_pointer, wide};
use crate::hns::{Endpoint, Network, answer};

/// `HRESULT HNSCall(LPCWSTR method, LPCWSTR path, LPCWSTR request, LPWSTR *response)`.
type Call = unsafe extern "system" fn(*const u16, *const u16, *const u16, *mut *mut u16) -> i32;

/// `void CoTaskMemFree(LPVOID memory)`.
type Free = unsafe extern "system" fn(*mut c_void);

/// A library of Windows that is loaded.
struct Module(HMODULE);

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: the module is loaded, and who uses its functions keeps it.
        unsafe { FreeLibrary(self.0) };
    }
}

impl Module {
    fn load(name: &str) -> io::Result<Self> {
        let name = wide(name);
        // SAFETY: the name ends with a zero.
        let module =
            unsafe { LoadLibraryExW(name.as_ptr(), null_mut(), LOAD_LIBRARY_SEARCH_SYSTEM32) };
        if module.is_null() { Err(io::Error::last_os_error()) } else { Ok(Self(module)) }
    }

    fn function(&self, name: &CStr) -> io::Result<unsafe extern "system" fn() -> isize> {
        // SAFETY: the module is loaded and the name ends with a zero.
        let function = unsafe { GetProcAddress(self.0, name.as_ptr().cast()) };
        function.ok_or_else(io::Error::last_os_error)
    }
}

/// The service's functions, with the libraries that they are in.
struct Library {
    call: Call,
    free: Free,
    _modules: [Module; 2],
}

impl Library {
    /// `None` on a host without the containers feature, which has no such networks.
    fn load() -> io::Result<Option<Self>> {
        let service = match Module::load("vmcompute.dll") {
            Err(error) if is(&error, ERROR_MOD_NOT_FOUND) => return Ok(None),
            loaded => loaded?,
        };
        // It brings others along, and the daemon on a host at rest needs none of them.
        let memory = Module::load("combase.dll")?;
        let (call, free) = (service.function(c"HNSCall")?, memory.function(c"CoTaskMemFree")?);
        // SAFETY: the exported function has this type, see `Call`.
        let call =
            unsafe { std::mem::transmute::<unsafe extern "system" fn() -> isize, Call>(call) };
        // SAFETY: the exported function has this type, see `Free`.
        let free =
            unsafe { std::mem::transmute::<unsafe extern "system" fn() -> isize, Free>(free) };
        Ok(Some(Self { call, free, _modules: [service, memory] }))
    }

    fn ask<T: DeserializeOwned + Default>(
        &self,
        method: &str,
        path: &str,
    ) -> Result<T, WindowsError> {
        let failed = || format!("{} {path} of the host networking service", method.to_lowercase());
        let (method_text, path_text, request) = (wide(method), wide(path), wide(""));
        let mut response: *mut u16 = null_mut();
        // SAFETY: all texts end with a zero and outlive the call; `response` receives memory to free.
        let code = unsafe {
            (self.call)(
                method_text.as_ptr(),
                path_text.as_ptr(),
                request.as_ptr(),
                &raw mut response,
            )
        };
        // SAFETY: the answer is null or ends with a zero.
        let text = unsafe { from_pointer(response) };
        // SAFETY: the answer is null or was allocated for us.
        unsafe { (self.free)(response.cast()) };
        if code < 0 {
            return Err(WindowsError::other(failed(), io::Error::from_raw_os_error(code)));
        }
        answer(&text).map_err(|error| WindowsError::other(failed(), error))
    }
}

fn library() -> Result<Option<Library>, WindowsError> {
    Library::load().map_err(|error| WindowsError::other("reach the host networking service", error))
}

/// All networks.
pub(super) fn networks() -> Result<Vec<Network>, WindowsError> {
    library()?.map_or_else(|| Ok(Vec::new()), |library| library.ask("GET", "/networks/"))
}

/// Removes the networks of this name, their endpoints first; tells whether there was one.
pub(super) fn remove(name: &str) -> Result<bool, WindowsError> {
    let Some(library) = library()? else { return Ok(false) };
    let mut networks: Vec<Network> = library.ask("GET", "/networks/")?;
    networks.retain(|network| network.name == name);
    for network in &networks {
        let endpoints: Vec<Endpoint> = library.ask("GET", "/endpoints/")?;
        let its = |endpoint: &&Endpoint| endpoint.virtual_network.eq_ignore_ascii_case(&network.id);
        for endpoint in endpoints.iter().filter(its) {
            library.ask::<serde_json::Value>("DELETE", &format!("/endpoints/{}", endpoint.id))?;
        }
        library.ask::<serde_json::Value>("DELETE", &format!("/networks/{}", network.id))?;
    }
    Ok(!networks.is_empty())
}
