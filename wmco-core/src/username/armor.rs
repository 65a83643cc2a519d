//! The text form: base64 in short lines with a checksum, without begin and end lines.

use base64::Engine as _;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD};
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig};

use super::UsernameError;

const BEGIN: &str = "-----BEGIN ENCRYPTED DATA-----";
const END: &str = "-----END ENCRYPTED DATA-----";

/// Replaces line feeds, so that the value is one line.
const LINE_FEED: &str = "<wmcoMarker>";

/// Characters per line.
const WIDTH: usize = 64;

/// Accepts missing padding; otherwise strict.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

pub(super) fn write(message: &[u8]) -> String {
    let base64 = STANDARD.encode(message);
    let mut text = String::with_capacity(base64.len() + base64.len() / 4 + 16);
    for (index, letter) in base64.chars().enumerate() {
        if index > 0 && index % WIDTH == 0 {
            text.push_str(LINE_FEED);
        }
        text.push(letter);
    }
    text.push_str(LINE_FEED);
    text.push('=');
    text.push_str(&STANDARD.encode(checksum(message)));
    text
}

pub(super) fn read(text: &str) -> Result<Vec<u8>, UsernameError> {
    let damaged = |problem| UsernameError::Damaged { problem };
    let text = text.replace(LINE_FEED, "\n");
    let mut base64 = String::new();
    let mut expected = None;
    for line in text.lines().map(str::trim) {
        match line.strip_prefix('=') {
            _ if line.is_empty() || line == BEGIN => {}
            _ if line == END => break,
            Some(sum) => {
                expected = Some(STANDARD.decode(sum).map_err(|_| damaged("bad checksum"))?);
            }
            // The armor's own headers, `Version: ...`, end at a blank line.
            None if line.contains(": ") => {}
            None => base64.push_str(line),
        }
    }
    let message = LENIENT.decode(base64).map_err(|_| damaged("it is not base64"))?;
    match expected {
        _ if message.is_empty() => Err(damaged("it is empty")),
        Some(sum) if sum != checksum(&message) => Err(damaged("bad checksum")),
        _ => Ok(message),
    }
}

/// CRC-24. Source: RFC 4880, section 6.1.
fn checksum(message: &[u8]) -> [u8; 3] {
    let mut crc: u32 = 0x00b7_04ce;
    for byte in message {
        crc ^= u32::from(*byte) << 16;
        for _ in 0..8 {
            crc <<= 1;
            if crc & 0x0100_0000 != 0 {
                crc ^= 0x0186_4cfb;
            }
        }
    }
    let [_, bytes @ ..] = crc.to_be_bytes();
    bytes
}
