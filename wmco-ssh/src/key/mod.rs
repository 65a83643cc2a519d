//! The operator's private key, in every common file format, and its public half.
//!
//! Source: `docs/contract/ssh.md`, SSH1 to SSH6.

mod public;
mod short_scalar;

use std::fmt;
use std::sync::Arc;

use russh::keys::{self, Algorithm, decode_secret_key};
use wmco_core::limits;
use wmco_core::secret::Secret;
use zeroize::Zeroizing;

pub use public::PublicKey;

/// A usable private key: supported kind, not encrypted, long enough. `Debug` prints only the fingerprint of its public
/// half.
#[derive(Clone)]
pub struct PrivateKey {
    key: Arc<keys::PrivateKey>,
    public: PublicKey,
}

/// Why a private key is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The key is protected by a passphrase.
    #[error(
        "the private key is encrypted, remove its passphrase with \
         `ssh-keygen -p -N '' -f FILE` and store the result"
    )]
    Encrypted,
    /// The private key is damaged.
    #[error("the private key is damaged, store the whole file again")]
    Malformed {
        /// The decoder's error; never key material.
        source: keys::Error,
    },
    /// The text is no private key file of a known format.
    #[error(
        "this is no private key in PEM form but {found}, store an OpenSSH, PKCS#1, PKCS#8 or SEC1 \
         private key file"
    )]
    NotAKey {
        /// Description of the text.
        found: &'static str,
    },
    /// The text holds no public key.
    #[error("there is no public key in the text, give a line of an authorized keys file")]
    NoPublicKey,
    /// The RSA key is too short to be secure.
    #[error("the rsa key has {bits} bits only, make one of 3072 bits or an ed25519 key")]
    ShortRsa {
        /// Length of its modulus.
        bits: u32,
    },
    /// The kind of key is unknown or insecure.
    #[error("{kind} keys are not supported, make an ed25519, ecdsa or rsa key")]
    Unsupported {
        /// The kind, as the file names it.
        kind: String,
    },
}

impl PrivateKey {
    /// Parses `pem`: OpenSSH, PKCS#1, PKCS#8 or SEC1, with any line ends, blanks around lines, text around the key, and
    /// with a leading `EC PARAMETERS` block.
    ///
    /// # Errors
    /// [`KeyError`], which says what to store instead. It never contains the input.
    pub fn parse(pem: &Secret) -> Result<Self, KeyError> {
        let text = std::str::from_utf8(pem.expose())
            .map_err(|_| KeyError::NotAKey { found: "binary data" })?;
        // The decoder requires lines without blanks around them.
        let mut lines = Zeroizing::new(String::with_capacity(text.len() + 1));
        for line in text.lines().map(str::trim) {
            lines.push_str(line);
            lines.push('\n');
        }
        refuse_other_forms(&lines)?;
        let key = decode_secret_key(&lines, None)
            .or_else(|error| short_scalar::decode(&lines).map_err(|_| refused(error)))?;
        if key.is_encrypted() {
            return Err(KeyError::Encrypted);
        }
        match key.algorithm() {
            Algorithm::Ecdsa { .. } | Algorithm::Ed25519 | Algorithm::Rsa { .. } => {}
            other => return Err(KeyError::Unsupported { kind: other.to_string() }),
        }
        let public = PublicKey::new(key.public_key().key_data().clone());
        match public.rsa_bits() {
            Some(bits) if bits < limits::RSA_BITS => Err(KeyError::ShortRsa { bits }),
            _ => Ok(Self { key: Arc::new(key), public }),
        }
    }

    /// Returns the public half.
    pub const fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Returns the key in the SSH library's type.
    pub(crate) fn inner(&self) -> Arc<keys::PrivateKey> {
        Arc::clone(&self.key)
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateKey").field("public", &self.public).finish_non_exhaustive()
    }
}

