//! The folder in which uploads wait.

use jiff::Timestamp;
use wmco_core::digest::Sha256;
use wmco_core::names::host;
use wmco_core::protocol::Access;
use wmco_core::winpath::WindowsPath;

use super::{AgentError, known, runs_from_staging};
use crate::limits;
use crate::windows::{EntryKind, Files, Windows, WindowsError};

/// An agent that was just uploaded takes care that nobody else can read or exchange what comes next,
/// nor what is there already.
///
/// Closing a folder does not close what somebody else owns in it, so all of that becomes ours, too.
/// The staging folder comes last: as long as it is open, the rest may be.
pub(super) fn protect(windows: &dyn Windows) -> Result<(), AgentError> {
    let (root, staging) = (known(host::ROOT), known(host::STAGING));
    let files = windows.files();
    if !runs_from_staging(windows)? || (is_closed(files, &root)? && is_closed(files, &staging)?) {
        return Ok(());
    }
    close(files, &root)?;
    for entry in files.walk(&root)? {
        // What a link points to need not be ours.
        if entry.kind != EntryKind::Link && entry.path != staging {
            close(files, &entry.path)?;
        }
    }
    close(files, &staging)
}

fn is_closed(files: &dyn Files, path: &WindowsPath) -> Result<bool, WindowsError> {
    Ok(files.access(path)? == Access::Administrators)
}

fn close(files: &dyn Files, path: &WindowsPath) -> Result<(), AgentError> {
    let closed = match is_closed(files, path) {
        Ok(false) => files.set_access(path, Access::Administrators),
        closed => closed.map(drop),
    };
    match closed {
        // It went meanwhile.
        Err(WindowsError::Missing { .. }) => Ok(()),
        closed => Ok(closed?),
    }
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
