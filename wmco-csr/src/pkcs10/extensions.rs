//! Attributes of a request, and the extensions in one of them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::der::{Fault, ParseError, Reader, tag};

const EXTENSION_REQUEST: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x0e];
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
/// Tags of the two kinds of alternative name that serving certificates may have.
const DNS: u8 = 0x82;
const IP: u8 = 0x87;
/// Most extensions or attributes of a real request; bounds the search for repetitions.
const MOST: usize = 16;

/// The attributes of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extensions<'a> {
    names: Option<GeneralNames<'a>>,
    /// The object identifier of the first extension or attribute of an unknown kind.
    unknown: Option<&'a [u8]>,
}

impl<'a> Extensions<'a> {
    /// The requested alternative names, never empty; `None` without that extension.
    pub fn alternative_names(&self) -> Option<GeneralNames<'a>> {
        self.names
    }

    /// The object identifier of the first attribute other than an extension request, or of the first extension
    /// other than alternative names and key usage.
    pub fn unknown(&self) -> Option<&'a [u8]> {
        self.unknown
    }

    /// Reads the content of the attributes.
    pub(super) fn parse(attributes: Reader<'a>) -> Result<Self, ParseError> {
        let mut extensions = Self::default();
        let mut seen = Seen::default();
        let mut rest = attributes;
        while !rest.is_empty() {
            let place = rest;
            let mut attribute = rest.expect(tag::SEQUENCE, "an attribute")?.content;
            let kind = attribute.oid()?;
            seen.add(kind, &place, "an attribute")?;
            let mut values = attribute.expect(tag::SET, "a set of values")?.content;
            attribute.finish()?;
            if kind == EXTENSION_REQUEST {
                let list = values.expect(tag::SEQUENCE, "extensions")?.content;
                values.finish()?;
                extensions.read(list)?;
            } else {
                extensions.unknown.get_or_insert(kind);
            }
        }
        Ok(extensions)
    }

    fn read(&mut self, mut list: Reader<'a>) -> Result<(), ParseError> {
        if list.is_empty() {
            return Err(list.error(Fault::Expected("an extension")));
        }
        let mut seen = Seen::default();
        while !list.is_empty() {
            let place = list;
            let mut extension = list.expect(tag::SEQUENCE, "an extension")?.content;
            let kind = extension.oid()?;
            seen.add(kind, &place, "an extension")?;
            if extension.peek() == Some(tag::BOOLEAN) {
                let critical = extension.element()?.content;
                // FALSE is the default, which DER leaves out.
                if critical.rest() != [0xff] {
                    return Err(critical.error(Fault::Expected("TRUE or nothing")));
                }
            }
            let mut value = extension.expect(tag::OCTET_STRING, "an extension value")?.content;
            extension.finish()?;
            match kind {
                ALTERNATIVE_NAMES => {
                    let names = value.expect(tag::SEQUENCE, "alternative names")?.content;
                    value.finish()?;
                    self.names = Some(GeneralNames::parse(names)?);
                }
                KEY_USAGE => {
                    value.expect(tag::BIT_STRING, "a key usage")?;
                    value.finish()?;
                }
                EXTENDED_KEY_USAGE => {
                    let mut usages = value.expect(tag::SEQUENCE, "key usages")?.content;
                    value.finish()?;
                    while !usages.is_empty() {
                        usages.oid()?;
                    }
                }
                other => {
                    self.unknown.get_or_insert(other);
                }
            }
        }
        Ok(())
    }
}

/// Identifiers that have occurred at one level.
#[derive(Default)]
struct Seen<'a> {
    kinds: [&'a [u8]; MOST],
    count: usize,
}

impl<'a> Seen<'a> {
    fn add(
        &mut self,
        kind: &'a [u8],
        place: &Reader<'a>,
        what: &'static str,
    ) -> Result<(), ParseError> {
        if self.kinds.iter().take(self.count).any(|seen| *seen == kind) {
            return Err(place.error(Fault::Repeated(what)));
        }
        let free = self.kinds.get_mut(self.count);
        *free.ok_or_else(|| place.error(Fault::TooMany("extensions")))? = kind;
        self.count += 1;
        Ok(())
    }
}

