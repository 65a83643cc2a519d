//! A strict reader for DER, the one encoding that X.690 allows for each value.
//!
//! Borrows, never copies, never allocates, never panics. Everything else that BER allows (long lengths, indefinite
//! lengths) is refused, so that no other reader can see another structure.

/// Universal tags that requests use, constructed bit included.
pub(crate) mod tag {
    pub(crate) const BOOLEAN: u8 = 0x01;
    pub(crate) const INTEGER: u8 = 0x02;
    pub(crate) const BIT_STRING: u8 = 0x03;
    pub(crate) const OCTET_STRING: u8 = 0x04;
    pub(crate) const NULL: u8 = 0x05;
    pub(crate) const OID: u8 = 0x06;
    pub(crate) const UTF8_STRING: u8 = 0x0c;
    pub(crate) const PRINTABLE_STRING: u8 = 0x13;
    pub(crate) const SEQUENCE: u8 = 0x30;
    pub(crate) const SET: u8 = 0x31;
    /// `[0]`, constructed: the attributes of a request.
    pub(crate) const CONTEXT_0: u8 = 0xa0;
}

/// A fault in the bytes at an offset.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Another element is expected here.
    #[error("needs {0}")]
    Expected(&'static str),
    /// A tag that takes more than one byte; requests have none.
    #[error("has a tag of several bytes")]
    LongTag,
    /// A length that is indefinite, or that could be written in fewer bytes.
    #[error("has a length that is not in its shortest form")]
    Length,
    /// An element that may occur once occurs twice.
    #[error("repeats {0}")]
    Repeated(&'static str),
    /// More elements of a kind than any real request has.
    #[error("has too many {0}")]
    TooMany(&'static str),
    /// Bytes after the last element.
    #[error("has data behind its end")]
    Trailing,
    /// The bytes end within an element.
    #[error("ends too early")]
    Truncated,
}

/// Why bytes are not a PKCS#10 request in the form that we accept.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the request {fault} at byte {offset}, make it again with a DER encoder")]
pub struct ParseError {
    /// Offset in the DER bytes, from 0.
    pub offset: usize,
    /// The fault at this offset.
    #[source]
    pub fault: Fault,
}

/// An element: its tag, its content, and all of its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Element<'a> {
    pub(crate) tag: u8,
    pub(crate) content: Reader<'a>,
    pub(crate) raw: &'a [u8],
}

/// A range of a document that is being read from front to back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    /// Offset of `rest` in the document.
    offset: usize,
}

impl<'a> Reader<'a> {
    /// Reads `bytes` as a document of its own.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, offset: 0 }
    }

    /// The bytes that have not been read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything has been read.
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// `fault` at the current offset.
    pub(crate) fn error(&self, fault: Fault) -> ParseError {
        ParseError { offset: self.offset, fault }
    }

    /// The tag of the next element, without reading it.
    pub(crate) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Reads the next element, whatever its tag.
    #[expect(clippy::inline_always, reason = "a fifth of the time of parsing, measured")]
    #[inline(always)]
    pub(crate) fn element(&mut self) -> Result<Element<'a>, ParseError> {
        let Some((&tag, after_tag)) = self.rest.split_first() else {
            return Err(self.error(Fault::Truncated));
        };
        if tag & 0x1f == 0x1f {
            return Err(self.error(Fault::LongTag));
        }
        let Some((&first, mut after_length)) = after_tag.split_first() else {
            return Err(self.error(Fault::Truncated));
        };
        let mut length = usize::from(first);
        if first >= 0x80 {
            // Two bytes of length are enough for 64 KiB, far above any size limit of ours.
            let count = usize::from(first & 0x7f);
            if count == 0 || count > 2 {
                return Err(self.error(Fault::Length));
            }
            let Some((bytes, rest)) = after_length.split_at_checked(count) else {
                return Err(self.error(Fault::Truncated));
            };
            length = bytes.iter().fold(0, |sum, &byte| (sum << 8) | usize::from(byte));
            after_length = rest;
            if length < 0x80 || (count == 2 && length < 0x100) {
                return Err(self.error(Fault::Length));
            }
        }
        let Some((content, rest)) = after_length.split_at_checked(length) else {
            return Err(self.error(Fault::Truncated));
        };
        let header = self.rest.len() - after_length.len();
        let raw = self.rest.get(..header + length).unwrap_or_default();
        let content = Reader { rest: content, offset: self.offset + header };
        self.offset += header + length;
        self.rest = rest;
        Ok(Element { tag, content, raw })
    }

    /// Reads the next element, which must be `what` and have `tag`.
    #[inline]
    pub(crate) fn expect(
        &mut self,
        tag: u8,
        what: &'static str,
    ) -> Result<Element<'a>, ParseError> {
        if self.peek() != Some(tag) {
            return Err(self.error(Fault::Expected(what)));
        }
        self.element()
    }

    /// Reads an object identifier and returns its content.
    pub(crate) fn oid(&mut self) -> Result<&'a [u8], ParseError> {
        let content = self.expect(tag::OID, "an object identifier")?.content;
        let bytes = content.rest;
        // Each arc ends with the first byte below 0x80, and does not start with a zero digit.
        let (mut between, mut padded) = (true, bytes.is_empty());
        for &byte in bytes {
            padded |= between && byte == 0x80;
            between = byte < 0x80;
        }
        if padded || !between {
            return Err(content.error(Fault::Expected("a canonical object identifier")));
        }
        Ok(bytes)
    }

    /// Reads a bit string of whole bytes and returns these.
    pub(crate) fn bytes_of_bit_string(&mut self) -> Result<Reader<'a>, ParseError> {
        let content = self.expect(tag::BIT_STRING, "a bit string")?.content;
        match content.rest.split_first() {
            Some((0, bytes)) => Ok(Reader { rest: bytes, offset: content.offset + 1 }),
            _ => Err(content.error(Fault::Expected("a bit string of whole bytes"))),
        }
    }

    /// Reads an integer above zero and returns its bytes, most significant first, without a sign byte.
    pub(crate) fn positive_integer(&mut self) -> Result<&'a [u8], ParseError> {
        let content = self.expect(tag::INTEGER, "an integer")?.content;
        match content.rest {
            [0, magnitude @ ..] if magnitude.first().is_some_and(|&byte| byte >= 0x80) => {
                Ok(magnitude)
            }
            [0x01..=0x7f, ..] => Ok(content.rest),
            _ => Err(content.error(Fault::Expected("an integer above zero, in its shortest form"))),
        }
    }

    /// Succeeds if everything has been read.
    pub(crate) fn finish(self) -> Result<(), ParseError> {
        if self.is_empty() { Ok(()) } else { Err(self.error(Fault::Trailing)) }
    }
}
