//! Further names and addresses of a listed host, as a person wrote them.

use std::collections::BTreeSet;
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
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum AlsoNamed {
    /// An address of either family.
    Address(IpAddr),
    /// A DNS name in [`canonical`] form.
    Name(String),
}

/// Why a text is no [`AlsoNamed`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadAlsoNamed {
    /// Neither a name nor an address.
    #[error(transparent)]
    Host(#[from] BadHost),
    /// A name or an address that no host may have.
    #[error("it holds {0}, which no host may have; leave that out")]
    Reserved(&'static str),
    /// The same name or address twice.
    #[error("it holds a name or an address twice, leave one out")]
    Twice,
}

impl FromStr for AlsoNamed {
    type Err = BadAlsoNamed;

    fn from_str(text: &str) -> Result<Self, BadAlsoNamed> {
        if let Ok(address) = text.parse::<IpAddr>() {
            let address = address.to_canonical();
            let reserved = reserved_address(address).map(BadAlsoNamed::Reserved);
            return reserved.map_or(Ok(Self::Address(address)), Err);
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
pub(super) fn parse_list(text: &str) -> Result<BTreeSet<AlsoNamed>, BadAlsoNamed> {
    let mut found = BTreeSet::new();
    for part in text.split(',') {
        if !found.insert(part.trim_matches([' ', '\t']).parse()?) {
            return Err(BadAlsoNamed::Twice);
        }
    }
    Ok(found)
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
            assert!(matches!(found, Err(BadAlsoNamed::Reserved(_))), "{text}: {found:?}");
        }
    }

    #[test]
    fn what_is_neither_is_refused() {
        for text in ["a,,b", "a,", "*.example.test", "a b", "203.0.113.256", "10.0.0.0/24", "[::1]"]
        {
            assert!(matches!(parse_list(text), Err(BadAlsoNamed::Host(_))), "{text}");
        }
        assert_eq!(parse_list("a.test, A.test."), Err(BadAlsoNamed::Twice));
        assert_eq!(parse_list("10.0.0.7,::ffff:10.0.0.7"), Err(BadAlsoNamed::Twice));
    }
}
