//! What both ways share.

use bin_operator::demo::Stage;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use wmco_core::manifests::{self, Installation};
use wmco_core::names as wire;

use super::predecessor::api_of;
use crate::live::machines::scenery::annotation;
use crate::live::scenery::admin;

/// What `kubectl apply -k deploy` brings, apart from the Deployment, which runs as a thread here, and what only
/// kinds of the cluster's monitoring understand.
pub(super) fn manifests() -> Vec<Value> {
    let files = manifests::applied(&Installation::default()).into_iter();
    let known = files.filter(|file| !["deployment.yaml", "monitoring.yaml"].contains(&file.path));
    known.flat_map(|file| file.documents).map(|document| document.object).collect()
}

/// Installs our operator over whatever is there.
pub(super) async fn install(stage: &Stage) {
    let client = admin(stage).await;
    let how = PatchParams::apply("kubectl").force();
    for object in manifests() {
        let (api, name) = api_of(&client, &object);
        api.patch(&name, &how, &Patch::Apply(&object)).await.unwrap();
    }
}

/// Whether a Node has our version and holds no slot.
pub(super) fn has_moved(node: &Value) -> bool {
    let versions = [wire::VERSION_ANNOTATION, wire::DESIRED_VERSION_ANNOTATION];
    versions.iter().all(|name| annotation(node, name) == bin_operator::VERSION)
        && node["metadata"]["labels"][wire::UPGRADING_LABEL].is_null()
        && annotation(node, wire::CORDONED_ANNOTATION).is_empty()
}

/// Uids of all objects of a kind, by name.
pub(super) fn uids(
    stage: &Stage,
    group: &str,
    plural: &str,
) -> std::collections::BTreeMap<String, Value> {
    let all = stage.cluster.objects(group, plural, "");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    all.iter()
        .map(|object| &object["metadata"])
        .map(|it| (text(&it["namespace"]) + "/" + &text(&it["name"]), it["uid"].clone()))
        .collect()
}

/// Makes a change to a Node as a person does, beside the kubelet.
pub(super) async fn patch_node(stage: &Stage, name: &str, patch: &Value) {
    let nodes: kube::Api<k8s_openapi::api::core::v1::Node> = kube::Api::all(admin(stage).await);
    let patch = Patch::Merge(json!(patch));
    nodes.patch(name, &PatchParams::default(), &patch).await.unwrap();
}
