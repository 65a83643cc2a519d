//! The value of an entry, line by line.

use std::collections::BTreeSet;

use super::also::{parse_list, readable};
use super::error::keys::{HOST_KEY, NAMES, PORT, USERNAME, VIA, VIA_HOST_KEY};
use super::host::port;
use super::{AlsoNamed, Field, Jump, Problem};
use crate::host_key::HostKey;
use crate::limits;

/// Blanks around a line that are ignored.
const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// The parsed value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Value {
    pub(super) username: String,
    pub(super) port: u16,
    pub(super) host_key: Option<HostKey>,
    pub(super) via: Option<Jump>,
    pub(super) via_host_key: Option<HostKey>,
}

/// Reads `username=NAME`, then any of the optional lines in any order.
///
/// The first line is read as the original does, except for trimming: its key must match exactly, and everything
/// after the first `=` is the name. Empty lines may follow.
pub(super) fn parse(text: &str) -> Result<Value, (Field, Problem)> {
    let mut lines = text.split('\n');
    let first = lines.next().unwrap_or_default();
    let username = match first.split_once('=') {
        Some((USERNAME, username)) => username.trim_matches(BLANKS),
        _ => return Err((Field::Line(1), Problem::NotUsername)),
    };
    if username.is_empty() {
        return Err((Field::Username, Problem::Empty));
    }
    if username.chars().count() > limits::USERNAME_CHARACTERS {
        return Err((Field::Username, Problem::LongUsername));
    }
    if username.chars().any(char::is_control) {
        return Err((Field::Username, Problem::Control));
    }
    if username.contains(':') {
        return Err((Field::Username, Problem::Colon));
    }

    let (mut own_port, mut host_key, mut via, mut via_host_key) = (None, None, None, None);
    // Read a second time, beside mistakes, by `readable_names`.
    let mut names = None;
    for (line, number) in lines.map(|line| line.trim_matches(BLANKS)).zip(2..) {
        if line.is_empty() {
            continue;
        }
        let unknown = Err((Field::Line(number), Problem::Unknown));
        let Some((key, value)) = line.split_once('=') else { return unknown };
        let value = value.trim_matches(BLANKS);
        match key {
            USERNAME => return Err((Field::Username, Problem::Repeated)),
            PORT => set(&mut own_port, Field::Port, value, |v| port(v).ok_or(Problem::Port))?,
            HOST_KEY => set(&mut host_key, Field::HostKey, value, |v| Ok(v.parse()?))?,
            VIA => set(&mut via, Field::Via, value, |v| Ok(v.parse()?))?,
            VIA_HOST_KEY => set(&mut via_host_key, Field::ViaHostKey, value, |v| Ok(v.parse()?))?,
            NAMES => set(&mut names, Field::Names, value, |v| Ok(parse_list(v)?))?,
            _ => return unknown,
        }
    }
    if via_host_key.is_some() && via.is_none() {
        return Err((Field::ViaHostKey, Problem::NoVia));
    }
    let (username, port) = (username.to_owned(), own_port.unwrap_or(limits::SSH_PORT));
    Ok(Value { username, port, host_key, via, via_host_key })
}

/// Every name and address that can be read from the lines `names=` of a value, whatever else is wrong with them or
/// with other lines: a mistake must not leave to another host what a person gave to this one.
pub(super) fn readable_names(text: &str) -> BTreeSet<AlsoNamed> {
    let lines = text.split('\n').filter_map(|line| line.split_once('='));
    let lists = lines.filter(|(key, _)| key.trim().eq_ignore_ascii_case(NAMES));
    lists.flat_map(|(_, list)| readable(list)).collect()
}

