//! Decides which files may stay below a root that was open, and which are moved away.
//!
//! | entry | place | effect |
//! | --- | --- | --- |
//! | programs, libraries, scripts, and files that select the library to load | any name that is not ours | moved away |
//! | any file that is not ours | a folder of which a program reads every file, such as that of static pods | moved away |
//! | links, except the daemon's current certificate | anywhere | moved away themselves, without their targets |
//! | entries of another kind at the path of our file or folder, or of its temporary file | | moved away |
//! | uploads | the staging folder | moved away with it |
//! | our programs, and programs that a service runs | | stay, are doubted, and are rewritten |
//! | other files: certificates, settings, output of services | | stay and are closed; ours are rewritten |
//!
//! Other files stay because services may use them, and only the programs that they belong to run or read them.

use std::collections::BTreeSet;

use jiff::Timestamp;
use wmco_core::names::host;
use wmco_core::payload;
use wmco_core::winpath::WindowsPath;

use super::known;
use crate::windows::{Entry, EntryKind, TEMPORARY_SUFFIX, WindowsError};

/// Extensions of files that Windows runs or loads, or that decide what it loads.
const LOADED: [&str; 26] = [
    "bat", "cmd", "com", "config", "cpl", "dll", "drv", "exe", "hta", "js", "jse", "lnk", "local",
    "manifest", "msi", "mui", "ocx", "pif", "ps1", "psd1", "psm1", "scr", "sys", "vbe", "vbs",
    "wsf",
];

/// Our files besides the payload. We or programs on this host write their content.
const FILES: [&str; 14] = [
    host::BOOTSTRAP_CA,
    host::BOOTSTRAP_KUBECONFIG,
    host::CA_BUNDLE,
    host::CLOUD_CONFIG,
    host::CNI_CONFIG_FILE,
    host::CREDENTIAL_PROVIDER_CONFIG,
    host::IMPORTED_CERTIFICATES,
    host::KUBELET_CA,
    host::KUBELET_CONFIG,
    host::KUBELET_KUBECONFIG,
    host::RELEASED_SERVICES,
    host::STATE_FILE,
    host::VARIABLES_RECORD,
    host::WICD_KUBECONFIG,
];

/// The entries below the root, sorted.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Sorted {
    /// Paths to move away; none of them lies inside another.
    pub(super) foreign: Vec<WindowsPath>,
    /// Files with our names.
    pub(super) ours: BTreeSet<WindowsPath>,
}

/// Sorts the entries below the root. In `entries` a folder precedes its content; `in_use` are files of services.
pub(super) fn sort(entries: &[Entry], in_use: &BTreeSet<WindowsPath>) -> Sorted {
    let ours: BTreeSet<WindowsPath> = payload::all()
        .map(payload::PayloadFile::destination)
        .chain(FILES.map(known))
        .chain(in_use.iter().cloned())
        .collect();
    let folders: BTreeSet<WindowsPath> = host::DIRECTORIES.map(known).into();
    let mut sorted = Sorted::default();
    for Entry { path, kind, .. } in entries {
        if sorted.foreign.iter().any(|folder| path.is_within(folder)) {
            continue;
        }
        let foreign = match kind {
            kind if is_in_the_way(path, *kind) => true,
            EntryKind::Link => *path != known(host::WICD_CURRENT_CERTIFICATE),
            EntryKind::Directory => ours.contains(path) || *path == known(host::STAGING),
            EntryKind::File if folders.contains(path) => true,
            EntryKind::File if ours.contains(path) => {
                // The record is validated whenever it is read, and is rewritten at once.
                if *path != known(host::STATE_FILE) {
                    sorted.ours.insert(path.clone());
                }
                false
            }
            EntryKind::File => is_loaded(path) || is_read(path),
        };
        if foreign && *path != known(host::QUARANTINE) {
            sorted.foreign.push(path.clone());
        }
    }
    sorted
}

/// Whether the entry was set aside, or is a folder or link where one of our files is written before its rename. A file
/// there is an unfinished one of ours, or is replaced.
fn is_in_the_way(path: &WindowsPath, kind: EntryKind) -> bool {
    path.file_name().ends_with(host::FOUND_SUFFIX)
        || (kind != EntryKind::File && path.file_name().ends_with(TEMPORARY_SUFFIX))
}

fn is_loaded(path: &WindowsPath) -> bool {
    let last = path.file_name().rsplit_once('.').map(|(_, last)| last);
    last.is_some_and(|last| LOADED.iter().any(|loaded| loaded.eq_ignore_ascii_case(last)))
}

/// Whether some program reads every file in the file's folder.
fn is_read(path: &WindowsPath) -> bool {
    let folders = host::FOLDERS_READ_WHOLE.iter();
    folders.map(|(folder, _)| known(folder)).any(|folder| path.is_within(&folder))
}

/// Returns the quarantine folder for files found at `now`.
pub(super) fn folder(now: Timestamp) -> Result<WindowsPath, WindowsError> {
    let name = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    let folder = known(host::QUARANTINE).join(&name);
    folder.map_err(|bad| WindowsError::other("name a folder for what was found", bad))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: EntryKind, path: &str, moves: bool) {
        let modified = Timestamp::UNIX_EPOCH;
        let entry = Entry { path: path.parse().unwrap(), kind, modified };
        let used = BTreeSet::from([known(r"C:\k\csi\driver.exe")]);
        let sorted = sort(std::slice::from_ref(&entry), &used);
        assert_eq!(sorted.foreign == [entry.path], moves, "{path}");
    }

    #[test]
    fn what_windows_loads_goes_unless_it_is_ours() {
        for file in [
            r"C:\k\version.dll",
            r"C:\k\cni\EVIL.DLL",
            r"C:\k\kubelet.exe.local",
            r"C:\k\kubelet.exe.manifest",
            r"C:\k\containerd\other.exe",
            r"C:\k\scripts\profile.ps1",
            r"C:\k\etc\kubernetes\manifests\pod.yaml",
            r"C:\k\cni\config\00-first.conf",
            r"C:\k\tls",
        ] {
            check(EntryKind::File, file, true);
        }
        for file in [
            r"C:\k\KUBELET.exe",
            r"C:\k\cni\win-overlay.exe",
            r"C:\k\csi\driver.exe",
            r"C:\k\cni\config\cni.conf",
            r"C:\k\kube-proxy.conf",
            r"C:\k\wicd-certs\wicd-client-2024.pem",
            r"C:\k\notes.txt",
        ] {
            check(EntryKind::File, file, false);
        }
    }

    #[test]
    fn links_go_but_the_daemons_own() {
        check(EntryKind::Link, r"C:\k\scripts", true);
        check(EntryKind::Link, r"C:\k\kubelet.exe", true);
        check(EntryKind::Link, host::WICD_CURRENT_CERTIFICATE, false);
    }

    #[test]
    fn folders_stay_but_not_in_the_place_of_files() {
        check(EntryKind::Directory, r"C:\k\cni", false);
        check(EntryKind::Directory, r"C:\k\theirs", false);
        check(EntryKind::Directory, r"C:\k\kubelet.exe", true);
        check(EntryKind::Directory, host::STAGING, true);
        check(EntryKind::Directory, host::QUARANTINE, false);
    }
}
