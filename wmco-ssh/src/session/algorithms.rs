//! Algorithms that are offered to servers, most preferred first.
//!
//! The lists are ours, not the library's defaults, so that an update of it drops no host. SHA-1, CBC and DSA are
//! not offered. Source: RFC 9142, section 4; `docs/contract/ssh.md`, SSH50.

use std::borrow::Cow;

use russh::{Preferred, cipher, kex, mac};

use crate::host_key::HostKeyPolicy;

/// Key exchange. The markers at the end announce extensions (RFC 8308) and strict key exchange.
const KEX: [kex::Name; 14] = [
    // Resists quantum computers; OpenSSH 9.9 and later.
    kex::MLKEM768X25519_SHA256,
    // Every OpenSSH since 6.5, and Windows' own.
    kex::CURVE25519,
    kex::CURVE25519_PRE_RFC_8731,
    // The only quick ones of hosts and bastions in FIPS mode.
    kex::ECDH_SHA2_NISTP256,
    kex::ECDH_SHA2_NISTP384,
    kex::ECDH_SHA2_NISTP521,
    // Appliances without elliptic curves.
    kex::DH_GEX_SHA256,
    kex::DH_G16_SHA512,
    kex::DH_G18_SHA512,
    kex::DH_G14_SHA256,
    kex::EXTENSION_SUPPORT_AS_CLIENT,
    kex::EXTENSION_SUPPORT_AS_SERVER,
    kex::EXTENSION_OPENSSH_STRICT_KEX_AS_CLIENT,
    kex::EXTENSION_OPENSSH_STRICT_KEX_AS_SERVER,
];

/// AES-GCM comes first: machines that run Windows have instructions for it, which makes uploads cheap on both sides.
const CIPHERS: [cipher::Name; 6] = [
    cipher::AES_256_GCM,
    cipher::AES_128_GCM,
    cipher::CHACHA20_POLY1305,
    cipher::AES_256_CTR,
    cipher::AES_192_CTR,
    cipher::AES_128_CTR,
];

/// For ciphers that do not authenticate by themselves.
const MACS: [mac::Name; 4] =
    [mac::HMAC_SHA512_ETM, mac::HMAC_SHA256_ETM, mac::HMAC_SHA512, mac::HMAC_SHA256];

/// All that is offered; kinds of host keys in the order of `policy`.
pub(super) fn offered(policy: &HostKeyPolicy) -> Preferred {
    Preferred {
        kex: Cow::Borrowed(&KEX),
        key: policy.preference(),
        cipher: Cow::Borrowed(&CIPHERS),
        mac: Cow::Borrowed(&MACS),
        ..Preferred::default()
    }
}
