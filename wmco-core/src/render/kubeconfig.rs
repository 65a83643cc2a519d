//! Kubeconfigs of the kubelet and of WICD.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::ByteString;
use serde::Serialize;

use crate::names::{WICD_USER_PREFIX, objects};
use crate::secret::Secret;
use crate::winpath::WindowsPath;

/// Name of the cluster in each file.
const CLUSTER: &str = "local";

/// Content of a service account's token Secret.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ServiceAccountToken {
    /// Certificates of the API server's authority, in PEM.
    pub ca: Vec<u8>,
    /// The bearer token.
    pub token: Secret,
}

/// Why a kubeconfig cannot be made.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum KubeconfigError {
    /// A required key is missing.
    #[error("secret {secret} has no key `{key}`, delete it so that it is made again")]
    MissingKey {
        /// Name of the Secret.
        secret: String,
        /// Name of the key.
        key: &'static str,
    },
    /// The API server's URL is empty.
    #[error(
        "the API server's URL is empty, set status.apiServerInternalURI of infrastructure {}",
        objects::CLUSTER
    )]
    NoServer,
    /// The token is not UTF-8 text.
    #[error(
        "the token for user `{user}` is no UTF-8 text, delete its secret so that it is made again"
    )]
    Token {
        /// The user in the kubeconfig.
        user: String,
    },
}

impl ServiceAccountToken {
    /// Reads CA and token from the data of the Secret `secret`. Both may be empty, as in the original; see
    /// [`token_kubeconfig`].
    ///
    /// # Errors
    /// [`KubeconfigError::MissingKey`].
    pub fn read(
        secret: &str,
        data: &BTreeMap<String, ByteString>,
    ) -> Result<Self, KubeconfigError> {
        let value = |key| {
            data.get(key)
                .map(|bytes| bytes.0.clone())
                .ok_or_else(|| KubeconfigError::MissingKey { secret: secret.to_owned(), key })
        };
        Ok(Self { ca: value(objects::CA_KEY)?, token: Secret::new(value(objects::TOKEN_KEY)?) })
    }
}

/// Text of a kubeconfig whose user has a token; `user` is [`objects::KUBELET_KUBECONFIG_USER`] or
/// [`objects::WICD_KUBECONFIG_USER`]. An empty CA or token is left out.
///
/// Source: `docs/contract/node-files.md`, FILE13 and FILE14.
///
/// # Errors
/// The server is empty, or the token is not text.
pub fn token_kubeconfig(
    server: &str,
    user: &str,
    secret: &ServiceAccountToken,
) -> Result<Secret, KubeconfigError> {
    let token = std::str::from_utf8(secret.token.expose())
        .map_err(|_| KubeconfigError::Token { user: user.to_owned() })?;
    let credentials = if token.is_empty() {
        Credentials::default()
    } else {
        Credentials { token: Some(token), ..Credentials::default() }
    };
    write(server, &secret.ca, user, credentials)
}

/// Text of a kubeconfig whose user has the certificate and key in the file `pem` on the host. An empty CA is left
/// out.
///
/// Source: `docs/contract/node-files.md`, FILE14.
///
/// # Errors
/// The server is empty.
pub fn certificate_kubeconfig(
    server: &str,
    user: &str,
    ca: &[u8],
    pem: &WindowsPath,
) -> Result<Secret, KubeconfigError> {
    let pem = Some(pem.as_str());
    let credentials =
        Credentials { client_certificate: pem, client_key: pem, ..Credentials::default() };
    write(server, ca, user, credentials)
}

/// Name of WICD's user on `node`.
pub fn wicd_user(node: &str) -> String {
    format!("{WICD_USER_PREFIX}{node}")
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Kubeconfig<'a> {
    clusters: [NamedCluster<'a>; 1],
    users: [NamedUser<'a>; 1],
    contexts: [NamedContext<'a>; 1],
    current_context: &'a str,
}

#[derive(Serialize)]
struct NamedCluster<'a> {
    name: &'a str,
    cluster: Cluster<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster<'a> {
    server: &'a str,
    #[serde(skip_serializing_if = "String::is_empty")]
    certificate_authority_data: String,
}

#[derive(Serialize)]
struct NamedUser<'a> {
    name: &'a str,
    user: Credentials<'a>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Credentials<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    client_certificate: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
}

#[derive(Serialize)]
struct NamedContext<'a> {
    name: &'a str,
    context: Context<'a>,
}

