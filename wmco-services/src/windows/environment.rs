//! System-wide environment variables.

use std::collections::BTreeSet;
use std::fmt;

use super::WindowsError;

/// The variables that every process on the host gets, as kept in the registry key
/// `HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Control\Session Manager\Environment`.
///
/// Services see a change only after the host has restarted. Values can hold passwords: neither errors
/// nor logs show them. Source: `spec/wicd.md`, section 10.
pub trait Environment: Send + Sync {
    /// The unexpanded value; `None` when it is not set. What is set and is no text, so that no program sees
    /// it, reads as empty.
    fn get(&self, name: &str) -> Result<Option<String>, WindowsError>;

    /// Sets the value, whatever was there and of whatever type.
    fn set(&self, name: &str, value: &str) -> Result<(), WindowsError>;

    /// Removes the variable; tells whether it was there.
    fn remove(&self, name: &str) -> Result<bool, WindowsError>;

    /// What the Service Control Manager gives every service of this variable.
    fn inherited(&self, name: &str) -> Result<Inherited, WindowsError>;

    /// Variables whose value differs from the one that they had when the host started, as far as they
    /// were changed through this trait. For processes that do not know what is [inherited](Self::inherited).
    ///
    /// An implementation keeps what is inherited, or else the value from before the first change, in a
    /// volatile registry key, which the next start empties, so that no memory of a process is needed.
    fn changed_since_boot(&self) -> Result<BTreeSet<String>, WindowsError>;
}

/// What services get of a variable. The manager reads the variables when the host starts and gives all
/// services that run as the local system what it read then.
#[derive(Clone, Default, Eq, PartialEq)]
pub enum Inherited {
    /// It cannot be told: the asking process was not started by the manager, or the variable says nothing
    /// about other services.
    #[default]
    Unknown,
    /// They do not get it.
    Nothing,
    /// They get this value. It may be secret.
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
