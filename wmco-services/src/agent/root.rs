//! Takes over the root folder, so that only administrators may write below it.
//!
//! On a default Windows any user may create `C:\\k` before us, put programs, libraries and links in it, own them, and
//! keep them open. So closing a root that others may write to is not enough. If no service runs from it, it is moved
//! away as a whole and created again. If services run from it, the original operator's or ours after somebody opened
//! it, foreign files are moved away ([`quarantine`]), and files with our names are recorded as doubted until they are
//! rewritten.
//!
//! The staging folder is created last: while it is missing or open, the takeover may be incomplete.

use std::collections::BTreeSet;

use jiff::Timestamp;
use wmco_core::names::host;
use wmco_core::protocol::{Access, Quarantined};
use wmco_core::text::chain;
use wmco_core::winpath::WindowsPath;

use super::state::Record;
use super::{AgentError, known, quarantine};
use crate::windows::{Entry, EntryKind, Files, TEMPORARY_SUFFIX, Windows, WindowsError};

/// Most moved paths that are reported by name.
const NAMED_AT_MOST: usize = 5;

/// Name of the old root in the quarantine.
const ROOT_NAME: &str = "k";

/// Whether the operator uploaded the running agent in this connection: it does not run from below the root.
pub(super) fn is_uploaded(windows: &dyn Windows) -> Result<bool, AgentError> {
    let own = windows.machine().executable()?;
    Ok(own.is_none_or(|own| !own.is_within(&known(host::ROOT))))
}

/// Whether only administrators may write below the root, and a takeover was completed.
pub(super) fn is_closed(files: &dyn Files) -> Result<bool, WindowsError> {
    Ok(is_closed_folder(files, &known(host::ROOT))?
        && is_closed_folder(files, &known(host::STAGING))?)
}

/// Whether the path is a folder, not a link to a folder, that only administrators may write to.
pub(super) fn is_closed_folder(
    files: &dyn Files,
    path: &WindowsPath,
) -> Result<bool, WindowsError> {
    Ok(files.kind(path)? == Some(EntryKind::Directory)
        && files.access(path)? == Access::Administrators)
}

/// Closes the root unless it is already closed.
pub(super) fn take_over(windows: &dyn Windows, now: Timestamp) -> Result<(), AgentError> {
    let files = windows.files();
    if is_closed(files)? {
        return Ok(());
    }
    let (root, aside) = (known(host::ROOT), found(host::ROOT)?);
    let in_use = programs_in_use(windows)?;
    if in_use.is_none() && !is_closed_folder(files, &root)? {
        set_aside(files, &root, &aside)?;
    }
    match files.kind(&root)? {
        None => files.make_private_directory(&root)?,
        Some(EntryKind::Directory) => close(files, &root)?,
        // Services run through it, so it may be intended.
        Some(EntryKind::File | EntryKind::Link) => return Err(AgentError::RootIsNoFolder),
    }
    clear(windows, &in_use.unwrap_or_default(), &aside, now)?;
    close_all(files)?;
    files.make_private_directory(&known(host::STAGING))?;
    Ok(())
}

/// Temporary name of an entry that was in the way, until it is moved to the quarantine.
fn found(path: &str) -> Result<WindowsPath, WindowsError> {
    format!("{path}{}", host::FOUND_SUFFIX)
        .parse()
        .map_err(|bad| WindowsError::other(format!("move {path} away"), bad))
}

/// Programs below the root that services run, and files that their commands name; `None` without such a service. Only
/// administrators can create services. Folders in a command, such as the daemon's certificates, are left out.
fn programs_in_use(windows: &dyn Windows) -> Result<Option<BTreeSet<WindowsPath>>, AgentError> {
    let files = windows.files();
    let root = known(host::ROOT);
    let below = format!("{}\\", host::ROOT.to_ascii_lowercase());
    let mut programs = None;
    for service in windows.services().list()? {
        let command = service.config.command;
        if command.to_ascii_lowercase().contains(&below) {
            let words = command.split_whitespace().map(|word| word.trim_matches('"'));
            let paths = words.filter_map(|word| word.parse::<WindowsPath>().ok());
            let programs: &mut BTreeSet<_> = programs.get_or_insert_default();
            for path in paths.filter(|path| path.is_within(&root)) {
                if files.kind(&path)? != Some(EntryKind::Directory) {
                    programs.insert(path);
                }
            }
        }
    }
    Ok(programs)
}

/// Moves away the root. An empty folder is evidence of nothing and is removed.
fn set_aside(files: &dyn Files, root: &WindowsPath, aside: &WindowsPath) -> Result<(), AgentError> {
    match files.kind(root)? {
        None => return Ok(()),
        Some(EntryKind::Directory) => match files.remove_directory(root) {
            Ok(_) => return Ok(()),
            Err(WindowsError::DirectoryNotEmpty { .. }) => {}
            Err(error) => return Err(error.into()),
        },
        Some(EntryKind::File | EntryKind::Link) => {}
    }
    Ok(files.rename(root, aside)?)
}

