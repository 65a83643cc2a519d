//! Host keys: their form in the cluster, and when one is trusted.
//!
//! Source: `spec/ssh.md`, section 5.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use russh::keys::key::parse_public_key;
use russh::keys::ssh_key::public::KeyData;
use russh::keys::{Algorithm, EcdsaCurve, HashAlg};
use wmco_core::names;

/// A host's public key. Its text form is the standard base64 of the SSH wire form, as in the
/// annotation [`names::HOST_KEY_ANNOTATION`].
///
/// ```
/// use wmco_ssh::HostKey;
///
/// let text = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
/// let key: HostKey = text.parse()?;
/// assert_eq!(key.algorithm(), "ssh-ed25519");
/// assert_eq!(key.to_string(), text);
/// assert!(key.fingerprint().starts_with("SHA256:"));
/// # Ok::<(), wmco_ssh::BadHostKey>(())
/// ```
#[derive(Clone, Eq, PartialEq)]
pub struct HostKey {
    wire: Vec<u8>,
    data: KeyData,
}

/// The text is no host key.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "the stored host key cannot be used ({problem}); remove the node's annotation `{}` or the \
     address from the ConfigMap `{}` to have it learned again",
    names::HOST_KEY_ANNOTATION,
    names::objects::HOST_KEYS_CONFIG_MAP
)]
pub struct BadHostKey {
    problem: &'static str,
}

impl HostKey {
    /// From the wire form.
    ///
    /// # Errors
    /// [`BadHostKey`] if it is none, or of a kind that we never negotiate (DSA, certificates).
    pub fn from_wire(wire: &[u8]) -> Result<Self, BadHostKey> {
        let bad = |problem| Err(BadHostKey { problem });
        let Ok(key) = parse_public_key(wire) else {
            return bad("it is no ssh public key");
        };
        match key.to_bytes() {
            Ok(again) if again == wire => {}
            _ => return bad("it is not in its usual form"),
        }
        match key.algorithm() {
            Algorithm::Ecdsa { .. } | Algorithm::Ed25519 | Algorithm::Rsa { .. } => {
                Ok(Self { wire: wire.to_vec(), data: key.key_data().clone() })
            }
            _ => bad("keys of this kind are not supported"),
        }
    }

    /// Its kind, for example `ecdsa-sha2-nistp256`; the value of
    /// [`names::HOST_KEY_TYPE_ANNOTATION`].
    pub fn algorithm(&self) -> String {
        self.data.algorithm().as_str().to_owned()
    }

    /// `SHA256:` and the digest in base64, as OpenSSH prints it.
    pub fn fingerprint(&self) -> String {
        self.data.fingerprint(HashAlg::Sha256).to_string()
    }

    /// The wire form.
    pub fn as_wire(&self) -> &[u8] {
        &self.wire
    }
}

impl FromStr for HostKey {
    type Err = BadHostKey;

    fn from_str(text: &str) -> Result<Self, BadHostKey> {
        let wire = STANDARD
            .decode(text.trim())
            .map_err(|_| BadHostKey { problem: "it is not standard base64" })?;
        Self::from_wire(&wire)
    }
}

impl fmt::Display for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(&self.wire))
    }
}

impl fmt::Debug for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostKey({} {})", self.algorithm(), self.fingerprint())
    }
}

/// Which host keys to accept.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum HostKeyPolicy {
    /// This one only.
    Pinned(HostKey),
    /// Whichever is shown; the caller stores it, and pins it from then on.
    TrustOnFirstUse,
}

/// What a policy says about a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HostKeyVerdict {
    /// Nothing was known; the key is accepted and is to be stored.
    FirstUse,
    /// It is the pinned one.
    Matches,
    /// It is not the pinned one.
    Mismatch,
}

/// A host key that its host proved to hold, on a connection that was then authenticated.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SeenHostKey {
    /// The key.
    pub key: HostKey,
    /// [`HostKeyVerdict::FirstUse`] or [`HostKeyVerdict::Matches`].
    pub verdict: HostKeyVerdict,
}

/// All algorithms that we accept, in the order in which we ask for them.
///
/// The order is that of the Go operator, so that both pin the same key of a host and a cluster can
/// move from one to the other and back. RSA signatures with SHA-1 are not among them.
/// Source: `spec/ssh.md`, section 4.
const ALGORITHMS: [Algorithm; 6] = [
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP256 },
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP384 },
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP521 },
    Algorithm::Rsa { hash: Some(HashAlg::Sha256) },
    Algorithm::Rsa { hash: Some(HashAlg::Sha512) },
    Algorithm::Ed25519,
];

