//! Reads the one PEM block that `spec.request` may hold.
//!
//! PEM readers differ in what they tolerate: headers, line lengths, blanks, several blocks, bytes after the last
//! block. We accept the strict form of RFC 7468 section 3 only, which Go, OpenSSL and rustls write: with line
//! feeds, or with a carriage return before each of them, as Windows editors write it. Explanatory text before the
//! block is allowed if it has no run of five hyphens, because then no reader can find a block in it. After the
//! block only line ends are allowed.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::PAD;
use base64::engine::simd::Simd;

const BEGIN: &[u8] = b"-----BEGIN CERTIFICATE REQUEST-----";
const END: &[u8] = b"-----END CERTIFICATE REQUEST-----";
const HYPHENS: &[u8] = b"-----";
/// Characters of each line but the last.
const LINE: usize = 64;
/// Lines that are decoded at once: few calls, and no allocation for them.
const ROWS: usize = 16;

static BASE64: LazyLock<Simd> = LazyLock::new(|| Simd::standard(PAD));

/// Why bytes are not one PEM block that holds a certificate request.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PemError {
    /// Bytes of the body that are not padded base64 of the standard alphabet.
    #[error("the PEM body is not canonical base64, encode the request again")]
    Base64,
    /// No BEGIN line of the right type, or other text before it that looks like PEM.
    #[error("`spec.request` needs one PEM block of type CERTIFICATE REQUEST and no other")]
    Begin,
    /// The END line is missing or is not the right one.
    #[error("the PEM block needs a line `-----END CERTIFICATE REQUEST-----`")]
    End,
    /// A line of the body is not 64 characters long (or 1 to 64, for the last one), or lines end in
    /// different ways.
    #[error("the PEM body needs lines of 64 characters that all end in the same way")]
    Lines,
    /// Text after the END line, for example a second block.
    #[error("`spec.request` has data behind its PEM block, remove it")]
    Trailing,
}

/// Decodes the only PEM block of `text` into DER bytes.
///
/// # Guarantees
/// Two accepted texts without explanatory text give equal bytes only if they are equal except for their kind of
/// line end and the number of trailing empty lines.
///
/// # Errors
/// [`PemError`] if `text` is anything but one certificate request in the form of RFC 7468.
pub fn decode(text: &[u8]) -> Result<Vec<u8>, PemError> {
    decode_plain(text).or_else(|error| decode_plain(&without_returns(text).ok_or(error)?))
}

/// Returns `text` with plain line feeds, if a carriage return stands before each line feed and nowhere else.
fn without_returns(text: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        match line.strip_suffix(b"\r\n") {
            Some(line) => plain.extend([line, b"\n"].concat()),
            None if line.ends_with(b"\n") => return None,
            None => plain.extend(line),
        }
    }
    (!plain.contains(&b'\r')).then_some(plain)
}

/// Decodes a text whose lines end with line feeds.
fn decode_plain(text: &[u8]) -> Result<Vec<u8>, PemError> {
    let mut block = block(text)?;
    while let Some(shorter) = block.strip_suffix(b"\n") {
        block = shorter;
    }
    let Some(body) = block.strip_suffix(END) else {
        return Err(if find(block, END).is_some() { PemError::Trailing } else { PemError::End });
    };
    decoded(body).ok_or_else(|| fault_of(body))
}

/// Returns the text after the first BEGIN line.
fn block(text: &[u8]) -> Result<&[u8], PemError> {
    if let Some(rest) = text.strip_prefix(BEGIN) {
        return rest.strip_prefix(b"\n").ok_or(PemError::Lines);
    }
    // Every PEM reader starts a block at hyphens at the start of a line.
    let start = find(text, HYPHENS).ok_or(PemError::Begin)?;
    let (front, rest) = text.split_at_checked(start).ok_or(PemError::Begin)?;
    if !front.ends_with(b"\n") {
        return Err(PemError::Begin);
    }
    rest.strip_prefix(BEGIN).ok_or(PemError::Begin)?.strip_prefix(b"\n").ok_or(PemError::Lines)
}

