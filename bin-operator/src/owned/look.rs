//! Looks at the operator's own objects: in the caches, or in the API server itself.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleBinding};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use serde::de::DeserializeOwned;
use wmco_core::cluster::rbac::{Binding, BindingKind};
use wmco_core::cluster::{FoundBinding, FoundTokenSecret, Observed, TrustedCa};
use wmco_core::names::{self, objects};

use crate::snapshot;
use crate::sources::Sources;

/// Where to look.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Look {
    /// In the caches, which every change reaches.
    Cached,
    /// In the API server, whatever the caches say.
    Fresh,
}

/// The objects as they are.
struct Found {
    config_maps: Vec<Arc<ConfigMap>>,
    token: Option<Arc<Secret>>,
    role_binding: Option<Arc<RoleBinding>>,
    cluster_role_binding: Option<Arc<ClusterRoleBinding>>,
    cloud_node_manager: Option<Arc<ClusterRoleBinding>>,
}

/// Looks at all of them.
///
/// # Errors
/// The API server does not answer.
pub(super) async fn observe(
    look: Look,
    client: &Client,
    sources: &Sources,
    namespace: &str,
) -> kube::Result<Observed> {
    let found = match look {
        Look::Cached => Found::cached(sources, namespace),
        Look::Fresh => Found::fresh(client, namespace).await?,
    };
    Ok(Observed {
        services: snapshot::services_among(&found.config_maps),
        node_versions: snapshot::node_versions(sources),
        token: found.token.as_deref().map(token),
        bindings: found.bindings(),
        trusted_ca: found.trusted_ca(),
    })
}

impl Found {
    fn cached(sources: &Sources, namespace: &str) -> Self {
        Self {
            config_maps: sources.config_maps.state(),
            token: snapshot::token_secret(sources, namespace),
            role_binding: snapshot::only(&sources.role_binding),
            cluster_role_binding: snapshot::only(&sources.cluster_role_binding),
            cloud_node_manager: snapshot::only(&sources.cloud_node_manager),
        }
    }

    async fn fresh(client: &Client, namespace: &str) -> kube::Result<Self> {
        let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        let config_maps = config_maps.list(&ListParams::default()).await?;
        let cluster_role_bindings = Api::all(client.clone());
        Ok(Self {
            config_maps: config_maps.items.into_iter().map(Arc::new).collect(),
            token: named(&Api::namespaced(client.clone(), namespace), objects::WICD).await?,
            role_binding: named(
                &Api::namespaced(client.clone(), namespace),
                BindingKind::RoleBinding.name(),
            )
            .await?,
            cluster_role_binding: named(
                &cluster_role_bindings,
                BindingKind::ClusterRoleBinding.name(),
            )
            .await?,
            cloud_node_manager: named(&cluster_role_bindings, BindingKind::CloudNodeManager.name())
                .await?,
        })
    }

    fn trusted_ca(&self) -> Option<TrustedCa> {
        let is_named = |map: &&Arc<ConfigMap>| map.name_any() == objects::TRUSTED_CA_CONFIG_MAP;
        let label = objects::INJECT_TRUSTED_CA_LABEL;
        let asks = |map: &Arc<ConfigMap>| map.labels().get(label).is_some_and(|v| v == names::TRUE);
        self.config_maps.iter().find(is_named).map(|map| TrustedCa { asks: asks(map) })
    }

    fn bindings(&self) -> BTreeMap<BindingKind, FoundBinding> {
        let of_cluster = |found: &Arc<ClusterRoleBinding>| FoundBinding {
            binding: Binding::found(&found.role_ref, found.subjects.as_deref()),
            revision: snapshot::revision(&found.metadata),
        };
        let of_namespace = |found: &Arc<RoleBinding>| FoundBinding {
            binding: Binding::found(&found.role_ref, found.subjects.as_deref()),
            revision: snapshot::revision(&found.metadata),
        };
        let all = [
            (BindingKind::RoleBinding, self.role_binding.as_ref().map(of_namespace)),
            (BindingKind::ClusterRoleBinding, self.cluster_role_binding.as_ref().map(of_cluster)),
            (BindingKind::CloudNodeManager, self.cloud_node_manager.as_ref().map(of_cluster)),
        ];
        all.into_iter().filter_map(|(kind, found)| Some((kind, found?))).collect()
    }
}

fn token(secret: &Secret) -> FoundTokenSecret {
    let annotations = secret.metadata.annotations.as_ref();
    FoundTokenSecret {
        type_: secret.type_.clone().unwrap_or_default(),
        account: annotations.and_then(|all| all.get(objects::SERVICE_ACCOUNT_ANNOTATION)).cloned(),
    }
}

/// The object of this name. A list, since the rights of a watch include it and no `get`.
///
/// # Errors
/// The API server does not answer.
pub(crate) async fn named<K>(api: &Api<K>, name: &str) -> kube::Result<Option<Arc<K>>>
where
    K: Clone + Debug + DeserializeOwned,
{
    let one = ListParams::default().fields(&format!("metadata.name={name}"));
    Ok(api.list(&one).await?.items.into_iter().next().map(Arc::new))
}
