//! Placeholders in the operator's own services; they have no other meaning. Source: `docs/contract/services.md`, SVC33.

pub(crate) const NODE_NAME: &str = "NODE_NAME";
pub(crate) const NODE_IP: &str = "NODE_IP";
pub(crate) const HOSTNAME_OVERRIDE: &str = "HOSTNAME_OVERRIDE";
pub(crate) const NODE_SUBNET: &str = "NODE_SUBNET";
pub(crate) const KUBE_CONFIG_PATH: &str = "KUBE_CONFIG_PATH";
pub(crate) const KUBE_PROXY_CONFIG_PATH: &str = "KUBE_PROXY_CONFIG_PATH";
pub(crate) const VERBOSITY: &str = "VERBOSITY";

/// All placeholders.
pub(super) const ALL: [&str; 7] = [
    HOSTNAME_OVERRIDE,
    NODE_IP,
    NODE_NAME,
    NODE_SUBNET,
    KUBE_CONFIG_PATH,
    KUBE_PROXY_CONFIG_PATH,
    VERBOSITY,
];
