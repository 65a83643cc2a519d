//! The authorized-keys file of a host's administrators.

use std::collections::{BTreeMap, BTreeSet};
use std::str;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::AuthorizedKey;
use crate::names::host;

/// Byte order mark of UTF-8, as Windows programs write it.
const UTF8_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Byte order marks of UTF-16, as Windows programs write them.
const UTF16_MARKS: [&[u8]; 2] = [b"\xFF\xFE", b"\xFE\xFF"];

/// Why the keys of a file are not exchanged. No message repeats a line of the file.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadKeyExchange {
    /// A key is to be added and to be removed.
    #[error("key {fingerprint} is to be added and to be removed, decide for one of both")]
    Contradiction {
        /// Fingerprint of the key, as OpenSSH prints it.
        fingerprint: String,
    },
    /// The removal would leave no key in the file.
    #[error(
        "no key would be left in {}, so nobody could log in any more; add one in the same step",
        host::AUTHORIZED_KEYS
    )]
    LastKey,
    /// The file is UTF-16, at least in part.
    #[error(
        "{} holds UTF-16 text, as `>` of PowerShell writes it, which sshd does not read; write it again \
         with `Set-Content -Encoding Ascii`",
        host::AUTHORIZED_KEYS
    )]
    Utf16,
}

/// Returns the content of an authorized-keys file with all keys of `add` and without those of `remove`.
///
/// A line is identified by the key that sshd reads in it, whatever its options and its comment. Of the lines
/// without options that have a key of `add`, only the first stays. If only lines with options have the key, they
/// are left alone: an administrator wrote them, and one may be the only way in; a login shows whether they let the
/// operator in. A new key is added at the end, but before the last line with [`host::USER_DATA_MARK`]: user data
/// that finds its mark leaves the file alone; without the mark it would restore the former keys.
///
/// # Guarantees
/// - Every other line stays as it is, byte for byte and in order, in any encoding; only a last line without a line
///   end gets one if a line follows.
/// - Idempotent: a second exchange changes nothing.
/// - If lines are removed, at least one key of a kind that the operator logs in with remains.
///
/// # Errors
/// [`BadKeyExchange`]; leave the file as it is.
///
/// ```
/// use std::collections::BTreeSet;
///
/// use wmco_core::authorized_key::{AuthorizedKey, exchange_keys};
///
/// let old = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
/// let new = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
/// let keys = |line: &str| line.parse::<AuthorizedKey>().map(|key| BTreeSet::from([key]));
///
/// let file = format!("# people\r\n{old} operator\r\n");
/// let file = exchange_keys(file.as_bytes(), &keys(new)?, &keys(old)?)?;
/// assert_eq!(file, format!("# people\r\n{new}\r\n").as_bytes());
/// Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn exchange_keys(
    file: &[u8],
    add: &BTreeSet<AuthorizedKey>,
    remove: &BTreeSet<AuthorizedKey>,
) -> Result<Vec<u8>, BadKeyExchange> {
    if let Some(key) = add.intersection(remove).next() {
        return Err(BadKeyExchange::Contradiction { fingerprint: key.fingerprint() });
    }
    if is_utf16(file) {
        return Err(BadKeyExchange::Utf16);
    }
    // Splits lines as sshd does; any other line end belongs to the comment.
    let lines: Vec<(&[u8], Option<Found>)> =
        file.split_inclusive(|byte| *byte == b'\n').map(|line| (line, found(line))).collect();
    let mut plain: BTreeMap<&AuthorizedKey, usize> = BTreeMap::new();
    let mut limited: BTreeSet<&AuthorizedKey> = BTreeSet::new();
    for (at, (_, found)) in lines.iter().enumerate() {
        match found {
            Some(Found { key, form: Form::Plain }) => _ = plain.entry(key).or_insert(at),
            Some(Found { key, form: Form::WithOptions }) => _ = limited.insert(key),
            Some(Found { form: Form::Unread, .. }) | None => {}
        }
    }
    let stays = |at: usize, found: &Found| {
        let only = || plain.get(&found.key).map_or(found.form == Form::WithOptions, |it| *it == at);
        !remove.contains(&found.key) && (!add.contains(&found.key) || only())
    };
    let kept: Vec<&(&[u8], Option<Found>)> = lines
        .iter()
        .enumerate()
        .filter(|(at, (_, found))| found.as_ref().is_none_or(|found| stays(*at, found)))
        .map(|(_, line)| line)
        .collect();
    let lets_in = |found: &Found| found.form != Form::Unread;
    let no_key_left = !kept.iter().any(|(_, found)| found.as_ref().is_some_and(lets_in));
    if add.is_empty() && kept.len() < lines.len() && no_key_left {
        return Err(BadKeyExchange::LastKey);
    }
    let missing = add.iter().filter(|key| !plain.contains_key(key) && !limited.contains(key));
    let kept: Vec<&[u8]> = kept.into_iter().map(|(line, _)| *line).collect();
    let exchanged = with_lines(&kept, missing, end_of_lines(file));
    // Without its first lines the file may begin like UTF-16, and then no program could read it.
    if is_utf16(&exchanged) { Err(BadKeyExchange::Utf16) } else { Ok(exchanged) }
}