/// Moves foreign entries to the quarantine and records which files are ours by name only.
fn clear(
    windows: &dyn Windows,
    in_use: &BTreeSet<WindowsPath>,
    aside: &WindowsPath,
    now: Timestamp,
) -> Result<(), AgentError> {
    let files = windows.files();
    let (root, all) = (known(host::ROOT), known(host::QUARANTINE));
    if files.kind(&all)?.is_some() && !is_closed_folder(files, &all)? {
        files.rename(&all, &found(host::QUARANTINE)?)?;
    }
    // The record is written before anything is moved, so nothing may block its path.
    for text in [host::STATE_FILE.to_owned(), format!("{}{TEMPORARY_SUFFIX}", host::STATE_FILE)] {
        let aside = found(&text)?;
        let path = text.parse().map_err(|bad| WindowsError::other("find the record", bad))?;
        if matches!(files.kind(&path)?, Some(EntryKind::Directory | EntryKind::Link)) {
            files.rename(&path, &aside)?;
        }
    }
    let entries = files.walk_around(&root, Some(&all))?;
    let sorted = quarantine::sort(&entries, in_use);
    let folder = quarantine::folder(now)?;
    let mut moves: Vec<(WindowsPath, WindowsPath)> = Vec::new();
    for path in &sorted.foreign {
        let below = path.as_str().get(root.as_str().len()..).unwrap_or_default();
        let to = format!("{folder}{below}").parse();
        moves.push((path.clone(), to.map_err(|bad| WindowsError::other("move a file", bad))?));
    }
    let mut first = sorted.foreign;
    let mut things = first.len();
    if files.kind(aside)?.is_some() {
        let to = folder.join(ROOT_NAME);
        moves.push((aside.clone(), to.map_err(|bad| WindowsError::other("move the root", bad))?));
        let inside = files.walk(aside)?;
        things += inside.len().max(1);
        let shown = |entry: &Entry| {
            let below = entry.path.as_str().get(aside.as_str().len()..).unwrap_or_default();
            format!("{root}{below}").parse().ok()
        };
        first.extend(inside.iter().filter_map(shown));
        if inside.is_empty() {
            first.push(root.clone());
        }
    }
    first.truncate(NAMED_AT_MOST);
    let quarantined = Quarantined { folder: folder.clone(), things, first };
    if moves.is_empty() && sorted.ours.is_empty() {
        return Ok(());
    }
    // Recorded before a move can fail or be interrupted.
    Record::read(windows)?.change(windows, |state| {
        state.doubted.extend(sorted.ours);
        if !moves.is_empty() {
            state.quarantined.retain(|other| other.folder != quarantined.folder);
            state.quarantined.push(quarantined);
        }
    })?;
    if !moves.is_empty() {
        for private in [&all, &folder] {
            if files.kind(private)?.is_none() {
                files.make_private_directory(private)?;
            }
        }
        for (from, to) in moves {
            move_away(files, &from, &to)?;
        }
    }
    Ok(())
}

fn move_away(files: &dyn Files, from: &WindowsPath, to: &WindowsPath) -> Result<(), AgentError> {
    let mut missing: Vec<WindowsPath> = Vec::new();
    let mut above = to.parent();
    while let Some(folder) = above {
        if files.kind(&folder)?.is_some() {
            break;
        }
        above = folder.parent();
        missing.push(folder);
    }
    for folder in missing.iter().rev() {
        files.make_private_directory(folder)?;
    }
    match files.rename(from, to) {
        Ok(()) => {
            tracing::warn!(%from, %to, "moved away what is not ours");
            // A file keeps its owner wherever it lies, but other users must not read it.
            let is_link = files.kind(to)? == Some(EntryKind::Link);
            let closed = if is_link { Ok(()) } else { close(files, to) };
            if let Err(error) = closed {
                tracing::warn!(%to, error = %chain(&error), "it is as open as it was");
            }
            Ok(())
        }
        // Deleted meanwhile.
        Err(WindowsError::Missing { .. }) => Ok(()),
        Err(WindowsError::Locked { .. }) => Err(AgentError::Held { path: from.clone() }),
        Err(error) => Err(error.into()),
    }
}

/// Closes all remaining entries below the root: closing a folder does not close entries in it that others own, and does
/// not close handles that are already open.
fn close_all(files: &dyn Files) -> Result<(), AgentError> {
    let (root, quarantine) = (known(host::ROOT), known(host::QUARANTINE));
    let entries = files.walk_around(&root, Some(&quarantine))?;
    let inside = entries.iter().filter(|entry| entry.kind != EntryKind::Link);
    let inside = inside.map(|entry| &entry.path).filter(|path| **path != quarantine);
    for path in std::iter::once(&root).chain(inside) {
        close(files, path)?;
        // From now on nobody else can open it.
        if files.is_held(path)? {
            return Err(AgentError::Held { path: path.clone() });
        }
    }
    Ok(())
}

fn close(files: &dyn Files, path: &WindowsPath) -> Result<(), AgentError> {
    let closed = match files.access(path) {
        Ok(Access::Administrators) => Ok(()),
        Ok(Access::Inherited) => files.set_access(path, Access::Administrators),
        Err(error) => Err(error),
    };
    match closed {
        // Deleted meanwhile.
        Err(WindowsError::Missing { .. }) => Ok(()),
        closed => Ok(closed?),
    }
}
