//! The wire format: tags, varints, length-delimited values.
//!
//! Source: Protocol Buffers documentation, "Encoding".

/// Why bytes are not a protobuf message.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum WireError {
    /// The input ends within a value.
    #[error("proto: unexpected EOF")]
    Eof,
    /// A member has another wire type than its type requires.
    #[error("proto: wrong wireType = {0}")]
    Kind(u8),
    /// A varint longer than ten bytes.
    #[error("proto: integer overflow")]
    Overflow,
    /// An invalid tag.
    #[error("proto: illegal tag {0}")]
    Tag(u64),
    /// A text that is not UTF-8.
    #[error("proto: invalid UTF-8")]
    Utf8,
}

/// A value on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
}

impl<'a> Wire<'a> {
    fn kind(self) -> u8 {
        match self {
            Self::Varint(_) => 0,
            Self::Fixed64(_) => 1,
            Self::Bytes(_) => 2,
            Self::Fixed32(_) => 5,
        }
    }

    pub(super) fn bytes(self) -> Result<&'a [u8], WireError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            other => Err(WireError::Kind(other.kind())),
        }
    }

    pub(super) fn text(self) -> Result<&'a str, WireError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| WireError::Utf8)
    }

    pub(super) fn varint(self) -> Result<u64, WireError> {
        match self {
            Self::Varint(number) => Ok(number),
            other => Err(WireError::Kind(other.kind())),
        }
    }

    pub(super) fn integer(self) -> Result<i64, WireError> {
        // Negative numbers are sent as ten-byte two's complement.
        self.varint().map(u64::cast_signed)
    }

    pub(super) fn double(self) -> Result<f64, WireError> {
        match self {
            Self::Fixed64(bits) => Ok(f64::from_bits(bits)),
            other => Err(WireError::Kind(other.kind())),
        }
    }
}

/// Reads the members of one message in order.
#[derive(Debug)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Result<u8, WireError> {
        let (first, rest) = self.0.split_first().ok_or(WireError::Eof)?;
        self.0 = rest;
        Ok(*first)
    }

    pub(super) fn varint(&mut self) -> Result<u64, WireError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(WireError::Overflow);
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(WireError::Overflow)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(WireError::Eof)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(WireError::Eof)?;
        self.0 = rest;
        Ok(*taken)
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<(u32, Wire<'a>), WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() { None } else { Some(self.member()) }
    }
}

impl<'a> Reader<'a> {
    fn member(&mut self) -> Result<(u32, Wire<'a>), WireError> {
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok().filter(|n| *n > 0).ok_or(WireError::Tag(tag))?;
        let wire = match tag & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| WireError::Overflow)?;
                Wire::Bytes(self.take(length)?)
            }
            5 => Wire::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(WireError::Tag(tag)),
        };
        Ok((number, wire))
    }
}

/// Writes members of one message.
#[derive(Debug, Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    fn raw_varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(low_bits(number) | 0x80);
            number >>= 7;
        }
        self.0.push(low_bits(number));
    }

    fn tag(&mut self, number: u32, kind: u64) {
        self.raw_varint(u64::from(number) << 3 | kind);
    }

    pub(super) fn integer(&mut self, number: u32, value: i64) {
        self.tag(number, 0);
        self.raw_varint(value.cast_unsigned());
    }

    pub(super) fn double(&mut self, number: u32, value: f64) {
        self.tag(number, 1);
        self.0.extend(value.to_bits().to_le_bytes());
    }

    pub(super) fn bytes(&mut self, number: u32, value: &[u8]) {
        self.tag(number, 2);
        self.raw_varint(value.len() as u64);
        self.0.extend(value);
    }
}

fn low_bits(number: u64) -> u8 {
    let [first, ..] = number.to_le_bytes();
    first & 0x7f
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Written values are read back unchanged.
        #[test]
        fn round_trip(number in 1_u32..5000, integer: i64, bytes: Vec<u8>, double: f64) {
            let mut writer = Writer::default();
            writer.integer(number, integer);
            writer.bytes(number, &bytes);
            writer.double(number, double);
            let read: Vec<_> = Reader(&writer.0).collect::<Result<_, _>>().unwrap();
            prop_assert_eq!(read[0].0, number);
            prop_assert_eq!(read[0].1.integer(), Ok(integer));
            prop_assert_eq!(read[1].1.bytes(), Ok(bytes.as_slice()));
            prop_assert_eq!(read[2].1.double().unwrap().to_bits(), double.to_bits());
        }

        /// Any bytes give members or an error, never a panic.
        #[test]
        fn any_bytes_are_harmless(bytes: Vec<u8>) {
            let read: Result<Vec<_>, _> = Reader(&bytes).collect();
            prop_assert!(read.is_err() || read.is_ok_and(|members| members.len() <= bytes.len()));
        }
    }
}
