//! The CA bundle that nodes trust. Source: `spec/node-config.md`, section 6.

/// One entry of a ControllerConfig's image registry bundles.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RegistryBundle {
    /// The registry, a port after two dots, for example `quay.io..5000`.
    pub file: String,
    /// PEM text.
    pub data: Vec<u8>,
}

/// The bundle as it is written to the host: the users' registries, the cluster's own, and, when the
/// cluster has a proxy, what that needs.
pub fn ca_bundle(
    of_users: &[RegistryBundle],
    of_cluster: &[RegistryBundle],
    of_proxy: Option<&[u8]>,
) -> Vec<u8> {
    let mut bundle = Vec::new();
    for entry in of_users.iter().chain(of_cluster) {
        bundle.extend(format!("# {}\n", entry.file.replace("..", ":")).into_bytes());
        bundle.extend(&entry.data);
        bundle.extend(b"\n\n");
    }
    bundle.extend(of_proxy.unwrap_or_default());
    bundle
}