/// Decodes `body`, if all lines but the last are full. The line feed of a shorter line stays in its row, where the
/// base64 decoder finds it.
#[expect(clippy::slow_vector_initialization, reason = "zeroed memory takes malloc longer")]
fn decoded(body: &[u8]) -> Option<Vec<u8>> {
    let most = body.len() / 4 * 3 + 3;
    let mut der = Vec::with_capacity(most);
    der.resize(most, 0);
    let mut rows = [[0; LINE]; ROWS];
    let mut written = 0;
    let mut rest = body;
    while !rest.is_empty() {
        let group = rest.get(..ROWS * (LINE + 1)).unwrap_or(rest);
        rest = rest.get(group.len()..).unwrap_or_default();
        let characters = gather(group, rest.is_empty(), &mut rows)?;
        let characters = rows.as_flattened().get(..characters)?;
        let bytes = BASE64.decode_slice(characters, der.get_mut(written..)?).ok()?;
        written += bytes;
        // Padding is allowed at the end of the text only, not at the end of a group.
        if !rest.is_empty() && bytes != ROWS * LINE / 4 * 3 {
            return None;
        }
    }
    der.truncate(written);
    Some(der)
}

/// Copies the lines of `group` into `rows` and returns how many characters they have.
fn gather(group: &[u8], is_last: bool, rows: &mut [[u8; LINE]; ROWS]) -> Option<usize> {
    let mut lines = group.chunks(LINE + 1).peekable();
    let mut characters = 0;
    for row in rows {
        let Some(line) = lines.next() else { break };
        let line = line.strip_suffix(b"\n")?;
        if let Some(full) = line.first_chunk() {
            *row = *full;
        } else if !line.is_empty() && is_last && lines.peek().is_none() {
            row.get_mut(..line.len())?.copy_from_slice(line);
        } else {
            return None;
        }
        characters += line.len();
    }
    Some(characters)
}

