//! Stand-ins for the two controllers of kube-controller-manager without which no node can join: the signer
//! of certificates, and what fills Secrets with tokens. An API server that was started alone has neither.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt as _};
use kube_testserver::Authority;
use serde_json::{Value, json};
use wmco_core::names::objects;

use super::api;

/// Works for as long as it is polled.
pub(crate) async fn run(client: Client, authority: Arc<Authority>) {
    tokio::join!(sign(&client, &authority), fill_tokens(&client, &authority));
}

async fn sign(client: &Client, authority: &Authority) {
    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    let changes = watcher(requests.clone(), watcher::Config::default()).default_backoff();
    let mut changes = std::pin::pin!(changes.applied_objects());
    while let Some(request) = changes.next().await {
        let Ok(request) = request else { continue };
        let Some(signed) = authority.sign(&json!(request), Timestamp::now()) else { continue };
        let name = request.name_any();
        let answer = match serde_json::from_value(signed) {
            Ok(signed) => requests.replace_status(&name, &PostParams::default(), &signed).await,
            Err(error) => Err(kube::Error::SerdeError(error)),
        };
        if let Err(error) = answer {
            tracing::warn!(%error, name, "no certificate for a request");
        }
    }
}

async fn fill_tokens(client: &Client, authority: &Authority) {
    let of_type = format!("type={}", objects::SERVICE_ACCOUNT_TOKEN_TYPE);
    let of_type = watcher::Config::default().fields(&of_type);
    let secrets: Api<Secret> = Api::all(client.clone());
    let mut changes = std::pin::pin!(watcher(secrets, of_type).default_backoff().applied_objects());
    while let Some(secret) = changes.next().await {
        let Ok(secret) = secret else { continue };
        if secret.data.as_ref().is_some_and(|data| data.contains_key(objects::TOKEN_KEY)) {
            continue;
        }
        if let Err(error) = fill(client, authority, &secret).await {
            tracing::warn!(%error, name = secret.name_any(), "no token for a Secret");
        }
    }
}

async fn fill(client: &Client, authority: &Authority, secret: &Secret) -> anyhow::Result<()> {
    let namespace = secret.namespace().unwrap_or_default();
    let account = secret.annotations().get(objects::SERVICE_ACCOUNT_ANNOTATION);
    let token = api::token(client, &namespace, account.map_or("", String::as_str)).await?;
    let data = json!({ "data": token_data(&token, authority.pem(), &namespace) });
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &namespace);
    secrets.patch(&secret.name_any(), &PatchParams::default(), &Patch::Merge(data)).await?;
    Ok(())
}

fn token_data(token: &str, ca_pem: &str, namespace: &str) -> Value {
    let encoded = |text: &str| BASE64_STANDARD.encode(text);
    json!({
        objects::TOKEN_KEY: encoded(token),
        objects::CA_KEY: encoded(ca_pem),
        "namespace": encoded(namespace),
    })
}
