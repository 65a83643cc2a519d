//! Small synchronous traits for everything that the agent and the daemon need from Windows.
//!
//! An executor gets a [`Windows`] and reaches everything through it. `bin-wicd` implements the traits on Windows,
//! [`FakeWindows`](crate::fake::FakeWindows) in memory.
//!
//! # Guarantees of implementations
//! - Calls are short, except those that take a [`Wait`], which end within about its limit.
//! - A request for a state that already holds is no error (`remove` of a missing object, `make` of an existing one);
//!   the result says whether anything changed.
//! - Names of services, variables and paths ignore case, as Windows does.

mod environment;
mod error;
mod files;
mod logs;
mod machine;
mod powershell;
mod roots;
mod services;
mod wait;

pub use environment::{Environment, Inherited};
pub use error::WindowsError;
pub use files::{Entry, EntryKind, Files, TEMPORARY_SUFFIX, digest_of};
pub use logs::{FileIdentity, LogFile, Logs};
pub use machine::{DefaultRoute, HttpAnswer, HttpRequest, Interface, Machine, Route};
pub use powershell::{PowerShell, ScriptOutput};
pub use roots::RootStore;
pub use services::{
    BadServiceName, LOCAL_SYSTEM, Recovery, Service, ServiceConfig, ServiceManager, ServiceName,
    ServiceStatus, StartType,
};
pub use wait::{Progress, Wait};

/// A Windows host.
pub trait Windows: Send + Sync {
    /// The file system.
    fn files(&self) -> &dyn Files;

    /// Log files that programs write to.
    fn logs(&self) -> &dyn Logs;

    /// The Service Control Manager.
    fn services(&self) -> &dyn ServiceManager;

    /// System-wide environment variables.
    fn environment(&self) -> &dyn Environment;

    /// The machine's trusted root certificates.
    fn roots(&self) -> &dyn RootStore;

    /// PowerShell.
    fn powershell(&self) -> &dyn PowerShell;

    /// The machine as a whole.
    fn machine(&self) -> &dyn Machine;
}