/// Refuses a text that is no usable private key file, with a more precise error than the decoder's.
fn refuse_other_forms(text: &str) -> Result<(), KeyError> {
    let not = |found| Err(KeyError::NotAKey { found });
    if text.trim().is_empty() {
        return not("empty");
    }
    if text.trim_start().starts_with("PuTTY-User-Key-File-") {
        return not("a PuTTY key (`puttygen FILE -O private-openssh` converts it)");
    }
    let mut labels = text
        .lines()
        .filter_map(|line| line.strip_prefix("-----BEGIN ")?.strip_suffix("-----"))
        .filter(|label| *label != "EC PARAMETERS");
    match labels.next() {
        Some("OPENSSH PRIVATE KEY" | "RSA PRIVATE KEY" | "PRIVATE KEY" | "EC PRIVATE KEY") => {}
        Some("ENCRYPTED PRIVATE KEY") => return Err(KeyError::Encrypted),
        Some("DSA PRIVATE KEY") => return Err(KeyError::Unsupported { kind: "dsa".to_owned() }),
        Some("CERTIFICATE" | "TRUSTED CERTIFICATE") => return not("a certificate"),
        Some("PUBLIC KEY" | "RSA PUBLIC KEY" | "SSH2 PUBLIC KEY") => return not("a public key"),
        Some(_) => return not("another kind of PEM file"),
        None if PublicKey::from_authorized_keys(text).is_ok() => return not("a public key"),
        None => return not("without its begin line"),
    }
    // Marks a passphrase in PKCS#1 and SEC1 files.
    if text.lines().any(|line| line.starts_with("Proc-Type:") && line.ends_with("ENCRYPTED")) {
        return Err(KeyError::Encrypted);
    }
    Ok(())
}

/// Converts an error of the decoder.
fn refused(error: keys::Error) -> KeyError {
    use keys::ssh_key::Error as Inner;
    match error {
        keys::Error::KeyIsEncrypted | keys::Error::SshKey(Inner::Encrypted) => KeyError::Encrypted,
        keys::Error::UnsupportedKeyType { key_type_string, .. } => {
            KeyError::Unsupported { kind: key_type_string }
        }
        keys::Error::UnknownAlgorithm(oid) => KeyError::Unsupported { kind: oid.to_string() },
        keys::Error::SshKey(Inner::AlgorithmUnsupported { algorithm }) => {
            KeyError::Unsupported { kind: algorithm.to_string() }
        }
        source => KeyError::Malformed { source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> KeyError {
        PrivateKey::parse(&Secret::new(text)).unwrap_err()
    }

    #[test]
    fn what_is_no_key_is_named() {
        let public =
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
        for (text, word) in [
            ("", "empty"),
            (" \n", "empty"),
            (public, "a public key"),
            ("-----BEGIN PUBLIC KEY-----\n", "a public key"),
            ("-----BEGIN CERTIFICATE-----\n", "a certificate"),
            ("-----BEGIN PGP MESSAGE-----\n", "another kind"),
            ("PuTTY-User-Key-File-3: ssh-ed25519\n", "PuTTY"),
            ("MIIEpAIBAAKCAQEA\n", "begin line"),
        ] {
            let error = refusal(text);
            assert!(matches!(error, KeyError::NotAKey { .. }), "{text}: {error}");
            assert!(error.to_string().contains(word), "{text}: {error}");
        }
        assert!(matches!(
            PrivateKey::parse(&Secret::new([0xff, 0xfe])),
            Err(KeyError::NotAKey { found: "binary data" })
        ));
    }

    #[test]
    fn damaged_keys_are_refused() {
        for label in ["OPENSSH", "RSA", "EC"] {
            let text = format!(
                "-----BEGIN {label} PRIVATE KEY-----\nAAAA\n-----END {label} PRIVATE KEY-----"
            );
            assert!(matches!(refusal(&text), KeyError::Malformed { .. }), "{label}");
        }
    }

    #[test]
    fn passphrases_are_named() {
        for text in [
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n",
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n",
        ] {
            assert!(matches!(refusal(text), KeyError::Encrypted), "{text}");
        }
    }

    #[test]
    fn dsa_is_named() {
        let text = "-----BEGIN DSA PRIVATE KEY-----\nAAAA\n";
        assert!(matches!(refusal(text), KeyError::Unsupported { .. }));
    }
}
