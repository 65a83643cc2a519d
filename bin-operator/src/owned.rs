//! The controller of the operator's own objects: services ConfigMap, WICD's token and bindings.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleBinding};
use kube::api::{Api, DeleteParams, ObjectMeta, PostParams};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use wmco_core::cluster::{self, Action, Observed, ServicesConfigMap, TokenSecret, rbac};
use wmco_core::names::objects;

use crate::config::Config;
use crate::leader::Leadership;
use crate::snapshot;
use crate::sources::Sources;

/// Pause after a failed pass.
const RETRY: Duration = Duration::from_secs(5);

/// Everything that the controller needs.
pub struct Owned {
    /// Kubernetes.
    pub client: Client,
    /// Configuration of the operator.
    pub config: Arc<Config>,
    /// Caches.
    pub sources: Sources,
    /// Whether we may write.
    pub leadership: Leadership,
}

impl Owned {
    /// Keeps the objects as they should be until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let mut changes = self.sources.changes.clone();
        loop {
            changes.mark_unchanged();
            let retry = match self.pass().await {
                Ok(()) => None,
                Err(error) => {
                    tracing::warn!(error = %format!("{error:#}"), "own objects not in order");
                    Some(RETRY)
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                _ = changes.changed() => {}
                () = tokio::time::sleep(retry.unwrap_or(Duration::MAX)), if retry.is_some() => {}
            }
        }
    }

    async fn pass(&self) -> anyhow::Result<()> {
        let manifest = crate::manifest::generate(&self.sources, &self.config)?;
        let platform = manifest.platform.as_str();
        let desired =
            cluster::Desired { version: &self.config.version, services: &manifest.data, platform };
        let observed = self.observe(platform).await?;
        for step in cluster::reconcile(&desired, &observed, &self.config.namespace).steps {
            tracing::info!(step = %step, "own objects");
            self.leadership.check()?;
            self.execute(step.action).await?;
        }
        Ok(())
    }

    async fn observe(&self, platform: &str) -> kube::Result<Observed> {
        let namespace = &self.config.namespace;
        let services = snapshot::services(&self.sources)
            .into_iter()
            .map(|(name, (data, immutable))| (name, ServicesConfigMap { data, immutable }))
            .collect();
        let nodes = snapshot::nodes(&self.sources);
        let versions = nodes
            .iter()
            .flat_map(|node| [node.facts.version(), node.facts.desired_version()])
            .flatten()
            .map(str::to_owned)
            .collect();
        let token = snapshot::token_secret(&self.sources, namespace).map(|secret| TokenSecret {
            type_: secret.type_.clone().unwrap_or_default(),
            account: secret
                .metadata
                .annotations
                .as_ref()
                .and_then(|a| a.get(objects::SERVICE_ACCOUNT_ANNOTATION))
                .cloned(),
        });
        let mut bindings = BTreeMap::new();
        for &kind in rbac::BindingKind::on(platform) {
            if let Some(found) = self.binding(kind).await? {
                bindings.insert(kind, found);
            }
        }
        Ok(Observed { services, node_versions: versions, token, bindings, bindings_known: true })
    }

    async fn binding(&self, kind: rbac::BindingKind) -> kube::Result<Option<rbac::Binding>> {
        Ok(match kind {
            rbac::BindingKind::RoleBinding => {
                let api: Api<RoleBinding> = self.namespaced();
                let found = api.get_opt(kind.name()).await?;
                found.map(|b| rbac::Binding::found(&b.role_ref, b.subjects.as_deref()))
            }
            rbac::BindingKind::ClusterRoleBinding | rbac::BindingKind::CloudNodeManager => {
                let api: Api<ClusterRoleBinding> = Api::all(self.client.clone());
                let found = api.get_opt(kind.name()).await?;
                found.map(|b| rbac::Binding::found(&b.role_ref, b.subjects.as_deref()))
            }
        })
    }

    async fn execute(&self, action: Action) -> kube::Result<()> {
        let namespace = &self.config.namespace;
        let config_maps: Api<ConfigMap> = self.namespaced();
        let secrets: Api<Secret> = self.namespaced();
        let role_bindings: Api<RoleBinding> = self.namespaced();
        let cluster_role_bindings: Api<ClusterRoleBinding> = Api::all(self.client.clone());
        match action {
            Action::CreateServices { name, data } => {
                let map = ConfigMap {
                    metadata: ObjectMeta { name: Some(name), ..ObjectMeta::default() },
                    immutable: Some(true),
                    data: Some(data.0),
                    ..ConfigMap::default()
                };
                create(&config_maps, &map).await
            }
            Action::DeleteServices { name } => delete(&config_maps, &name).await,
            Action::CreateToken => {
                let account =
                    (objects::SERVICE_ACCOUNT_ANNOTATION.to_owned(), objects::WICD.to_owned());
                let secret = Secret {
                    metadata: ObjectMeta {
                        name: Some(objects::WICD.to_owned()),
                        annotations: Some([account].into()),
                        ..ObjectMeta::default()
                    },
                    type_: Some(objects::SERVICE_ACCOUNT_TOKEN_TYPE.to_owned()),
                    ..Secret::default()
                };
                create(&secrets, &secret).await
            }
            Action::DeleteToken => delete(&secrets, objects::WICD).await,
            Action::CreateBinding(rbac::BindingKind::RoleBinding) => {
                create(&role_bindings, &rbac::role_binding(namespace)).await
            }
            Action::CreateBinding(rbac::BindingKind::ClusterRoleBinding) => {
                create(&cluster_role_bindings, &rbac::cluster_role_binding(namespace)).await
            }
            Action::CreateBinding(rbac::BindingKind::CloudNodeManager) => {
                create(&cluster_role_bindings, &rbac::cloud_node_manager_binding(namespace)).await
            }
            Action::DeleteBinding(kind @ rbac::BindingKind::RoleBinding) => {
                delete(&role_bindings, kind.name()).await
            }
            Action::DeleteBinding(
                kind
                @ (rbac::BindingKind::ClusterRoleBinding | rbac::BindingKind::CloudNodeManager),
            ) => delete(&cluster_role_bindings, kind.name()).await,
        }
    }

    fn namespaced<K>(&self) -> Api<K>
    where
        K: Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.config.namespace)
    }
}

/// Creates an object; one that is there already is looked at in the next pass.
async fn create<K>(api: &Api<K>, object: &K) -> kube::Result<()>
where
    K: Clone + std::fmt::Debug + DeserializeOwned + Serialize,
{
    match api.create(&PostParams::default(), object).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(error),
    }
}

async fn delete<K>(api: &Api<K>, name: &str) -> kube::Result<()>
where
    K: Clone + std::fmt::Debug + DeserializeOwned,
{
    match api.delete(name, &DeleteParams::default()).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error),
    }
}
