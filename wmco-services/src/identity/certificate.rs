//! Parses client certificates and decides whether they are still usable.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use rcgen::{KeyPair, PublicKeyData as _};
use wmco_core::names;
use x509_parser::pem::Pem;
use x509_parser::prelude::{X509Certificate, X509Name};
use x509_parser::time::ASN1Time;

use crate::limits;

/// The facts of a certificate that is stored with its private key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Certificate {
    /// Common name: the user as the cluster sees it.
    pub user: String,
    /// Organizations: the user's groups.
    pub groups: Vec<String>,
    /// Start of validity.
    pub not_before: Timestamp,
    /// End of validity.
    pub not_after: Timestamp,
}

/// Why a text holds no usable certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// There is no certificate, or it cannot be parsed.
    #[error("the text holds no readable certificate, ask for a new one")]
    Certificate,
    /// There is no private key that can be parsed.
    #[error("the text holds no usable private key, ask for a new certificate")]
    Key,
    /// The private key belongs to another certificate.
    #[error("the private key belongs to another certificate, ask for a new one")]
    OtherKey,
}

impl Certificate {
    /// Parses PEM text with a certificate chain, leaf first, and its private key.
    ///
    /// # Errors
    /// [`CertificateError`] when one of them is missing or damaged, or they do not match.
    pub fn parse(pem: &[u8]) -> Result<Self, CertificateError> {
        let blocks: Vec<Pem> = Pem::iter_from_buffer(pem).filter_map(Result::ok).collect();
        let leaf = first(&blocks)?;
        let key = blocks.iter().find(|block| block.label.ends_with("PRIVATE KEY"));
        let key = key.ok_or(CertificateError::Key)?;
        let key = KeyPair::try_from(key.contents.as_slice()).map_err(|_| CertificateError::Key)?;
        if key.subject_public_key_info() != leaf.public_key().raw {
            return Err(CertificateError::OtherKey);
        }
        Self::of(&leaf)
    }

    /// Parses PEM text with a certificate chain, leaf first; no private key is needed.
    ///
    /// # Errors
    /// [`CertificateError::Certificate`] when there is no certificate that can be parsed.
    pub fn leaf(pem: &[u8]) -> Result<Self, CertificateError> {
        let blocks: Vec<Pem> = Pem::iter_from_buffer(pem).filter_map(Result::ok).collect();
        Self::of(&first(&blocks)?)
    }

    fn of(leaf: &X509Certificate<'_>) -> Result<Self, CertificateError> {
        let at = |time: ASN1Time| {
            Timestamp::from_second(time.timestamp()).map_err(|_| CertificateError::Certificate)
        };
        let subject = leaf.subject();
        Ok(Self {
            user: texts(subject, &x509_parser::oid_registry::OID_X509_COMMON_NAME)
                .next()
                .unwrap_or_default(),
            groups: texts(subject, &x509_parser::oid_registry::OID_X509_ORGANIZATION_NAME)
                .collect(),
            not_before: at(leaf.validity().not_before)?,
            not_after: at(leaf.validity().not_after)?,
        })
    }

    /// Returns when to replace a certificate that was just issued and is due at `renew_at`: after some seconds at
    /// least, so that a very short lifetime causes no stream of requests.
    pub fn earliest_renewal(&self, renew_at: Timestamp, now: Timestamp) -> Timestamp {
        let left = self.not_after.duration_since(now);
        renew_at.max(now + limits::CERTIFICATE_SOONEST.min(left / 2))
    }

    /// Returns the node in the user name of a daemon's certificate; `None` for other users.
    pub fn node(&self) -> Option<&str> {
        self.node_after(names::WICD_USER_PREFIX)
    }

    /// Returns the rest of the user name after `prefix`; `None` if it is empty or the prefix differs.
    pub(super) fn node_after(&self, prefix: &str) -> Option<&str> {
        self.user.strip_prefix(prefix).filter(|name| !name.is_empty())
    }
}

