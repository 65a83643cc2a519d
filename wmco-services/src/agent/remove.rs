//! Steps that remove things, in the end everything that we put on the host.

use std::collections::BTreeSet;

use wmco_core::names::host;
use wmco_core::protocol::ServicesData;
use wmco_core::text::chain;
use wmco_core::winpath::WindowsPath;

use super::state::{self, Record};
use super::{AgentError, known, ours};
use crate::lifecycle;
use crate::manifest::Manifest;
use crate::windows::{EntryKind, Files, TEMPORARY_SUFFIX, Windows, WindowsError};

pub(super) fn file(windows: &dyn Windows, path: &WindowsPath) -> Result<bool, AgentError> {
    check_ours(path)?;
    let files = windows.files();
    let changed = remove_with_leftover(files, path)?;
    // A registry has its own folder, which is removed with its file.
    let registries = known(host::REGISTRIES);
    if let Some(folder) = path.parent().filter(|it| it.is_within(&registries) && *it != registries)
    {
        unless_in_use(files, &folder)?;
    }
    Ok(changed)
}

pub(super) fn directory(windows: &dyn Windows, path: &WindowsPath) -> Result<bool, AgentError> {
    check_ours(path)?;
    Ok(windows.files().remove_tree(path)?)
}

fn check_ours(path: &WindowsPath) -> Result<(), AgentError> {
    if ours::can_be_ours(path) { Ok(()) } else { Err(AgentError::NotOurs { path: path.clone() }) }
}

/// Removes a file, and the temporary file that a process that died may have left beside it.
fn remove_with_leftover(files: &dyn Files, path: &WindowsPath) -> Result<bool, WindowsError> {
    if let Ok(leftover) = format!("{path}{TEMPORARY_SUFFIX}").parse() {
        files.remove_file(&leftover)?;
    }
    files.remove_file(path)
}

/// Removes services, variables and containers. Imported roots stay: the next daemon finds them, and each change of them
/// costs a restart.
pub(super) fn services(
    windows: &dyn Windows,
    manifests: &[ServicesData],
) -> Result<bool, AgentError> {
    let read = |data: &ServicesData| {
        let manifest = Manifest::parse(data).inspect_err(|error| {
            let error = chain(error);
            tracing::warn!(
                error,
                "a services ConfigMap cannot be read, what only it names is left"
            );
        });
        manifest.ok()
    };
    let manifests: Vec<Manifest> = manifests.iter().filter_map(read).collect();
    Ok(lifecycle::remove_services(windows, &manifests)?)
}

/// Removes imported roots, and our files and folders except the running agent and its folder.
pub(super) fn installation(windows: &dyn Windows, record: &Record) -> Result<bool, AgentError> {
    let files = windows.files();
    let root = known(host::ROOT);
    // Roots go first, since one of our files records them.
    let mut changed = lifecycle::remove_roots(windows)?;
    let recorded = record.saved.clone();

    // Files in folders that we share with others. The original operator keeps no record.
    let outside: BTreeSet<WindowsPath> = match &recorded {
        Some(state) => state.files.clone(),
        None => state::left_by_the_original(windows)?.files,
    };
    for path in outside.iter().filter(|path| !path.is_within(&root)) {
        changed |= remove_with_leftover(files, path)?;
    }
    for folder in wholly_ours(recorded.as_ref().map(|state| &state.directories)) {
        changed |= files.remove_tree(&folder)?;
    }
    changed |= remove_empty(files, recorded.as_ref().map(|state| &state.directories))?;

    changed |= empty_root(windows, &root)?;
    // The record goes last, so that an interrupted removal still knows what is left.
    changed |= remove_with_leftover(files, &known(host::STATE_FILE))?;
    Ok(changed)
}

/// Folders below shared ones that only we write to. On a host with a record only those that we created; on a host that
/// the original operator configured all that it is known to create.
fn wholly_ours(recorded: Option<&BTreeSet<WindowsPath>>) -> Vec<WindowsPath> {
    let logs = known(host::LOGS);
    let log_folders = host::DIRECTORIES
        .map(known)
        .into_iter()
        .filter(|path| *path != logs && path.is_within(&logs));
    log_folders
        .filter(|path| recorded.is_none_or(|made| made.contains(path)))
        .chain([known(host::CNI_STATE), known(host::KUBELET_STATE)])
        .collect()
}

/// Removes shared folders that we created, if they are empty.
fn remove_empty(
    files: &dyn Files,
    recorded: Option<&BTreeSet<WindowsPath>>,
) -> Result<bool, WindowsError> {
    let root = known(host::ROOT);
    let mut made: Vec<WindowsPath> = match recorded {
        Some(made) => made.iter().filter(|path| !path.is_within(&root)).cloned().collect(),
        None => vec![known(host::MANIFEST_SCRIPTS), known(host::LOGS)],
    };
    // Deeper folders go first.
    made.sort_by_key(|path| std::cmp::Reverse(path.as_str().matches('\\').count()));
    let mut changed = false;
    for folder in made {
        changed |= unless_in_use(files, &folder)?;
    }
    Ok(changed)
}

/// Removes a folder if it is empty.
fn unless_in_use(files: &dyn Files, folder: &WindowsPath) -> Result<bool, WindowsError> {
    match files.remove_directory(folder) {
        Err(WindowsError::DirectoryNotEmpty { .. }) => Ok(false),
        removed => removed,
    }
}

/// Empties our root folder except for the running agent, the staging folder, the record and the quarantine.
fn empty_root(windows: &dyn Windows, root: &WindowsPath) -> Result<bool, AgentError> {
    let files = windows.files();
    let own = windows.machine().executable()?;
    let (staging, quarantine) = (known(host::STAGING), known(host::QUARANTINE));
    let mut changed = false;
    for entry in files.walk_around(root, Some(&quarantine))? {
        let folder = entry.path.parent();
        let spared = Some(&entry.path) == own.as_ref()
            || entry.path == known(host::STATE_FILE)
            || entry.path == staging
            || entry.path == quarantine;
        let on_top = folder.as_ref() == Some(root);
        let in_staging = folder.as_ref() == Some(&staging);
        if spared || !(on_top || in_staging) {
            continue;
        }
        changed |= match entry.kind {
            EntryKind::Directory => files.remove_tree(&entry.path)?,
            EntryKind::File | EntryKind::Link => files.remove_file(&entry.path)?,
        };
    }
    Ok(changed)
}
