//! Makes objects that a cluster lacks, leaves what it has, and removes again what it made.

use std::time::Duration;

use anyhow::Context as _;
use bin_operator::demo::kinds::{self, ForeignKind};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use kube::discovery::{Scope, pinned_kind};
use kube::runtime::{conditions, wait::await_condition};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::{MADE_LABEL, leftovers};

/// How long a new kind may take until it is served.
const SERVED: Duration = Duration::from_secs(30);

/// Makes objects, and remembers which.
pub(crate) struct Objects {
    client: Client,
    made: Vec<Made>,
    left_alone: Vec<String>,
}

struct Made {
    api: Api<DynamicObject>,
    text: String,
    name: String,
}

impl Objects {
    pub(crate) fn new(client: &Client) -> Self {
        Self { client: client.clone(), made: Vec::new(), left_alone: Vec::new() }
    }

    /// What was there already, as `plural.group name`.
    pub(crate) fn left_alone(&self) -> &[String] {
        &self.left_alone
    }

    /// Whether `text`, as `plural.group name`, was made here.
    pub(crate) fn has_made(&self, text: &str) -> bool {
        self.made.iter().any(|made| made.text == text)
    }

    /// Installs the kinds that the cluster lacks, and returns their names.
    ///
    /// # Errors
    /// When one is not served in time.
    pub(crate) async fn install_kinds(&mut self) -> anyhow::Result<Vec<String>> {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let mut installed = Vec::new();
        for kind in kinds::all() {
            if self.make(&kind.definition()).await? {
                installed.push(kind);
            }
        }
        for kind in &installed {
            let name = kind.name();
            let served =
                await_condition(definitions.clone(), &name, conditions::is_crd_established());
            let served = timeout(SERVED, served).await;
            served.with_context(|| format!("kind {name} is not served"))??;
        }
        Ok(installed.iter().map(ForeignKind::name).collect())
    }

    /// Makes an object unless that name is taken; returns whether it did. An object of an earlier run is
    /// written anew.
    ///
    /// # Errors
    /// What the API answered.
    pub(crate) async fn make(&mut self, object: &Value) -> anyhow::Result<bool> {
        let place = self.place(object).await?;
        let made = place.write(object).await.with_context(|| place.text.clone())?;
        if made {
            self.made.push(place);
        } else {
            self.left_alone.push(place.text);
        }
        Ok(made)
    }

    /// Removes what was made, newest first, waits until its namespaces are gone, and returns what did not go.
    pub(crate) async fn remove(self) -> Vec<String> {
        let mut failed = Vec::new();
        for made in self.made.iter().rev() {
            match made.api.delete(&made.name, &DeleteParams::background()).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                Err(error) => failed.push(format!("{}: {error}", made.text)),
            }
        }
        failed.extend(leftovers::until_no_namespaces(&self.client).await);
        failed
    }

    async fn place(&self, object: &Value) -> anyhow::Result<Made> {
        let text =
            |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (group, version) =
            text("/apiVersion").rsplit_once('/').unwrap_or(("", text("/apiVersion")));
        let kind = GroupVersionKind::gvk(group, version, text("/kind"));
        let (resource, scope) = self.discover(&kind).await?;
        let api = match scope {
            Scope::Cluster => Api::all_with(self.client.clone(), &resource),
            Scope::Namespaced => {
                Api::namespaced_with(self.client.clone(), text("/metadata/namespace"), &resource)
            }
        };
        let name = text("/metadata/name").to_owned();
        let plural = match group {
            "" => resource.plural.clone(),
            group => format!("{}.{group}", resource.plural),
        };
        Ok(Made { api, text: format!("{plural} {name}"), name })
    }

    /// A kind that was just installed is discovered a moment later.
    async fn discover(&self, kind: &GroupVersionKind) -> anyhow::Result<(ApiResource, Scope)> {
        let end = Instant::now() + SERVED;
        loop {
            match pinned_kind(&self.client, kind).await {
                Ok((resource, capabilities)) => return Ok((resource, capabilities.scope)),
                Err(error) if Instant::now() > end => {
                    return Err(error).with_context(|| format!("kind {} is not served", kind.kind));
                }
                Err(_) => sleep(Duration::from_millis(200)).await,
            }
        }
    }
}

impl Made {
    /// Whether it was written, not left alone.
    async fn write(&self, object: &Value) -> anyhow::Result<bool> {
        let mut object: DynamicObject = serde_json::from_value(object.clone())?;
        let labels = object.metadata.labels.get_or_insert_default();
        labels.insert(MADE_LABEL.to_owned(), "yes".to_owned());
        let parameters = PostParams::default();
        let written = match self.api.get_opt(&self.name).await? {
            None => self.api.create(&parameters, &object).await?,
            Some(found) => {
                if !found.metadata.labels.is_some_and(|labels| labels.contains_key(MADE_LABEL)) {
                    return Ok(false);
                }
                object.metadata.resource_version = found.metadata.resource_version;
                self.api.replace(&self.name, &parameters, &object).await?
            }
        };
        let status =
            object.data.get("status").filter(|status| written.data.get("status") != Some(status));
        if let Some(status) = status {
            // The kind has a sub-resource for it.
            let patch = Patch::Merge(json!({ "status": status }));
            self.api.patch_status(&self.name, &PatchParams::default(), &patch).await?;
        }
        Ok(true)
    }
}
