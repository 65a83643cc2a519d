//! System-wide environment variables.

use std::collections::BTreeSet;
use std::fmt;

use super::WindowsError;

/// The variables that every process on the host inherits, stored in the registry key
/// `HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Control\Session Manager\Environment`.
///
/// Services see a change only after the host has restarted. Values can hold passwords: neither errors
/// nor logs show them. Source: `docs/contract/wicd.md`, WICD60 to WICD62.
pub trait Environment: Send + Sync {
    /// Returns the unexpanded value; `None` if the variable is not set. A value that is no text, which no program sees,
    /// is returned as empty.
    fn get(&self, name: &str) -> Result<Option<String>, WindowsError>;

    /// Sets the value, replacing one of any type.
    fn set(&self, name: &str, value: &str) -> Result<(), WindowsError>;

    /// Removes the variable; returns whether it existed.
    fn remove(&self, name: &str) -> Result<bool, WindowsError>;

    /// Returns the value of this variable that every service inherits from the Service Control Manager.
    fn inherited(&self, name: &str) -> Result<Inherited, WindowsError>;

    /// Returns the variables that this trait has changed since the host started and that differ from their value at the
    /// start. For processes that do not know the [inherited](Self::inherited) value.
    ///
    /// An implementation stores the inherited value, or else the value before the first change, in a volatile registry
    /// key, which the next start empties, so that no process has to remember it.
    fn changed_since_boot(&self) -> Result<BTreeSet<String>, WindowsError>;
}

/// The value of a variable that services inherit. The manager reads the variables when the host starts and passes those
/// values to all services that run as the local system.
#[derive(Clone, Default, Eq, PartialEq)]
pub enum Inherited {
    /// Unknown: the calling process was not started by the manager, or its own value of the variable does not show that
    /// of other services.
    #[default]
    Unknown,
    /// Services do not inherit the variable.
    Nothing,
    /// Services inherit this value. It may be secret.
    Value(String),
}

impl fmt::Debug for Inherited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "Unknown",
            Self::Nothing => "Nothing",
            Self::Value(_) => "Value(..)",
        })
    }
}
