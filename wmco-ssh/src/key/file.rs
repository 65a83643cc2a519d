//! The private key in a text that people stored, in the one form that the decoder reads.
//!
//! OpenSSH finds a key between other blocks, behind marks of editors and in lines of any length. People also store
//! UTF-16, lose the line ends, or encode the whole file once more; the first two are read, the last is named.
//!
//! # Source
//! `docs/contract/ssh.md`, SSH2; RFC 7468, section 2.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::{EncryptedForm, KeyError, PublicKey};

const BEGIN: &str = "-----BEGIN ";
const DASHES: &str = "-----";
const PUTTY: &str = "PuTTY-User-Key-File-";

/// Letters by which UTF-16 without a mark is told.
const WIDE_LETTERS: usize = 16;

/// Encodings as base64, one inside of the other, that are looked through.
const BASE64_DEPTH: usize = 3;

/// Object identifier 1.2.840.10045.1.1 in DER: the parameters of a curve are spelled out.
const PRIME_FIELD: &[u8] = &[0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x01, 0x01];

/// First coordinate of the generator of P-256. Source: SEC 2, section 2.4.2.
const P256_GENERATOR: [u8; 32] = [
    0x6b, 0x17, 0xd1, 0xf2, 0xe1, 0x2c, 0x42, 0x47, 0xf8, 0xbc, 0xe6, 0xe5, 0x63, 0xa4, 0x40, 0xf2,
    0x77, 0x03, 0x7d, 0x81, 0x2d, 0xeb, 0x33, 0xa0, 0xf4, 0xa1, 0x39, 0x45, 0xd8, 0x98, 0xc2, 0x96,
];

/// Returns the first block of `bytes` with a private key that can be read, alone.
///
/// # Errors
/// [`KeyError`] if there is none, or if its passphrase or its kind makes it useless.
pub(super) fn first_private_block(bytes: &[u8]) -> Result<Zeroizing<String>, KeyError> {
    let text = decoded(bytes);
    if let Some(block) = blocks(&text).find(Block::is_private) {
        return block.checked();
    }
    Err(other_form(&text))
}

/// `bytes` as text. Comments need not be UTF-8: they are no part of the key.
fn decoded(bytes: &[u8]) -> Zeroizing<String> {
    let wide = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let (pairs, _) = bytes.as_chunks::<2>();
        let units = Zeroizing::new(pairs.iter().map(|pair| unit(*pair)).collect::<Vec<_>>());
        String::from_utf16_lossy(&units)
    };
    let (pairs, _) = bytes.as_chunks::<2>();
    let first = pairs.get(..WIDE_LETTERS).unwrap_or_default();
    let is_wide = |unit: fn([u8; 2]) -> u16| {
        !first.is_empty() && first.iter().all(|pair| matches!(unit(*pair), 1..0x80))
    };
    let text = Zeroizing::new(match bytes {
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        // Without a mark, UTF-16 shows by the upper halves of its first letters.
        _ if is_wide(u16::from_le_bytes) => wide(bytes, u16::from_le_bytes),
        _ if is_wide(u16::from_be_bytes) => wide(bytes, u16::from_be_bytes),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    });
    if text.contains('\\') { unescaped(&text) } else { text }
}

/// The text with line ends in place of those that were escaped on the way, once or twice, as in a JSON file. No key has a
/// backslash inside.
fn unescaped(text: &str) -> Zeroizing<String> {
    let mut plain = Zeroizing::new(String::with_capacity(text.len()));
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            plain.push(letter);
            continue;
        }
        while letters.next_if_eq(&'\\').is_some() {}
        match letters.next_if(|letter| matches!(letter, 'n' | 'r')) {
            Some(_) => plain.push('\n'),
            None => plain.push('\\'),
        }
    }
    plain
}

/// What stands between a begin and an end line.
struct Block<'a> {
    label: &'a str,
    body: &'a str,
}

/// All blocks, also those whose lines were joined.
fn blocks(text: &str) -> impl Iterator<Item = Block<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (_, begun) = rest.split_once(BEGIN)?;
        let (label, after) = begun.split_once(DASHES)?;
        // A block that is cut off ends with the text: the decoder says so.
        let body = after.split_once(DASHES).map_or(after, |(body, _)| body);
        rest = after;
        Some(Block { label, body })
    })
}

