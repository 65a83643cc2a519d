//! The folder for uploads.

use std::collections::BTreeSet;
use std::io::{self, Read};

use jiff::Timestamp;
use wmco_core::digest::Sha256;
use wmco_core::names::host;
use wmco_core::protocol::{Access, staged_agent};
use wmco_core::winpath::WindowsPath;

use super::verified::Verified;
use super::{AgentError, known, state};
use crate::limits;
use crate::windows::{EntryKind, Files, Windows, WindowsError, digest_of};

/// Copies the running agent, which was uploaded, to the closed staging folder for the commands that follow, unless it
/// is installed or staged.
pub(super) fn put_own(windows: &dyn Windows) -> Result<(), AgentError> {
    let (files, machine) = (windows.files(), windows.machine());
    let own = own_digest(windows)?;
    let doubted = state::read(windows)?.is_some_and(|state| state.doubts(&known(host::AGENT)));
    let place = staged_agent(own);
    if (!doubted && files.digest(&known(host::AGENT))? == Some(own))
        || files.digest(&place)? == Some(own)
    {
        return Ok(());
    }
    let mut content = Verified::new(machine.open_executable()?, own);
    Ok(files.write(&place, Access::Administrators, &mut content)?)
}

/// Returns the digest of the running program.
pub(super) fn own_digest(windows: &dyn Windows) -> Result<Sha256, WindowsError> {
    let mut own = windows.machine().open_executable()?;
    digest_of(&mut own).map_err(|error| WindowsError::other("read the running program", error))
}

/// Returns digests of staged files whose content matches their names. Other files are removed and uploaded again.
pub(super) fn contents(windows: &dyn Windows) -> Result<BTreeSet<Sha256>, WindowsError> {
    let files = windows.files();
    let own = windows.machine().executable()?;
    let mut right = BTreeSet::new();
    for entry in files.walk(&known(host::STAGING))? {
        let (path, name) = (&entry.path, entry.path.file_name());
        let (wanted, found) = if let Some(wanted) = content_named(name) {
            (wanted, unpacked_digest(files, path))
        } else if let Some(wanted) = agent_named(name) {
            (wanted, files.digest(path))
        } else {
            continue;
        };
        match found {
            Ok(Some(found)) if found == wanted => {
                right.insert(wanted);
            }
            // Deleted meanwhile, or being written.
            Ok(None) | Err(WindowsError::Locked { .. } | WindowsError::Missing { .. }) => {}
            Ok(Some(_)) | Err(_) if Some(path) != own.as_ref() => drop_file(windows, path),
            Ok(Some(_)) | Err(_) => {}
        }
    }
    Ok(right)
}

fn unpacked_digest(files: &dyn Files, path: &WindowsPath) -> Result<Option<Sha256>, WindowsError> {
    let unusable = |error: io::Error| WindowsError::other(format!("unpack {path}"), error);
    let mut content = unpack(files.open(path)?).map_err(unusable)?;
    digest_of(&mut content).map(Some).map_err(unusable)
}

/// Unpacks a staged file.
pub(super) fn unpack(
    packed: Box<dyn Read + Send>,
) -> io::Result<zstd::stream::read::Decoder<'static, io::BufReader<Box<dyn Read + Send>>>> {
    let mut unpacked = zstd::stream::read::Decoder::new(packed)?;
    unpacked.window_log_max(limits::ZSTD_WINDOW_LOG)?;
    Ok(unpacked)
}

/// Removes a staged file that is no longer needed.
pub(super) fn drop_file(windows: &dyn Windows, path: &WindowsPath) {
    if let Err(error) = windows.files().remove_file(path) {
        // The next sweep finds it.
        tracing::debug!(%path, %error, "cannot remove a staged file");
    }
}

/// Removes agents other than the running one, and files older than [`limits::STAGED_AGE`].
pub(super) fn sweep(windows: &dyn Windows, now: Timestamp) -> Result<(), WindowsError> {
    let own = windows.machine().executable()?;
    for entry in windows.files().walk(&known(host::STAGING))? {
        let stale = now.duration_since(entry.modified) > limits::STAGED_AGE;
        let other_agent = agent_named(entry.path.file_name()).is_some();
        let ours = own.as_ref() == Some(&entry.path);
        if entry.kind != EntryKind::Directory && !ours && (stale || other_agent) {
            drop_file(windows, &entry.path);
        }
    }
    Ok(())
}

/// Parses the digest in the name of a staged agent, see [`staged_agent`].
fn agent_named(name: &str) -> Option<Sha256> {
    name.strip_prefix("wicd-")?.strip_suffix(".exe")?.parse().ok()
}

/// Parses the digest in the name of staged content, see [`staged_content`](wmco_core::protocol::staged_content).
fn content_named(name: &str) -> Option<Sha256> {
    name.strip_suffix(".zst")?.parse().ok()
}
