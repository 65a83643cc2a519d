//! Finds old client certificates of hybrid-overlay-node, which pile up.

use std::collections::BTreeSet;

use jiff::Timestamp;
use wmco_core::names::host;
use wmco_core::winpath::WindowsPath;

use crate::identity::is_dated;
use crate::limits;
use crate::windows::{Entry, EntryKind, Files, WindowsError};

/// Start of the certificates' file names: `<start><date>.pem` are files, `<start>current.pem` is the link to the file
/// in use, and `<start>updated.pem` exists while that link changes.
const START: &str = "ovnkube-client-";

/// Certificates that are kept besides the one in use.
const KEEP: usize = 2;

/// Returns certificates that are no longer needed: no links, no targets of links in their folder, not the newest files,
/// and no files that are only minutes old. None while a link cannot be followed.
///
/// Source: `docs/contract/wicd.md`, WICD45.
pub(super) fn stale(files: &dyn Files, now: Timestamp) -> Result<Vec<WindowsPath>, WindowsError> {
    let Ok(folder) = host::CNI_CONFIG.parse::<WindowsPath>() else { return Ok(Vec::new()) };
    let entries = files.walk(&folder)?.into_iter();
    let (links, others): (Vec<Entry>, Vec<Entry>) = entries
        .filter(|entry| entry.path.parent().as_ref() == Some(&folder))
        .partition(|entry| entry.kind == EntryKind::Link);
    let mut dated: Vec<Entry> = others
        .into_iter()
        .filter(|entry| entry.kind == EntryKind::File)
        .filter(|entry| is_dated(entry.path.file_name(), START))
        .collect();
    dated.sort_by(|a, b| b.path.cmp(&a.path));
    let old: Vec<Entry> = dated
        .into_iter()
        .skip(KEEP)
        .filter(|entry| now.duration_since(entry.modified) >= limits::OVN_CERTIFICATE_AGE)
        .collect();
    if old.is_empty() {
        return Ok(Vec::new());
    }
    // The target is identified by its content, so any form of link works.
    let mut in_use = BTreeSet::new();
    for link in links {
        match files.digest(&link.path) {
            Ok(target) => in_use.extend(target),
            Err(error) => {
                tracing::debug!(link = %link.path, %error, "cannot follow a link, removing nothing");
                return Ok(Vec::new());
            }
        }
    }
    let mut stale = Vec::new();
    for entry in old {
        if files.digest(&entry.path)?.is_some_and(|digest| !in_use.contains(&digest)) {
            stale.push(entry.path);
        }
    }
    Ok(stale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Call, Content, FakeWindows, Fault};

    fn at(day: u32) -> WindowsPath {
        let (month, day) = (day / 28 + 1, day % 28 + 1);
        format!(r"{}\ovnkube-client-2026-{month:02}-{day:02}-00-00-00.pem", host::CNI_CONFIG)
            .parse()
            .unwrap()
    }

    fn host_with(days: u32) -> FakeWindows {
        let host = FakeWindows::new("winhost");
        for day in 1..=days {
            host.put_file(&at(day), format!("certificate {day}"));
        }
        host
    }

    const LATER: Timestamp = Timestamp::MAX;

    // `docs/contract/wicd.md`, WICD45: the two newest files stay, however many there are.

    #[track_caller]
    fn two_newest_stay_of(days: u32) {
        let stale = stale(&host_with(days), LATER).unwrap();
        assert_eq!(stale.len(), days.saturating_sub(2) as usize);
        assert!(!stale.contains(&at(days)) && (days < 2 || !stale.contains(&at(days - 1))));
    }

    #[test]
    fn of_no_certificates_none_goes() {
        two_newest_stay_of(0);
    }

    #[test]
    fn of_2_certificates_none_goes() {
        two_newest_stay_of(2);
    }

    #[test]
    fn of_3_certificates_the_oldest_goes() {
        two_newest_stay_of(3);
    }

    #[test]
    fn of_10_certificates_2_stay() {
        two_newest_stay_of(10);
    }

    #[test]
    fn of_150_certificates_2_stay() {
        two_newest_stay_of(150);
    }

    fn link(host: &FakeWindows, name: &str, day: u32) {
        let link = format!(r"{}\{name}", host::CNI_CONFIG).parse().unwrap();
        host.with_tree(|tree| {
            tree.insert(link, Content::Link(at(day)), wmco_core::protocol::Access::Inherited);
        });
    }

    #[test]
    fn links_what_they_point_to_and_young_files_stay() {
        let host = host_with(6);
        link(&host, "ovnkube-client-current.pem", 1);
        link(&host, "ovnkube-client-updated.pem", 2);
        link(&host, "in-use-elsewhere.pem", 4);
        assert_eq!(stale(&host, LATER).unwrap(), [at(3)]);
        assert_eq!(stale(&host, Timestamp::UNIX_EPOCH).unwrap(), []);
    }

    #[test]
    fn a_link_to_nothing_keeps_nothing() {
        let host = host_with(3);
        link(&host, "ovnkube-client-updated.pem", 9);
        assert_eq!(stale(&host, LATER).unwrap(), [at(1)]);
    }

    #[test]
    fn while_a_link_cannot_be_followed_all_stay() {
        let host = host_with(3);
        link(&host, "ovnkube-client-current.pem", 3);
        host.fail(Call::FilesOpen, "current", 1, Fault::Locked);
        assert_eq!(stale(&host, LATER).unwrap(), []);
        assert_eq!(stale(&host, LATER).unwrap(), [at(1)]);
    }
}
