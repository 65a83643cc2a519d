//! What a kubeconfig says, and nothing else.
//!
//! `Config::from_custom_kubeconfig` also reads the proxy variables of the process, and gives no configuration at all where
//! a part of NO_PROXY has a form that it does not know. A daemon without a configuration cannot read the correction.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::Uri;
use kube::Config;
use kube::config::{Kubeconfig, KubeconfigError, LoadDataError};

/// The configuration of the current context, without a proxy, and the proxy that its cluster names.
///
/// # Errors
/// It names no context, cluster or server, or a part of that is none.
pub(super) fn config(kubeconfig: Kubeconfig) -> Result<(Config, Option<Uri>), KubeconfigError> {
    let Kubeconfig { current_context, contexts, clusters, auth_infos, .. } = kubeconfig;
    let name = current_context.ok_or(KubeconfigError::CurrentContextNotSet)?;
    let context = contexts.into_iter().find(|it| it.name == name).and_then(|it| it.context);
    let context = context.ok_or(KubeconfigError::LoadContext(name))?;
    let cluster = clusters.into_iter().find(|it| it.name == context.cluster);
    let cluster = cluster.and_then(|it| it.cluster);
    let cluster = cluster.ok_or(KubeconfigError::LoadClusterOfContext(context.cluster))?;
    let user = auth_infos.into_iter().find(|it| Some(&it.name) == context.user.as_ref());
    let server = cluster.server.as_deref().ok_or(KubeconfigError::MissingClusterUrl)?;
    let mut config = Config::new(server.parse().map_err(KubeconfigError::ParseClusterUrl)?);
    let authority = cluster.certificate_authority_data.as_deref();
    config.root_cert = authority.map(certificates).transpose()?;
    config.auth_info = user.and_then(|it| it.auth_info).unwrap_or_default();
    config.default_namespace = context.namespace.unwrap_or(config.default_namespace);
    config.accept_invalid_certs = cluster.insecure_skip_tls_verify.unwrap_or_default();
    config.tls_server_name = cluster.tls_server_name;
    let proxy = cluster.proxy_url.filter(|url| !url.is_empty());
    let proxy = proxy.map(|url| url.parse().map_err(KubeconfigError::ParseProxyUrl));
    Ok((config, proxy.transpose()?))
}

/// The certificates in base64 of PEM, each in DER.
fn certificates(encoded: &str) -> Result<Vec<Vec<u8>>, KubeconfigError> {
    let pem = BASE64_STANDARD.decode(encoded).map_err(|error| {
        KubeconfigError::LoadCertificateAuthority(LoadDataError::DecodeBase64(error))
    })?;
    let parts = pem::parse_many(pem).map_err(KubeconfigError::ParseCertificates)?;
    let parts = parts.into_iter().filter(|part| part.tag() == "CERTIFICATE");
    Ok(parts.map(pem::Pem::into_contents).collect())
}
