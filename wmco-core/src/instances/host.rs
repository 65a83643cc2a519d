//! A machine's address: an IPv4 address or a DNS name.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// Most bytes of a DNS name and of one label. Source: RFC 1035, section 2.3.4.
const NAME_BYTES: usize = 253;
const LABEL_BYTES: usize = 63;

/// An IPv4 address or a DNS name, as it is written in an entry.
///
/// ```
/// use wmco_core::instances::Host;
///
/// assert!(matches!("10.0.0.5".parse(), Ok(Host::Ipv4(_))));
/// assert!(matches!("win-1.example.test".parse(), Ok(Host::Name(_))));
/// assert!("10.0.0.256".parse::<Host>().is_err());
/// ```
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Host {
    /// A unicast IPv4 address.
    Ipv4(Ipv4Addr),
    /// A name by RFC 1123, in its original case; it may end with one dot.
    Name(String),
}

/// Why a text is not a [`Host`]. Each message ends with what to write instead.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadHost {
    /// Empty text.
    #[error("it is empty, write an IPv4 address or a DNS name")]
    Empty,
    /// An IPv6 address, or another text with a colon.
    #[error("IPv6 is not supported, write an IPv4 address or a DNS name without a port")]
    Ipv6,
    /// A label breaks RFC 1123.
    #[error(
        "it is no DNS name, build it from labels of 1 to 63 letters, digits and `-`, none of which \
         starts or ends with `-`"
    )]
    Label,
    /// A number of an IPv4 address starts with 0, which some programs read as octal.
    #[error("its numbers have leading zeros, which some programs read as octal, leave them out")]
    LeadingZeros,
    /// The name is longer than DNS allows.
    #[error("it is longer than a DNS name may be, use at most 253 characters")]
    Long,
    /// All zeros, broadcast or multicast: no single machine can have it.
    #[error("it is the address of no single machine, write the machine's own IPv4 address")]
    NotUnicast,
    /// The last label is a number, which resolvers read as part of an address.
    #[error("it ends in a number but is no IPv4 address, write four numbers from 0 to 255")]
    Number,
}

impl FromStr for Host {
    type Err = BadHost;

    fn from_str(text: &str) -> Result<Self, BadHost> {
        if text.is_empty() {
            return Err(BadHost::Empty);
        }
        if let Ok(ip) = text.parse::<Ipv4Addr>() {
            let unicast = !ip.is_unspecified() && !ip.is_broadcast() && !ip.is_multicast();
            return if unicast { Ok(Self::Ipv4(ip)) } else { Err(BadHost::NotUnicast) };
        }
        if text.contains(':') || text.parse::<Ipv6Addr>().is_ok() {
            return Err(BadHost::Ipv6);
        }
        let relative = text.strip_suffix('.').unwrap_or(text);
        if relative.len() > NAME_BYTES {
            return Err(BadHost::Long);
        }
        if !relative.split('.').all(is_label) {
            return Err(BadHost::Label);
        }
        if without_zeros(text).is_some() {
            return Err(BadHost::LeadingZeros);
        }
        if relative.rsplit('.').next().is_some_and(is_number) {
            return Err(BadHost::Number);
        }
        Ok(Self::Name(text.to_owned()))
    }
}

/// Reads a TCP port; `None` for any other text.
pub(super) fn port(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port > 0)
}

/// Whether the text is a label by RFC 1123, section 2.1.
fn is_label(label: &str) -> bool {
    (1..=LABEL_BYTES).contains(&label.len())
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// Whether a resolver may read the label as a number, decimal or hexadecimal.
fn is_number(label: &str) -> bool {
    let hexadecimal = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    label.bytes().all(|byte| byte.is_ascii_digit())
        || hexadecimal.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Reads an IPv4 address whose numbers may have leading zeros.
fn without_zeros(text: &str) -> Option<Ipv4Addr> {
    let octet = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?;
    let octets: Option<Vec<u8>> = text.split('.').map(octet).collect();
    Some(<[u8; 4]>::try_from(octets?).ok()?.into())
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ipv4(ip) => fmt::Display::fmt(ip, f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl Serialize for Host {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str, why: &BadHost) {
        assert_eq!(text.parse::<Host>().as_ref(), Err(why), "{text}");
    }

    #[test]
    fn numbers_that_are_no_address_are_refused() {
        for text in ["10.0.0.256", "10.0.0.7.9", "10.0.0.7.", "0x0A012A07", "1", "a.0x1f", "0.00.1"]
        {
            refused(text, &BadHost::Number);
        }
    }

    #[test]
    fn leading_zeros_are_told() {
        for text in ["010.0.0.1", "10.0.0.07", "10.00.0.1"] {
            refused(text, &BadHost::LeadingZeros);
        }
    }

    #[test]
    fn colons_are_told_as_ipv6() {
        for text in ["::1", "fd00::7", "::ffff:10.0.0.7", "win-1:22"] {
            refused(text, &BadHost::Ipv6);
        }
    }

    #[test]
    fn addresses_of_no_single_machine_are_refused() {
        for text in ["0.0.0.0", "255.255.255.255", "224.0.0.1"] {
            refused(text, &BadHost::NotUnicast);
        }
    }

    #[test]
    fn labels_follow_rfc_1123() {
        let long = "a".repeat(64);
        for text in ["-x.test", "x-.test", "a..b", ".", "a_b.test", "10.0.0.0/24", "ä.test", &long]
        {
            refused(text, &BadHost::Label);
        }
        refused(&["a"; 128].join("."), &BadHost::Long);
        for text in ["LOCALHOST", "3com.test", "win-1.example.test.", &"a".repeat(63)] {
            assert_eq!(text.parse(), Ok(Host::Name(text.to_owned())));
        }
    }
}
