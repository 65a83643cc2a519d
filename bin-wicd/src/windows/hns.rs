//! The Host Networking Service.
#![expect(unsafe_code, reason = "its library is there only with the containers feature")]

use std::io;
use std::ptr::null_mut;

use serde::de::DeserializeOwned;
use windows_sys::Win32::Foundation::{ERROR_MOD_NOT_FOUND, FreeLibrary, HMODULE};
use windows_sys::Win32::System::Com::CoTaskMemFree;
use windows_sys::Win32::System::LibraryLoader::{
    GetProcAddress, LOAD_LIBRARY_SEARCH_SYSTEM32, LoadLibraryExW,
};
use wmco_services::windows::WindowsError;

use super::failure::is;
use super::text::{from_pointer, wide};
use crate::hns::{Endpoint, Network, answer};

/// `HRESULT HNSCall(LPCWSTR method, LPCWSTR path, LPCWSTR request, LPWSTR *response)`.
type Call = unsafe extern "system" fn(*const u16, *const u16, *const u16, *mut *mut u16) -> i32;

/// The service's library.
struct Library {
    module: HMODULE,
    call: Call,
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: the module is loaded, and `call` is not used after.
        unsafe { FreeLibrary(self.module) };
    }
}

impl Library {
    /// `None` on a host without the containers feature, which has no such networks.
    fn load() -> io::Result<Option<Self>> {
        let name = wide("vmcompute.dll");
        // SAFETY: the name ends with a zero.
        let module =
            unsafe { LoadLibraryExW(name.as_ptr(), null_mut(), LOAD_LIBRARY_SEARCH_SYSTEM32) };
        if module.is_null() {
            let error = io::Error::last_os_error();
            return if is(&error, ERROR_MOD_NOT_FOUND) { Ok(None) } else { Err(error) };
        }
        // SAFETY: the module is loaded and the name ends with a zero.
        let Some(call) = (unsafe { GetProcAddress(module, c"HNSCall".as_ptr().cast()) }) else {
            let error = io::Error::last_os_error();
            // SAFETY: the module is loaded and not used after.
            unsafe { FreeLibrary(module) };
            return Err(error);
        };
        // SAFETY: the exported function has this type, see `Call`.
        let call =
            unsafe { std::mem::transmute::<unsafe extern "system" fn() -> isize, Call>(call) };
        Ok(Some(Self { module, call }))
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
        unsafe { CoTaskMemFree(response.cast()) };
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
