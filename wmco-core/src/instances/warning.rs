//! Values of an entry that are valid but probably wrong.

use std::fmt;
use std::net::Ipv4Addr;

use super::Instance;

/// A doubtful value in an entry, for an administrator to check. Its text gives the reason.
///
/// ```
/// use wmco_core::instances::{Resolutions, warnings, parse};
///
/// let entries = parse([("127.0.0.1", "username=core")], &Resolutions::default());
/// let warning = warnings(entries.instances().next().unwrap()).remove(0);
/// assert_eq!(warning.to_string(), "entry `127.0.0.1`: 127.0.0.1 is an address of the operator itself");
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Warning {
    address: String,
    what: What,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum What {
    /// Its address cannot belong to another machine.
    Address { ipv4: Ipv4Addr, is: &'static str },
    /// Its user name can be mistaken for another one.
    Username { letter: char },
    /// No user name of Windows holds this character.
    ForeignLetter { letter: char },
    /// No user name of Windows is as long.
    LongUsername,
    /// A part of the user name is missing, or all of it is dots.
    NoUsername,
}

/// Finds doubtful values in an entry.
pub fn warnings(instance: &Instance) -> Vec<Warning> {
    let ipv4 = instance.ipv4;
    let is = if ipv4.is_loopback() {
        Some("an address of the operator itself")
    } else if ipv4.is_link_local() {
        Some("an address that only its own link knows")
    } else if ipv4.is_multicast() || ipv4.is_broadcast() || ipv4.is_unspecified() {
        Some("the address of no single machine")
    } else {
        None
    };
    let letter = instance.username.chars().find(|letter| is_invisible(*letter));
    let address = is.map(|is| What::Address { ipv4, is });
    let what = address.into_iter().chain(letter.map(|letter| What::Username { letter }));
    let what = what.chain(foreign(&instance.username));
    what.map(|what| Warning { address: instance.address.clone(), what }).collect()
}

/// Characters that no user name of Windows holds. Source: Microsoft's documentation, "`New-LocalUser`".
const FOREIGN: [char; 16] =
    ['"', '/', '\\', '[', ']', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@'];

/// Longest name of a user of a machine, and of one of a domain in front of which the domain is written. Source: as above,
/// and the attribute `sAMAccountName`.
const LONGEST_NAME: usize = 20;

/// What makes a name one that Windows does not have: `NAME`, `DOMAIN\NAME` and `NAME@DOMAIN` are logins.
fn foreign(login: &str) -> Option<What> {
    let with_domain = login.split_once('\\');
    // Users of Entra ID are called by both.
    let of_cloud = with_domain
        .filter(|(domain, name)| domain.eq_ignore_ascii_case("AzureAD") && name.contains('@'));
    let at_domain = of_cloud.map_or(login, |(_, name)| name).split_once('@');
    let (name, domain, most) = match (with_domain.filter(|_| of_cloud.is_none()), at_domain) {
        (Some((domain, name)), _) => (name, Some(domain), Some(LONGEST_NAME)),
        (None, Some((name, domain))) => (name, Some(domain), None),
        (None, None) => (login, None, Some(LONGEST_NAME)),
    };
    let is_nobody = name.chars().all(|letter| ['.', ' '].contains(&letter));
    if is_nobody || domain == Some("") {
        return Some(What::NoUsername);
    }
    let domain = domain.unwrap_or_default();
    let letter = name.chars().chain(domain.chars()).find(|letter| FOREIGN.contains(letter));
    let is_long = most.is_some_and(|most| name.chars().count() > most);
    letter
        .map(|letter| What::ForeignLetter { letter })
        .or_else(|| is_long.then_some(What::LongUsername))
}

/// Control and format characters, above all those that change the direction of the following text.
/// Source: Unicode Standard Annex 9, section 2, and the general category `Cf`.
fn is_invisible(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}'
                | '\u{61c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{2069}'
                | '\u{feff}'
        )
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entry `{}`: ", self.address)?;
        match self.what {
            What::Address { ipv4, is } => write!(f, "{ipv4} is {is}"),
            What::Username { letter } => write!(
                f,
                "the user name holds the invisible character {}, type it again",
                letter.escape_unicode()
            ),
            What::ForeignLetter { letter } => write!(
                f,
                "the user name holds `{letter}`, which no user name of Windows does; write NAME, DOMAIN\\NAME or \
                 NAME@DOMAIN, as `whoami` shows it on the host, and each other setting on a line of its own"
            ),
            What::LongUsername => write!(
                f,
                "the user name has more than {LONGEST_NAME} characters, which no user name of Windows has; write it as \
                 `whoami` shows it on the host"
            ),
            What::NoUsername => f.write_str(
                "the user name is only a part of one; write NAME, DOMAIN\\NAME or NAME@DOMAIN, as `whoami` shows it on \
                 the host",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instances::{Resolutions, parse};

    #[track_caller]
    fn check(address: &str, username: &str, expected: &[&str]) {
        let mut names = Resolutions::default();
        for (name, ipv4) in [
            ("many.test", Ipv4Addr::new(224, 0, 0, 5)),
            ("all.test", Ipv4Addr::BROADCAST),
            ("none.test", Ipv4Addr::UNSPECIFIED),
        ] {
            names.insert(name, Ok(ipv4));
        }
        let value = format!("username={username}");
        let entries = parse([(address, value.as_str())], &names);
        let found = warnings(entries.instances().next().unwrap());
        let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), expected.len(), "{texts:?}");
        for (text, expected) in texts.iter().zip(expected) {
            assert!(
                text.starts_with(&format!("entry `{address}`")) && text.contains(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn an_ordinary_entry_has_no_warning() {
        check("10.0.0.5", "Administrator", &[]);
        check("10.0.0.5", "Müller", &[]);
    }

    #[test]
    fn addresses_of_no_other_machine_are_warnings() {
        check("127.0.0.1", "a", &["operator itself"]);
        check("169.254.1.1", "a", &["its own link"]);
        for name in ["many.test", "all.test", "none.test"] {
            check(name, "a", &["no single machine"]);
        }
    }

    #[test]
    fn every_invisible_character_is_a_warning_and_its_neighbours_are_not() {
        for range in [0xad..=0xad, 0x61c..=0x61c, 0x200b..=0x200f, 0x2028..=0x202e, 0x2060..=0x2069]
        {
            let (before, after) = (*range.start() - 1, *range.end() + 1);
            for code in range {
                let letter = char::from_u32(code).unwrap();
                check("10.0.0.5", &format!("a{letter}b"), &[&letter.escape_unicode().to_string()]);
            }
            for code in [before, after] {
                let letter = char::from_u32(code).unwrap();
                check("10.0.0.5", &format!("a{letter}b"), &[]);
            }
        }
        check("10.0.0.5", "a\u{feff}b", &["\\u{feff}"]);
    }

    #[test]
    fn logins_of_windows_have_no_warning() {
        for login in [
            "core",
            "a b.c-d_e$",
            "J\u{fc}rgen",
            "CORP\\svc-win",
            "corp.example.test\\Administrator",
            ".\\Administrator",
            "svc-win@corp.example.test",
            "a-very-long-name-of-a-service@corp.example.test",
            "exactly-20-letters-x",
            "CORP\\exactly-20-letters-x",
            "AzureAD\\a-very-long-name-of-a-person@corp.example.test",
            "azuread\\JaneDoe",
        ] {
            check("10.0.0.5", login, &[]);
        }
    }

    #[test]
    fn user_names_that_windows_cannot_have_are_warnings() {
        for (login, letter) in [
            ("<username>", '<'),
            ("\"Administrator\"", '"'),
            ("a port=22", '='),
            ("a,b", ','),
            ("a/b", '/'),
            ("CORP\\a\\b", '\\'),
            ("CORP\\a@b", '@'),
            ("<domain>\\a", '<'),
            ("a@b@c", '@'),
            ("AzureAD\\a@b@c", '@'),
        ] {
            check("10.0.0.5", login, &[&format!("the user name holds `{letter}`")]);
        }
        for login in ["more-than-20-letters-x", "CORP\\more-than-20-letters-x"] {
            check("10.0.0.5", login, &["more than 20 characters"]);
        }
        for login in ["user@", "CORP\\", "...", "@corp.test", "\\user", "AzureAD\\@corp.test"] {
            check("10.0.0.5", login, &["only a part of one"]);
        }
    }

    #[test]
    fn user_names_that_look_like_others_are_warnings() {
        check("10.0.0.5", "ad\u{202e}min", &["\\u{202e}"]);
        check("169.254.1.1", "ad\u{200b}min", &["its own link", "\\u{200b}"]);
    }
}
