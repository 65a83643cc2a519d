//! The record of what we placed on the host, written before the files are.

use wmco_core::names::host;
use wmco_core::payload;
use wmco_core::protocol::{Access, HostState, HostStep};
use wmco_core::text::chain;
use wmco_core::winpath::WindowsPath;

use super::{AgentError, known, ours};
use crate::limits;
use crate::windows::{EntryKind, Windows, WindowsError};

/// The record while a plan is carried out.
#[derive(Debug)]
pub(super) struct Record {
    /// The record on disk; `None` on a host without one.
    pub(super) saved: Option<HostState>,
    /// The record to be written.
    now: HostState,
}

impl Record {
    /// Removes deleted paths from the record. The next change writes it; a record that names too much is harmless.
    pub(super) fn forget(&mut self, path: &WindowsPath) {
        self.now.files.retain(|file| !file.is_within(path));
        self.now.doubted.retain(|file| !file.is_within(path));
        self.now.directories.retain(|folder| !folder.is_within(path));
    }

    /// Reads the record on disk, or creates a new one.
    pub(super) fn read(windows: &dyn Windows) -> Result<Self, AgentError> {
        let saved = read(windows)?;
        let now = match &saved {
            Some(state) => state.clone(),
            None => left_by_the_original(windows)?,
        };
        Ok(Self { saved, now })
    }

    /// Changes the record on disk; returns whether anything changed.
    pub(super) fn change(
        &mut self,
        windows: &dyn Windows,
        change: impl FnOnce(&mut HostState),
    ) -> Result<bool, AgentError> {
        let before = self.now.clone();
        change(&mut self.now);
        if self.now == before {
            return Ok(false);
        }
        self.save(windows).map(|()| true)
    }

    /// Whether the file is not trusted, whatever its content.
    pub(super) fn doubts(&self, path: &WindowsPath) -> bool {
        self.now.doubted.contains(path)
    }

    /// Notes that the file was rewritten.
    pub(super) fn believe(&mut self, path: &WindowsPath) {
        self.now.doubted.remove(path);
    }

    /// Saves which files were rewritten. If that fails, they are rewritten once more.
    pub(super) fn note_believed(&mut self, windows: &dyn Windows) {
        let Some(saved) = &self.saved else { return };
        if saved.doubted == self.now.doubted {
            return;
        }
        if let Err(error) = self.save(windows) {
            tracing::warn!(error = %chain(&error), "cannot note which files were rewritten");
        }
    }

    fn save(&mut self, windows: &dyn Windows) -> Result<(), AgentError> {
        if self.saved.as_ref() == Some(&self.now) {
            return Ok(());
        }
        windows.files().make_directory(&known(host::ROOT))?;
        let json = serde_json::to_vec_pretty(&self.now)
            .map_err(|error| WindowsError::other("write the state file", error))?;
        let file = known(host::STATE_FILE);
        windows.files().write(&file, Access::Administrators, &mut json.as_slice())?;
        self.saved = Some(self.now.clone());
        Ok(())
    }
}

/// Reads the record on disk; `None` if there is none or it is damaged.
///
/// Others may have written the record before us, so paths that cannot be ours are left out. A root that was moved away
/// took its record with it.
pub(super) fn read(windows: &dyn Windows) -> Result<Option<HostState>, WindowsError> {
    let content = windows.files().read(&known(host::STATE_FILE), limits::JSON_BYTES)?;
    let state = content.map(|json| serde_json::from_slice(&json)).transpose();
    let state: Option<HostState> = state.unwrap_or_else(|error| {
        tracing::warn!(%error, "{} is damaged and counts as missing", host::STATE_FILE);
        None
    });
    Ok(state.map(|mut state| {
        state.files.retain(ours::can_be_ours);
        state.directories.retain(|path| ours::can_be_ours(path) || ours::is_above_ours(path));
        state.quarantined.retain(|found| found.folder.is_within(&known(host::QUARANTINE)));
        state
    }))
}

/// Finds the files that the original operator left outside our root, of which it keeps no record. Once recorded, its
/// scripts are removed when no release needs them, and their folder when the node leaves and the folder is empty.
pub(super) fn left_by_the_original(windows: &dyn Windows) -> Result<HostState, WindowsError> {
    let mut left = HostState::default();
    for (script, _) in payload::scripts() {
        if windows.files().kind(&script)? == Some(EntryKind::File) {
            left.directories.extend(script.parent());
            left.files.insert(script);
        }
    }
    // The module is a public sample, which people copy too, so alone it is no evidence.
    let module = known(host::HNS_MODULE);
    if left.files.iter().all(|script| script.file_name() == module.file_name()) {
        left = HostState::default();
    }
    Ok(left)
}

/// Records everything that `steps` will create and that is not recorded yet, in one write.
pub(super) fn record_ahead(
    windows: &dyn Windows,
    steps: &[HostStep],
) -> Result<Record, AgentError> {
    let mut record = Record::read(windows)?;
    let mut makes = false;
    for step in steps {
        let (file, folder) = match step {
            HostStep::PlaceFile { path, .. } => (Some(path.clone()), path.parent()),
            HostStep::EnsureDirectory { path, .. } => (None, Some(path.clone())),
            HostStep::InstallAgent => (Some(known(host::AGENT)), None),
            // Services create their own files in folders that they create on the way.
            HostStep::Bootstrap { .. } => (None, Some(known(host::KUBELET_STATE))),
            HostStep::JoinCluster { .. }
            | HostStep::RemoveFile { .. }
            | HostStep::RemoveDirectory { .. }
            // That file belongs to the host and stays when the node leaves.
            | HostStep::EnsureAuthorizedKeys { .. }
            | HostStep::EnableContainers
            | HostStep::RenameComputer { .. }
            | HostStep::StopKubelet
            | HostStep::RemoveDaemon
            | HostStep::RemoveServices { .. }
            | HostStep::EnsureDaemon { .. }
            | HostStep::RemoveNetwork { .. }
            | HostStep::RemoveInstallation
            | HostStep::Restart => continue,
        };
        makes = true;
        record.now.files.extend(file);
        let mut next = folder;
        while let Some(folder) = next {
            if !record.now.directories.contains(&folder) && windows.files().kind(&folder)?.is_none()
            {
                record.now.directories.insert(folder.clone());
            }
            next = folder.parent();
        }
    }
    if makes {
        record.save(windows)?;
    }
    Ok(record)
}
