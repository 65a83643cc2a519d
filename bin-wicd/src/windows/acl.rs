//! Who may read a file or folder.
#![expect(unsafe_code, reason = "security descriptors are reached through the Windows API only")]

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle};
use std::ptr::{null, null_mut};

use windows_sys::Win32::Foundation::{GENERIC_WRITE, INVALID_HANDLE_VALUE, LocalFree};
use windows_sys::Win32::Security::Authorization::{
    ConvertSecurityDescriptorToStringSecurityDescriptorW, ConvertSidToStringSidW,
    ConvertStringSecurityDescriptorToSecurityDescriptorW, GetNamedSecurityInfoW, SDDL_REVISION_1,
    SE_FILE_OBJECT, SetNamedSecurityInfoW,
};
use windows_sys::Win32::Security::{
    ACL, DACL_SECURITY_INFORMATION, GetSecurityDescriptorDacl, GetSecurityDescriptorOwner,
    GetTokenInformation, OWNER_SECURITY_INFORMATION, PROTECTED_DACL_SECURITY_INFORMATION,
    PSECURITY_DESCRIPTOR, PSID, SECURITY_ATTRIBUTES, TOKEN_QUERY, TOKEN_USER, TokenUser,
    UNPROTECTED_DACL_SECURITY_INFORMATION,
};
use windows_sys::Win32::Storage::FileSystem::{
    CREATE_NEW, CreateDirectoryW, CreateFileW, FILE_ATTRIBUTE_NORMAL,
};

use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

use super::failure::from_code;
use super::text::{from_pointer, wide};

/// Memory that Windows gave us to free.
struct Local(*mut c_void);

impl Drop for Local {
    fn drop(&mut self) {
        // SAFETY: the pointer came from a call that hands its memory to us, and is freed once.
        unsafe { LocalFree(self.0) };
    }
}

/// A security descriptor from its text form.
fn descriptor(sddl: &str) -> io::Result<Local> {
    let text = wide(sddl);
    let mut made: PSECURITY_DESCRIPTOR = null_mut();
    // SAFETY: `text` ends with a zero and `made` receives memory that `Local` frees.
    let ok = unsafe {
        ConvertStringSecurityDescriptorToSecurityDescriptorW(
            text.as_ptr(),
            SDDL_REVISION_1,
            &raw mut made,
            null_mut(),
        )
    };
    if ok == 0 { Err(io::Error::last_os_error()) } else { Ok(Local(made)) }
}

/// The owner and the list of `path`, as text.
pub(super) fn read(path: &str) -> io::Result<String> {
    let what = OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION;
    let path = wide(path);
    let mut seen: PSECURITY_DESCRIPTOR = null_mut();
    // SAFETY: `path` ends with a zero; the unused results are null, which the call allows.
    let code = unsafe {
        GetNamedSecurityInfoW(
            path.as_ptr(),
            SE_FILE_OBJECT,
            what,
            null_mut(),
            null_mut(),
            null_mut(),
            null_mut(),
            &raw mut seen,
        )
    };
    if code != 0 {
        return Err(from_code(code));
    }
    let seen = Local(seen);
    let mut text: *mut u16 = null_mut();
    // SAFETY: `seen` holds a descriptor that Windows just made; `text` receives memory to free.
    let ok = unsafe {
        ConvertSecurityDescriptorToStringSecurityDescriptorW(
            seen.0,
            SDDL_REVISION_1,
            what,
            &raw mut text,
            null_mut(),
        )
    };
    if ok == 0 {
        return Err(io::Error::last_os_error());
    }
    let text = Local(text.cast());
    // SAFETY: the call above made text that ends with a zero.
    Ok(unsafe { from_pointer(text.0.cast()) })
}

/// Security identifier of the user that this runs as, as text.
pub(super) fn own_identifier() -> io::Result<String> {
    let mut opened = null_mut();
    // SAFETY: the handle of the current process needs no closing, and `opened` receives a new one.
    if unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &raw mut opened) } == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle was just opened and is nobody else's.
    let token = unsafe { OwnedHandle::from_raw_handle(opened) };
    // The identifier, 68 bytes at most, lies behind the head that points to it.
    let mut user = [TOKEN_USER::default(); 8];
    let mut length = 0;
    // SAFETY: `user` has the length that is passed, and is aligned as its first element has to be.
    let ok = unsafe {
        GetTokenInformation(
            token.as_raw_handle(),
            TokenUser,
            user.as_mut_ptr().cast(),
            u32::try_from(size_of_val(&user)).unwrap_or_default(),
            &raw mut length,
        )
    };
    let mut text: *mut u16 = null_mut();
    // SAFETY: the head of `user` was filled in and points into it; `text` receives memory to free.
    if ok == 0 || unsafe { ConvertSidToStringSidW(user[0].User.Sid, &raw mut text) } == 0 {
        return Err(io::Error::last_os_error());
    }
    let text = Local(text.cast());
    // SAFETY: the call above made text that ends with a zero.
    Ok(unsafe { from_pointer(text.0.cast()) })
}

