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
    what.map(|what| Warning { address: instance.address.clone(), what }).collect()
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
    fn user_names_that_look_like_others_are_warnings() {
        check("10.0.0.5", "ad\u{202e}min", &["\\u{202e}"]);
        check("169.254.1.1", "ad\u{200b}min", &["its own link", "\\u{200b}"]);
    }
}
