//! The Secrets with user data: looks at them, and carries out what was decided about them.

use std::collections::BTreeMap;

use anyhow::Context as _;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Client;
use kube::api::{Api, ObjectMeta, Patch, PatchParams};
use serde_json::json;
use wmco_core::authorized_key::AuthorizedKey;
use wmco_core::cluster::Revision;
use wmco_core::cluster::user_data::UserDataSecret;
use wmco_core::names::{FIELD_MANAGER, objects};
use wmco_core::secret::Secret as Hidden;
use wmco_ssh::PrivateKey;

use super::look::{Look, named};
use crate::snapshot;
use crate::sources::Sources;

/// The public halves of the operator's keys.
pub(super) struct Keys {
    /// The one that it logs in with.
    pub key: AuthorizedKey,
    /// While keys are exchanged, the one that comes next.
    pub next: Option<AuthorizedKey>,
}

/// The operator's keys; `None` without one that can be read, which the fleet tells.
///
/// # Errors
/// New machines cannot be told to let the key in.
pub(super) fn keys(sources: &Sources, namespace: &str) -> anyhow::Result<Option<Keys>> {
    let public = |pem: Hidden| {
        let Ok(private) = PrivateKey::parse(&pem) else { return Ok(None) };
        let key = private.public().authorized_key().parse();
        key.map(Some)
            .context("new machines cannot be told to let the private key in, give another one")
    };
    let key = snapshot::private_key(sources, namespace).map_or(Ok(None), public)?;
    let Some(key) = key else { return Ok(None) };
    let next = snapshot::next_private_key(sources, namespace).map_or(Ok(None), public);
    // A key that nobody logs in with yet holds up nothing.
    Ok(Some(Keys { key, next: next.unwrap_or_default() }))
}

/// The Secret in each of its namespaces that exists.
///
/// # Errors
/// The API server does not answer.
pub(super) async fn observe(
    look: Look,
    client: &Client,
    sources: &Sources,
) -> kube::Result<BTreeMap<String, Option<UserDataSecret>>> {
    let mut all = BTreeMap::new();
    for source in &sources.user_data {
        let (namespace, secret) = match look {
            Look::Cached => (snapshot::only(&source.exists), snapshot::only(&source.secret)),
            Look::Fresh => {
                let secrets: Api<Secret> = Api::namespaced(client.clone(), source.namespace);
                let namespaces: Api<Namespace> = Api::all(client.clone());
                let namespace = named(&namespaces, source.namespace).await?;
                (namespace, named(&secrets, objects::USER_DATA_SECRET).await?)
            }
        };
        // What is deleted takes no new objects.
        if namespace.is_some_and(|found| found.metadata.deletion_timestamp.is_none()) {
            all.insert(source.namespace.to_owned(), secret.as_deref().map(found));
        }
    }
    Ok(all)
}

fn found(secret: &Secret) -> UserDataSecret {
    let data = secret.data.iter().flatten();
    UserDataSecret {
        type_: secret.type_.clone().unwrap_or_default(),
        data: data.map(|(key, bytes)| (key.clone(), Hidden::new(bytes.0.as_slice()))).collect(),
        is_immutable: secret.immutable.unwrap_or_default(),
        revision: snapshot::revision(&secret.metadata),
    }
}

/// The Secret with this text.
pub(super) fn with_text(text: &Hidden) -> Secret {
    with_data(&[(objects::USER_DATA_KEY.to_owned(), text.clone())].into())
}

/// The Secret with this data.
pub(super) fn with_data(data: &BTreeMap<String, Hidden>) -> Secret {
    let data = data.iter().map(|(key, value)| (key.clone(), ByteString(value.expose().to_vec())));
    Secret {
        metadata: ObjectMeta {
            name: Some(objects::USER_DATA_SECRET.to_owned()),
            ..ObjectMeta::default()
        },
        type_: Some(objects::OPAQUE_TYPE.to_owned()),
        data: Some(data.collect()),
        ..Secret::default()
    }
}

