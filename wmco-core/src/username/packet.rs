//! The packets of the message: a key derived from the passphrase, and the encrypted content.
//!
//! Source of all numbers: RFC 4880, sections 3.7, 4, 5 and 9.

use crate::secret::Secret;
use aes::cipher::{Array, Key, KeyInit, KeyIvInit};
use aes::{Aes128, Aes192, Aes256};
use cfb_mode::{Decryptor, Encryptor};
use sha1::Sha1;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::UsernameError;
use crate::limits::USERNAME_KEY_WORK_BYTES;

/// Bytes of salt.
pub(super) const SALT: usize = 8;
/// Bytes of the content key in our messages (AES-128).
pub(super) const KEY: usize = 16;
/// Bytes of a block of every AES.
pub(super) const BLOCK: usize = 16;

const TAG_SESSION_KEY: u8 = 3;
const TAG_MARKER: u8 = 10;
const TAG_LITERAL: u8 = 11;
const TAG_ENCRYPTED: u8 = 18;

const AES_128: u8 = 7;
const S2K_ITERATED: u8 = 3;
const SHA_256: u8 = 8;
/// Count for 65536 hashed bytes, as in the Go operator.
const S2K_COUNT: u8 = 0x60;
/// Header of the integrity packet, which is hashed, too.
const MDC_HEAD: [u8; 2] = [0xd3, 20];
const MDC_HASH: usize = 20;

type Result<T> = std::result::Result<T, UsernameError>;

const CUT: UsernameError = UsernameError::Damaged { problem: "it is cut short" };
const STRANGE: UsernameError = UsernameError::Damaged { problem: "it is no OpenPGP message" };

/// Encrypts `content`.
pub(super) fn seal(
    content: &[u8],
    passphrase: &Secret,
    random: &[u8; SALT + KEY + BLOCK],
) -> Vec<u8> {
    let (salt, rest) = random.split_at(SALT);
    let (key, prefix) = rest.split_at(KEY);

    let mut encrypted_key = Zeroizing::new([&[AES_128], key].concat());
    let outer = derive(passphrase, salt, S2K_COUNT, KEY);
    encrypt(&outer, &mut encrypted_key);
    let mut session_key = vec![4, AES_128, S2K_ITERATED, SHA_256];
    session_key.extend_from_slice(salt);
    session_key.push(S2K_COUNT);
    session_key.extend_from_slice(&encrypted_key);

    // Text, no file name, no date.
    let literal = [&[b't', 0, 0, 0, 0, 0], content].concat();
    let mut plain = Zeroizing::new(prefix.to_vec());
    plain.extend_from_slice(prefix.get(BLOCK - 2..).unwrap_or_default());
    write_packet(&mut plain, TAG_LITERAL, &literal);
    plain.extend_from_slice(&MDC_HEAD);
    let hash = Sha1::digest(&*plain);
    plain.extend_from_slice(&hash);
    encrypt(key, &mut plain);

    let mut message = Vec::new();
    write_packet(&mut message, TAG_SESSION_KEY, &session_key);
    write_packet(&mut message, TAG_ENCRYPTED, &[&[1], plain.as_slice()].concat());
    message
}

/// Decrypts a message.
pub(super) fn open(mut packets: Packets<'_>, passphrase: &Secret) -> Result<Zeroizing<Vec<u8>>> {
    let key = match packets.next_but_markers()? {
        (TAG_SESSION_KEY, body) => content_key(&body, passphrase)?,
        _ => return Err(STRANGE),
    };
    let (TAG_ENCRYPTED, body) = packets.next_but_markers()? else { return Err(STRANGE) };
    let (1, encrypted) = body.split_first().map(|(v, rest)| (*v, rest)).ok_or(CUT)? else {
        return Err(UsernameError::Unsupported { what: "another kind of encryption" });
    };
    let mut plain = Zeroizing::new(encrypted.to_vec());
    decrypt(&key, &mut plain)?;

    // The last packet is the hash of everything before it, including its own header.
    let hash_at = plain.len().checked_sub(MDC_HASH).ok_or(CUT)?;
    let (hashed, hash) = plain.split_at(hash_at);
    if Sha1::digest(hashed).as_slice() != hash {
        return Err(UsernameError::WrongKey);
    }
    let content =
        hashed.strip_suffix(&MDC_HEAD).and_then(|rest| rest.get(BLOCK + 2..)).ok_or(STRANGE)?;
    let (TAG_LITERAL, literal) = Packets::new(content).next_but_markers()? else {
        return Err(UsernameError::Unsupported { what: "compression or signatures" });
    };
    // Format, length of the file name, file name, date.
    let name = usize::from(*literal.get(1).ok_or(CUT)?);
    literal.get(2 + name + 4..).map(|text| Zeroizing::new(text.to_vec())).ok_or(CUT)
}

