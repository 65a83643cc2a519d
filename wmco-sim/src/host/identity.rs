//! API access of programs on a simulated host: kubeconfigs and certificates.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestStatus,
};
use kube::api::PostParams;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig, NamedAuthInfo};
use kube::runtime::wait::await_condition;
use kube::{Api, Client, Config};
use wmco_core::winpath::WindowsPath;
use wmco_services::fake::FakeWindows;
use wmco_services::identity::{self, Certificate, RequestContent};
use wmco_services::limits;

/// Name of the user in kubeconfigs that the kubelet writes.
const CERTIFICATE_USER: &str = "default-auth";

/// Why a program has no access to the API, or gets no certificate.
#[derive(Debug, thiserror::Error)]
pub(super) enum IdentityError {
    /// A request to the API failed.
    #[error("the api refused, look at its answer")]
    Api { source: kube::Error },
    /// The kubeconfig is unusable.
    #[error("{path} does not say how to reach the api, correct it")]
    Kubeconfig { path: WindowsPath, source: kube::config::KubeconfigError },
    /// A file does not exist.
    #[error("{path} does not exist, place it first")]
    MissingFile { path: String },
    /// The request was not approved and issued in time, was denied or failed, or was deleted.
    #[error("request {name} got no certificate, ask again")]
    NotIssued { name: String },
    /// A key or request could not be generated.
    #[error(transparent)]
    Request(#[from] identity::RequestError),
    /// Watching the request failed.
    #[error("request {name} could not be watched, ask again")]
    Watch { name: String, source: Box<kube::runtime::wait::Error> },
}

impl From<kube::Error> for IdentityError {
    fn from(source: kube::Error) -> Self {
        Self::Api { source }
    }
}

/// Creates a client from the kubeconfig at `path` on the host, whose files are the host's, too.
pub(super) async fn client(
    host: &FakeWindows,
    path: &WindowsPath,
) -> Result<Client, IdentityError> {
    Ok(Client::try_from(config(host, path).await?)?)
}

async fn config(host: &FakeWindows, path: &WindowsPath) -> Result<Config, IdentityError> {
    let broken = |source| IdentityError::Kubeconfig { path: path.clone(), source };
    let text = read(host, path.as_str())?;
    let mut kubeconfig = Kubeconfig::from_yaml(&text).map_err(broken)?;
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        if let Some(file) = cluster.certificate_authority.take() {
            cluster.certificate_authority_data = Some(encoded(&read(host, &file)?));
        }
    }
    for user in kubeconfig.auth_infos.iter_mut().filter_map(|named| named.auth_info.as_mut()) {
        if let Some(file) = user.client_certificate.take() {
            user.client_certificate_data = Some(encoded(&read(host, &file)?));
        }
        if let Some(file) = user.client_key.take() {
            user.client_key_data = Some(encoded(&read(host, &file)?).into());
        }
    }
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(broken)?;
    // A proxy of the machine that runs the simulation does not concern the simulated host.
    config.proxy_url = None;
    Ok(config)
}

/// Creates a client for the cluster of the kubeconfig at `path`, with this certificate.
pub(super) async fn client_with(
    host: &FakeWindows,
    path: &WindowsPath,
    certificate: &str,
) -> Result<Client, IdentityError> {
    let mut config = config(host, path).await?;
    config.auth_info = AuthInfo {
        client_certificate_data: Some(encoded(certificate)),
        client_key_data: Some(encoded(certificate).into()),
        ..AuthInfo::default()
    };
    Ok(Client::try_from(config)?)
}

/// Sets the certificate and key in `file` as the only user of the kubeconfig `text`.
pub(super) fn with_certificate(text: &str, file: &WindowsPath) -> Result<String, IdentityError> {
    let broken = |source| IdentityError::Kubeconfig { path: file.clone(), source };
    let mut kubeconfig = Kubeconfig::from_yaml(text).map_err(broken)?;
    let user = AuthInfo {
        client_certificate: Some(file.to_string()),
        client_key: Some(file.to_string()),
        ..AuthInfo::default()
    };
    kubeconfig.auth_infos = vec![NamedAuthInfo {
        name: CERTIFICATE_USER.to_owned(),
        auth_info: Some(user),
        other: BTreeMap::new(),
    }];
    for context in kubeconfig.contexts.iter_mut().filter_map(|named| named.context.as_mut()) {
        context.user = Some(CERTIFICATE_USER.to_owned());
    }
    Ok(serde_json::json!(kubeconfig).to_string())
}

