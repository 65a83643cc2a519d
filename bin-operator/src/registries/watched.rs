//! The kinds that say something of registries, and where their objects are.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher;
use wmco_core::names::objects::CLUSTER;
use wmco_core::names::registries::{
    CONFIG_GROUP, CONFIG_VERSION, CONTENT_SOURCE_POLICY_GROUP, CONTENT_SOURCE_POLICY_KIND,
    CONTENT_SOURCE_POLICY_VERSION, DIGEST_MIRROR_SET_KIND, IMAGE_CONFIG_KIND,
    PULL_SECRET as PULL_SECRET_NAME, PULL_SECRET_NAMESPACE, SECRET_KIND, TAG_MIRROR_SET_KIND,
};
use wmco_core::registries::ClusterObject;

use crate::kinds::Followed;

/// A kind, and which of its objects count.
pub(super) struct Watched {
    group: &'static str,
    version: &'static str,
    pub(super) kind: &'static str,
    /// The one object that counts; none: all.
    name: Option<&'static str>,
    namespace: Option<&'static str>,
}

/// The kinds of mirror sets.
pub(super) static MIRROR_SETS: [Watched; 3] = [
    kind(CONFIG_GROUP, CONFIG_VERSION, DIGEST_MIRROR_SET_KIND),
    kind(CONFIG_GROUP, CONFIG_VERSION, TAG_MIRROR_SET_KIND),
    kind(CONTENT_SOURCE_POLICY_GROUP, CONTENT_SOURCE_POLICY_VERSION, CONTENT_SOURCE_POLICY_KIND),
];

/// The cluster's settings for images.
static IMAGE_CONFIG: Watched =
    Watched { name: Some(CLUSTER), ..kind(CONFIG_GROUP, CONFIG_VERSION, IMAGE_CONFIG_KIND) };

/// The credentials that the whole cluster pulls with.
static PULL_SECRET: Watched = Watched {
    name: Some(PULL_SECRET_NAME),
    namespace: Some(PULL_SECRET_NAMESPACE),
    ..kind("", "v1", SECRET_KIND)
};

const fn kind(group: &'static str, version: &'static str, kind: &'static str) -> Watched {
    Watched { group, version, kind, name: None, namespace: None }
}

/// All of them.
pub(super) fn all() -> impl Iterator<Item = &'static Watched> {
    MIRROR_SETS.iter().chain([&IMAGE_CONFIG, &PULL_SECRET])
}

impl Watched {
    /// What is to be followed.
    pub(super) fn followed(&self, client: &Client) -> Followed {
        let gvk = GroupVersionKind::gvk(self.group, self.version, self.kind);
        let resource = ApiResource::from_gvk(&gvk);
        let api: Api<DynamicObject> = match self.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        let config = watcher::Config::default();
        let config = match self.name {
            Some(name) => config.fields(&format!("metadata.name={name}")),
            None => config,
        };
        Followed { api, config, strip }
    }

    fn api_version(&self) -> String {
        let Self { group, version, .. } = self;
        if group.is_empty() { (*version).to_owned() } else { format!("{group}/{version}") }
    }
}

/// `object` as Events name it.
pub fn reference(object: &ClusterObject) -> ObjectReference {
    let watched = all().find(|watched| watched.kind == object.kind);
    ObjectReference {
        api_version: watched.map(Watched::api_version),
        kind: Some(object.kind.to_owned()),
        name: Some(object.name.clone()),
        namespace: watched.and_then(|watched| watched.namespace).map(str::to_owned),
        uid: object.uid.clone(),
        ..ObjectReference::default()
    }
}

/// Takes off what nobody here looks at.
fn strip(object: &mut DynamicObject) {
    object.metadata.managed_fields = None;
    object.metadata.annotations = None;
}
