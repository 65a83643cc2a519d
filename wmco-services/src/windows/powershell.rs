//! Scripts that the services ConfigMap asks for.

use super::{Wait, WindowsError};

/// What a script gave.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ScriptOutput {
    /// Exit code; 0 is success.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error; never part of a value.
    pub stderr: String,
}

/// Windows PowerShell, without profile, not interactive, with execution policy `Bypass`, from its
/// place below the system folder. Source: `spec/wicd.md`, sections 13.5 and 23.7.
pub trait PowerShell: Send + Sync {
    /// Runs a script text and returns its output, whatever its exit code is.
    ///
    /// # Errors
    /// [`WindowsError::TimedOut`] or [`WindowsError::Interrupted`], after the process and its children
    /// were ended.
    fn run(&self, script: &str, wait: Wait<'_>) -> Result<ScriptOutput, WindowsError>;
}
