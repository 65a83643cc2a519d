//! The operator's private key, in every common file format, and its public half.
//!
//! Source: `docs/contract/ssh.md`, SSH1 to SSH6.

mod file;
mod full_number;
mod public;
mod short_scalar;

use std::fmt;
use std::sync::Arc;

use russh::keys::{self, Algorithm, decode_secret_key};
use wmco_core::limits;
use wmco_core::secret::Secret;

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
    #[error("the private key is encrypted, remove its passphrase with `{}` and store the result", .form.command())]
    Encrypted {
        /// The form of the file.
        form: EncryptedForm,
    },
    /// The halves of the private key do not fit.
    #[error("the private key is damaged, its parts do not fit: store the whole file again")]
    Damaged,
    /// The text between begin and end line is no base64.
    #[error(
        "the private key is damaged, something in line {line} of it is no base64: store the whole file again, without \
         marks or spaces of other programs in it"
    )]
    NotBase64 {
        /// The line, where the begin line is 1.
        line: usize,
    },
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

/// A form of encrypted private keys.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EncryptedForm {
    /// PKCS#8. OpenSSH reads it for some kinds of keys only.
    Pkcs8,
    /// OpenSSH's own, PKCS#1 or SEC1.
    Other,
}

impl EncryptedForm {
    /// The command that removes the passphrase.
    const fn command(self) -> &'static str {
        match self {
            Self::Pkcs8 => "openssl pkey -in FILE -out NEW-FILE",
            Self::Other => "ssh-keygen -p -N '' -f FILE",
        }
    }
}

impl PrivateKey {
    /// Parses the first private key of `pem`: OpenSSH, PKCS#1, PKCS#8 or SEC1, in UTF-8 or UTF-16 with or without a mark,
    /// with any line ends or none, and with text and other blocks around it.
    ///
    /// # Errors
    /// [`KeyError`], which says what to store instead. It never contains the input.
    pub fn parse(pem: &Secret) -> Result<Self, KeyError> {
        let lines = file::first_private_block(pem.expose())?;
        let key = decode_secret_key(&lines, None)
            .or_else(|error| short_scalar::decode(&lines).map_err(|_| error))
            .or_else(|error| match full_number::restored(&lines) {
                Some(lines) => decode_secret_key(&lines, None),
                None => Err(error),
            })
            .map_err(refused)?;
        if key.is_encrypted() {
            return Err(KeyError::Encrypted { form: EncryptedForm::Other });
        }
        match key.algorithm() {
            Algorithm::Ecdsa { .. } | Algorithm::Ed25519 | Algorithm::Rsa { .. } => {}
            other => return Err(KeyError::Unsupported { kind: other.to_string() }),
        }
        let public = PublicKey::new(key.public_key().key_data().clone());
        match public.rsa_bits() {
            Some(bits) if bits < limits::RSA_BITS => Err(KeyError::ShortRsa { bits }),
            // The decoder checks the halves of other kinds, and of RSA keys in other forms.
            Some(_) if !signs(&key) => Err(KeyError::Damaged),
            Some(_) | None => Ok(Self { key: Arc::new(key), public }),
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

/// Whether a signature of the key fits its public half. A damaged file may have both, and the failure would look like
/// the host's.
fn signs(key: &keys::PrivateKey) -> bool {
    const MESSAGE: &[u8] = b"does it sign";
    let signed = key.sign("wmco", keys::HashAlg::Sha512, MESSAGE);
    signed.is_ok_and(|signature| key.public_key().verify("wmco", MESSAGE, &signature).is_ok())
}

/// The name of a kind of key that a PKCS#8 file names by its object identifier.
fn kind_of(oid: &str) -> &str {
    match oid {
        "1.2.840.10040.4.1" => "dsa",
        "1.2.840.113549.1.1.10" => "rsa-pss",
        "1.3.101.110" => "x25519",
        "1.3.101.111" => "x448",
        "1.3.101.113" => "ed448",
        "1.3.36.3.3.2.8.1.1.7" => "ecdsa brainpoolP256r1",
        "1.3.36.3.3.2.8.1.1.11" => "ecdsa brainpoolP384r1",
        "1.3.36.3.3.2.8.1.1.13" => "ecdsa brainpoolP512r1",
        "1.3.132.0.10" => "ecdsa secp256k1",
        "1.3.132.0.33" => "ecdsa P-224",
        other => other,
    }
}

/// Converts an error of the decoder.
fn refused(error: keys::Error) -> KeyError {
    use keys::ssh_key::Error as Inner;
    match error {
        keys::Error::KeyIsEncrypted | keys::Error::SshKey(Inner::Encrypted) => {
            KeyError::Encrypted { form: EncryptedForm::Other }
        }
        keys::Error::UnsupportedKeyType { key_type_string, .. } => {
            KeyError::Unsupported { kind: key_type_string }
        }
        keys::Error::UnknownAlgorithm(oid) => {
            KeyError::Unsupported { kind: kind_of(&oid.to_string()).to_owned() }
        }
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
            ("---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nP2/56w==\n", "`ssh-keygen -i -f FILE"),
            ("MIIEpAIBAAKCAQEA\n", "begin line"),
        ] {
            let error = refusal(text);
            assert!(matches!(error, KeyError::NotAKey { .. }), "{text}: {error}");
            assert!(error.to_string().contains(word), "{text}: {error}");
        }
        assert!(matches!(
            PrivateKey::parse(&Secret::new([0xff, 0x00, 0x80])),
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
    fn what_is_no_base64_is_told_by_its_line() {
        for (body, expected) in [
            ("AAAA\nAA*A\nAAAA", 3),
            ("\u{201c}AAAA", 2),
            ("AAAA\nAAAA\n...\n", 4),
            ("AAAA\n\n\nA=AA\nAAAA", 5),
        ] {
            let text =
                format!("-----BEGIN EC PRIVATE KEY-----\n{body}\n-----END EC PRIVATE KEY-----");
            let error = refusal(&text);
            let is_it = matches!(error, KeyError::NotBase64 { line } if line == expected);
            assert!(is_it, "{body}: {error}");
        }
        let padded = "-----BEGIN EC PRIVATE KEY-----\nAAAA\nAA==\n-----END EC PRIVATE KEY-----";
        assert!(matches!(refusal(padded), KeyError::Malformed { .. }));
    }

    #[test]
    fn passphrases_are_named() {
        for (text, expected) in [
            ("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n", EncryptedForm::Pkcs8),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n",
                EncryptedForm::Other,
            ),
        ] {
            let error = refusal(text);
            let is_it = matches!(error, KeyError::Encrypted { form } if form == expected);
            assert!(is_it, "{text}: {error}");
        }
    }

    #[test]
    fn dsa_is_named() {
        let text = "-----BEGIN DSA PRIVATE KEY-----\nAAAA\n";
        assert!(matches!(refusal(text), KeyError::Unsupported { .. }));
    }
}
