//! SEC1 and PKCS#8 files of ECDSA keys whose private number has another length than its curve.
//!
//! PuTTY writes such a number as a signed one: with a zero in front of half of them, without leading zeros otherwise. So
//! do some libraries. OpenSSH reads them; the SSH library's decoder takes numbers of exactly the curve's length.
//!
//! # Source
//! `docs/contract/ssh.md`, SSH2; RFC 5915, section 3; RFC 5208, section 5.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const SEQUENCE: u8 = 0x30;

/// Object identifiers of curves in DER, and the length of their private numbers.
const CURVES: [(&[u8], usize); 3] = [
    (&[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07], 32),
    (&[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22], 48),
    (&[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x23], 66),
];

type Bytes = Zeroizing<Vec<u8>>;

/// Returns the file with its private number in full length; `None` if it is no such file.
pub(super) fn restored(pem: &str) -> Option<Zeroizing<String>> {
    let mut lines = pem.lines();
    let begin = lines.next()?;
    let body: Zeroizing<String> =
        Zeroizing::new(lines.take_while(|line| !line.starts_with('-')).collect());
    let der = Zeroizing::new(STANDARD.decode(body.as_bytes()).ok()?);
    let (_, size) = CURVES
        .into_iter()
        .find(|(curve, _)| der.windows(curve.len()).any(|window| window == *curve))?;
    let (content, _) = element(&der, SEQUENCE)?;
    let (version, rest) = element(content, INTEGER)?;
    let restored = match version {
        [1] => sec1(content, size)?,
        [0] => {
            let (_, after) = element(rest, SEQUENCE)?;
            let algorithm = rest.get(..rest.len().checked_sub(after.len())?)?;
            let (key, more) = element(after, OCTETS)?;
            let (key, _) = element(key, SEQUENCE)?;
            let key = written(OCTETS, &sec1(key, size)?)?;
            let parts = [&[INTEGER, 1, 0], algorithm, &key, more];
            written(SEQUENCE, &Zeroizing::new(parts.concat()))?
        }
        _ => return None,
    };
    let base64 = Zeroizing::new(STANDARD.encode(&*restored));
    let mut file = Zeroizing::new(String::with_capacity(base64.len() + 100));
    file.push_str(begin);
    for line in base64.as_bytes().chunks(64) {
        file.push('\n');
        file.push_str(str::from_utf8(line).ok()?);
    }
    file.push('\n');
    file.push_str(&begin.replacen("BEGIN", "END", 1));
    file.push('\n');
    Some(file)
}

/// Writes a SEC1 structure again, of which this is the content.
fn sec1(content: &[u8], size: usize) -> Option<Bytes> {
    let (_, rest) = element(content, INTEGER)?;
    let (number, more) = element(rest, OCTETS)?;
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    let number = number.get(zeros..)?;
    let mut full = Zeroizing::new(vec![0; size.checked_sub(number.len())?]);
    full.extend_from_slice(number);
    let number = written(OCTETS, &full)?;
    let parts = [&[INTEGER, 1, 1], number.as_slice(), more];
    written(SEQUENCE, &Zeroizing::new(parts.concat()))
}

/// Returns the content of the first element, which has to have this tag, and what follows it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (length, rest) = match bytes {
        [found, length @ 0..=0x7f, rest @ ..] if *found == tag => (usize::from(*length), rest),
        [found, 0x81, length, rest @ ..] if *found == tag => (usize::from(*length), rest),
        [found, 0x82, high, low, rest @ ..] if *found == tag => {
            (usize::from(u16::from_be_bytes([*high, *low])), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

/// Writes an element; `None` if it is longer than a key can be.
fn written(tag: u8, content: &[u8]) -> Option<Bytes> {
    let [high, low] = u16::try_from(content.len()).ok()?.to_be_bytes();
    let head = match (high, low) {
        (0, 0..=0x7f) => vec![tag, low],
        (0, _) => vec![tag, 0x81, low],
        _ => vec![tag, 0x82, high, low],
    };
    let mut bytes = Zeroizing::new(head);
    bytes.extend_from_slice(content);
    Some(bytes)
}