impl Block<'_> {
    fn is_private(&self) -> bool {
        self.label.ends_with("PRIVATE KEY")
    }

    /// The block in lines without blanks, if a key of ours can be in it.
    fn checked(&self) -> Result<Zeroizing<String>, KeyError> {
        let unsupported = |kind: &str| Err(KeyError::Unsupported { kind: kind.to_owned() });
        match self.label {
            "OPENSSH PRIVATE KEY" | "RSA PRIVATE KEY" | "PRIVATE KEY" | "EC PRIVATE KEY" => {}
            "ENCRYPTED PRIVATE KEY" => {
                return Err(KeyError::Encrypted { form: EncryptedForm::Pkcs8 });
            }
            "DSA PRIVATE KEY" => return unsupported("dsa"),
            _ => return Err(KeyError::NotAKey { found: "another kind of PEM file" }),
        }
        // Marks a passphrase in PKCS#1 and SEC1 files.
        if self.body.contains("Proc-Type:") && self.body.contains("ENCRYPTED") {
            return Err(KeyError::Encrypted { form: EncryptedForm::Other });
        }
        if let Some(line) = self.body.lines().position(|line| !is_header(line) && !is_base64(line))
        {
            return Err(KeyError::NotBase64 { line: line + 1 });
        }
        let lines = self.body.lines().filter(|line| !is_header(line));
        let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
        if has_foreign_curve(&words) {
            return unsupported("ecdsa with a curve other than P-256, P-384 and P-521");
        }
        let label = self.label;
        let mut text = Zeroizing::new(String::with_capacity(self.body.len() + 100));
        for part in [BEGIN, label, DASHES, "\n"] {
            text.push_str(part);
        }
        for word in words {
            text.push_str(word);
            text.push('\n');
        }
        for part in ["-----END ", label, DASHES, "\n"] {
            text.push_str(part);
        }
        Ok(text)
    }
}

/// Whether a line of a block is a header as in `Proc-Type: 4,ENCRYPTED`.
fn is_header(line: &str) -> bool {
    line.contains(':')
}

/// Whether a line holds nothing but blanks and base64, with its padding at the end.
fn is_base64(line: &str) -> bool {
    let letters = line.trim_end().trim_end_matches('=');
    let is_letter = |letter: char| {
        letter.is_ascii_alphanumeric() || matches!(letter, '+' | '/') || letter.is_whitespace()
    };
    letters.chars().all(is_letter)
}

/// Whether the block spells out the parameters of a curve that is not P-256, which the decoder would take for it.
fn has_foreign_curve(words: &[&str]) -> bool {
    let base64 = Zeroizing::new(words.concat());
    let Ok(der) = STANDARD.decode(base64.as_bytes()).map(Zeroizing::new) else { return false };
    let has = |part: &[u8]| der.windows(part.len()).any(|window| window == part);
    has(PRIME_FIELD) && !has(&P256_GENERATOR)
}

/// What a text without a private key is instead.
fn other_form(text: &str) -> KeyError {
    let not = |found| KeyError::NotAKey { found };
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return not("empty");
    }
    if trimmed.starts_with(PUTTY) {
        return not("a PuTTY key (`puttygen FILE -O private-openssh -o NEW-FILE` converts it)");
    }
    let mut labels =
        blocks(text).map(|block| block.label).filter(|label| *label != "EC PARAMETERS");
    match labels.next() {
        Some("CERTIFICATE" | "TRUSTED CERTIFICATE") => return not("a certificate"),
        Some("PUBLIC KEY" | "RSA PUBLIC KEY") => return not("a public key"),
        Some(_) => return not("another kind of PEM file"),
        None => {}
    }
    if PublicKey::from_authorized_keys(text).is_ok() || text.contains("---- BEGIN SSH2 PUBLIC KEY")
    {
        return not("a public key");
    }
    if text.contains("---- BEGIN SSH2 ENCRYPTED PRIVATE KEY") {
        return not(
            "a key of ssh.com (without a passphrase `ssh-keygen -i -f FILE > NEW-FILE` converts it)",
        );
    }
    if is_base64_of_a_key(trimmed) {
        return not(
            "base64 once too often (encode the file once in `data`, or put it into `stringData`)",
        );
    }
    if text.contains("BEGIN ") && text.contains("PRIVATE KEY") {
        return not("with a damaged begin line (five `-` stand at both of its ends)");
    }
    if text.contains('\u{fffd}') || text.contains('\0') {
        return not("binary data");
    }
    not("text without a begin line")
}

/// Whether the text is base64 of a file with a key or another block.
fn is_base64_of_a_key(text: &str) -> bool {
    let mut text = Zeroizing::new(text.to_owned());
    for _ in 0..BASE64_DEPTH {
        let joined = Zeroizing::new(text.split_whitespace().collect::<String>());
        let Ok(inner) = STANDARD.decode(joined.as_bytes()).map(Zeroizing::new) else {
            return false;
        };
        text = decoded(&inner);
        if blocks(&text).next().is_some() || text.trim_start().starts_with(PUTTY) {
            return true;
        }
    }
    false
}