/// Finds out why `body` was not decoded.
fn fault_of(body: &[u8]) -> PemError {
    let mut lines = body.split_inclusive(|byte| *byte == b'\n').rev();
    let last_fits = lines.next().is_some_and(|line| (2..=LINE + 1).contains(&line.len()));
    if find(body, HYPHENS).is_some() {
        PemError::Trailing
    } else if !body.contains(&b'\r')
        && body.ends_with(b"\n")
        && last_fits
        && lines.all(|line| line.len() == LINE + 1)
    {
        PemError::Base64
    } else {
        PemError::Lines
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE_LINE: &str =
        "-----BEGIN CERTIFICATE REQUEST-----\nAAEC\n-----END CERTIFICATE REQUEST-----\n";

    #[track_caller]
    fn refused(text: &str, error: PemError) {
        assert_eq!(decode(text.as_bytes()), Err(error), "{text:?}");
    }

    #[test]
    fn one_block_is_decoded() {
        assert_eq!(decode(ONE_LINE.as_bytes()), Ok(vec![0, 1, 2]));
    }

    #[test]
    fn last_line_feed_is_optional() {
        assert_eq!(decode(ONE_LINE.trim_end().as_bytes()), Ok(vec![0, 1, 2]));
    }

    #[test]
    fn text_in_front_is_skipped() {
        let text = format!("Certificate Request:\n    Data:\n{ONE_LINE}");
        assert_eq!(decode(text.as_bytes()), Ok(vec![0, 1, 2]));
    }

    #[test]
    fn full_lines_are_joined() {
        let text = format!(
            "-----BEGIN CERTIFICATE REQUEST-----\n{}\n{}\nAA==\n-----END CERTIFICATE REQUEST-----",
            "A".repeat(64),
            "A".repeat(64),
        );
        assert_eq!(decode(text.as_bytes()), Ok(vec![0; 97]));
    }

    /// Returns a text of `characters` characters, in lines, that ends with `end`.
    fn lines(characters: usize, end: &str) -> String {
        let body = "A".repeat(characters - end.len()) + end;
        let lines: Vec<_> = body.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
        format!(
            "-----BEGIN CERTIFICATE REQUEST-----\n{}\n-----END CERTIFICATE REQUEST-----\n",
            lines.join("\n")
        )
    }

    #[test]
    fn texts_of_every_length_are_decoded() {
        for quads in 1..600 {
            let text = lines(quads * 4, "");
            assert_eq!(decode(text.as_bytes()), Ok(vec![0; quads * 3]), "{quads}");
            let text = lines(quads * 4, "A==");
            assert_eq!(decode(text.as_bytes()), Ok(vec![0; quads * 3 - 2]), "{quads}");
        }
    }

    #[test]
    fn padding_within_the_text_is_refused() {
        for place in (0..4096).step_by(4) {
            let mut text = lines(4096 + 8, "").into_bytes();
            let start = BEGIN.len() + 1 + place + place / 64;
            text[start + 2..start + 4].copy_from_slice(b"==");
            assert_eq!(decode(&text), Err(PemError::Base64), "{place}");
        }
    }

    #[test]
    fn text_on_the_begin_line_is_refused() {
        refused(&format!("x{ONE_LINE}"), PemError::Begin);
    }

    #[test]
    fn block_of_another_type_in_front_is_refused() {
        let other = "-----BEGIN CERTIFICATE-----\nAAEC\n-----END CERTIFICATE-----\n";
        refused(&format!("{other}{ONE_LINE}"), PemError::Begin);
    }

    #[test]
    fn headers_are_refused() {
        refused(&ONE_LINE.replace("AAEC", "A: b\n\nAAEC"), PemError::Lines);
    }

    #[test]
    fn second_block_is_refused() {
        refused(&format!("{ONE_LINE}{ONE_LINE}"), PemError::Trailing);
    }

    #[test]
    fn data_behind_the_block_is_refused() {
        refused(&format!("{ONE_LINE}x"), PemError::Trailing);
        refused(&format!("{ONE_LINE} "), PemError::Trailing);
    }

    #[test]
    fn line_ends_behind_the_block_are_skipped() {
        for text in [format!("{ONE_LINE}\n\n"), format!("{ONE_LINE}\n").replace('\n', "\r\n")] {
            assert_eq!(decode(text.as_bytes()), Ok(vec![0, 1, 2]), "{text:?}");
        }
    }

    #[test]
    fn lines_may_end_as_on_windows() {
        for text in [ONE_LINE.to_owned(), format!("text\n{ONE_LINE}"), lines(200, "A==")] {
            let expected = decode(text.as_bytes());
            let windows = text.replace('\n', "\r\n");
            assert_eq!(decode(windows.as_bytes()), expected, "{windows:?}");
            assert_eq!(decode(windows.trim_end().as_bytes()), expected, "{windows:?}");
        }
    }

    #[test]
    fn lines_that_end_in_different_ways_are_refused() {
        refused(&ONE_LINE.replacen('\n', "\r\n", 1), PemError::Lines);
        refused(&ONE_LINE.replace("AAEC\n", "AAEC\r\n"), PemError::Lines);
        refused(&ONE_LINE.replace('\n', "\r"), PemError::Lines);
        refused(&ONE_LINE.replace('\n', "\r\r\n"), PemError::Lines);
        refused(&format!("text\n{}", ONE_LINE.replace('\n', "\r\n")), PemError::Lines);
        refused(&format!("{ONE_LINE}\r\n"), PemError::Trailing);
        refused(&format!("{}\n", ONE_LINE.replace('\n', "\r\n")), PemError::Lines);
    }

    #[test]
    fn other_line_lengths_are_refused() {
        refused(&ONE_LINE.replace("AAEC", "AA\nEC"), PemError::Lines);
        refused(&ONE_LINE.replace("AAEC", &"A".repeat(76)), PemError::Lines);
        refused(&ONE_LINE.replace("AAEC", "AAEC\n"), PemError::Lines);
    }

    #[test]
    fn unused_bits_that_are_set_are_refused() {
        refused(&ONE_LINE.replace("AAEC", "AAF="), PemError::Base64);
        refused(&ONE_LINE.replace("AAEC", "AAA"), PemError::Base64);
        refused(&ONE_LINE.replace("AAEC", "AA-_"), PemError::Base64);
    }

    #[test]
    fn missing_end_is_refused() {
        refused("-----BEGIN CERTIFICATE REQUEST-----\nAAEC\n", PemError::End);
        refused("", PemError::Begin);
    }
}
