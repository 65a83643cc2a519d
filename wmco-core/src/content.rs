//! Everything that a configured host gets, made from the cluster's objects and the payload.
//!
//! [`HostContent::render`] maps a Secret, a ConfigMap or a payload file to a path on a host, with its access rights
//! and whether its readers notice a change.

mod digests;

use std::collections::BTreeMap;

use crate::digest::Sha256;
use crate::ip_network::{IpNetwork, NetworkError};
use crate::names::{self, host, objects};
use crate::node::DesiredFile;
use crate::payload;
use crate::protocol::Access;
use crate::registries::RegistryFiles;
use crate::render::{
    ContainerdSettings, KubeconfigError, ServiceAccountToken, WicdArgumentsError,
    containerd_config, kubelet_config, network_script, token_kubeconfig, web_config,
    wicd_arguments,
};
use crate::secret::Secret;
use crate::tls_profile::TlsProfile;
use crate::winpath::{BadPath, WindowsPath};
use crate::worker_config::WorkerConfig;

pub use digests::{DIGESTS, Digests, PayloadError};

/// Advice for an object that is missing or lacks a field.
pub mod remedies {
    /// For objects that the cluster's installer writes.
    pub const INSTALLATION: &str = "wait until the cluster is installed";
    /// For objects that the machine config operator writes.
    pub const MACHINE_CONFIG: &str = "wait for the machine config operator";
    /// For a Secret that another controller creates again when it is deleted.
    pub const REMADE: &str = "delete it so that it is made again";
    /// For a Secret that another controller fills.
    pub const TOKEN: &str = "wait until the cluster has filled it";
}

/// Input of a host's content: a snapshot of the cluster.
#[derive(Clone, Debug)]
pub struct ContentInputs<'a> {
    /// The operator's namespace.
    pub namespace: &'a str,
    /// The platform, as Infrastructure `cluster` names it.
    pub platform: &'a str,
    /// URL of the API server for nodes.
    pub api_server: &'a str,
    /// Network of the cluster's services.
    pub service_network: IpNetwork,
    /// The kubelet's bootstrap credentials.
    pub bootstrapper: &'a ServiceAccountToken,
    /// WICD's credentials before it has a certificate.
    pub wicd: &'a ServiceAccountToken,
    /// CA of the clients that the kubelet accepts.
    pub kubelet_ca: &'a [u8],
    /// Serving certificate of the metrics exporter, PEM.
    pub tls_certificate: &'a [u8],
    /// Its private key, PEM.
    pub tls_key: &'a Secret,
    /// TLS settings for servers; `None` leaves the choice to each server.
    pub tls_profile: Option<&'a TlsProfile>,
    /// Trusted CAs, PEM; may be empty.
    pub ca_bundle: &'a [u8],
    /// containerd's configuration of registries.
    pub registries: &'a RegistryFiles,
    /// Settings of Linux workers that Windows nodes need, too.
    pub worker: &'a WorkerConfig,
    /// Digests of the payload.
    pub payload: &'a Digests,
    /// The administrator's settings of containerd.
    pub containerd: &'a ContainerdSettings,
    /// Size of the daemon's log files as a quantity of bytes.
    pub log_file_size: Option<&'a str>,
    /// Age at which rotated log files are deleted, in Go's notation.
    pub log_file_age: Option<&'a str>,
}

/// Files of a configured host, and all contents that are not payload.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HostContent {
    /// The desired file at each path.
    pub files: BTreeMap<WindowsPath, DesiredFile>,
    /// Rendered contents by digest. All other contents are payload.
    pub rendered: BTreeMap<Sha256, Secret>,
    /// Arguments of the daemon's service.
    pub daemon_arguments: Vec<String>,
}

