//! Contents of the files that the operator writes on a host, arguments of its daemon, and what a new
//! machine runs when it starts.
//!
//! Everything is a pure function from cluster data to text: equal inputs give equal bytes, so a
//! file's digest tells whether it has to be written again.
//!
//! Mirror files are rendered in `wmco-services`, the CA bundle in [`ca_bundle`](crate::ca_bundle).

mod credential_provider;
mod kubeconfig;
mod kubelet;
mod network_script;
#[cfg(test)]
mod powershell;
mod service_network;
mod user_data;
mod wicd;

pub use credential_provider::{CredentialProviderError, credential_provider};
pub use kubeconfig::{
    KubeconfigError, TokenSecret, certificate_kubeconfig, token_kubeconfig, wicd_user,
};
pub use kubelet::kubelet_config;
pub use network_script::network_script;
pub use service_network::{ServiceNetwork, ServiceNetworkError};
pub use user_data::{user_data, user_data_keys};
pub use wicd::{WicdArgumentsError, wicd_arguments};