/// The content key, from its packet.
fn content_key(body: &[u8], passphrase: &Secret) -> Result<Zeroizing<Vec<u8>>> {
    let unsupported = |what| Err(UsernameError::Unsupported { what });
    let [4, cipher, s2k, hash, rest @ ..] = body else {
        return unsupported("another kind of key packet");
    };
    if (*s2k, *hash) != (S2K_ITERATED, SHA_256) {
        return unsupported("another way from passphrase to key");
    }
    let (salt, rest) = rest.split_at_checked(SALT).ok_or(CUT)?;
    let (count, encrypted) = rest.split_first().ok_or(CUT)?;
    let Some(length) = key_length(*cipher) else { return unsupported("another cipher") };
    // The writer of the value chooses how many bytes each decryption has to hash.
    if octets_to_hash(*count) > USERNAME_KEY_WORK_BYTES {
        return unsupported("more work for its key than a user name is worth");
    }
    let outer = derive(passphrase, salt, *count, length);
    if encrypted.is_empty() {
        return Ok(outer);
    }
    let mut inner = Zeroizing::new(encrypted.to_vec());
    decrypt(&outer, &mut inner)?;
    // There is no checksum: a wrong passphrase gives an implausible cipher here, or an error later.
    match inner.split_first() {
        Some((cipher, key)) if key_length(*cipher) == Some(key.len()) => {
            Ok(Zeroizing::new(key.to_vec()))
        }
        _ => Err(UsernameError::WrongKey),
    }
}

const fn key_length(cipher: u8) -> Option<usize> {
    match cipher {
        AES_128 => Some(16),
        8 => Some(24),
        9 => Some(32),
        _ => None,
    }
}

/// Source: RFC 9580, section 3.7.1.3.
fn octets_to_hash(count: u8) -> usize {
    (16 + usize::from(count & 15)) << (usize::from(count >> 4) + 6)
}

/// Iterated and salted S2K with SHA-256, whose output is long enough for every key length.
fn derive(passphrase: &Secret, salt: &[u8], count: u8, length: usize) -> Zeroizing<Vec<u8>> {
    let total = octets_to_hash(count);
    let once = Zeroizing::new([salt, passphrase.expose()].concat());
    let mut left = total.max(once.len());
    let mut hasher = Sha256::new();
    while left > 0 {
        let piece = once.get(..left).unwrap_or(&once);
        hasher.update(piece);
        left -= piece.len();
    }
    Zeroizing::new(hasher.finalize().iter().copied().take(length).collect())
}

fn encrypt(key: &[u8], data: &mut [u8]) {
    let zero = Array::default();
    match key.len() {
        16 => Encryptor::<Aes128>::new(&sized::<Aes128>(key), &zero).encrypt(data),
        24 => Encryptor::<Aes192>::new(&sized::<Aes192>(key), &zero).encrypt(data),
        _ => Encryptor::<Aes256>::new(&sized::<Aes256>(key), &zero).encrypt(data),
    }
}

fn decrypt(key: &[u8], data: &mut [u8]) -> Result<()> {
    let zero = Array::default();
    match key.len() {
        16 => Decryptor::<Aes128>::new(&sized::<Aes128>(key), &zero).decrypt(data),
        24 => Decryptor::<Aes192>::new(&sized::<Aes192>(key), &zero).decrypt(data),
        32 => Decryptor::<Aes256>::new(&sized::<Aes256>(key), &zero).decrypt(data),
        _ => return Err(UsernameError::WrongKey),
    }
    Ok(())
}

/// Converts `key` to the array type of the cipher.
fn sized<C: KeyInit>(key: &[u8]) -> Key<C> {
    let mut array = Key::<C>::default();
    array.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    array
}

fn write_packet(into: &mut Vec<u8>, tag: u8, body: &[u8]) {
    into.push(0xc0 | tag);
    // The five-octet form is allowed for every length.
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    if let Ok(short @ ..192) = u8::try_from(length) {
        into.push(short);
    } else {
        into.push(0xff);
        into.extend_from_slice(&length.to_be_bytes());
    }
    into.extend_from_slice(body);
}