/// Why the content of hosts cannot be rendered now.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContentError {
    /// An object that hosts need does not exist or lacks a field.
    #[error("{object} is missing or has no {field}, {remedy}")]
    Missing {
        /// Kind and name.
        object: String,
        /// The field or key.
        field: &'static str,
        /// The next step.
        remedy: &'static str,
    },
    /// A kubeconfig cannot be made.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// The service network has no address for the cluster's DNS.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A payload file has no digest.
    #[error("payload file {name} has no digest in {}, build the image again", DIGESTS)]
    Payload {
        /// The file.
        name: &'static str,
    },
    /// The daemon's arguments cannot be made.
    #[error(transparent)]
    Arguments(#[from] WicdArgumentsError),
    /// A constant path of ours is invalid.
    #[error(transparent)]
    Path(#[from] BadPath),
}

impl HostContent {
    /// Renders everything.
    ///
    /// # Errors
    /// [`ContentError`] names the object and the next step. Nothing is rendered in part, so a host never gets an
    /// empty key or a kubeconfig without a server.
    pub fn render(inputs: &ContentInputs<'_>) -> Result<Self, ContentError> {
        require(inputs)?;
        let dns = inputs.service_network.cluster_dns()?;
        let mut content = Self {
            daemon_arguments: wicd_arguments(
                inputs.namespace,
                inputs.log_file_size,
                inputs.log_file_age,
            )?,
            ..Self::default()
        };
        let secret = Access::Administrators;
        let open = Access::Inherited;
        let bootstrap = token_kubeconfig(
            inputs.api_server,
            objects::KUBELET_KUBECONFIG_USER,
            inputs.bootstrapper,
        )?;
        // WICD always starts from its token: a certificate that expired while the host was off
        // would lock it out. Source: `docs/contract/node-files.md`, FILE14.
        let wicd = token_kubeconfig(inputs.api_server, objects::WICD_KUBECONFIG_USER, inputs.wicd)?;
        content.live(host::KUBELET_CA, Secret::new(inputs.kubelet_ca), open)?;
        content.live(host::BOOTSTRAP_CA, Secret::new(inputs.bootstrapper.ca.clone()), open)?;
        content.live(host::BOOTSTRAP_KUBECONFIG, bootstrap, secret)?;
        content.live(host::WICD_KUBECONFIG, wicd, secret)?;
        content.live(host::CA_BUNDLE, Secret::new(inputs.ca_bundle), open)?;
        // Between the two writes, key and certificate do not match. The exporter reads both for each connection, so
        // one connection may fail, and the next succeeds.
        let tls = |name: &str| format!(r"{}\{name}", host::TLS_CERTIFICATES);
        let certificate = Secret::new(inputs.tls_certificate);
        content.live(&tls(objects::TLS_CERTIFICATE_KEY), certificate, secret)?;
        content.live(&tls(objects::TLS_PRIVATE_KEY_KEY), inputs.tls_key.clone(), secret)?;
        // The kubelet and containerd read their configurations when they start.
        content.place(host::KUBELET_CONFIG, Secret::new(kubelet_config(dns)), open, false)?;
        let containerd = containerd_config(inputs.containerd);
        content.place(host::CONTAINERD_CONFIG, Secret::new(containerd), open, false)?;
        if let Some(cloud) = &inputs.worker.cloud_config_content {
            // The file may hold cloud credentials.
            content.place(host::CLOUD_CONFIG, Secret::new(cloud.as_slice()), secret, false)?;
        }
        // On other platforms no kubelet reads it. Source: `docs/contract/node-files.md`, FILE22.
        if let (names::platforms::AWS, Some(providers)) =
            (inputs.platform, &inputs.worker.credential_provider)
        {
            let providers = Secret::new(providers.as_str());
            content.place(host::CREDENTIAL_PROVIDER_CONFIG, providers, open, false)?;
        }
        // containerd reads them for each image. They may hold credentials.
        for (path, file) in inputs.registries.iter() {
            let desired = DesiredFile { sha256: file.sha256, access: secret, live: true };
            content.files.insert(path.clone(), desired);
            content.rendered.insert(file.sha256, file.content.clone());
        }
        let generated = |name| match name {
            host::WEB_CONFIG => Secret::new(web_config(inputs.tls_profile)),
            _ => Secret::new(network_script(&inputs.service_network)),
        };
        for file in payload::files(inputs.platform) {
            if file.generated {
                let path = file.destination();
                content.place(path.as_str(), generated(file.name), file.access, true)?;
                continue;
            }
            let sha256 =
                inputs.payload.get(file.name).ok_or(ContentError::Payload { name: file.name })?;
            // Windows locks programs while they run; scripts are read when they start.
            let live = file.folder == host::SCRIPTS;
            let desired = DesiredFile { sha256, access: file.access, live };
            content.files.insert(file.destination(), desired);
        }
        Ok(content)
    }

    fn live(&mut self, path: &str, bytes: Secret, access: Access) -> Result<(), BadPath> {
        self.place(path, bytes, access, true)
    }

    fn place(
        &mut self,
        path: &str,
        bytes: Secret,
        access: Access,
        live: bool,
    ) -> Result<(), BadPath> {
        let sha256 = Sha256::of(bytes.expose());
        self.files.insert(path.parse()?, DesiredFile { sha256, access, live });
        self.rendered.insert(sha256, bytes);
        Ok(())
    }
}

/// Refuses inputs that are empty.
fn require(inputs: &ContentInputs<'_>) -> Result<(), ContentError> {
    let secret = |name: &str| format!("secret {name}");
    let checks = [
        (
            inputs.kubelet_ca.is_empty(),
            format!("controllerconfig {}", objects::CONTROLLER_CONFIG),
            "spec.kubeAPIServerServingCAData",
            remedies::MACHINE_CONFIG,
        ),
        (
            inputs.tls_certificate.is_empty(),
            secret(objects::TLS_SECRET),
            objects::TLS_CERTIFICATE_KEY,
            remedies::REMADE,
        ),
        (
            inputs.tls_key.expose().is_empty(),
            secret(objects::TLS_SECRET),
            objects::TLS_PRIVATE_KEY_KEY,
            remedies::REMADE,
        ),
        (
            inputs.bootstrapper.token.expose().is_empty(),
            secret(objects::BOOTSTRAPPER_SECRET),
            objects::TOKEN_KEY,
            remedies::TOKEN,
        ),
        (
            inputs.wicd.token.expose().is_empty(),
            secret(objects::WICD),
            objects::TOKEN_KEY,
            remedies::TOKEN,
        ),
    ];
    match checks.into_iter().find(|(empty, ..)| *empty) {
        Some((_, object, field, remedy)) => Err(ContentError::Missing { object, field, remedy }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
