//! An API server, and what is known of it.

use std::fmt;

use anyhow::Context as _;
use axum::http::Uri;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::config::{AuthInfo, Cluster, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// Tokens outlive the test, whatever a server does to their lifetime.
const TOKEN_SECONDS: i64 = 4 * 60 * 60;

/// An API server, reached as an administrator.
pub(crate) struct Api {
    /// The administrator's client.
    pub(crate) client: Client,
    /// URL without credentials.
    pub(crate) url: String,
    /// Who signed its certificate, in PEM.
    pub(crate) ca_pem: String,
    /// Version of Kubernetes.
    pub(crate) version: String,
    kubeconfig: Kubeconfig,
}

impl Api {
    /// Reaches the current context's cluster.
    ///
    /// # Errors
    /// When it cannot be reached, or nodes could not verify its certificate.
    pub(crate) async fn connect(kubeconfig: Kubeconfig) -> anyhow::Result<Self> {
        let cluster = cluster(&kubeconfig)?;
        let url = cluster.server.as_deref().context("the kubeconfig names no server")?;
        let (url, ca_pem) = (without_credentials(url)?, ca_pem(cluster)?);
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig.clone(), &options).await?;
        let client = Client::try_from(config)?;
        let version = client.apiserver_version().await;
        let version = version.with_context(|| format!("no answer from {url}"))?.git_version;
        Ok(Self { client, url, ca_pem, version, kubeconfig })
    }

    /// A kubeconfig for a ServiceAccount, which has its rights and no others.
    ///
    /// # Errors
    /// When it gets no token.
    pub(crate) async fn kubeconfig_of(
        &self,
        namespace: &str,
        account: &str,
    ) -> anyhow::Result<String> {
        let token = token(&self.client, namespace, account).await?;
        let mut kubeconfig = self.kubeconfig.clone();
        for user in &mut kubeconfig.auth_infos {
            let token = Some(token.clone().into());
            user.auth_info = Some(AuthInfo { token, ..AuthInfo::default() });
        }
        Ok(serde_json::to_string(&kubeconfig)?)
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "runs against Kubernetes {} at {}", self.version, self.url)
    }
}

/// A token for a ServiceAccount.
///
/// # Errors
/// When the API gives none.
pub(crate) async fn token(
    client: &Client,
    namespace: &str,
    account: &str,
) -> anyhow::Result<String> {
    let accounts: kube::Api<ServiceAccount> = kube::Api::namespaced(client.clone(), namespace);
    let expiration_seconds = Some(TOKEN_SECONDS);
    let spec = TokenRequestSpec { expiration_seconds, ..TokenRequestSpec::default() };
    let request = TokenRequest { spec, ..TokenRequest::default() };
    let answer = accounts.create_token_request(account, &PostParams::default(), &request).await;
    let answer = answer.with_context(|| format!("no token for {namespace}/{account}"))?;
    Ok(answer.status.context("the API answers without a token")?.token)
}

fn cluster(kubeconfig: &Kubeconfig) -> anyhow::Result<&Cluster> {
    let current = kubeconfig.current_context.as_deref().context("no current-context is set")?;
    let context = kubeconfig.contexts.iter().find(|context| context.name == current);
    let name = context.and_then(|context| Some(&context.context.as_ref()?.cluster));
    let named = kubeconfig.clusters.iter().find(|cluster| Some(&cluster.name) == name);
    let cluster = named.and_then(|named| named.cluster.as_ref());
    cluster.with_context(|| format!("the kubeconfig has no cluster for its context {current}"))
}

fn ca_pem(cluster: &Cluster) -> anyhow::Result<String> {
    let pem = match (&cluster.certificate_authority_data, &cluster.certificate_authority) {
        (Some(data), _) => BASE64_STANDARD.decode(data).context("the CA is no base64")?,
        (None, Some(path)) => std::fs::read(path).with_context(|| format!("cannot read {path}"))?,
        (None, None) => anyhow::bail!("the kubeconfig names no CA, which nodes need"),
    };
    String::from_utf8(pem).context("the CA is no PEM")
}

/// The URL as people may see it.
fn without_credentials(url: &str) -> anyhow::Result<String> {
    let uri: Uri = url.parse().context("the kubeconfig's server is no URL")?;
    let scheme = uri.scheme_str().unwrap_or("https");
    let authority = uri.authority().context("the kubeconfig's server names no host")?.as_str();
    let host = authority.rsplit('@').next().unwrap_or(authority);
    Ok(format!("{scheme}://{host}{}", uri.path().trim_end_matches('/')))
}