/// Creates the Secret by server-side apply: the right to create can be narrowed to one name there alone, since the
/// name is in the path. Returns whether it did; the next pass looks at a Secret that is there.
///
/// # Errors
/// The API server's.
pub(super) async fn create(secrets: &Api<Secret>, secret: &Secret) -> kube::Result<bool> {
    // One that we made ourselves a moment ago would lose what it has besides, without a conflict.
    if named(secrets, objects::USER_DATA_SECRET).await?.is_some() {
        return Ok(false);
    }
    let params = PatchParams::apply(FIELD_MANAGER);
    match secrets.patch(objects::USER_DATA_SECRET, &params, &Patch::Apply(secret)).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error),
    }
}

/// Changes the text of the Secret that was `found`, unless that is another one by now; returns whether it did.
///
/// # Errors
/// The API server's.
pub(super) async fn change(
    secrets: &Api<Secret>,
    found: Revision,
    text: &Hidden,
) -> kube::Result<bool> {
    // Another Secret of this name has another version, too.
    let patch = Patch::Merge(json!({
        "metadata": {"resourceVersion": found.resource_version},
        "data": with_text(text).data,
    }));
    match secrets.patch(objects::USER_DATA_SECRET, &PatchParams::default(), &patch).await {
        Ok(_) => Ok(true),
        // The change that we have not seen yet starts the next pass.
        Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use kube::api::PostParams;
    use kube::config::{KubeConfigOptions, Kubeconfig};
    use kube_testserver::TestServer;

    use super::*;

    async fn secrets(cluster: &TestServer) -> Api<Secret> {
        let text = cluster.kubeconfig("admin", &["system:masters"]).unwrap();
        let kubeconfig = Kubeconfig::from_yaml(&text).unwrap();
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        Api::namespaced(Client::try_from(config).unwrap(), "default")
    }

    /// A cache may still show that the one before it is gone.
    #[tokio::test]
    async fn one_that_took_the_place_of_another_keeps_what_it_has() {
        let cluster = TestServer::start().await.unwrap();
        let api = secrets(&cluster).await;
        let all = [("mine", "kept"), (objects::USER_DATA_KEY, "ours")];
        let all = all.map(|(key, value)| (key.to_owned(), Hidden::new(value))).into();
        assert!(create(&api, &with_data(&all)).await.unwrap());
        assert!(!create(&api, &with_text(&Hidden::new("ours"))).await.unwrap());
        assert_eq!(found(&api.get(objects::USER_DATA_SECRET).await.unwrap()).data, all);
    }

    #[tokio::test]
    async fn only_the_secret_that_was_seen_is_changed() {
        let cluster = TestServer::start().await.unwrap();
        let api = secrets(&cluster).await;
        let text = |text: &str| Hidden::new(text);

        let secret = with_data(&[("mine".to_owned(), text("kept"))].into());
        let first = api.create(&PostParams::default(), &secret).await.unwrap();
        change(&api, found(&first).revision, &text("ours")).await.unwrap();
        let changed = api.get(objects::USER_DATA_SECRET).await.unwrap();
        let expected = [("mine", "kept"), (objects::USER_DATA_KEY, "ours")];
        let expected = expected.map(|(key, value)| (key.to_owned(), text(value))).into();
        assert_eq!(found(&changed).data, expected);

        change(&api, found(&first).revision, &text("late")).await.unwrap();
        assert_eq!(api.get(objects::USER_DATA_SECRET).await.unwrap(), changed);
        api.delete(objects::USER_DATA_SECRET, &kube::api::DeleteParams::default()).await.unwrap();
        change(&api, found(&changed).revision, &text("late")).await.unwrap();
        assert!(api.get_opt(objects::USER_DATA_SECRET).await.unwrap().is_none());
    }
}
