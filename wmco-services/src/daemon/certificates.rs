//! Client certificates of hybrid-overlay-node that pile up.

use jiff::Timestamp;
use wmco_core::names::host;
use wmco_core::winpath::WindowsPath;

use crate::identity::is_dated;
use crate::limits;
use crate::windows::{Entry, EntryKind, Files, WindowsError};

/// Start of their names; `<start><date>.pem` are files, `<start>current.pem` is the link to the one in
/// use.
const START: &str = "ovnkube-client-";

/// How many are kept besides the one in use.
const KEEP: usize = 2;

/// Certificates that nobody needs any more. Never a link, what a link points to, one of the newest,
/// or one that is only some minutes old.
///
/// Source: `spec/wicd.md`, sections 7.5 and 23.2, row 11.
pub(super) fn stale(files: &dyn Files, now: Timestamp) -> Result<Vec<WindowsPath>, WindowsError> {
    let Ok(folder) = host::CNI_CONFIG.parse::<WindowsPath>() else { return Ok(Vec::new()) };
    let mut dated: Vec<Entry> = files
        .walk(&folder)?
        .into_iter()
        .filter(|entry| entry.kind == EntryKind::File)
        .filter(|entry| entry.path.parent().as_ref() == Some(&folder))
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
    let in_use = match folder.join(&format!("{START}current.pem")) {
        Ok(current) => files.digest(&current)?,
        Err(_) => None,
    };
    let mut stale = Vec::new();
    for entry in old {
        if in_use.is_none() || files.digest(&entry.path)? != in_use {
            stale.push(entry.path);
        }
    }
    Ok(stale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Content, FakeWindows};

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

    // `spec/wicd.md`, section 22.6: of so many files the two newest stay.

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

    #[test]
    fn links_what_they_point_to_and_young_files_stay() {
        let host = host_with(4);
        for (name, day) in [("ovnkube-client-current.pem", 1), ("ovnkube-client-updated.pem", 2)] {
            let link = format!(r"{}\{name}", host::CNI_CONFIG).parse().unwrap();
            host.with_tree(|tree| {
                tree.insert(link, Content::Link(at(day)), wmco_core::protocol::Access::Inherited);
            });
        }
        assert_eq!(stale(&host, LATER).unwrap(), [at(2)]);
        assert_eq!(stale(&host, Timestamp::UNIX_EPOCH).unwrap(), []);
    }
}