/// Parses the first certificate.
fn first(blocks: &[Pem]) -> Result<X509Certificate<'_>, CertificateError> {
    let leaf = blocks.iter().find(|block| block.label == "CERTIFICATE");
    let leaf = leaf.ok_or(CertificateError::Certificate)?;
    leaf.parse_x509().map_err(|_| CertificateError::Certificate)
}

/// Returns the values of one attribute type in a name.
fn texts<'a>(
    name: &'a X509Name<'_>,
    kind: &'a x509_parser::asn1_rs::Oid<'static>,
) -> impl Iterator<Item = String> + 'a {
    name.iter_by_oid(kind).filter_map(|value| value.as_str().ok().map(str::to_owned))
}

/// Whether a certificate is usable.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Usability {
    /// A new certificate has to be requested before anything else.
    Unusable(Reason),
    /// The certificate is usable; the next one is requested from `renew_at` on.
    Usable {
        /// Time of renewal, possibly in the past.
        renew_at: Timestamp,
    },
}

/// Why a certificate is unusable.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reason {
    /// There is no certificate, or it cannot be parsed.
    Missing,
    /// The certificate has expired or is not valid yet.
    NotValidNow,
    /// The certificate belongs to another user.
    OtherName,
    /// The certificate lacks the group that has the rights in the cluster.
    NoGroup,
}

