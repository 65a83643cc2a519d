//! Laws that hold for any file of keys. The fuzz target asserts them, and so do tests of this crate.

use std::collections::BTreeSet;

use wmco_core::authorized_key::{AuthorizedKey, exchange_keys};
use wmco_core::names::host::USER_DATA_MARK;

/// The keys of an exchange, which texts can hold.
pub(crate) const OLD: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
pub(crate) const NEW: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

/// In which order somebody asks for what.
const EXCHANGES: [(&[&str], &[&str]); 5] =
    [(&[NEW], &[]), (&[NEW], &[OLD]), (&[], &[OLD]), (&[NEW, OLD], &[]), (&[], &[])];

fn keys(lines: &[&str]) -> BTreeSet<AuthorizedKey> {
    lines.iter().map(|line| line.parse().unwrap()).collect()
}

/// Lines with their ends. The last one gets an end that it lacks, as it does when a line follows.
fn lines(file: &[u8], end: &[u8]) -> Vec<Vec<u8>> {
    let lines = file.split_inclusive(|byte| *byte == b'\n');
    let ended =
        |line: &[u8]| if line.ends_with(b"\n") { line.to_vec() } else { [line, end].concat() };
    lines.map(ended).collect()
}

/// How the last line with an end ends.
fn end(file: &[u8]) -> &'static [u8] {
    let mut lines = file.split_inclusive(|byte| *byte == b'\n').rev();
    match lines.find(|line| line.ends_with(b"\n")) {
        Some(line) if !line.ends_with(b"\r\n") => b"\n",
        _ => b"\r\n",
    }
}

fn holds(line: &[u8], key: &str) -> bool {
    let base64 = key.split(' ').nth(1).unwrap().as_bytes();
    without_white_space(line).windows(base64.len()).any(|part| part == base64)
}

/// Whether the line begins with the key, so that it lets in without any condition.
fn is_plain(line: &[u8], key: &str) -> bool {
    let mut words = line.split(|byte| b" \t".contains(byte)).filter(|word| !word.is_empty());
    let (kind, base64) = key.split_once(' ').unwrap();
    words.next() == Some(kind.as_bytes())
        && words.next().map(without_white_space).as_deref() == Some(base64.as_bytes())
}

/// sshd passes over these in the middle of a key.
fn without_white_space(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|byte| !b"\r\n\x0b\x0c".contains(byte)).collect()
}

/// Whatever is in a file: lines without keys of the exchange stay, keys that were asked for are there
/// and others are not, the mark of user data stays behind new keys, and a second time changes nothing.
///
/// Returns how many exchanges were made.
pub(crate) fn exchanges_are_exact(file: &[u8]) -> usize {
    let mut made = 0;
    for (add, remove) in EXCHANGES {
        let Ok(after) = exchange_keys(file, &keys(add), &keys(remove)) else { continue };
        made += 1;
        assert_eq!(exchange_keys(&after, &keys(add), &keys(remove)).as_deref(), Ok(&*after));
        let is_mark = |line: &[u8]| line.starts_with(USER_DATA_MARK.as_bytes());
        let mark = after.split(|byte| *byte == b'\n').collect::<Vec<_>>();
        let mark = mark.iter().rposition(|line| is_mark(line));
        let end = end(file);
        let (before, after) = (lines(file, end), lines(&after, end));
        let asked_for = [add, remove].concat();
        let others = |lines: &[Vec<u8>]| -> Vec<Vec<u8>> {
            let is_other = |line: &&Vec<u8>| !asked_for.iter().any(|key| holds(line, key));
            lines.iter().filter(is_other).cloned().collect()
        };
        assert_eq!(others(&before), others(&after));
        for key in add {
            let plain = after.iter().filter(|line| is_plain(line, key)).count();
            let limited = after.iter().any(|line| holds(line, key) && before.contains(line));
            assert!(plain == 1 || plain == 0 && limited, "{plain} lines have {key}");
        }
        for key in remove {
            assert!(!after.iter().any(|line| is_plain(line, key)), "{key} is still there");
        }
        let new = after.iter().rposition(|line| line.starts_with(NEW.as_bytes()));
        if let (Some(new), Some(mark)) = (new, mark)
            && !before.iter().any(|line| holds(line, NEW))
        {
            assert!(new < mark, "user data would bring back what it wrote");
        }
        assert!(!after.is_empty() || before.is_empty());
    }
    made
}