/// Alternative names of a certificate, at least one.
#[derive(Clone, Copy, Debug)]
pub struct GeneralNames<'a> {
    /// The content of the sequence; [`GeneralNames::parse`] has seen all of it.
    names: Reader<'a>,
    /// Whether any of them is neither a host name nor an IP address.
    other: bool,
}

/// An alternative name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum GeneralName<'a> {
    /// A host name, ASCII, otherwise as it was sent.
    Dns(&'a str),
    /// An e-mail address, ASCII, otherwise as it was sent.
    Email(&'a str),
    /// An IP address, never a network. An IPv4-mapped IPv6 address is read as IPv4, as the signer does for the
    /// certificate.
    Ip(IpAddr),
    /// Any other kind (directory names, other names, registered identifiers), with its tag.
    Other(u8),
    /// A URI, ASCII, otherwise as it was sent.
    Uri(&'a str),
}

impl<'a> GeneralNames<'a> {
    fn parse(names: Reader<'a>) -> Result<Self, ParseError> {
        if names.is_empty() {
            return Err(names.error(Fault::Expected("an alternative name")));
        }
        let mut rest = names;
        let mut other = false;
        while !rest.is_empty() {
            let name = general_name(&mut rest)?;
            other |= !matches!(name, GeneralName::Dns(_) | GeneralName::Ip(_));
        }
        Ok(Self { names, other })
    }

    /// Reads names again from [`Self::content`].
    pub(crate) fn read_again(content: &'a [u8]) -> Self {
        Self { names: Reader::new(content), other: true }
    }

    /// The names in DER, concatenated.
    pub(crate) fn content(&self) -> &'a [u8] {
        self.names.rest()
    }

    /// Whether `is_known` accepts each host name (ASCII) and `has` accepts each address.
    pub(crate) fn all(
        &self,
        is_known: impl Fn(&[u8]) -> bool,
        has: impl Fn(IpAddr) -> bool,
    ) -> bool {
        let mut rest = self.names;
        while let Ok(name) = rest.element() {
            let bytes = name.content.rest();
            let fits = match name.tag {
                DNS => is_known(bytes),
                IP => address(bytes).is_some_and(&has),
                _ => true,
            };
            if !fits {
                return false;
            }
        }
        true
    }

    /// Whether all of them are host names and addresses.
    pub(crate) fn are_hosts(&self) -> bool {
        !self.other
    }

    /// The names in their order.
    pub fn iter(&self) -> impl Iterator<Item = GeneralName<'a>> + use<'a> {
        let mut rest = self.names;
        std::iter::from_fn(
            move || if rest.is_empty() { None } else { general_name(&mut rest).ok() },
        )
    }
}

fn general_name<'a>(names: &mut Reader<'a>) -> Result<GeneralName<'a>, ParseError> {
    let name = names.element()?;
    let bytes = name.content.rest();
    let ascii = || {
        let text = std::str::from_utf8(bytes).ok().filter(|text| text.is_ascii());
        text.ok_or_else(|| name.content.error(Fault::Expected("ASCII in an alternative name")))
    };
    match name.tag {
        0x81 => ascii().map(GeneralName::Email),
        DNS => ascii().map(GeneralName::Dns),
        0x86 => ascii().map(GeneralName::Uri),
        IP => {
            let fault = Fault::Expected("an address of 4 or 16 bytes");
            address(bytes).map(GeneralName::Ip).ok_or_else(|| name.content.error(fault))
        }
        // otherName, x400Address, directoryName, ediPartyName, registeredID
        0xa0 | 0xa3 | 0xa4 | 0xa5 | 0x88 => Ok(GeneralName::Other(name.tag)),
        _ => Err(name.content.error(Fault::Expected("a known kind of alternative name"))),
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(|octets| IpAddr::V4(Ipv4Addr::from(octets)));
    let sixteen =
        |_| <[u8; 16]>::try_from(bytes).map(|octets| Ipv6Addr::from(octets).to_canonical());
    four.or_else(sixteen).ok()
}
