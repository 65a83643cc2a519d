//! Decides which paths can be ours on a host, whatever a record names.

use wmco_core::names::host;
use wmco_core::payload;
use wmco_core::winpath::WindowsPath;

use super::known;

/// Whether the path lies below our folders, in one of our folders below a shared one, or is one of the scripts that the
/// original operator puts into a shared folder.
pub(super) fn can_be_ours(path: &WindowsPath) -> bool {
    let below = |folder| path.is_within(&known(folder)) && *path != known(folder);
    let wholly = [host::CNI_STATE, host::KUBELET_STATE];
    let script = payload::scripts().any(|(script, _)| script == *path);
    [host::ROOT, host::LOGS].into_iter().any(below)
        || script
        || wholly.into_iter().any(|folder| path.is_within(&known(folder)))
}

/// Whether one of our folders is this folder or lies in it.
pub(super) fn is_above_ours(path: &WindowsPath) -> bool {
    let shared = [host::MANIFEST_SCRIPTS, host::CNI_STATE, host::KUBELET_STATE].map(known);
    host::DIRECTORIES.map(known).iter().chain(&shared).any(|ours| ours.is_within(path))
}
