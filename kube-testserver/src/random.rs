//! Random values of the cluster: uids and suffixes of generated names.

use ring::rand::{SecureRandom as _, SystemRandom};

/// A random UUID (version 4).
pub(crate) fn uid() -> String {
    let mut bytes: [u8; 16] = bytes();
    let [_, _, _, _, _, _, version, _, variant, ..] = &mut bytes;
    *version = (*version & 0x0f) | 0x40;
    *variant = (*variant & 0x3f) | 0x80;
    let mut uid = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            uid.push('-');
        }
        for digit in [byte >> 4, byte & 0x0f] {
            uid.extend(char::from_digit(u32::from(digit), 16));
        }
    }
    uid
}

/// Five characters for generated names, without vowels, as in Kubernetes.
pub(crate) fn suffix() -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let bytes: [u8; 5] = bytes();
    let letters = bytes.iter().filter_map(|byte| ALPHABET.get(usize::from(*byte) % ALPHABET.len()));
    letters.map(|letter| char::from(*letter)).collect()
}

/// Random bytes from the system.
fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // The system's generator does not fail once it is seeded; zeros would still be valid ids.
    let _ = SystemRandom::new().fill(&mut bytes);
    bytes
}
