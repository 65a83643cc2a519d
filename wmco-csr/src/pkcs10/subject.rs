//! The subject of a request: a sequence of relative names, each a set of attributes.

use crate::der::{Fault, ParseError, Reader, tag};

const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
const ORGANIZATION: [u8; 3] = [0x55, 0x04, 0x0a];

/// The subject of a certificate.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The content of the sequence; [`Subject::parse`] has seen all of it.
    names: Reader<'a>,
    common_name: Option<&'a str>,
    organization: Option<&'a str>,
    common_names: usize,
    organizations: usize,
    other: Option<&'a [u8]>,
}

/// An attribute of a subject.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Attribute<'a> {
    /// The common name; for nodes their user name.
    CommonName(&'a str),
    /// An organization; for Kubernetes a group.
    Organization(&'a str),
    /// Any other attribute, with the content of its object identifier.
    Other(&'a [u8]),
}

impl<'a> Subject<'a> {
    /// Reads the content of a `Name`.
    pub(super) fn parse(names: Reader<'a>) -> Result<Self, ParseError> {
        let mut subject = Self {
            names,
            common_name: None,
            organization: None,
            common_names: 0,
            organizations: 0,
            other: None,
        };
        let mut rest = Rest { names, set: Reader::new(&[]), before: &[] };
        while let Some(attribute) = rest.next()? {
            match attribute {
                Attribute::CommonName(name) => {
                    subject.common_name = Some(name);
                    subject.common_names += 1;
                }
                Attribute::Organization(name) => {
                    subject.organization = Some(name);
                    subject.organizations += 1;
                }
                Attribute::Other(kind) => {
                    subject.other.get_or_insert(kind);
                }
            }
        }
        Ok(subject)
    }

    /// The common name, if there is exactly one.
    pub fn common_name(&self) -> Option<&'a str> {
        self.common_name.filter(|_| self.common_names == 1)
    }

    /// The organization, if there is exactly one.
    pub fn organization(&self) -> Option<&'a str> {
        self.organization.filter(|_| self.organizations == 1)
    }

    /// The object identifier of the first attribute other than these two.
    pub fn other(&self) -> Option<&'a [u8]> {
        self.other
    }

    /// All attributes in their order.
    pub fn attributes(&self) -> impl Iterator<Item = Attribute<'a>> + use<'a> {
        let mut rest = Rest { names: self.names, set: Reader::new(&[]), before: &[] };
        std::iter::from_fn(move || rest.next().ok().flatten())
    }
}

/// Attributes that have not been read yet.
struct Rest<'a> {
    names: Reader<'a>,
    /// The rest of the current relative name.
    set: Reader<'a>,
    /// The previous attribute of the same relative name.
    before: &'a [u8],
}

impl<'a> Rest<'a> {
    /// Reads the next attribute; `None` after the last.
    fn next(&mut self) -> Result<Option<Attribute<'a>>, ParseError> {
        if self.set.is_empty() {
            if self.names.is_empty() {
                return Ok(None);
            }
            self.set = self.names.expect(tag::SET, "a relative name")?.content;
            self.before = &[];
        }
        let place = self.set;
        let pair = self.set.expect(tag::SEQUENCE, "a name attribute")?;
        // DER requires the members of a set to be sorted by their bytes.
        if !self.before.is_empty() && pair.raw <= self.before {
            return Err(place.error(Fault::Expected("attributes of a relative name in order")));
        }
        self.before = pair.raw;
        attribute(pair.content).map(Some)
    }
}

fn attribute(mut pair: Reader<'_>) -> Result<Attribute<'_>, ParseError> {
    let kind = pair.oid()?;
    // Fixed-size arrays are compared without a call.
    let attribute = match kind.try_into() {
        Ok(COMMON_NAME) => Attribute::CommonName(text(&mut pair)?),
        Ok(ORGANIZATION) => Attribute::Organization(text(&mut pair)?),
        Ok(_) | Err(_) => {
            pair.element()?;
            Attribute::Other(kind)
        }
    };
    pair.finish()?;
    Ok(attribute)
}

/// Reads a string of one of the two types that RFC 5280 allows encoders to write.
fn text<'a>(pair: &mut Reader<'a>) -> Result<&'a str, ParseError> {
    let place = *pair;
    let element = pair.element()?;
    let bytes = element.content.rest();
    let fits = match element.tag {
        tag::UTF8_STRING => !bytes.is_empty(),
        tag::PRINTABLE_STRING => !bytes.is_empty() && printable(bytes),
        _ => false,
    };
    let expected = place.error(Fault::Expected("a non-empty UTF8String or PrintableString"));
    if !fits {
        return Err(expected);
    }
    std::str::from_utf8(bytes).map_err(|_| expected)
}

/// Whether all bytes are of the alphabet of PrintableString (X.680, section 41.4).
fn printable(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| PRINTABLE.get(usize::from(byte)) == Some(&true))
}

/// For each byte, whether it is in that alphabet.
#[expect(clippy::indexing_slicing, reason = "a constant that panics does not compile")]
const PRINTABLE: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        let sign = matches!(byte, b' ' | b'\'' | b'('..=b')' | b'+'..=b'/' | b':' | b'=' | b'?');
        table[byte as usize] = sign || byte.is_ascii_alphanumeric();
        byte += 1;
    }
    table
};
