//! Further names and addresses of a listed host, as a person wrote them.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use super::{BadHost, Host, canonical};
use crate::reserved::{reserved_address, reserved_name};

/// A further name or address of a host, from the line `names=` of its entry.
///
/// ```
/// use wmco_core::instances::AlsoNamed;
///
/// assert_eq!("Win-1.Example.test.".parse(), Ok(AlsoNamed::Name("win-1.example.test".into())));
/// assert!(matches!("2001:db8::7".parse(), Ok(AlsoNamed::Address(_))));
/// assert!("kubernetes.default.svc".parse::<AlsoNamed>().is_err());
/// ```
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum AlsoNamed {
    /// An address of either family.
    Address(IpAddr),
    /// A DNS name in [`canonical`] form.
    Name(String),
}

impl AlsoNamed {
    /// What a Node, a Machine or a request spells so: whatever is no address is a name.
    pub fn of(text: &str) -> Self {
        let address = text.parse::<IpAddr>().map(|address| address.to_canonical());
        address.map_or_else(|_| Self::Name(canonical(text)), Self::Address)
    }
}

impl fmt::Display for AlsoNamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// Why a text is no [`AlsoNamed`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadAlsoNamed {
    /// An address in brackets.
    #[error("it has brackets, write the address without them")]
    Brackets,
    /// Neither a name nor an address.
    #[error(transparent)]
    Host(#[from] BadHost),
    /// A name or an address with a port, or another text with a colon.
    #[error("it has a colon but is no IPv6 address, write a name or an address without a port")]
    Port,
    /// A name or an address that no host may have.
    #[error("it is {0}, which no host may have; leave it out")]
    Reserved(&'static str),
    /// The same name or address once more.
    #[error("it stands there before, leave one out")]
    Twice,
    /// A URL.
    #[error("it is a URL, write only the name or the address in it")]
    Url,
}

/// The item of a list that is no [`AlsoNamed`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("name {number} of the list: {problem}")]
pub struct BadItem {
    /// Its number from 1: a message repeats no value.
    pub number: usize,
    /// The problem.
    #[source]
    pub problem: BadAlsoNamed,
}

impl FromStr for AlsoNamed {
    type Err = BadAlsoNamed;

    fn from_str(text: &str) -> Result<Self, BadAlsoNamed> {
        if let Ok(address) = text.parse::<IpAddr>() {
            let address = address.to_canonical();
            let reserved = reserved_address(address).map(BadAlsoNamed::Reserved);
            return reserved.map_or(Ok(Self::Address(address)), Err);
        }
        if text.contains("://") {
            return Err(BadAlsoNamed::Url);
        }
        if text.starts_with('[') {
            return Err(BadAlsoNamed::Brackets);
        }
        if text.contains(':') {
            return Err(BadAlsoNamed::Port);
        }
        match text.parse()? {
            Host::Ipv4(address) => Ok(Self::Address(address.into())),
            Host::Name(name) => {
                let name = canonical(&name);
                let reserved = reserved_name(&name).map(BadAlsoNamed::Reserved);
                reserved.map_or(Ok(Self::Name(name)), Err)
            }
        }
    }
}

/// Reads a list with commas between names and addresses, and blanks around them.
pub(super) fn parse_list(text: &str) -> Result<BTreeSet<AlsoNamed>, BadItem> {
    let mut found = BTreeSet::new();
    for (item, number) in items(text).zip(1..) {
        let bad = |problem| BadItem { number, problem };
        if !found.insert(item.parse().map_err(bad)?) {
            return Err(bad(BadAlsoNamed::Twice));
        }
    }
    Ok(found)
}

/// The names and addresses of a list that can be read, whatever else is wrong with it.
pub(super) fn readable(list: &str) -> impl Iterator<Item = AlsoNamed> {
    items(list).filter_map(|item| item.parse().ok())
}

fn items(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_of_both_families_are_read() {
        let found = parse_list("Pub.example.test., 203.0.113.7 ,2001:db8::7").unwrap();
        let expected = [
            AlsoNamed::Address([203, 0, 113, 7].into()),
            AlsoNamed::Address("2001:db8::7".parse().unwrap()),
            AlsoNamed::Name("pub.example.test".to_owned()),
        ];
        assert_eq!(found, expected.into());
    }

    #[test]
    fn what_no_host_may_have_is_refused() {
        for text in [
            "localhost",
            "kubernetes",
            "Kubernetes.default.",
            "web.shop.svc",
            "x.cluster.local",
            "127.0.0.1",
            "::1",
            "fe80::7",
            "169.254.169.254",
            "::ffff:127.0.0.1",
            "255.255.255.255",
        ] {
            let found = parse_list(text);
            let problem = found.map_err(|bad| bad.problem);
            assert!(matches!(problem, Err(BadAlsoNamed::Reserved(_))), "{text}: {problem:?}");
        }
    }

    #[track_caller]
    fn refused(list: &str, number: usize, problem: &BadAlsoNamed) {
        let expected = BadItem { number, problem: problem.clone() };
        assert_eq!(parse_list(list), Err(expected), "{list}");
    }

    #[test]
    fn what_is_neither_is_refused() {
        for text in ["a,,b", "a,", "*.example.test", "a b", "203.0.113.256", "10.0.0.0/24"] {
            let problem = parse_list(text).unwrap_err().problem;
            assert!(matches!(problem, BadAlsoNamed::Host(_)), "{text}: {problem}");
        }
        refused("a.test, A.test.", 2, &BadAlsoNamed::Twice);
        refused("10.0.0.7,::ffff:10.0.0.7", 2, &BadAlsoNamed::Twice);
    }

    /// An address with a last dot is no name.
    #[test]
    fn addresses_with_a_last_dot_are_refused() {
        for text in ["10.0.0.7.", "2001:db8::7."] {
            assert!(parse_list(text).is_err(), "{text}");
        }
    }

    /// IPv6 addresses may stand there, so no text says that they are not supported.
    #[test]
    fn brackets_ports_and_urls_are_told_for_what_they_are() {
        refused("a.test,[2001:db8::7]", 2, &BadAlsoNamed::Brackets);
        refused("[2001:db8::7]:10250", 1, &BadAlsoNamed::Brackets);
        refused("a.test:10250", 1, &BadAlsoNamed::Port);
        refused("10.0.0.7:22", 1, &BadAlsoNamed::Port);
        refused("https://a.test:6443/x", 1, &BadAlsoNamed::Url);
        let text = parse_list("a.test,[2001:db8::7]").unwrap_err().to_string();
        assert_eq!(text, "name 2 of the list: it has brackets, write the address without them");
    }
}