/// Sets owner and list of `path` as `sddl` says, and takes nothing from the folder above.
pub(super) fn protect(path: &str, sddl: &str) -> io::Result<()> {
    let descriptor = descriptor(sddl)?;
    let (mut owner, mut list): (PSID, *mut ACL) = (null_mut(), null_mut());
    let (mut defaulted, mut present) = (0, 0);
    // SAFETY: the descriptor is valid, and the results point into it while it lives.
    let ok = unsafe {
        GetSecurityDescriptorOwner(descriptor.0, &raw mut owner, &raw mut defaulted) != 0
            && GetSecurityDescriptorDacl(
                descriptor.0,
                &raw mut present,
                &raw mut list,
                &raw mut defaulted,
            ) != 0
    };
    if !ok {
        return Err(io::Error::last_os_error());
    }
    let what = OWNER_SECURITY_INFORMATION
        | DACL_SECURITY_INFORMATION
        | PROTECTED_DACL_SECURITY_INFORMATION;
    set(path, what, owner, list)
}

/// Lets `path` be as open as the folder above.
pub(super) fn inherit(path: &str) -> io::Result<()> {
    let empty = descriptor("D:")?;
    let (mut list, mut present, mut defaulted): (*mut ACL, _, _) = (null_mut(), 0, 0);
    // SAFETY: the descriptor is valid, and the list points into it while it lives.
    let ok = unsafe {
        GetSecurityDescriptorDacl(empty.0, &raw mut present, &raw mut list, &raw mut defaulted)
    };
    if ok == 0 {
        return Err(io::Error::last_os_error());
    }
    let what = DACL_SECURITY_INFORMATION | UNPROTECTED_DACL_SECURITY_INFORMATION;
    set(path, what, null_mut(), list)
}

fn set(path: &str, what: u32, owner: PSID, list: *const ACL) -> io::Result<()> {
    let path = wide(path);
    // SAFETY: `path` ends with a zero; owner and list are null or live in the caller's descriptor.
    let code = unsafe {
        SetNamedSecurityInfoW(path.as_ptr(), SE_FILE_OBJECT, what, owner, null_mut(), list, null())
    };
    if code == 0 { Ok(()) } else { Err(from_code(code)) }
}

/// Makes a folder that is not there yet; nobody else could ever open it.
pub(super) fn create_directory(path: &str, sddl: &str) -> io::Result<()> {
    let descriptor = descriptor(sddl)?;
    let attributes = SECURITY_ATTRIBUTES {
        nLength: u32::try_from(size_of::<SECURITY_ATTRIBUTES>()).unwrap_or_default(),
        lpSecurityDescriptor: descriptor.0,
        bInheritHandle: 0,
    };
    let path = wide(path);
    // SAFETY: `path` ends with a zero; the attributes and their descriptor outlive the call.
    let ok = unsafe { CreateDirectoryW(path.as_ptr(), &raw const attributes) };
    if ok == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes a file that is not there yet and opens it for writing; with `sddl` nobody else could ever
/// open it.
pub(super) fn create_file(path: &str, sddl: Option<&str>) -> io::Result<File> {
    let descriptor = sddl.map(descriptor).transpose()?;
    let attributes = SECURITY_ATTRIBUTES {
        nLength: u32::try_from(size_of::<SECURITY_ATTRIBUTES>()).unwrap_or_default(),
        lpSecurityDescriptor: descriptor.as_ref().map_or(null_mut(), |made| made.0),
        bInheritHandle: 0,
    };
    let path = wide(path);
    // SAFETY: `path` ends with a zero; the attributes and their descriptor outlive the call.
    let handle = unsafe {
        CreateFileW(
            path.as_ptr(),
            GENERIC_WRITE,
            0,
            &raw const attributes,
            CREATE_NEW,
            FILE_ATTRIBUTE_NORMAL,
            null_mut(),
        )
    };
    if handle == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle is open, a file's, and nobody else's.
    Ok(unsafe { File::from_raw_handle(handle) })
}