#[derive(Serialize)]
struct Context<'a> {
    cluster: &'a str,
    user: &'a str,
}

#[expect(clippy::expect_used, reason = "plain structs with string keys serialize")]
fn write(
    server: &str,
    ca: &[u8],
    user: &str,
    credentials: Credentials<'_>,
) -> Result<Secret, KubeconfigError> {
    if server.trim().is_empty() {
        return Err(KubeconfigError::NoServer);
    }
    let kubeconfig = Kubeconfig {
        clusters: [NamedCluster {
            name: CLUSTER,
            cluster: Cluster { server, certificate_authority_data: BASE64_STANDARD.encode(ca) },
        }],
        users: [NamedUser { name: user, user: credentials }],
        contexts: [NamedContext { name: user, context: Context { cluster: CLUSTER, user } }],
        current_context: user,
    };
    Ok(Secret::new(serde_json::to_vec(&kubeconfig).expect("a kubeconfig is JSON")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(secret: &Secret) -> &str {
        std::str::from_utf8(secret.expose()).unwrap()
    }

    #[test]
    fn a_missing_key_is_named_with_its_secret() {
        let data = BTreeMap::from([(objects::CA_KEY.to_owned(), ByteString(b"CA".to_vec()))]);
        let error = ServiceAccountToken::read("node-token", &data).unwrap_err();
        assert_eq!(
            error,
            KubeconfigError::MissingKey { secret: "node-token".to_owned(), key: "token" }
        );
    }

    #[test]
    fn empty_values_are_left_out() {
        let data =
            [objects::CA_KEY, objects::TOKEN_KEY].map(|key| (key.to_owned(), ByteString(vec![])));
        let secret = ServiceAccountToken::read("s", &BTreeMap::from(data)).unwrap();
        let kubeconfig = token_kubeconfig("https://api.test", "kubelet", &secret).unwrap();
        insta::assert_snapshot!(text(&kubeconfig), @r#"{"clusters":[{"name":"local","cluster":{"server":"https://api.test"}}],"users":[{"name":"kubelet","user":{}}],"contexts":[{"name":"kubelet","context":{"cluster":"local","user":"kubelet"}}],"current-context":"kubelet"}"#);
    }

    #[test]
    fn an_empty_server_is_refused() {
        let secret = ServiceAccountToken { ca: vec![], token: Secret::default() };
        for server in ["", " "] {
            let result = token_kubeconfig(server, "wicd", &secret);
            assert_eq!(result, Err(KubeconfigError::NoServer));
        }
    }

    #[test]
    fn a_certificate_takes_the_place_of_the_token() {
        let pem = crate::names::host::WICD_CURRENT_CERTIFICATE.parse().unwrap();
        let user = wicd_user("win-1");
        let kubeconfig = certificate_kubeconfig("https://api.test", &user, b"CA", &pem).unwrap();
        insta::assert_snapshot!(text(&kubeconfig), @r#"{"clusters":[{"name":"local","cluster":{"server":"https://api.test","certificate-authority-data":"Q0E="}}],"users":[{"name":"system:wicd-node:win-1","user":{"client-certificate":"C:\\k\\wicd-certs\\wicd-client-current.pem","client-key":"C:\\k\\wicd-certs\\wicd-client-current.pem"}}],"contexts":[{"name":"system:wicd-node:win-1","context":{"cluster":"local","user":"system:wicd-node:win-1"}}],"current-context":"system:wicd-node:win-1"}"#);
    }

    #[test]
    fn no_token_is_printed() {
        let secret = ServiceAccountToken { ca: vec![], token: Secret::new(*b"hush-hush") };
        let kubeconfig = token_kubeconfig("https://api.test", "wicd", &secret).unwrap();
        assert!(!format!("{secret:?}{kubeconfig:?}").contains("hush"));
        let damaged = ServiceAccountToken { ca: vec![], token: Secret::new(*b"hush\xff") };
        let error = token_kubeconfig("https://api.test", "wicd", &damaged).unwrap_err();
        assert!(!format!("{error:?} {error}").contains("hush"));
    }
}
