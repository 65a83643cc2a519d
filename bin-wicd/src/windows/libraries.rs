//! Where this program takes its libraries from: the system's folder, and never its own.
//!
//! Windows looks for the libraries that a program names first in the program's own folder, where
//! somebody may have put another of that name. What a program's *load configuration* says holds for the
//! libraries that it is linked with, before any code of it runs; the call holds for those that come later.
//!
//! GNU's linker writes no load configuration, so `scripts/load-flags.sh` puts the address of the one here
//! into the header of the built program.
//!
//! Source: Microsoft's PE format, "The Load Configuration Structure", and `/DEPENDENTLOADFLAG`.
#![expect(unsafe_code, reason = "a section of its own, and a call of the Windows API")]

use std::hint::black_box;
use std::io;

use windows_sys::Win32::System::LibraryLoader::{
    LOAD_LIBRARY_SEARCH_SYSTEM32, SetDefaultDllDirectories,
};

/// The first version of the structure, of 112 bytes; Windows goes by its size.
#[repr(C)]
struct LoadConfiguration {
    size: u32,
    unused: [u32; 5],
    unused_sizes: [u64; 6],
    process_heap_flags: u32,
    csd_version: u16,
    dependent_load_flags: u16,
    unused_pointers: [u64; 4],
}

/// All flags fit in here, see the structure.
const FLAGS: u16 = {
    assert!(LOAD_LIBRARY_SEARCH_SYSTEM32 == 0x800, "the documented value");
    0x800
};

/// Size of the structure, which the compiler checks.
const SIZE: u32 = {
    assert!(size_of::<LoadConfiguration>() == 112, "the documented size");
    112
};

// SAFETY: nothing else is in this section, which holds plain data, and nothing else has this name, by
// which linkers that do write a load configuration find it.
#[unsafe(link_section = ".ldcfg")]
#[unsafe(export_name = "_load_config_used")]
#[used]
static LOAD_CONFIGURATION: LoadConfiguration = LoadConfiguration {
    size: SIZE,
    unused: [0; 5],
    unused_sizes: [0; 6],
    process_heap_flags: 0,
    csd_version: 0,
    dependent_load_flags: FLAGS,
    unused_pointers: [0; 4],
};

/// Takes all libraries that are loaded from now on from the system's folder.
pub(super) fn only_from_the_system() -> io::Result<()> {
    // So that no linker leaves it out.
    black_box(&LOAD_CONFIGURATION);
    // SAFETY: the call takes a number and touches nothing of ours.
    let ok = unsafe { SetDefaultDllDirectories(LOAD_LIBRARY_SEARCH_SYSTEM32) };
    if ok == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
