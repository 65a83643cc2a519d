//! The bundle of certificates that WICD imports into a host's root store, [`host::CA_BUNDLE`].
//!
//! The text is that of the original, byte by byte: entries stay as they are in the cluster and may
//! stand there twice. Parsing and de-duplicating would change a file whose digest decides whether
//! every node gets it again, and would drop what only the importer can judge. The importer takes
//! certificates by their thumbprint, so doubles have no effect there.
//!
//! [`host::CA_BUNDLE`]: crate::names::host::CA_BUNDLE

use std::collections::BTreeMap;

use crate::names::objects::{CA_BUNDLE_KEY, TRUSTED_CA_CONFIG_MAP};

/// One entry of `spec.imageRegistryBundleUserData` or `spec.imageRegistryBundleData` of a
/// ControllerConfig.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RegistryBundle<'a> {
    /// Host of the registry; `..` stands for the colon before a port.
    pub file: &'a str,
    /// Certificates in PEM, decoded from the object's base64.
    pub data: &'a [u8],
}

/// The certificates of a cluster-wide proxy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Proxy<'a> {
    /// The operator runs without a proxy; the ConfigMap does not matter.
    Off,
    /// Data of [`TRUSTED_CA_CONFIG_MAP`], `None` if the ConfigMap does not exist.
    On(Option<&'a BTreeMap<String, String>>),
}

/// Why there is no bundle.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CaBundleError {
    /// With a proxy the ConfigMap has to be there, if only empty.
    #[error(
        "a proxy is set but ConfigMap {TRUSTED_CA_CONFIG_MAP} is missing, wait until it was made"
    )]
    NoTrustedCa,
}

/// Content of [`host::CA_BUNDLE`](crate::names::host::CA_BUNDLE): the entries of `user`, then those
/// of `data`, then what the proxy needs. It may be empty, and is written all the same.
///
/// Source: `spec/node-config.md`, section 6.
///
/// # Errors
/// [`CaBundleError::NoTrustedCa`]; the ConfigMap will come, so look again.
pub fn render(
    user: &[RegistryBundle<'_>],
    data: &[RegistryBundle<'_>],
    proxy: Proxy<'_>,
) -> Result<Vec<u8>, CaBundleError> {
    let mut bundle = Vec::new();
    for entry in user.iter().chain(data) {
        bundle.extend_from_slice(format!("# {}\n", entry.file.replace("..", ":")).as_bytes());
        bundle.extend_from_slice(entry.data);
        bundle.extend_from_slice(b"\n\n");
    }
    match proxy {
        Proxy::Off => {}
        Proxy::On(None) => return Err(CaBundleError::NoTrustedCa),
        // The cluster fills the key some time after the ConfigMap was made.
        Proxy::On(Some(config_map)) => {
            let trusted = config_map.get(CA_BUNDLE_KEY).map_or("", String::as_str);
            bundle.extend_from_slice(trusted.as_bytes());
        }
    }
    Ok(bundle)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;
    use serde::Deserialize;

    use super::*;
    use crate::names::host::PROXY_VARIABLES;
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
        let cases = cases::<Input, Expect>(include_str!("../tests/vectors/ca_bundle.json"), 8);
        for Case { name, input, expect } in cases {
            let (user, data) = (decode(&input.user), decode(&input.data));
            let proxy = if PROXY_VARIABLES.iter().any(|name| input.env.contains_key(*name)) {
                Proxy::On(input.trusted_ca_configmap_data.as_ref())
            } else {
                Proxy::Off
            };
            let bundle = render(&bundles(&user), &bundles(&data), proxy).ok();
            assert_eq!(bundle, expect.bundle.map(String::into_bytes), "{name}");
        }
    }

    #[test]
    fn a_proxy_needs_its_config_map() {
        assert_eq!(render(&[], &[], Proxy::On(None)), Err(CaBundleError::NoTrustedCa));
    }
}
