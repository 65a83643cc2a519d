//! Base64 as in Go: line ends are ignored, and an error has the offset.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD};
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig};

/// Like Go, ignores surplus bits of the last character.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

/// Re-encodes the text as Go does.
///
/// # Errors
/// For example `illegal base64 data at input byte 4`.
pub(crate) fn canonical(text: &str) -> Result<String, String> {
    let joined: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    match LENIENT.decode(joined) {
        Ok(bytes) => Ok(STANDARD.encode(bytes)),
        Err(_) => Err(format!("illegal base64 data at input byte {}", break_of(text.as_bytes()))),
    }
}

/// The offset of the error in invalid base64.
fn break_of(text: &[u8]) -> usize {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let counted = |(_, byte): &(usize, &u8)| !matches!(byte, b'\r' | b'\n');
    let mut bytes = text.iter().enumerate().filter(counted);
    let mut in_group = 0;
    while let Some((at, byte)) = bytes.next() {
        match (byte, in_group) {
            (byte, _) if is_digit(*byte) => in_group = (in_group + 1) % 4,
            (b'=', 2) => match bytes.next() {
                None => return text.len(),
                Some((next, b'=')) => return bytes.next().map_or(next, |(garbage, _)| garbage),
                Some((next, _)) => return next - 1,
            },
            (b'=', 3) => return bytes.next().map_or(at, |(garbage, _)| garbage),
            _ => return at,
        }
    }
    text.len() - in_group
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_and_errors_are_placed_as_by_go() {
        for (text, expected) in
            [("", ""), ("YQ==", "YQ=="), ("YW\nJj\r\n", "YWJj"), ("YR==", "YQ==")]
        {
            assert_eq!(canonical(text).as_deref(), Ok(expected));
        }
        for (text, at) in [
            ("***", 0),
            ("a!==", 1),
            ("YWJjZ", 4),
            ("YWJjZG", 4),
            ("YQ", 0),
            ("YQ=", 3),
            ("YQ=x", 2),
            ("YQ===", 4),
            ("YWI=x", 4),
            ("=", 0),
            ("Y===", 1),
            ("pass word", 4),
        ] {
            let error = format!("illegal base64 data at input byte {at}");
            assert_eq!(canonical(text), Err(error), "{text}");
        }
    }
}
