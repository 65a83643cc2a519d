//! Clients for the cluster, as a kubeconfig on the host says.

use base64::Engine as _;
use kube::config::AuthInfo;
use kube::{Client, Config};
use wmco_core::secret::Secret;
use wmco_core::winpath::WindowsPath;
use wmco_kubeconfig::{ClientError, KubeconfigError};
use wmco_services::limits;
use wmco_services::windows::{Files, WindowsError};

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The client cannot be built from what the kubeconfig says.
    #[error("no connection can be made as {path} says, correct it")]
    Client {
        /// The kubeconfig.
        path: WindowsPath,
        /// The cause.
        source: Box<ClientError>,
    },
    /// The kubeconfig names nothing that can be used.
    #[error("{path} does not say how to reach the cluster, correct it")]
    Kubeconfig {
        /// The kubeconfig.
        path: WindowsPath,
        /// The cause.
        source: Box<KubeconfigError>,
    },
    /// A file is not there.
    #[error("{path} does not exist, place it first")]
    Missing {
        /// The file.
        path: String,
    },
    /// A file cannot be read.
    #[error("a file that says how to reach the cluster cannot be read")]
    Windows(#[from] WindowsError),
}

/// A client that does as the kubeconfig at `path` says.
///
/// # Errors
/// [`ClusterError`].
pub(crate) fn client(files: &dyn Files, path: &WindowsPath) -> Result<Client, ClusterError> {
    build(path, config(files, path)?)
}

/// A client for the cluster of the kubeconfig at `path`, as the owner of `certificate` (chain and key,
/// PEM).
///
/// # Errors
/// [`ClusterError`].
pub(crate) fn client_with(
    files: &dyn Files,
    path: &WindowsPath,
    certificate: &Secret,
) -> Result<Client, ClusterError> {
    let mut config = config(files, path)?;
    config.auth_info = AuthInfo {
        client_certificate_data: Some(encoded(certificate.expose())),
        client_key_data: Some(encoded(certificate.expose()).into()),
        ..AuthInfo::default()
    };
    build(path, config)
}

fn build(path: &WindowsPath, config: Config) -> Result<Client, ClusterError> {
    wmco_kubeconfig::client(config)
        .map_err(|source| ClusterError::Client { path: path.clone(), source: Box::new(source) })
}

/// What the kubeconfig at `path` says, with the files that it names read by way of `files`.
fn config(files: &dyn Files, path: &WindowsPath) -> Result<Config, ClusterError> {
    let broken = |source: KubeconfigError| ClusterError::Kubeconfig {
        path: path.clone(),
        source: Box::new(source),
    };
    let text = read(files, path.as_str())?;
    let mut kubeconfig = wmco_kubeconfig::parse(&text).map_err(broken)?;
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        if let Some(file) = cluster.certificate_authority.take() {
            cluster.certificate_authority_data = Some(encoded(&read(files, &file)?));
        }
    }
    for user in kubeconfig.auth_infos.iter_mut().filter_map(|named| named.auth_info.as_mut()) {
        if let Some(file) = user.client_certificate.take() {
            user.client_certificate_data = Some(encoded(&read(files, &file)?));
        }
        if let Some(file) = user.client_key.take() {
            user.client_key_data = Some(encoded(&read(files, &file)?).into());
        }
    }
    // The environment of this process is the host's since the restart that brought its proxy into force.
    wmco_kubeconfig::config(kubeconfig).map_err(broken)
}

/// A file of the host; `path` as a person may have written it.
fn read(files: &dyn Files, path: &str) -> Result<Vec<u8>, ClusterError> {
    let missing = || ClusterError::Missing { path: path.to_owned() };
    let place: WindowsPath = path.replace('/', "\\").parse().map_err(|_| missing())?;
    files.read(&place, limits::CERTIFICATE_BYTES)?.ok_or_else(missing)
}

fn encoded(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use wmco_core::text::chain;
    use wmco_services::fake::FakeWindows;

    use super::*;

    const KUBECONFIG: &str = r#"{
        "clusters": [{"name": "local", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {
            "client-certificate": "C:\\k\\x.pem", "client-key": "C:/k/x.pem"}}],
        "contexts": [{"name": "u", "context": {"cluster": "local", "user": "u"}}],
        "current-context": "u"}"#;

    /// Certificate and key in one file.
    fn pem() -> String {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::default().self_signed(&key).unwrap();
        certificate.pem() + &key.serialize_pem()
    }

    #[tokio::test]
    async fn files_that_a_kubeconfig_names_are_the_hosts() {
        let host = FakeWindows::new("winhost");
        let path: WindowsPath = r"C:\k\kubeconfig".parse().unwrap();
        let missing = config(&host, &path).unwrap_err();
        assert_eq!(missing.to_string(), r"C:\k\kubeconfig does not exist, place it first");
        host.put_file(&path, KUBECONFIG);
        let missing = config(&host, &path).unwrap_err();
        assert_eq!(missing.to_string(), r"C:\k\x.pem does not exist, place it first");
        let pem = pem();
        host.put_file(&r"C:\k\x.pem".parse().unwrap(), pem.as_str());
        let config = config(&host, &path).unwrap();
        let encoded = encoded(pem.as_bytes());
        assert_eq!(config.auth_info.client_certificate_data, Some(encoded));
        assert_eq!(config.auth_info.client_certificate, None);
    }

    #[tokio::test]
    async fn what_is_no_kubeconfig_is_named() {
        let host = FakeWindows::new("winhost");
        let path: WindowsPath = r"C:\k\kubeconfig".parse().unwrap();
        for (text, place) in [
            ("clusters: hush", "line 1, column 11"),
            (r#"{"users": [{"name": "u", "user": {"token": ["hush"]}}]}"#, "line 1, column"),
        ] {
            host.put_file(&path, text);
            let error = config(&host, &path).unwrap_err();
            assert!(matches!(error, ClusterError::Kubeconfig { .. }), "{error:?}");
            let told = format!("{} {error:?}", chain(&error));
            assert!(told.contains(path.as_str()) && told.contains(place), "{told}");
            assert!(!told.contains("hush"), "{told}");
        }
    }
}
