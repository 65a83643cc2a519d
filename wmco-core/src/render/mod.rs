//! Contents of the files that the operator writes on a host, arguments of its daemon, and user data of new
//! machines.
//!
//! Everything is a pure function from cluster data to text: equal inputs give equal bytes, so a file's digest
//! decides whether the file has to be written again.
//!
//! Mirror files are rendered in [`registries`](crate::registries), the CA bundle in [`ca_bundle`](crate::ca_bundle).

mod containerd;
mod credential_provider;
mod kubeconfig;
mod kubelet;
mod network_script;
#[cfg(test)]
mod powershell;
mod user_data;
mod web_config;
mod wicd;

pub use containerd::{
    BadContainerdSetting, ContainerdLogLevel, ContainerdSettings, ContainerdSettingsError,
    RuntimeHandler, containerd_config,
};
pub use credential_provider::{
    CredentialProviderError, credential_provider, missing_provider_members,
    unknown_provider_members,
};
pub use kubeconfig::{
    KubeconfigError, ServiceAccountToken, certificate_kubeconfig, token_kubeconfig, wicd_user,
};
pub use kubelet::kubelet_config;
pub use network_script::network_script;
pub use user_data::{user_data, user_data_keys};
pub use web_config::web_config;
pub use wicd::{WicdArgumentsError, wicd_arguments};
