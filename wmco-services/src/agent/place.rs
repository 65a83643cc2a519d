//! Creates folders and puts files in place.

use std::io;

use wmco_core::digest::Sha256;
use wmco_core::protocol::{Access, HostStep, staged_content};
use wmco_core::winpath::WindowsPath;

use super::state::Record;
use super::verified::Verified;
use super::{AgentError, staging};
use crate::windows::{EntryKind, Windows, WindowsError};

/// Creates a folder and its missing parents, and sets who may read it.
pub(super) fn directory(
    windows: &dyn Windows,
    path: &WindowsPath,
    access: Access,
) -> Result<bool, AgentError> {
    let made = make_all(windows, path)?;
    let open = windows.files().access(path)? != access;
    if open {
        windows.files().set_access(path, access)?;
    }
    Ok(made || open)
}

fn make_all(windows: &dyn Windows, path: &WindowsPath) -> Result<bool, AgentError> {
    if windows.files().kind(path)? == Some(EntryKind::Directory) {
        return Ok(false);
    }
    if let Some(parent) = path.parent() {
        make_all(windows, &parent)?;
    }
    Ok(windows.files().make_directory(path)?)
}

/// Puts staged content in place unless the file already has that content and is closed as required.
pub(super) fn file(
    windows: &dyn Windows,
    path: &WindowsPath,
    sha256: Sha256,
    access: Access,
    later: &[HostStep],
    record: &mut Record,
) -> Result<bool, AgentError> {
    let files = windows.files();
    let staged = staged_content(sha256);
    // A link to the right content does not count: the owner of its target can change the content.
    let there = files.kind(path)? == Some(EntryKind::File) && files.digest(path)? == Some(sha256);
    // A file that is more closed than required is right. A file that others could write to is replaced, not closed,
    // since they may still hold it open.
    let right = there
        && !record.doubts(path)
        && (access == Access::Inherited || files.access(path)? == Access::Administrators);
    if !right {
        if let Some(parent) = path.parent() {
            make_all(windows, &parent)?;
        }
        unpack(windows, path, &staged, sha256, access)?;
        record.believe(path);
    }
    let needed_again = later
        .iter()
        .any(|step| matches!(step, HostStep::PlaceFile { sha256: other, .. } if *other == sha256));
    if !needed_again {
        staging::drop_file(windows, &staged);
    }
    Ok(!right)
}

fn unpack(
    windows: &dyn Windows,
    path: &WindowsPath,
    staged: &WindowsPath,
    sha256: Sha256,
    access: Access,
) -> Result<(), AgentError> {
    let packed = match windows.files().open(staged) {
        Ok(packed) => packed,
        Err(WindowsError::Missing { .. }) => {
            return Err(AgentError::Unstaged { path: path.clone() });
        }
        Err(error) => return Err(error.into()),
    };
    let unusable = |error: io::Error| WindowsError::other(format!("unpack {staged}"), error);
    let unpacked = staging::unpack(packed).map_err(unusable)?;
    match windows.files().write(path, access, &mut Verified::new(unpacked, sha256)) {
        Ok(()) => Ok(()),
        Err(source @ WindowsError::Content { .. }) => {
            staging::drop_file(windows, staged);
            Err(AgentError::Damaged { path: path.clone(), source })
        }
        Err(error) => Err(error.into()),
    }
}