fn set<T>(
    slot: &mut Option<T>,
    field: Field,
    value: &str,
    read: impl FnOnce(&str) -> Result<T, Problem>,
) -> Result<(), (Field, Problem)> {
    if slot.is_some() {
        return Err((field, Problem::Repeated));
    }
    if value.is_empty() {
        return Err((field, Problem::Empty));
    }
    *slot = Some(read(value).map_err(|problem| (field, problem))?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{BadHost, BadItem, BadJump};
    use super::*;
    use crate::host_key::BadHostKey;
    use crate::host_key::tests::ed25519;

    #[track_caller]
    fn refused(text: &str, field: Field, problem: Problem) {
        assert_eq!(parse(text), Err((field, problem)), "{text:?}");
    }

    #[track_caller]
    fn username(text: &str) -> String {
        parse(text).unwrap().username
    }

    #[test]
    fn everything_after_the_first_equals_sign_is_the_name() {
        assert_eq!(username("username=a=b"), "a=b");
        assert_eq!(username("username=ACME\\svc win"), "ACME\\svc win");
        assert_eq!(username("username==x"), "=x");
    }

    #[test]
    fn blanks_and_line_ends_around_the_name_are_dropped() {
        assert_eq!(username("username= core \t"), "core");
        assert_eq!(username("username=core\r\n\r\n"), "core");
    }

    #[test]
    fn a_name_has_a_limit() {
        let long = |count| format!("username={}", "\u{e4}".repeat(count));
        assert_eq!(username(&long(limits::USERNAME_CHARACTERS)).chars().count(), 256);
        refused(&long(257), Field::Username, Problem::LongUsername);
    }

    #[test]
    fn other_first_lines_are_refused() {
        for text in [
            "",
            "core",
            "username",
            "user=core",
            "username =core",
            " username=core",
            "Username=core",
            "\nusername=core",
            "port=22\nusername=core",
        ] {
            refused(text, Field::Line(1), Problem::NotUsername);
        }
    }

    #[test]
    fn empty_names_are_refused() {
        refused("username=", Field::Username, Problem::Empty);
        refused("username= \r\nport=22", Field::Username, Problem::Empty);
    }

    #[test]
    fn control_characters_in_the_name_are_refused() {
        for text in ["username=a\tb", "username=a\0", "username=a\rb", "username=a\u{85}b"] {
            refused(text, Field::Username, Problem::Control);
        }
    }

    #[test]
    fn a_colon_in_the_name_is_refused() {
        refused("username=core:secret", Field::Username, Problem::Colon);
        refused("username=a\nvia=core:secret@x", Field::Via, BadJump::Username.into());
    }

    #[test]
    fn further_lines_are_read_in_any_order() {
        let key = ed25519();
        let text = format!("username=core\r\n\r\nhostKey={key}\r\nport=2222\r\n");
        let value = parse(&text).unwrap();
        assert_eq!(value.port, 2222);
        assert_eq!(value.host_key.unwrap().to_string(), key);
    }

    #[test]
    fn the_port_is_that_of_ssh_unless_told() {
        assert_eq!(parse("username=core").unwrap().port, 22);
    }

    #[test]
    fn ports_are_numbers_from_1_to_65535() {
        for port in ["0", "65536", "+22", "-1", "22a", "2 2", "٢٢"] {
            refused(&format!("username=core\nport={port}"), Field::Port, Problem::Port);
        }
    }

    #[test]
    fn wrong_further_lines_are_refused() {
        refused("username=a\nport=", Field::Port, Problem::Empty);
        refused("username=a\nport=1\nport=1", Field::Port, Problem::Repeated);
        refused("username=a\nusername=b", Field::Username, Problem::Repeated);
        refused("username=a\n\npassword=x", Field::Line(3), Problem::Unknown);
        refused("username=a\nport =22", Field::Line(2), Problem::Unknown);
        refused("username=a\nhostkey", Field::Line(2), Problem::Unknown);
        refused("username=a\nhostKey=AAAA", Field::HostKey, BadHostKey::Shape.into());
        refused("username=a\nvia=x\nvia=y", Field::Via, Problem::Repeated);
        refused("username=a\nvia=x y", Field::Via, BadJump::Host(BadHost::Label).into());
    }

    #[test]
    fn a_jump_host_may_have_a_key_of_its_own() {
        let key = ed25519();
        let value = parse(&format!("username=a\nvia=b@c.test:23\nviaHostKey={key}")).unwrap();
        assert_eq!(value.via.unwrap().to_string(), "b@c.test:23");
        assert_eq!(value.via_host_key.unwrap().to_string(), key);
        assert_eq!(value.host_key, None);
        refused(&format!("username=a\nviaHostKey={key}"), Field::ViaHostKey, Problem::NoVia);
    }

    #[test]
    fn a_host_may_have_more_names() {
        assert!(parse("username=a\r\nnames= B.test , 203.0.113.7\r\n").is_ok());
        refused("username=a\nnames=", Field::Names, Problem::Empty);
        refused("username=a\nnames=b\nnames=c", Field::Names, Problem::Repeated);
        let problem = BadItem { number: 2, problem: BadHost::Empty.into() };
        refused("username=a\nnames=b,", Field::Names, problem.into());
    }

    #[test]
    fn what_can_be_read_is_found_beside_mistakes() {
        let expected = [AlsoNamed::Name("a.test".into()), AlsoNamed::Name("b.test".into())];
        for value in [
            "username=a\nnames=a.test,b.test\nport=x",
            "user\r\nnames=a.test\r\nnames=b.test\r\n",
            "username=a\n Names = a.test, [::1], b.test, a.test",
            "names=a.test,,b.test,kubernetes",
        ] {
            assert_eq!(readable_names(value), expected.clone().into(), "{value:?}");
        }
        assert_eq!(readable_names("username=names=a.test"), BTreeSet::new());
    }

    proptest! {
        /// A value composed of parts is parsed into the same parts.
        #[test]
        fn parts_are_found_again(
            name in "[^:\\p{C}\\p{Z}]([^:\\p{C}]{0,20}[^:\\p{C}\\p{Z}])?",
            port in 1..=u16::MAX,
            crlf: bool,
        ) {
            let end = if crlf { "\r\n" } else { "\n" };
            let value = parse(&format!("username={name}{end}port={port}{end}")).unwrap();
            prop_assert_eq!(value.username, name);
            prop_assert_eq!(value.port, port);
        }
    }
}
