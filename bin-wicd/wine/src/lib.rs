//! What the stand-ins of the Wine suite and the tests say to each other.
//!
//! A stand-in reads its settings in [`FOLDER`] and leaves there, in the [journal](mod@journal), what
//! it saw. All of it is plain files, so that tests on the other side of Wine read and write them
//! directly. [`hands`] is what a person at the host would do, over a pipe.
//!
//! # What stands in for what
//! - `stub-service`: every managed service, containerd and the kubelet among them;
//! - `powershell`, `dism`: the programs of Windows, which Wine lacks;
//! - `bcryptprimitives.c`: a library of Windows that Wine 8 lacks.

#![forbid(unsafe_code)]

pub mod hands;
pub mod journal;
pub mod told;

/// Where stand-ins and tests meet.
pub const FOLDER: &str = r"C:\stand-ins";
