//! Scripts.

use wmco_services::windows::{PowerShell, ScriptOutput, Wait, WindowsError};

use super::programs;

/// Where Windows PowerShell is, below the system folder.
const PROGRAM: &str = r"WindowsPowerShell\v1.0\powershell.exe";

/// The PowerShell that comes with Windows.
#[derive(Default)]
pub(super) struct WindowsPowerShell;

impl PowerShell for WindowsPowerShell {
    fn run(&self, script: &str, wait: Wait<'_>) -> Result<ScriptOutput, WindowsError> {
        let arguments = [
            "-NoLogo",
            "-NoProfile",
            "-NonInteractive",
            "-ExecutionPolicy",
            "Bypass",
            "-OutputFormat",
            "Text",
            "-Command",
            script,
        ];
        programs::run(PROGRAM, &arguments, wait)
    }
}