impl HostKeyPolicy {
    /// What to do with `key`.
    pub fn judge(&self, key: &HostKey) -> HostKeyVerdict {
        match self {
            Self::Pinned(pinned) if pinned == key => HostKeyVerdict::Matches,
            Self::Pinned(_) => HostKeyVerdict::Mismatch,
            Self::TrustOnFirstUse => HostKeyVerdict::FirstUse,
        }
    }

    /// Algorithms to ask the server for: those of the pinned key, then the others, so that a host
    /// with several keys shows the pinned one, and a host without it shows a key to compare.
    pub(crate) fn preference(&self) -> Cow<'static, [Algorithm]> {
        let mut algorithms = ALGORITHMS.to_vec();
        if let Self::Pinned(pinned) = self {
            let wanted = pinned.data.algorithm();
            // Stable, so that the rest keeps its order.
            algorithms.sort_by_key(|algorithm| !same_key_kind(algorithm, &wanted));
        }
        Cow::Owned(algorithms)
    }
}

/// Whether both work with the same key; RSA keys sign with several hashes.
fn same_key_kind(a: &Algorithm, b: &Algorithm) -> bool {
    match (a, b) {
        (Algorithm::Rsa { .. }, Algorithm::Rsa { .. }) => true,
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ED25519: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

    fn key(text: &str) -> HostKey {
        text.parse().unwrap()
    }

    fn names(policy: &HostKeyPolicy) -> Vec<String> {
        policy.preference().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn first_use_asks_in_the_order_of_the_go_operator() {
        assert_eq!(
            names(&HostKeyPolicy::TrustOnFirstUse),
            [
                "ecdsa-sha2-nistp256",
                "ecdsa-sha2-nistp384",
                "ecdsa-sha2-nistp521",
                "rsa-sha2-256",
                "rsa-sha2-512",
                "ssh-ed25519"
            ]
        );
    }

    #[test]
    fn a_pinned_key_is_asked_for_first() {
        let names = names(&HostKeyPolicy::Pinned(key(ED25519)));
        assert_eq!(names.first().map(String::as_str), Some("ssh-ed25519"));
        assert_eq!(names.len(), ALGORITHMS.len());
    }

    #[test]
    fn a_pinned_rsa_key_is_asked_for_with_both_hashes() {
        let vectors: serde_json::Value =
            serde_json::from_str(include_str!("../tests/vectors/pubkey_hash.json")).unwrap();
        let line = vectors[0]["input"]["authorized_key"].as_str().unwrap();
        let rsa = key(line.split(' ').nth(1).unwrap());
        assert_eq!(rsa.algorithm(), "ssh-rsa");
        let names = names(&HostKeyPolicy::Pinned(rsa));
        assert_eq!(names[..2], ["rsa-sha2-256", "rsa-sha2-512"]);
    }

    #[test]
    fn verdicts() {
        let (one, other) = (key(ED25519), key(&ED25519.replace("HR4f", "HR4e")));
        let pinned = HostKeyPolicy::Pinned(one.clone());
        assert_eq!(pinned.judge(&one), HostKeyVerdict::Matches);
        assert_eq!(pinned.judge(&other), HostKeyVerdict::Mismatch);
        assert_eq!(HostKeyPolicy::TrustOnFirstUse.judge(&one), HostKeyVerdict::FirstUse);
    }

    #[test]
    fn the_fingerprint_is_that_of_ssh_keygen() {
        // ssh-keygen -lf of the line in `spec/ssh.md`, section 2.3.
        assert_eq!(
            key(ED25519).fingerprint(),
            "SHA256:ZkAslGjFiUHdGf/WUL8rQvkib4PTvQatUV0OUQSncCA"
        );
    }

    #[test]
    fn a_final_line_feed_is_no_harm() {
        assert_eq!(key(&format!("{ED25519}\n")), key(ED25519));
    }

    #[test]
    fn other_texts_are_refused() {
        let trailing = STANDARD.encode([key(ED25519).as_wire(), b"x"].concat());
        let dsa = STANDARD.encode(b"\0\0\0\x07ssh-dss");
        let sha1_name = STANDARD.encode(b"\0\0\0\x0crsa-sha2-256\0\0\0\x01\x03\0\0\0\x01\x05");
        for text in ["", "hello", "AAAA", &ED25519[..40], &trailing, &dsa, &sha1_name] {
            assert!(text.parse::<HostKey>().is_err(), "{text}");
        }
    }
}