fn is_utf16(file: &[u8]) -> bool {
    file.contains(&0) || UTF16_MARKS.iter().any(|mark| file.starts_with(mark))
}

/// The last line end of the file; that of Windows if the file has none.
fn end_of_lines(file: &[u8]) -> &'static str {
    let last = file.iter().rposition(|byte| *byte == b'\n');
    match last.and_then(|last| file.get(..last)) {
        Some(before) if !before.ends_with(b"\r") => "\n",
        _ => "\r\n",
    }
}

/// Joins all lines, with `keys` before the mark of user data.
fn with_lines<'a>(
    lines: &[&[u8]],
    keys: impl Iterator<Item = &'a AuthorizedKey>,
    end: &str,
) -> Vec<u8> {
    let is_mark = |line: &&[u8]| line.starts_with(host::USER_DATA_MARK.as_bytes());
    let place = lines.iter().rposition(is_mark).unwrap_or(lines.len());
    let (before, after) = lines.split_at(place);
    let mut file = before.concat();
    for key in keys {
        if !file.is_empty() && !file.ends_with(b"\n") {
            file.extend(end.bytes());
        }
        file.extend(format!("{key}{end}").bytes());
    }
    file.extend(after.concat());
    file
}

/// Form of a line with a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Form {
    /// Written as the operator writes it.
    Plain,
    /// With options before the key, which may restrict the source address or the command.
    WithOptions,
    /// Spelled in a way that some versions of sshd cannot read.
    Unread,
}

/// The key of one line.
#[derive(Debug)]
struct Found {
    key: AuthorizedKey,
    form: Form,
}

/// The key that sshd reads in `line`: at the start or, if there is none, after options.
fn found(line: &[u8]) -> Option<Found> {
    let text = line.strip_prefix(UTF8_MARK).unwrap_or(line);
    let has_mark = text.len() < line.len();
    let text = skip_blanks(text);
    if text.starts_with(b"#") {
        return None;
    }
    let (key, form) = match key(text) {
        Some((key, Spelling::Own)) => (key, Form::Plain),
        Some((key, Spelling::Other)) => (key, Form::Unread),
        None => match key(after_options(text)?)? {
            (key, Spelling::Own) => (key, Form::WithOptions),
            (key, Spelling::Other) => (key, Form::Unread),
        },
    };
    Some(Found { key, form: if has_mark { Form::Unread } else { form } })
}

/// Whether a key follows the name of its own algorithm, or another word that only some versions of sshd may know.
enum Spelling {
    Own,
    Other,
}

/// Reads `ALGORITHM BASE64` and ignores the rest.
fn key(text: &[u8]) -> Option<(AuthorizedKey, Spelling)> {
    let (kind, rest) = word(text);
    let (base64, _) = word(skip_blanks(rest));
    // sshd ignores other white space in it, such as the line end.
    let base64: Vec<u8> =
        base64.iter().copied().filter(|byte| !b"\n\r\x0b\x0c".contains(byte)).collect();
    let wire = BASE64_STANDARD.decode(base64).ok()?;
    let key = AuthorizedKey::from_wire(&wire).ok()?;
    let own = str::from_utf8(kind).is_ok_and(|kind| kind == key.algorithm());
    Some((key, if own { Spelling::Own } else { Spelling::Other }))
}

fn skip_blanks(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| !b" \t".contains(byte));
    start.and_then(|start| text.get(start..)).unwrap_or_default()
}

/// Splits the text after its first word.
fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| b" \t".contains(byte)).unwrap_or(text.len());
    text.split_at(end)
}

