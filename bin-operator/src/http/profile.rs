//! A TLS profile as our TLS library takes it.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::version::TLS13;
use rustls::{ALL_VERSIONS, SupportedCipherSuite, SupportedProtocolVersion};
use wmco_core::tls_profile::{TlsProfile, TlsVersion};

/// The newest version alone.
static NEWEST: [&SupportedProtocolVersion; 1] = [&TLS13];

/// The suites of `provider` that a profile lets in, and the versions; none: nobody asks for anything.
///
/// Nothing below TLS 1.2 is ever spoken. As in Go, the suites of TLS 1.3 cannot be chosen. Where a profile names
/// none of our suites, TLS 1.3 is what is left.
pub(super) fn chosen(
    profile: Option<&TlsProfile>,
    provider: &CryptoProvider,
) -> (Arc<CryptoProvider>, &'static [&'static SupportedProtocolVersion]) {
    let Some(profile) = profile else {
        return (Arc::new(provider.clone()), ALL_VERSIONS);
    };
    let is_13 = |suite: &SupportedCipherSuite| suite.tls13().is_some();
    let is_named = |suite: &SupportedCipherSuite| {
        let name = suite.suite();
        profile.cipher_suites.is_empty()
            || profile.cipher_suites.iter().any(|wanted| name.as_str() == Some(wanted))
    };
    let suites = &provider.cipher_suites;
    let old = profile.min_version < TlsVersion::Tls13;
    let chosen: Vec<SupportedCipherSuite> =
        suites.iter().filter(|suite| is_13(suite) || old && is_named(suite)).copied().collect();
    let versions = if chosen.iter().all(is_13) { &NEWEST } else { ALL_VERSIONS };
    (Arc::new(CryptoProvider { cipher_suites: chosen, ..provider.clone() }), versions)
}

#[cfg(test)]
mod tests {
    use rustls::crypto::ring::default_provider;

    use super::*;

    fn profile(min_version: TlsVersion, cipher_suites: &[&'static str]) -> TlsProfile {
        TlsProfile { min_version, cipher_suites: cipher_suites.to_vec() }
    }

    /// Names of the suites below TLS 1.3, and how many versions are spoken.
    fn below_13(profile: &TlsProfile) -> (Vec<&'static str>, usize) {
        let (provider, versions) = chosen(Some(profile), &default_provider());
        let old = provider.cipher_suites.iter().filter(|suite| suite.tls13().is_none());
        (old.filter_map(|suite| suite.suite().as_str()).collect(), versions.len())
    }

    #[test]
    fn only_named_suites_are_spoken() {
        let name = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
        let intermediate = profile(TlsVersion::Tls12, &[name, "TLS_RSA_WITH_AES_128_CBC_SHA"]);
        assert_eq!(below_13(&intermediate), (vec![name], 2));
    }

    #[test]
    fn modern_speaks_one_version() {
        assert_eq!(below_13(&profile(TlsVersion::Tls13, &[])), (vec![], 1));
    }

    #[test]
    fn a_profile_without_a_suite_of_ours_leaves_the_newest_version() {
        let odd = profile(TlsVersion::Tls10, &["TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"]);
        assert_eq!(below_13(&odd), (vec![], 1));
    }

    #[test]
    fn without_a_profile_all_that_is_safe_is_spoken() {
        let (provider, versions) = chosen(None, &default_provider());
        assert_eq!(provider.cipher_suites, default_provider().cipher_suites);
        assert_eq!(versions.len(), 2);
    }
}
