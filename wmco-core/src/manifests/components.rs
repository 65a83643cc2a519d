//! The kustomization of the manifests, and its optional components.

use serde_json::{Value, json};

use super::rights;
use super::text::{Document, File};
use crate::names::objects::OPERATOR;

pub(super) const KUSTOMIZATION: &str = "kustomization.yaml";

/// The kustomization with the list of all applied files.
pub(super) fn kustomization(applied: &[File]) -> File {
    let paths: Vec<&str> = applied.iter().map(|file| file.path).collect();
    let list = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": paths,
    });
    File::new(
        KUSTOMIZATION,
        "kubectl apply -k deploy, after the image is set. These files are made by\n\
         `wmco-operator render manifests --output-dir deploy`.",
        [Document::of(list)],
    )
}

/// The component with rights in the namespace of the Cluster API.
pub(super) fn cluster_api(namespace: &str) -> [File; 2] {
    [
        File::new(
            "cluster-api/kustomization.yaml",
            "For clusters that have the namespace openshift-cluster-api. See deploy/README.md.",
            [Document::of(component(&json!({"resources": ["rights.yaml"]})))],
        ),
        File::new(
            "cluster-api/rights.yaml",
            "What the operator may do beside the Cluster API, in its namespace.",
            rights::beside_cluster_api(namespace),
        ),
    ]
}

/// The component for the host network, for clusters whose pod network does not reach the hosts.
pub(super) fn host_network() -> [File; 1] {
    let patches = json!({"patches": [
        {
            "target": {"kind": "Deployment", "name": OPERATOR},
            "patch": operations(&json!([
                {"op": "add", "path": "/spec/template/spec/hostNetwork", "value": true},
                {
                    "op": "add", "path": "/spec/template/spec/dnsPolicy",
                    "value": "ClusterFirstWithHostNet",
                },
                {"op": "add", "path": "/spec/strategy", "value": {"type": "Recreate"}},
            ])),
        },
        {
            "target": {"kind": "Namespace"},
            "patch": operations(&json!([{
                "op": "replace", "path": "/metadata/labels/pod-security.kubernetes.io~1enforce",
                "value": "privileged",
            }])),
        },
        {
            "target": {"kind": "ClusterRole", "name": OPERATOR},
            "patch": operations(&json!([{
                "op": "add", "path": "/rules/-",
                "value": {
                    "apiGroups": ["security.openshift.io"],
                    "resources": ["securitycontextconstraints"],
                    "resourceNames": ["hostnetwork-v2"],
                    "verbs": ["use"],
                },
            }])),
        },
    ]});
    [File::new(
        "host-network/kustomization.yaml",
        "For clusters whose pod network does not reach the hosts. See deploy/README.md. Two pods on one node\n\
         would want the same port, so an old pod ends before a new one starts. The second version of the\n\
         constraint, for the first one allows no seccomp profile.",
        [Document::of(component(&patches))],
    )]
}

fn component(more: &Value) -> Value {
    let mut component = json!({
        "apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component",
    });
    if let (Some(all), Some(more)) = (component.as_object_mut(), more.as_object()) {
        all.extend(more.clone());
    }
    component
}

/// The text of a JSON patch.
fn operations(operations: &Value) -> String {
    serde_saphyr::to_string(operations).unwrap_or_default()
}
