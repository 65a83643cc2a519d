//! Exchange of keys in the administrators' file.

use wmco_core::authorized_key::{AuthorizedKey, exchange_keys};

use super::*;

const OLD: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
const NEW: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

/// Lines that people wrote.
const BEFORE: &str = "# people\r\nssh-dss AAAA me\r\n";

fn file() -> WindowsPath {
    path(host::AUTHORIZED_KEYS)
}

fn keys(lines: &[&str]) -> BTreeSet<AuthorizedKey> {
    lines.iter().map(|line| line.parse().unwrap()).collect()
}

fn exchange(add: &[&str], remove: &[&str]) -> HostStep {
    HostStep::EnsureAuthorizedKeys { add: keys(add), remove: keys(remove) }
}

/// Returns the file that user data leaves, with other people's lines.
fn made_by_user_data() -> String {
    format!("{BEFORE}{OLD}\r\n{}0123\r\n", host::USER_DATA_MARK)
}

/// Returns a host that accepts the old key.
fn with_old_key() -> FakeWindows {
    let host = fresh();
    host.put_file(&file(), made_by_user_data());
    host.set_access(&file(), Access::Administrators).unwrap();
    host
}

fn content(host: &FakeWindows) -> String {
    String::from_utf8(host.file(&file()).unwrap().to_vec()).unwrap()
}

#[test]
fn a_rotation_leaves_other_lines_and_the_mark_of_user_data() {
    let host = with_old_key();
    let (add, remove) = (exchange(&[NEW], &[]), exchange(&[NEW], &[OLD]));
    let mark = format!("{}0123\r\n", host::USER_DATA_MARK);
    for (step, keys) in [(add, format!("{OLD}\r\n{NEW}\r\n")), (remove, format!("{NEW}\r\n"))] {
        assert_eq!(changes(&apply(&host, std::slice::from_ref(&step))), [true]);
        assert_eq!(content(&host), format!("{BEFORE}{keys}{mark}"));
        assert_eq!(host.access(&file()).unwrap(), Access::Administrators);
        assert_eq!(changes(&apply(&host, &[step])), [false], "a second time");
    }
}

#[test]
fn a_missing_file_is_made_closed() {
    let host = fresh();
    host.with_tree(|tree| tree.make_folders(&file().parent().unwrap()));
    assert_eq!(changes(&apply(&host, &[exchange(&[], &[OLD])])), [false]);
    assert_eq!(host.file(&file()), None);
    assert_eq!(changes(&apply(&host, &[exchange(&[NEW], &[OLD])])), [true]);
    assert_eq!(content(&host), format!("{NEW}\r\n"));
    assert_eq!(host.access(&file()).unwrap(), Access::Administrators);
}

#[test]
fn a_file_that_others_may_read_is_closed() {
    let host = with_old_key();
    host.set_access(&file(), Access::Inherited).unwrap();
    assert_eq!(changes(&apply(&host, &[exchange(&[OLD], &[])])), [true]);
    assert_eq!(content(&host), made_by_user_data());
    assert_eq!(host.access(&file()).unwrap(), Access::Administrators);
}

/// sshd ignores such a file. Once closed, the planted keys in it would be accepted.
#[test]
fn a_file_that_others_may_write_to_is_not_closed() {
    let host = with_old_key();
    host.set_access(&file(), Access::Inherited).unwrap();
    host.open_to_all(&file());
    let lines = apply(&host, &[exchange(&[NEW], &[])]);
    assert!(error(&lines).is_some_and(|error| error.contains("icacls")), "{lines:?}");
    assert_eq!(content(&host), made_by_user_data());
    assert_eq!(host.access(&file()).unwrap(), Access::Inherited);
}

#[test]
fn what_is_no_file_is_told() {
    let host = fresh();
    host.with_tree(|tree| {
        let other = path(r"C:\ProgramData\ssh\other");
        tree.make_folders(&other.parent().unwrap());
        tree.insert(file(), Content::Link(other), Access::Administrators);
    });
    let lines = apply(&host, &[exchange(&[NEW], &[])]);
    assert!(error(&lines).is_some_and(|error| error.contains("link")), "{lines:?}");
}

#[test]
fn a_refused_exchange_leaves_the_file() {
    let host = with_old_key();
    let both = exchange(&[NEW], &[NEW]);
    for (step, why) in [(exchange(&[], &[OLD]), "no key would be left"), (both, "decide")] {
        let lines = apply(&host, &[step]);
        assert!(error(&lines).is_some_and(|error| error.contains(why)), "{lines:?}");
        assert_eq!(content(&host), made_by_user_data());
    }
    host.put_file(&file(), b"\xFF\xFEs\0");
    let lines = apply(&host, &[exchange(&[NEW], &[])]);
    assert!(error(&lines).is_some_and(|error| error.contains("-Encoding Ascii")), "{lines:?}");
    assert_eq!(*host.file(&file()).unwrap(), b"\xFF\xFEs\0");
}

/// Dies at every change: the file is the old or the new one, and closed.
#[test]
fn an_exchange_may_die_anywhere() {
    let before = made_by_user_data();
    let after = exchange_keys(before.as_bytes(), &keys(&[NEW]), &keys(&[OLD])).unwrap();
    let mut died_before = 0;
    for cut in 0.. {
        let host = with_old_key();
        let step = [exchange(&[NEW], &[OLD])];
        host.cut_after(cut);
        let lines = apply_without_check(&host, &step);
        host.heal();
        assert_eq!(host.access(&file()).unwrap(), Access::Administrators);
        if *host.file(&file()).unwrap() == after {
            break;
        }
        assert_eq!(content(&host), before, "after a cut at {cut}: {lines:?}");
        died_before += 1;
        assert_eq!(changes(&apply(&host, &step)), [true]);
        assert_eq!(*host.file(&file()).unwrap(), after);
    }
    assert!(died_before > 1, "{died_before}");
}

/// The file belongs to the host: people have to log in when the node is gone.
#[test]
fn the_file_stays_when_the_node_leaves() {
    let host = with_old_key();
    apply(&host, &join(&host));
    apply(&host, &[exchange(&[NEW], &[OLD])]);
    let there = content(&host);
    assert_eq!(error(&apply(&host, &leave())), None);
    assert_eq!(content(&host), there);
}
