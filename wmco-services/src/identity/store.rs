//! The files of the daemon's certificates: a dated file for each, and a link to the current one.
//!
//! Source: `docs/contract/wicd.md`, WICD44.

use jiff::Timestamp;
use wmco_core::protocol::Access;
use wmco_core::secret::Secret;
use wmco_core::winpath::{BadPath, WindowsPath};

use crate::limits;
use crate::windows::{EntryKind, Files, TEMPORARY_SUFFIX, WindowsError};

/// Prefix of every file name.
const START: &str = "wicd-client-";

/// Suffix of every file name.
const END: &str = ".pem";

/// The link to the current file.
const CURRENT: &str = "wicd-client-current.pem";

/// Certificate and key in two files, as a person may have put them there.
const BY_HAND: [&str; 2] = ["wicd-client.crt", "wicd-client.key"];

/// Number of dated files that are kept: the current and the previous one.
const KEEP: usize = 2;

/// The certificates in a folder.
#[derive(Clone, Debug)]
pub struct Store<'a> {
    /// The folder.
    pub folder: &'a WindowsPath,
}

impl Store<'_> {
    /// Loads the current certificate chain and key, PEM; `None` if there are none.
    ///
    /// # Errors
    /// [`WindowsError`] when a file exists and cannot be read.
    pub fn load(&self, files: &dyn Files) -> Result<Option<Secret>, WindowsError> {
        if let Some(text) = files.read(&self.file(CURRENT)?, limits::CERTIFICATE_BYTES)? {
            return Ok(Some(Secret::new(text)));
        }
        let mut both = Vec::new();
        for name in BY_HAND {
            let Some(text) = files.read(&self.file(name)?, limits::CERTIFICATE_BYTES)? else {
                return Ok(None);
            };
            both.extend(text);
            both.push(b'\n');
        }
        Ok(Some(Secret::new(both)))
    }

    /// Stores certificate chain and key under the date `now`, points the link to it, and removes old files. The link
    /// points to a complete file at all times.
    ///
    /// # Errors
    /// [`WindowsError`]; the previous certificate is then still current.
    pub fn keep(
        &self,
        files: &dyn Files,
        certificate: &Secret,
        now: Timestamp,
    ) -> Result<(), WindowsError> {
        if files.make_directory(self.folder)? {
            files.set_access(self.folder, Access::Administrators)?;
        }
        let dated = self.file(&format!("{START}{}{END}", now.strftime("%Y-%m-%d-%H-%M-%S")))?;
        files.write(&dated, Access::Administrators, &mut certificate.expose())?;
        files.link(&self.file(CURRENT)?, &dated)?;
        self.prune(files, &dated)
    }

    /// Removes all dated files except the newest and `in_use`, and partly written files of killed processes.
    fn prune(&self, files: &dyn Files, in_use: &WindowsPath) -> Result<(), WindowsError> {
        let entries = files.walk(self.folder)?;
        let here = entries.into_iter().filter(|entry| {
            entry.kind == EntryKind::File && entry.path.parent().as_ref() == Some(self.folder)
        });
        let (mut dated, mut going) = (Vec::new(), Vec::new());
        for entry in here {
            let name = entry.path.file_name();
            if is_dated(name, START) {
                dated.push(entry.path);
            } else if name.strip_suffix(TEMPORARY_SUFFIX).is_some_and(|n| is_dated(n, START)) {
                going.push(entry.path);
            }
        }
        dated.sort_by(|a, b| b.cmp(a));
        going.extend(dated.into_iter().skip(KEEP).filter(|path| path != in_use));
        for path in going {
            if let Err(error) = files.remove_file(&path) {
                // A leftover only costs disk space, and the next renewal tries again.
                tracing::warn!(%path, %error, "cannot remove an old certificate");
            }
        }
        Ok(())
    }

    fn file(&self, name: &str) -> Result<WindowsPath, WindowsError> {
        let bad = |bad: BadPath| WindowsError::other(format!("name the file {name}"), bad);
        self.folder.join(name).map_err(bad)
    }
}

