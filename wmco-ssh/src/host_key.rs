//! Decides whether a host key is trusted; [`HostKey`] defines its form.
//!
//! Source: `docs/contract/ssh.md`, SSH20 to SSH26.

use std::borrow::Cow;

use russh::keys::{Algorithm, EcdsaCurve, HashAlg};
use wmco_core::host_key::HostKey;

/// The host keys to accept.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum HostKeyPolicy {
    /// Only this key.
    Pinned(HostKey),
    /// Any key; the caller stores it, and pins it from then on.
    TrustOnFirstUse,
}

/// The verdict of a policy on a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HostKeyVerdict {
    /// No key was pinned; the key is accepted and has to be stored.
    FirstUse,
    /// The key is the pinned one.
    Matches,
    /// The key is not the pinned one.
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

/// All accepted algorithms, in order of preference.
///
/// The order is that of the Go operator, so that both pin the same key of a host and a cluster can
/// move from one to the other and back. RSA signatures with SHA-1 are not among them.
/// Source: `docs/contract/ssh.md`, SSH26.
const ALGORITHMS: [Algorithm; 6] = [
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP256 },
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP384 },
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP521 },
    Algorithm::Rsa { hash: Some(HashAlg::Sha256) },
    Algorithm::Rsa { hash: Some(HashAlg::Sha512) },
    Algorithm::Ed25519,
];

impl HostKeyPolicy {
    /// Decides whether to accept `key`.
    pub fn judge(&self, key: &HostKey) -> HostKeyVerdict {
        match self {
            Self::Pinned(pinned) if pinned == key => HostKeyVerdict::Matches,
            Self::Pinned(_) => HostKeyVerdict::Mismatch,
            Self::TrustOnFirstUse => HostKeyVerdict::FirstUse,
        }
    }

    /// Returns the algorithms to offer: those of the pinned key, then the others, so that a host with several keys
    /// presents the pinned one, and a host without it presents a key to compare.
    pub(crate) fn preference(&self) -> Cow<'static, [Algorithm]> {
        let mut algorithms = ALGORITHMS.to_vec();
        if let Self::Pinned(pinned) = self {
            // Stable, so that the rest keeps its order.
            algorithms.sort_by_key(|algorithm| !signs_with(algorithm, pinned));
        }
        Cow::Owned(algorithms)
    }
}

/// Whether the algorithm signs with keys of this kind; RSA keys sign with several hashes.
fn signs_with(algorithm: &Algorithm, key: &HostKey) -> bool {
    match algorithm {
        Algorithm::Rsa { .. } => key.algorithm() == "ssh-rsa",
        _ => algorithm.as_str() == key.algorithm(),
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
}
