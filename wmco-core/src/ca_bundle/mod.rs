//! The bundle of certificates that WICD imports into a host's root store, [`host::CA_BUNDLE`].
//!
//! The text is concatenated byte by byte: entries stay as they are in the cluster, and may occur twice. Parsing and
//! de-duplicating would change a file whose digest decides whether every node gets it again, and could drop entries
//! that only the importer understands. The importer adds certificates by their thumbprint, so duplicates have no
//! effect.
//!
//! [`host::CA_BUNDLE`]: crate::names::host::CA_BUNDLE

mod injection;

pub use injection::{Injected, Injection};

use crate::names::objects::TRUSTED_CA_CONFIG_MAP;

/// An entry of `spec.imageRegistryBundleUserData` or `spec.imageRegistryBundleData` of a ControllerConfig.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RegistryBundle<'a> {
    /// Host of the registry; `..` stands for the colon before a port.
    pub file: &'a str,
    /// Certificates in PEM, decoded from the object's base64.
    pub data: &'a [u8],
}

/// The certificates of a cluster-wide proxy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProxyTrust<'a> {
    /// The operator runs without a proxy; the ConfigMap does not matter.
    Off,
    /// What [`TRUSTED_CA_CONFIG_MAP`] has in [`CA_BUNDLE_KEY`], `None` if the ConfigMap does not exist.
    ///
    /// [`CA_BUNDLE_KEY`]: crate::names::objects::CA_BUNDLE_KEY
    On(Option<&'a str>),
}

/// Why the bundle cannot be made.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CaBundleError {
    /// With a proxy, the ConfigMap has to exist, even if empty.
    #[error(
        "a proxy is set but ConfigMap {TRUSTED_CA_CONFIG_MAP} is missing, wait until it was made"
    )]
    NoTrustedCa,
}

/// Content of [`host::CA_BUNDLE`](crate::names::host::CA_BUNDLE): the entries of `user`, then those of `data`, then
/// the proxy's certificates. It may be empty; the file is written even then.
///
/// Source: `docs/contract/proxy-and-trust.md`, TRUST11.
///
/// # Errors
/// [`CaBundleError::NoTrustedCa`]; retry, because the ConfigMap will be created.
pub fn render(
    user: &[RegistryBundle<'_>],
    data: &[RegistryBundle<'_>],
    proxy: ProxyTrust<'_>,
) -> Result<Vec<u8>, CaBundleError> {
    let mut bundle = Vec::new();
    for entry in user.iter().chain(data) {
        bundle.extend_from_slice(format!("# {}\n", entry.file.replace("..", ":")).as_bytes());
        bundle.extend_from_slice(entry.data);
        bundle.extend_from_slice(b"\n\n");
    }
    match proxy {
        ProxyTrust::Off => {}
        ProxyTrust::On(None) => return Err(CaBundleError::NoTrustedCa),
        // The cluster fills the key some time after the ConfigMap is created.
        ProxyTrust::On(Some(trusted)) => bundle.extend_from_slice(trusted.as_bytes()),
    }
    Ok(bundle)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;
    use serde::Deserialize;

    use super::*;
    use crate::names::host::PROXY_VARIABLES;
    use crate::names::objects::CA_BUNDLE_KEY;
    use crate::vectors::{Case, cases};

    #[derive(Deserialize)]
    struct Input {
        #[serde(rename = "imageRegistryBundleUserData")]
        user: Vec<Entry>,
        #[serde(rename = "imageRegistryBundleData")]
        data: Vec<Entry>,
        env: BTreeMap<String, String>,
        trusted_ca_configmap_data: Option<BTreeMap<String, String>>,
    }

    #[derive(Deserialize)]
    struct Entry {
        file: String,
        data: String,
    }

    #[derive(Deserialize)]
    struct Expect {
        bundle: Option<String>,
    }

    fn decode(entries: &[Entry]) -> Vec<(String, Vec<u8>)> {
        let decode = |data| BASE64_STANDARD.decode(data).unwrap();
        entries.iter().map(|entry| (entry.file.clone(), decode(&entry.data))).collect()
    }

    fn bundles(entries: &[(String, Vec<u8>)]) -> Vec<RegistryBundle<'_>> {
        entries.iter().map(|(file, data)| RegistryBundle { file, data }).collect()
    }

    #[test]
    fn the_vectors_hold() {
        let cases = cases::<Input, Expect>(include_str!("../../tests/vectors/ca_bundle.json"), 8);
        for Case { name, input, expect } in cases {
            let (user, data) = (decode(&input.user), decode(&input.data));
            let proxy = if PROXY_VARIABLES.iter().any(|name| input.env.contains_key(*name)) {
                let map = input.trusted_ca_configmap_data.as_ref();
                ProxyTrust::On(map.map(|map| map.get(CA_BUNDLE_KEY).map_or("", String::as_str)))
            } else {
                ProxyTrust::Off
            };
            let bundle = render(&bundles(&user), &bundles(&data), proxy).ok();
            assert_eq!(bundle, expect.bundle.map(String::into_bytes), "{name}");
        }
    }

    /// Source: `docs/contract/proxy-and-trust.md`, TRUST11.
    #[test]
    fn no_line_end_is_needed_for_each_block_to_begin_a_line() {
        const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
        let block = format!("{BEGIN}\nAA==\n-----END CERTIFICATE-----");
        let ends = ["", "\n", "\r\n"];
        for (first, second) in ends.iter().flat_map(|a| ends.iter().map(move |b| (a, b))) {
            let (user, data) = (format!("{block}{first}"), format!("{block}{second}"));
            let entry = |text: &'_ str| [("r..5000".to_owned(), text.as_bytes().to_vec())];
            let (user, data) = (entry(&user), entry(&data));
            let proxy = ProxyTrust::On(Some(&block));
            let text = render(&bundles(&user), &bundles(&data), proxy).unwrap();
            let text = String::from_utf8(text).unwrap();
            assert_eq!(text.lines().filter(|line| *line == BEGIN).count(), 3, "{text:?}");
        }
    }

    #[test]
    fn a_proxy_needs_its_config_map() {
        assert_eq!(render(&[], &[], ProxyTrust::On(None)), Err(CaBundleError::NoTrustedCa));
    }
}
