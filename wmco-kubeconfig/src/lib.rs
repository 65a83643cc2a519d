//! Clients for a cluster, as a kubeconfig and the environment say.
//!
//! [`kube::Config`] reads the proxy variables of the process, too, and gives no configuration at all where a part of NO_PROXY
//! has a form that it does not know, and its errors name a proxy with its password. A daemon without a configuration
//! cannot read the correction.

mod proxy;

use kube::Config;
use kube::config::{ExecAuthCluster, Kubeconfig};

pub use proxy::client;

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KubeconfigError {
    /// A file cannot be read, or is no kubeconfig.
    #[error(transparent)]
    Kube(#[from] kube::config::KubeconfigError),
    /// No kubeconfig can be read, and this is no pod.
    #[error("set KUBECONFIG, or run in a pod of the cluster ({in_pod})")]
    NoCluster {
        /// Why there is no kubeconfig.
        source: kube::config::KubeconfigError,
        /// What a pod would have.
        in_pod: Box<kube::config::InClusterError>,
    },
    /// The proxy that the kubeconfig names. Its text may hold a password.
    #[error("the proxy-url of cluster {cluster} is not one of http:// or https://, correct it")]
    Proxy {
        /// Its name in the kubeconfig.
        cluster: String,
    },
}

/// The cluster that `KUBECONFIG` or `~/.kube/config` names; without either, the one in whose pod this runs.
///
/// # Errors
/// [`KubeconfigError`].
pub fn infer() -> Result<Config, KubeconfigError> {
    match Kubeconfig::read() {
        Ok(kubeconfig) => config(kubeconfig),
        Err(source) => Config::incluster()
            .map_err(|in_pod| KubeconfigError::NoCluster { source, in_pod: Box::new(in_pod) }),
    }
}

/// The cluster of the current context, through the proxy that it names, or else that of this process's environment.
///
/// # Errors
/// It names no context, cluster or server, or a part of that is none.
pub fn config(kubeconfig: Kubeconfig) -> Result<Config, KubeconfigError> {
    config_in(kubeconfig, |name| std::env::var(name).ok())
}

fn config_in(
    kubeconfig: Kubeconfig,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Config, KubeconfigError> {
    use kube::config::KubeconfigError as Kube;
    let Kubeconfig { current_context, contexts, clusters, auth_infos, .. } = kubeconfig;
    let name = current_context.ok_or(Kube::CurrentContextNotSet)?;
    let context = contexts.into_iter().find(|it| it.name == name).and_then(|it| it.context);
    let context = context.ok_or(Kube::LoadContext(name))?;
    let cluster = clusters.into_iter().find(|it| it.name == context.cluster);
    let cluster = cluster.and_then(|it| it.cluster);
    let cluster = cluster.ok_or_else(|| Kube::LoadClusterOfContext(context.cluster.clone()))?;
    let user = auth_infos.into_iter().find(|it| Some(&it.name) == context.user.as_ref());
    let server = cluster.server.as_deref().ok_or(Kube::MissingClusterUrl)?;
    let mut config = Config::new(server.parse().map_err(Kube::ParseClusterUrl)?);
    // What programs are told that get tokens; also the certificates, whether in the kubeconfig or in a file.
    let told = ExecAuthCluster::try_from(&cluster)?;
    config.root_cert = told.certificate_authority_data.as_deref().map(certificates).transpose()?;
    config.auth_info = user.and_then(|it| it.auth_info).unwrap_or_default();
    if let Some(program) = config.auth_info.exec.as_mut().filter(|it| it.provide_cluster_info) {
        program.cluster = Some(told);
    }
    config.default_namespace = context.namespace.unwrap_or(config.default_namespace);
    config.accept_invalid_certs = cluster.insecure_skip_tls_verify.unwrap_or_default();
    config.disable_compression = cluster.disable_compression.unwrap_or_default();
    config.tls_server_name = cluster.tls_server_name;
    match cluster.proxy_url.filter(|url| !url.is_empty()) {
        Some(url) => {
            let url = url.parse().ok().filter(proxy::is_spoken);
            let none = || KubeconfigError::Proxy { cluster: context.cluster };
            config.proxy_url = Some(url.ok_or_else(none)?);
        }
        None => proxy::apply(&mut config, environment),
    }
    Ok(config)
}

/// The certificates in PEM, each in DER.
fn certificates(pem: &[u8]) -> Result<Vec<Vec<u8>>, KubeconfigError> {
    let parts = pem::parse_many(pem).map_err(kube::config::KubeconfigError::ParseCertificates)?;
    let parts = parts.into_iter().filter(|part| part.tag() == "CERTIFICATE");
    Ok(parts.map(pem::Pem::into_contents).collect())
}
