//! PowerShell, which runs the scripts of the services ConfigMap.

use super::{Wait, WindowsError};

/// The output of a script.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ScriptOutput {
    /// Exit code; 0 is success.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error; never part of a value.
    pub stderr: String,
}

/// Windows PowerShell at its path below the system folder, without profile, not interactive, with execution policy
/// `Bypass`. Source: `docs/contract/wicd.md`, WICD76.
pub trait PowerShell: Send + Sync {
    /// Runs a script text and returns its output, whatever its exit code is.
    ///
    /// # Errors
    /// [`WindowsError::TimedOut`] or [`WindowsError::Interrupted`], after the process and its children were ended.
    fn run(&self, script: &str, wait: Wait<'_>) -> Result<ScriptOutput, WindowsError>;
}