/// Reads packets in both header forms, with partial lengths of any size.
pub(super) struct Packets<'a> {
    rest: &'a [u8],
}

impl<'a> Packets<'a> {
    pub(super) const fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn next_but_markers(&mut self) -> Result<(u8, Zeroizing<Vec<u8>>)> {
        loop {
            let (tag, body) = self.next()?;
            if tag != TAG_MARKER {
                return Ok((tag, body));
            }
        }
    }

    fn next(&mut self) -> Result<(u8, Zeroizing<Vec<u8>>)> {
        let mut body = Zeroizing::new(Vec::new());
        let head = self.byte()?;
        if head & 0x80 == 0 {
            return Err(STRANGE);
        }
        if head & 0x40 == 0 {
            let length = match head & 3 {
                0 => self.number(1)?,
                1 => self.number(2)?,
                2 => self.number(4)?,
                _ => self.rest.len(),
            };
            body.extend_from_slice(self.take(length)?);
            return Ok((head >> 2 & 15, body));
        }
        loop {
            let first = self.byte()?;
            let (length, last) = match first {
                0..192 => (usize::from(first), true),
                192..224 => {
                    let second = self.byte()?;
                    (((usize::from(first) - 192) << 8) + usize::from(second) + 192, true)
                }
                224..255 => (1 << (first & 31), false),
                255 => (self.number(4)?, true),
            };
            body.extend_from_slice(self.take(length)?);
            if last {
                return Ok((head & 63, body));
            }
        }
    }

    fn byte(&mut self) -> Result<u8> {
        let (byte, rest) = self.rest.split_first().ok_or(CUT)?;
        self.rest = rest;
        Ok(*byte)
    }

    fn number(&mut self, octets: usize) -> Result<usize> {
        Ok(self.take(octets)?.iter().fold(0, |number, octet| number << 8 | usize::from(*octet)))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(CUT)?;
        self.rest = rest;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(message: &[u8]) -> Result<Vec<(u8, Vec<u8>)>> {
        let mut packets = Packets::new(message);
        let mut found = Vec::new();
        while !packets.rest.is_empty() {
            let (tag, body) = packets.next()?;
            found.push((tag, body.to_vec()));
        }
        Ok(found)
    }

    #[test]
    fn lengths_of_every_form_are_read() {
        for length in [0, 1, 191, 192, 8383, 8384, 70_000] {
            let mut message = Vec::new();
            write_packet(&mut message, 11, &vec![5; length]);
            assert_eq!(all(&message).unwrap(), [(11, vec![5; length])], "{length}");
        }
        assert_eq!(all(&[0xcb, 0xc0, 0x00]), Err(CUT));
        let two_octets = [&[0xcb, 0xc0, 0x01][..], &[5; 193]].concat();
        assert_eq!(all(&two_octets).unwrap(), [(11, vec![5; 193])]);
        // Partial: 2 + 1 + 0 octets.
        assert_eq!(all(&[0xcb, 0xe1, 1, 2, 0xe0, 3, 0]).unwrap(), [(11, vec![1, 2, 3])]);
    }

    #[test]
    fn old_headers_are_read() {
        assert_eq!(all(&[0xac, 1, 7, 0xad, 0, 1, 8]).unwrap(), [(11, vec![7]), (11, vec![8])]);
        assert_eq!(all(&[0xae, 0, 0, 0, 1, 7]).unwrap(), [(11, vec![7])]);
        assert_eq!(all(&[0xaf, 7, 8]).unwrap(), [(11, vec![7, 8])]);
    }

    #[test]
    fn a_value_cannot_ask_for_endless_hashing() {
        let passphrase = Secret::new(b"key".to_vec());
        let asks =
            |count| [&[4, AES_128, S2K_ITERATED, SHA_256][..], &[0; SALT], &[count]].concat();
        assert!(content_key(&asks(S2K_COUNT), &passphrase).is_ok());
        let dear = content_key(&asks(255), &passphrase).unwrap_err();
        assert!(matches!(dear, UsernameError::Unsupported { .. }), "{dear}");
    }

    #[test]
    fn cut_packets_are_named() {
        for message in
            [&[0xcb][..], &[0xcb, 2, 1], &[0xcb, 0xff, 0xff, 0xff, 0xff, 0xff], &[0xae, 0]]
        {
            assert_eq!(all(message), Err(CUT), "{message:?}");
        }
        assert_eq!(all(&[0x0b, 0]), Err(STRANGE));
    }
}
