//! Any request that an encoder can make, and any damage to it, read by us and by `x509-parser`.

use proptest::prelude::*;
use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair, SanType};
use wmco_csr::CertificationRequest;

use crate::fixture::World;
use crate::laws;

fn any_name() -> impl Strategy<Value = DnValue> {
    prop_oneof![
        "[a-zA-Z0-9:. -]{1,40}".prop_map(DnValue::Utf8String),
        "\\PC{1,20}".prop_map(DnValue::Utf8String),
        "[a-zA-Z0-9:. '()+,/=-]{1,40}"
            .prop_map(|text| DnValue::PrintableString(text.try_into().unwrap())),
    ]
}

fn any_attribute() -> impl Strategy<Value = DnType> {
    prop_oneof![
        Just(DnType::CommonName),
        Just(DnType::OrganizationName),
        Just(DnType::CustomDnType(vec![2, 5, 4, 3])),
        Just(DnType::OrganizationalUnitName),
    ]
}

fn any_alternative_name() -> impl Strategy<Value = SanType> {
    prop_oneof![
        "[a-z0-9.*-]{1,30}".prop_map(|name| SanType::DnsName(name.try_into().unwrap())),
        "[a-z@.]{1,30}".prop_map(|name| SanType::Rfc822Name(name.try_into().unwrap())),
        "https://[a-z/]{1,30}".prop_map(|name| SanType::URI(name.try_into().unwrap())),
        any::<std::net::IpAddr>().prop_map(SanType::IpAddress),
    ]
}

fn any_request() -> impl Strategy<Value = Vec<u8>> {
    let subject = prop::collection::vec((any_attribute(), any_name()), 0..5);
    let names = prop::collection::vec(any_alternative_name(), 0..5);
    (subject, names).prop_map(|(subject, names)| {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in subject {
            params.distinguished_name.push(kind, value);
        }
        params.subject_alt_names = names;
        let key = KeyPair::generate().unwrap();
        params.serialize_request(&key).unwrap().der().to_vec()
    })
}

proptest! {
    /// Whatever a correct encoder writes can be read, as itself, and its signature is right.
    #[test]
    fn encoders_are_understood(der in any_request()) {
        prop_assert!(laws::reads_like_the_oracle(&der));
        prop_assert_eq!(CertificationRequest::parse(&der).unwrap().verify(), Ok(()));
    }

    /// Damaged requests are refused, or read as the oracle reads them; they never verify.
    #[test]
    fn damage_is_never_understood_differently(
        der in any_request(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 1..=255_u8), 1..4),
    ) {
        let mut damaged = der.clone();
        for (at, bits) in damage {
            *at.get_mut(&mut damaged) ^= bits;
        }
        laws::reads_like_the_oracle(&damaged);
        if damaged != der && let Ok(request) = CertificationRequest::parse(&damaged) {
            prop_assert!(request.verify().is_err());
        }
    }

    /// Requests that are cut or longer than they say are refused.
    #[test]
    fn length_is_exact(der in any_request(), at in any::<prop::sample::Index>(), more in any::<u8>()) {
        prop_assert!(CertificationRequest::parse(&der[..at.index(der.len())]).is_err());
        let longer = [der.as_slice(), &[more]].concat();
        prop_assert!(CertificationRequest::parse(&longer).is_err());
    }

    /// Any bytes at all do no harm.
    #[test]
    fn noise_does_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(!laws::reads_like_the_oracle(&bytes));
        prop_assert!(!laws::approves_only_what_it_should(&bytes));
    }

    /// A text with one byte changed is the same request, or none.
    #[test]
    fn pem_has_one_form(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut world = World::new(wmco_csr::Kind::KubeletServing);
        *at.get_mut(&mut world.csr.spec.request.0) = byte;
        laws::pem_is_canonical(&world.csr.spec.request.0);
        laws::approves_only_what_it_should(&world.csr.spec.request.0);
    }
}

#[test]
fn fixtures_are_approved_under_the_laws() {
    for kind in
        [wmco_csr::Kind::KubeletClient, wmco_csr::Kind::KubeletServing, wmco_csr::Kind::Wicd]
    {
        let world = World::new(kind);
        assert!(laws::approves_only_what_it_should(&world.csr.spec.request.0), "{kind}");
    }
}