/// Whether the name is `start`, a date such as `2026-01-31-23-59-59`, and `.pem`.
pub fn is_dated(name: &str, start: &str) -> bool {
    let date = name.strip_prefix(start).and_then(|rest| rest.strip_suffix(END));
    date.is_some_and(|date| {
        date.len() == 19
            && date.split('-').count() == 6
            && date.chars().all(|c| c == '-' || c.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use wmco_core::names::host;

    use super::*;
    use crate::fake::{Call, FakeWindows, Fault};
    use crate::windows::Windows as _;

    fn folder() -> WindowsPath {
        host::WICD_CERTIFICATES.parse().unwrap()
    }

    fn fresh() -> FakeWindows {
        let host = FakeWindows::new("winhost");
        host.with_tree(|tree| tree.make_folders(&host::ROOT.parse().unwrap()));
        host
    }

    fn hour(hours: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours)
    }

    fn names(host: &FakeWindows) -> Vec<String> {
        let entries = host.files().walk(&folder()).unwrap();
        entries.iter().map(|entry| entry.path.file_name().to_owned()).collect()
    }

    fn load(host: &FakeWindows) -> Option<Vec<u8>> {
        let loaded = Store { folder: &folder() }.load(host.files()).unwrap();
        loaded.map(|secret| secret.expose().to_vec())
    }

    #[test]
    fn the_last_one_kept_is_the_one_in_use_and_old_ones_are_bounded() {
        let (host, folder) = (fresh(), folder());
        let store = Store { folder: &folder };
        for round in 0..150 {
            let text = format!("certificate {round}");
            store.keep(host.files(), &Secret::new(text.clone()), hour(round)).unwrap();
            assert_eq!(load(&host), Some(text.into_bytes()));
        }
        let left =
            ["wicd-client-1970-01-07-04-00-00.pem", "wicd-client-1970-01-07-05-00-00.pem", CURRENT];
        assert_eq!(names(&host), left);
    }

    #[test]
    fn nobody_else_may_read_keys() {
        let (host, folder) = (fresh(), folder());
        Store { folder: &folder }.keep(host.files(), &Secret::new("x"), hour(0)).unwrap();
        assert_eq!(host.files().access(&folder).unwrap(), Access::Administrators);
        let file = folder.join("wicd-client-1970-01-01-00-00-00.pem").unwrap();
        assert_eq!(host.files().access(&file).unwrap(), Access::Administrators);
    }

    #[test]
    fn a_switch_that_is_cut_anywhere_leaves_a_whole_certificate_in_use() {
        for cut in 0..6 {
            let (host, folder) = (fresh(), folder());
            let store = Store { folder: &folder };
            store.keep(host.files(), &Secret::new("old"), hour(0)).unwrap();
            host.cut_after(cut);
            let kept = store.keep(host.files(), &Secret::new("new"), hour(1));
            host.heal();
            let seen = load(&host).unwrap();
            assert!(seen == b"old" || seen == b"new", "{cut}");
            assert!(kept.is_err() || seen == b"new", "{cut}");
            store.keep(host.files(), &Secret::new("newest"), hour(2)).unwrap();
            assert_eq!(load(&host).unwrap(), b"newest");
            let half = names(&host).iter().filter(|n| n.ends_with(TEMPORARY_SUFFIX)).count();
            assert_eq!(half, 0, "{cut}");
        }
    }

    #[test]
    fn clocks_that_go_back_do_not_cost_the_one_in_use() {
        let (host, folder) = (fresh(), folder());
        let store = Store { folder: &folder };
        for hours in [9, 8, 7, 1] {
            store.keep(host.files(), &Secret::new(format!("{hours}")), hour(hours)).unwrap();
        }
        assert_eq!(load(&host).unwrap(), b"1");
        assert_eq!(names(&host).len(), 4);
    }

    #[test]
    fn an_old_file_that_cannot_be_removed_is_no_failure() {
        let (host, folder) = (fresh(), folder());
        let store = Store { folder: &folder };
        host.fail(Call::FilesRemoveFile, "wicd-client-", usize::MAX, Fault::Locked);
        for hours in 0..4 {
            store.keep(host.files(), &Secret::new("x"), hour(hours)).unwrap();
        }
    }

    #[test]
    fn files_put_there_by_hand_are_used_until_there_is_a_current_one() {
        let (host, folder) = (fresh(), folder());
        assert_eq!(load(&host), None);
        host.put_file(&folder.join(BY_HAND[0]).unwrap(), "crt");
        assert_eq!(load(&host), None);
        host.put_file(&folder.join(BY_HAND[1]).unwrap(), "key");
        assert_eq!(load(&host).unwrap(), b"crt\nkey\n");
        Store { folder: &folder }.keep(host.files(), &Secret::new("x"), hour(0)).unwrap();
        assert_eq!(load(&host).unwrap(), b"x");
    }
}
