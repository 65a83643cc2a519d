//! Reads the one PEM block that `spec.request` may hold.
//!
//! PEM readers differ in what they forgive: headers, line lengths, blanks, several blocks, bytes
//! behind the last one. We accept one form only, the strict one of RFC 7468 section 3 with line
//! feeds, which is what Go, OpenSSL and rustls write. Explanatory text in front is allowed as long
//! as it has no run of five hyphens, because then no reader can find a block in it.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::PAD;
use base64::engine::simd::Simd;

const BEGIN: &[u8] = b"-----BEGIN CERTIFICATE REQUEST-----";
const END: &[u8] = b"-----END CERTIFICATE REQUEST-----";
const HYPHENS: &[u8] = b"-----";
/// Characters of each line but the last.
const LINE: usize = 64;

static BASE64: LazyLock<Simd> = LazyLock::new(|| Simd::standard(PAD));

/// Why bytes are not one PEM block that holds a certificate request.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PemError {
    /// Bytes of the body that are not padded base64 of the standard alphabet.
    #[error("the PEM body is not canonical base64, encode the request again")]
    Base64,
    /// No BEGIN line of the right type, or something in front of it that looks like PEM.
    #[error("`spec.request` needs one PEM block of type CERTIFICATE REQUEST and no other")]
    Begin,
    /// The END line is missing or is not the right one.
    #[error("the PEM block needs a line `-----END CERTIFICATE REQUEST-----`")]
    End,
    /// A line of the body is not 64 characters long (or 1 to 64, for the last one).
    #[error("the PEM body needs lines of 64 characters that end with a line feed")]
    Lines,
    /// Something behind the END line, for example a second block.
    #[error("`spec.request` has data behind its PEM block, remove it")]
    Trailing,
}

/// Decodes the only PEM block of `text` into DER bytes.
///
/// # Guarantees
/// Two accepted texts without explanatory text give equal bytes only if they are equal up to the
/// final line feed.
///
/// # Errors
/// [`PemError`] when `text` is anything but one certificate request in the form of RFC 7468.
pub fn decode(text: &[u8]) -> Result<Vec<u8>, PemError> {
    let block = block(text)?;
    let block = block.strip_suffix(b"\n").unwrap_or(block);
    let Some(body) = block.strip_suffix(END) else {
        return Err(if find(block, END).is_some() { PemError::Trailing } else { PemError::End });
    };
    let joined = joined(body);
    joined.and_then(|characters| BASE64.decode(characters).ok()).ok_or_else(|| fault_of(body))
}

/// What follows the first BEGIN line.
fn block(text: &[u8]) -> Result<&[u8], PemError> {
    if let Some(rest) = text.strip_prefix(BEGIN) {
        return rest.strip_prefix(b"\n").ok_or(PemError::Lines);
    }
    // Whatever looks like a block to some reader starts with hyphens at the start of a line.
    let start = find(text, HYPHENS).ok_or(PemError::Begin)?;
    let (front, rest) = text.split_at_checked(start).ok_or(PemError::Begin)?;
    if !front.ends_with(b"\n") {
        return Err(PemError::Begin);
    }
    rest.strip_prefix(BEGIN).ok_or(PemError::Begin)?.strip_prefix(b"\n").ok_or(PemError::Lines)
}

/// The lines of `body` without their line feeds, if all but the last are full. A short line within
/// leaves its line feed in a chunk, and is found by the base64 decoder.
fn joined(body: &[u8]) -> Option<Vec<u8>> {
    let mut joined = Vec::with_capacity(body.len());
    let mut lines = body.chunks(LINE + 1).peekable();
    while let Some(line) = lines.next() {
        let characters = line.strip_suffix(b"\n")?;
        if characters.is_empty() || (characters.len() < LINE && lines.peek().is_some()) {
            return None;
        }
        joined.extend_from_slice(characters);
    }
    Some(joined)
}

/// Why `body` was not decoded.
fn fault_of(body: &[u8]) -> PemError {
    let mut lines = body.split_inclusive(|byte| *byte == b'\n').rev();
    let last_fits = lines.next().is_some_and(|line| (2..=LINE + 1).contains(&line.len()));
    if find(body, HYPHENS).is_some() {
        PemError::Trailing
    } else if body.ends_with(b"\n") && last_fits && lines.all(|line| line.len() == LINE + 1) {
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
        refused(&format!("{ONE_LINE}\n"), PemError::Trailing);
    }

    #[test]
    fn other_line_lengths_are_refused() {
        refused(&ONE_LINE.replace("AAEC", "AA\nEC"), PemError::Lines);
        refused(&ONE_LINE.replace("AAEC", &"A".repeat(76)), PemError::Lines);
        refused(&ONE_LINE.replace("AAEC", "AAEC\n"), PemError::Lines);
        refused(&ONE_LINE.replace('\n', "\r\n"), PemError::Lines);
        refused(&format!("text\r\n{}", ONE_LINE.replace('\n', "\r\n")), PemError::Lines);
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
