//! Hexadecimal digits.

/// Bytes in lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        for digit in [byte >> 4, byte & 0x0f] {
            text.extend(char::from_digit(digit.into(), 16));
        }
        text
    })
}