/// Returns the rest of a line of an authorized-keys file after its options, which end at the first blank outside of
/// quotes. `None` if nothing follows.
///
/// ```
/// use wmco_core::authorized_key::after_options;
///
/// let line = br#"command="echo \"a b\"",no-pty ssh-ed25519 AAAA"#;
/// assert_eq!(after_options(line), Some(b"ssh-ed25519 AAAA".as_slice()));
/// ```
pub fn after_options(line: &[u8]) -> Option<&[u8]> {
    let (mut quoted, mut at) = (false, 0);
    loop {
        // A backslash has a meaning only before a quote.
        match line.get(at..)? {
            [] => return None,
            [b' ' | b'\t', ..] if !quoted => return line.get(at..).map(skip_blanks),
            [b'\\', b'"', ..] => at += 1,
            [b'"', ..] => quoted = !quoted,
            [_, ..] => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_key::tests::wire;

    fn line(byte: u8) -> String {
        format!("ssh-ed25519 {}", wire(&[b"ssh-ed25519", &[byte; 32]]))
    }

    fn keys(bytes: &[u8]) -> BTreeSet<AuthorizedKey> {
        bytes.iter().map(|byte| line(*byte).parse().unwrap()).collect()
    }

    /// Key 1 is removed and key 2 is added; `OLD`, `NEW` and `OTHER` stand for 1, 2 and 3.
    #[track_caller]
    fn check(file: &str, expected: &str) {
        let filled = |text: &str| {
            let text = text.replace("OLD", &line(1)).replace("NEW", &line(2));
            text.replace("OTHER", &line(3))
        };
        let exchange = |file: &[u8]| exchange_keys(file, &keys(&[2]), &keys(&[1])).unwrap();
        let found = exchange(filled(file).as_bytes());
        assert_eq!(String::from_utf8_lossy(&found), filled(expected), "{file:?}");
        assert_eq!(exchange(&found), found, "a second time");
    }

    #[test]
    fn a_file_that_is_missing_is_made() {
        check("", "NEW\r\n");
    }

    #[test]
    fn lines_end_as_those_of_the_file() {
        check("OLD\n", "NEW\n");
        check("OLD", "NEW\r\n");
        check("# a\nOLD\n", "# a\nNEW\n");
        check("# a\r\nOLD\r\n", "# a\r\nNEW\r\n");
        check("# a\nOLD\n# b\r\n", "# a\n# b\r\nNEW\r\n");
        check("OTHER", "OTHER\r\nNEW\r\n");
        check("# a\nOTHER", "# a\nOTHER\nNEW\n");
    }

    #[test]
    fn lines_of_others_stay() {
        check(
            "# of the company\n\n  \t\nOTHER me@home\nOLD\nno-pty OTHER\nsk-ssh-ed25519@openssh.com AAAA\n!\n",
            "# of the company\n\n  \t\nOTHER me@home\nno-pty OTHER\nsk-ssh-ed25519@openssh.com AAAA\n!\nNEW\n",
        );
    }

    #[test]
    fn comments_in_any_encoding_stay() {
        let latin = [line(3).as_bytes(), b" j\xF6rg\n"].concat();
        let file = [latin.as_slice(), line(1).as_bytes(), b" \xE4\n"].concat();
        let found = exchange_keys(&file, &keys(&[2]), &keys(&[1])).unwrap();
        assert_eq!(found, [latin, format!("{}\n", line(2)).into_bytes()].concat());
    }

    #[test]
    fn a_key_is_known_whatever_stands_around_it() {
        let base64 = wire(&[b"ssh-ed25519", &[1; 32]]);
        for old in [
            "OLD".to_owned(),
            " \tOLD".to_owned(),
            "OLD me@home OTHER".to_owned(),
            "no-pty OLD".to_owned(),
            r#"command="a \" b",from="10.0.0.0/8" OLD x"#.to_owned(),
            // The backslash ends no option, so the quotes do.
            r#"command="a \\ b" OLD"#.to_owned(),
            "cert-authority OLD".to_owned(),
            format!("ssh-ed25519\t{base64}"),
            format!("ED25519 {base64}"),
            format!("no-pty ed25519 {base64}"),
            "\u{FEFF}OLD".to_owned(),
            // No sshd reads it, but it is not needed either.
            "\"OLD".to_owned(),
        ] {
            check(&format!("{old}\nOTHER\n"), "OTHER\nNEW\n");
        }
    }

    #[test]
    fn a_key_that_sshd_does_not_read_is_left_alone() {
        for other in ["# OLD", "no-pty no-x OLD", r#"command="OLD" OTHER"#, "OTHER OLD"] {
            check(&format!("{other}\n"), &format!("{other}\nNEW\n"));
        }
    }

    #[test]
    fn a_key_that_is_there_stays_once_where_it_is() {
        check("NEW me\nOTHER\n", "NEW me\nOTHER\n");
        check("NEW me\nOLD\nOTHER\nno-pty NEW\nNEW\n", "NEW me\nOTHER\n");
        check("no-pty NEW\nOTHER\n  NEW", "OTHER\n  NEW");
    }

    /// Perhaps only one of them lets the operator in.
    #[test]
    fn lines_with_options_are_left_alone_without_a_plain_one() {
        check(
            "from=\"10.1.*\" NEW\nfrom=\"10.2.*\" NEW\nOLD\n",
            "from=\"10.1.*\" NEW\nfrom=\"10.2.*\" NEW\n",
        );
    }

    #[test]
    fn a_key_that_not_every_sshd_reads_is_written_anew() {
        let base64 = wire(&[b"ssh-ed25519", &[2; 32]]);
        check(&format!("ED25519 {base64}\nOTHER\n"), "OTHER\nNEW\n");
        check("\u{FEFF}NEW\nOTHER\n", "OTHER\nNEW\n");
        check("\u{FEFF}OTHER\nOLD\n", "\u{FEFF}OTHER\nNEW\n");
    }

    #[test]
    fn the_mark_of_user_data_stays_at_the_end() {
        let mark = format!("{}0123", host::USER_DATA_MARK);
        check(&format!("OLD\r\n{mark}\r\n"), &format!("NEW\r\n{mark}\r\n"));
        check(&format!("OLD\n{mark}"), &format!("NEW\n{mark}"));
        check(&format!("OLD\n{mark}\nOTHER\n"), &format!("NEW\n{mark}\nOTHER\n"));
        check(&format!("{mark}\nOLD\n{mark}\n"), &format!("{mark}\nNEW\n{mark}\n"));
        check(&mark, &format!("NEW\r\n{mark}"));
    }

    #[track_caller]
    fn refused(file: &[u8], add: &[u8], remove: &[u8], why: &BadKeyExchange) {
        assert_eq!(exchange_keys(file, &keys(add), &keys(remove)).as_ref(), Err(why), "{file:?}");
    }

    #[test]
    fn text_that_sshd_does_not_read_is_told() {
        let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        let appended = [line(1).as_bytes(), b"\n", &wide(&line(3))].concat();
        for file in [b"\xFF\xFE".as_slice(), &wide(&line(1)), &wide("\u{FEFF}# a\n"), &appended] {
            refused(file, &[2], &[1], &BadKeyExchange::Utf16);
        }
        refused(b"\xFE\xFF\x26\x3A", &[2], &[1], &BadKeyExchange::Utf16);
        // The line becomes the first.
        let second = [line(1).as_bytes(), b"\n\xFE\xFF damage\n"].concat();
        refused(&second, &[2], &[1], &BadKeyExchange::Utf16);
    }

    #[test]
    fn the_last_key_stays() {
        for rest in ["", "# OTHER\n", "\n", "ED25519 AAAA\n", "ssh-dss AAAA\n"] {
            let file = format!("{}\n{rest}", line(1));
            refused(file.as_bytes(), &[], &[1], &BadKeyExchange::LastKey);
        }
        let file = format!("{}\nno-pty {}\n", line(1), line(3));
        let left = exchange_keys(file.as_bytes(), &keys(&[]), &keys(&[1])).unwrap();
        assert_eq!(left, format!("no-pty {}\n", line(3)).as_bytes());
        // No key is lost.
        assert_eq!(exchange_keys(b"", &keys(&[]), &keys(&[1])), Ok(Vec::new()));
    }

    #[test]
    fn a_key_is_not_added_and_removed() {
        let fingerprint = line(2).parse::<AuthorizedKey>().unwrap().fingerprint();
        let why = BadKeyExchange::Contradiction { fingerprint };
        refused(line(2).as_bytes(), &[1, 2], &[2, 3], &why);
    }
}
