//! What the agent and the daemon need from Windows, as small synchronous traits.
//!
//! An executor gets one [`Windows`] and reaches everything through it. `bin-wicd` implements the
//! traits on the real thing, [`FakeWindows`](crate::fake::FakeWindows) in memory.
//!
//! # Guarantees that implementations give
//! - Calls are short, except those that take a [`Wait`], which end within about its limit.
//! - What is asked for and is so already is no error (`remove` of what is not there, `make` of what
//!   is); the answer tells whether anything changed.
//! - Names of services, variables and paths ignore case, as Windows does.

mod environment;
mod error;
mod files;
mod machine;
mod powershell;
mod roots;
mod services;
mod wait;

pub use environment::{Environment, Inherited};
pub use error::WindowsError;
pub use files::{Entry, EntryKind, Files, TEMPORARY_SUFFIX, digest_of};
pub use machine::{DefaultRoute, HttpAnswer, HttpRequest, Interface, Machine};
pub use powershell::{PowerShell, ScriptOutput};
pub use roots::RootStore;
pub use services::{
    BadServiceName, Glimpse, LOCAL_SYSTEM, Recovery, Service, ServiceConfig, ServiceManager,
    ServiceName, StartType,
};
pub use wait::{Progress, Wait};

/// One Windows host.
pub trait Windows: Send + Sync {
    /// The file system.
    fn files(&self) -> &dyn Files;

    /// The Service Control Manager.
    fn services(&self) -> &dyn ServiceManager;

    /// System-wide environment variables.
    fn environment(&self) -> &dyn Environment;

    /// The machine's trusted root certificates.
    fn roots(&self) -> &dyn RootStore;

    /// Scripts.
    fn powershell(&self) -> &dyn PowerShell;

    /// The machine itself.
    fn machine(&self) -> &dyn Machine;
}
