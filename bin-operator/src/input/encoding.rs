//! Bytes of a file as text.

use std::io;

/// The mark in front of UTF-8 texts of some editors.
const UTF8_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// The marks in front of UTF-16, as Windows PowerShell 5 writes the output of programs.
const UTF16_LITTLE_MARK: [u8; 2] = [0xff, 0xfe];
const UTF16_BIG_MARK: [u8; 2] = [0xfe, 0xff];

/// `bytes` as text, without the mark in front of it.
pub(super) fn text(mut bytes: Vec<u8>) -> io::Result<String> {
    let utf16 = |rest: &[u8], unit: fn([u8; 2]) -> u16| {
        let (pairs, rest) = rest.as_chunks::<2>();
        let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
        String::from_utf16(&units).ok().filter(|_| rest.is_empty())
    };
    let text = if let Some(rest) = bytes.strip_prefix(&UTF16_LITTLE_MARK) {
        utf16(rest, u16::from_le_bytes)
    } else if let Some(rest) = bytes.strip_prefix(&UTF16_BIG_MARK) {
        utf16(rest, u16::from_be_bytes)
    } else {
        if bytes.starts_with(&UTF8_MARK) {
            bytes.drain(..UTF8_MARK.len());
        }
        String::from_utf8(bytes).ok()
    };
    let wrong = "it is neither UTF-8 nor UTF-16 with its mark";
    text.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, wrong))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encodings_of_windows_are_read() {
        let expected = "a: \u{e4}\u{1f600}\r\n";
        let marked: Vec<u16> = format!("\u{feff}{expected}").encode_utf16().collect();
        let read = |bytes: Vec<u8>| text(bytes).unwrap();
        assert_eq!(read(marked.iter().flat_map(|unit| unit.to_le_bytes()).collect()), expected);
        assert_eq!(read(marked.iter().flat_map(|unit| unit.to_be_bytes()).collect()), expected);
        assert_eq!(read(format!("\u{feff}{expected}").into_bytes()), expected);
        assert_eq!(read(expected.into()), expected);
    }

    #[test]
    fn what_is_no_text_is_refused() {
        for bytes in [&b"\xff\xfea"[..], b"\xff\xfe\x00\xd8", b"\xc3", b"a\x00\xff"] {
            assert!(text(bytes.to_vec()).is_err(), "{bytes:?}");
        }
    }
}
