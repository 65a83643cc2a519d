//! The folder in which uploads wait.

use jiff::Timestamp;
use wmco_core::digest::Sha256;
use wmco_core::names::host;
use wmco_core::protocol::Access;
use wmco_core::winpath::WindowsPath;

use super::{AgentError, known, runs_from_staging};
use crate::limits;
use crate::windows::{EntryKind, Windows, WindowsError};

/// An agent that was just uploaded takes care that nobody else can read or exchange what comes next.
pub(super) fn protect(windows: &dyn Windows) -> Result<(), AgentError> {
    if !runs_from_staging(windows)? {
        return Ok(());
    }
    for folder in [known(host::ROOT), known(host::STAGING)] {
        if windows.files().access(&folder)? != Access::Administrators {
            windows.files().set_access(&folder, Access::Administrators)?;
        }
    }
    Ok(())
}

/// Removes one staged file that is not needed any more.
pub(super) fn drop_file(windows: &dyn Windows, path: &WindowsPath) {
    if let Err(error) = windows.files().remove_file(path) {
        // The next sweep finds it.
        tracing::debug!(%path, %error, "cannot remove a staged file");
    }
}

/// Removes agents other than the running one, and everything that has waited too long.
pub(super) fn sweep(windows: &dyn Windows, now: Timestamp) -> Result<(), WindowsError> {
    let own = windows.machine().executable()?;
    for entry in windows.files().walk(&known(host::STAGING))? {
        let stale = now.duration_since(entry.modified) > limits::STAGED_AGE;
        let other_agent = is_agent(entry.path.file_name());
        if entry.kind != EntryKind::Directory && entry.path != own && (stale || other_agent) {
            drop_file(windows, &entry.path);
        }
    }
    Ok(())
}

/// Whether a staged file is a whole agent, see [`staged_agent`](wmco_core::protocol::staged_agent).
fn is_agent(name: &str) -> bool {
    let digest = name.strip_prefix("wicd-").and_then(|name| name.strip_suffix(".exe"));
    digest.is_some_and(|digest| digest.parse::<Sha256>().is_ok())
}