/// Decides whether the daemon's certificate is usable on `node`. `share` of its lifetime, between 0 and 1, is random
/// for each certificate, so that the daemons of a cluster do not all renew at once.
///
/// Source: `docs/contract/wicd.md`, WICD42 and WICD43.
pub fn judge(
    certificate: Option<&Certificate>,
    node: &str,
    share: f64,
    now: Timestamp,
) -> Usability {
    let Some(certificate) = certificate else { return Usability::Unusable(Reason::Missing) };
    if certificate.node() != Some(node) {
        return Usability::Unusable(Reason::OtherName);
    }
    if !certificate.groups.iter().any(|group| group == names::WICD_NODES_GROUP) {
        return Usability::Unusable(Reason::NoGroup);
    }
    let life = certificate.not_after.duration_since(certificate.not_before);
    if now < certificate.not_before || now >= certificate.not_after || life.is_negative() {
        return Usability::Unusable(Reason::NotValidNow);
    }
    let (first, last) = limits::CERTIFICATE_SHARE;
    let passed = SignedDuration::try_from_secs_f64(life.as_secs_f64() * share.clamp(first, last));
    Usability::Usable { renew_at: certificate.not_before + passed.unwrap_or_default() }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "there is none that can be read",
            Self::NotValidNow => "the one there is not valid now",
            Self::OtherName => "the one there speaks for somebody else",
            Self::NoGroup => "the one there lacks the group of the daemons",
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType};

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn certificate() -> Certificate {
        Certificate {
            user: "system:wicd-node:win-1".to_owned(),
            groups: vec!["system:wicd-nodes".to_owned()],
            not_before: at("2026-01-01T00:00:00Z"),
            not_after: at("2026-01-01T10:00:00Z"),
        }
    }

    const NOON: &str = "2026-01-01T05:00:00Z";

    #[track_caller]
    fn check(change: fn(&mut Certificate), now: &str, expected: Usability) {
        let mut certificate = certificate();
        change(&mut certificate);
        assert_eq!(judge(Some(&certificate), "win-1", 0.8, at(now)), expected);
    }

    #[test]
    fn a_good_one_is_renewed_after_its_share_of_life() {
        check(|_| (), NOON, Usability::Usable { renew_at: at("2026-01-01T08:00:00Z") });
    }

    #[test]
    fn a_good_one_is_used_until_its_last_second() {
        let due = Usability::Usable { renew_at: at("2026-01-01T08:00:00Z") };
        check(|_| (), "2026-01-01T09:59:59Z", due);
        check(|_| (), "2026-01-01T10:00:00Z", Usability::Unusable(Reason::NotValidNow));
    }

    #[test]
    fn a_share_out_of_bounds_is_drawn_back() {
        let renew_at = |share| match judge(Some(&certificate()), "win-1", share, at(NOON)) {
            Usability::Usable { renew_at } => renew_at,
            Usability::Unusable(reason) => panic!("{reason}"),
        };
        assert_eq!(renew_at(0.0), at("2026-01-01T07:00:00Z"));
        assert_eq!(renew_at(f64::INFINITY), at("2026-01-01T09:00:00Z"));
    }

    #[test]
    fn a_new_one_is_not_replaced_at_once() {
        let new = certificate();
        let long = new.earliest_renewal(at("2026-01-01T00:00:01Z"), at(NOON));
        assert_eq!(long, at("2026-01-01T05:00:10Z"));
        let short = new.earliest_renewal(at("2026-01-01T00:00:01Z"), at("2026-01-01T09:59:58Z"));
        assert_eq!(short, at("2026-01-01T09:59:59Z"));
        let later = at("2026-01-01T08:00:00Z");
        assert_eq!(new.earliest_renewal(later, at(NOON)), later);
    }

    #[test]
    fn one_of_another_node_is_not_used() {
        let other = Usability::Unusable(Reason::OtherName);
        check(|c| "system:wicd-node:win-2".clone_into(&mut c.user), NOON, other);
        check(|c| "system:wicd-node:".clone_into(&mut c.user), NOON, other);
        check(|c| "win-1".clone_into(&mut c.user), NOON, other);
    }

    #[test]
    fn one_without_the_group_is_not_used() {
        check(|c| c.groups.clear(), NOON, Usability::Unusable(Reason::NoGroup));
    }

    #[test]
    fn one_that_is_not_valid_yet_is_not_used() {
        check(|_| (), "2025-12-31T23:59:59Z", Usability::Unusable(Reason::NotValidNow));
    }

    #[test]
    fn none_is_missing() {
        let standing = judge(None, "win-1", 0.8, at(NOON));
        assert_eq!(standing, Usability::Unusable(Reason::Missing));
    }

    proptest! {
        /// Whatever its dates, a certificate is used only between them and renewed within them.
        #[test]
        fn renewal_lies_in_its_life(from in -9_000_i64..9_000, life in -10_i64..9_000, share in -1.0..2.0, now in -9_000_i64..18_000) {
            let second = |s| Timestamp::from_second(s).unwrap();
            let certificate = Certificate {
                not_before: second(from), not_after: second(from + life), ..certificate()
            };
            match judge(Some(&certificate), "win-1", share, second(now)) {
                Usability::Usable { renew_at } => {
                    prop_assert!(from <= now && now < from + life);
                    prop_assert!(certificate.not_before <= renew_at && renew_at < certificate.not_after);
                }
                Usability::Unusable(reason) => {
                    prop_assert_eq!(reason, Reason::NotValidNow);
                    prop_assert!(now < from || now >= from + life);
                }
            }
        }
    }

    /// Returns the PEM text of a new certificate and of its key.
    fn made() -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, names::WICD_NODES_GROUP);
        params.distinguished_name.push(DnType::CommonName, "system:wicd-node:win-1");
        params.not_before = rcgen::date_time_ymd(2026, 1, 1);
        params.not_after = rcgen::date_time_ymd(2026, 1, 2);
        (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
    }

    #[test]
    fn text_with_certificate_and_key_is_read() {
        let (certificate, key) = made();
        let read = Certificate::parse(format!("{certificate}{key}").as_bytes()).unwrap();
        assert_eq!(
            (read.node(), read.groups.as_slice()),
            (Some("win-1"), ["system:wicd-nodes".to_owned()].as_slice())
        );
        assert_eq!(read.not_after, at("2026-01-02T00:00:00Z"));
    }

    #[test]
    fn text_that_lacks_something_is_told_apart() {
        let ((certificate, key), (_, other)) = (made(), made());
        let read = |text: &str| Certificate::parse(text.as_bytes()).unwrap_err();
        assert!(matches!(read(&key), CertificateError::Certificate));
        assert!(matches!(read(&certificate), CertificateError::Key));
        let half = certificate.get(..certificate.len() / 2).unwrap();
        assert!(matches!(read(&format!("{half}\n{key}")), CertificateError::Certificate));
        assert!(matches!(read(&(certificate + &other)), CertificateError::OtherKey));
    }
}