fn encoded(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

/// Reads a text file of the host; `path` may have slashes.
pub(super) fn read(host: &FakeWindows, path: &str) -> Result<String, IdentityError> {
    let missing = || IdentityError::MissingFile { path: path.to_owned() };
    let place: WindowsPath = path.replace('/', "\\").parse().map_err(|_| missing())?;
    let bytes = host.file(&place).ok_or_else(missing)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether this PEM text holds a currently valid certificate with its key.
pub(super) fn is_valid_now(pem: &str) -> bool {
    let now = Timestamp::now();
    Certificate::parse(pem.as_bytes())
        .is_ok_and(|certificate| (certificate.not_before..certificate.not_after).contains(&now))
}

/// Requests a certificate with a new P-256 key and waits until it is issued. Returns certificate chain and key as PEM
/// in one text.
pub(super) async fn obtain(
    client: Client,
    wanted: &RequestContent,
) -> Result<String, IdentityError> {
    let made = identity::request(wanted)?;
    let request: CertificateSigningRequest =
        serde_json::from_value(made.object.clone()).map_err(kube::Error::SerdeError)?;
    let api: Api<CertificateSigningRequest> = Api::all(client);
    let created = api.create(&PostParams::default(), &request).await?;
    let name = created.metadata.name.unwrap_or_default();
    let settled = await_condition(api, &name, |request: Option<&CertificateSigningRequest>| {
        request.is_none_or(|request| request.status.as_ref().is_some_and(is_settled))
    });
    let issue = Duration::try_from(limits::CERTIFICATE_ISSUE).unwrap_or_default();
    let settled = tokio::time::timeout(issue, settled)
        .await
        .map_err(|_| IdentityError::NotIssued { name: name.clone() })?
        .map_err(|source| IdentityError::Watch { name: name.clone(), source: Box::new(source) })?;
    let certificate = settled.and_then(|request| request.status?.certificate);
    let Some(ByteString(certificate)) = certificate else {
        return Err(IdentityError::NotIssued { name });
    };
    Ok(String::from_utf8_lossy(made.with_chain(&certificate).expose()).into_owned())
}

fn is_settled(status: &CertificateSigningRequestStatus) -> bool {
    let refused = |kind: &str| matches!(kind, "Denied" | "Failed");
    status.certificate.is_some()
        || status.conditions.iter().flatten().any(|condition| refused(&condition.type_))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    #[test]
    fn a_certificate_is_valid_between_its_dates_only() {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![]).unwrap();
        let text = |params: &CertificateParams| {
            params.self_signed(&key).unwrap().pem() + &key.serialize_pem()
        };
        assert!(is_valid_now(&text(&params)));
        params.not_after = rcgen::date_time_ymd(2001, 1, 1);
        assert!(!is_valid_now(&text(&params)));
        assert!(!is_valid_now(""));
    }

    #[tokio::test]
    async fn a_kubeconfig_takes_its_files_from_the_host() {
        let host = FakeWindows::new("winhost");
        let path: WindowsPath = r"C:\k\kubeconfig".parse().unwrap();
        host.put_file(
            &path,
            r#"{"clusters": [{"name": "local", "cluster": {"server": "https://127.0.0.1:1"}}],
                "users": [{"name": "u", "user": {
                    "client-certificate": "C:\\k\\x.pem", "client-key": "C:\\k\\x.pem"}}],
                "contexts": [{"name": "u", "context": {"cluster": "local", "user": "u"}}],
                "current-context": "u"}"#,
        );
        let missing = config(&host, &path).await.unwrap_err();
        assert!(matches!(missing, IdentityError::MissingFile { path } if path == r"C:\k\x.pem"));
        host.put_file(&r"C:\k\x.pem".parse().unwrap(), "both");
        let config = config(&host, &path).await.unwrap();
        assert_eq!(config.auth_info.client_certificate_data.as_deref(), Some("Ym90aA=="));
        assert_eq!(config.auth_info.client_certificate, None);
    }
}
