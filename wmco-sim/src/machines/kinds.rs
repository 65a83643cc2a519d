//! Machines and MachineSets: their definitions, and the fields that are used.

use k8s_openapi::api::core::v1::{NodeAddress, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use wmco_core::names::{self, objects};

/// Keeps a Machine until its host is gone.
pub(super) const FINALIZER: &str = "machine.machine.openshift.io";

/// Machine annotation: a set that shrinks deletes this Machine first. Any value except an empty one counts.
pub const DELETE_ANNOTATION: &str = "machine.openshift.io/delete-machine";

/// The desired state of a Machine.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, Serialize)]
#[kube(
    group = "machine.openshift.io",
    version = "v1beta1",
    kind = "Machine",
    plural = "machines",
    namespaced,
    schema = "disabled",
    status = "MachineStatus"
)]
#[serde(default)]
pub(super) struct MachineSpec {
    #[serde(rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub(super) provider_id: Option<String>,
    /// All other fields, unchanged.
    #[serde(flatten)]
    pub(super) rest: Map<String, Value>,
}

/// The observed state of a Machine. Absent fields are written as null, which removes them.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct MachineStatus {
    pub(super) addresses: Option<Vec<NodeAddress>>,
    pub(super) error_message: Option<String>,
    pub(super) error_reason: Option<String>,
    pub(super) node_ref: Option<ObjectReference>,
    pub(super) phase: Option<String>,
}

/// A number of identical Machines.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, Serialize)]
#[kube(
    group = "machine.openshift.io",
    version = "v1beta1",
    kind = "MachineSet",
    plural = "machinesets",
    namespaced,
    schema = "disabled",
    status = "MachineSetStatus"
)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct MachineSetSpec {
    pub(super) delete_policy: Option<String>,
    pub(super) replicas: Option<i32>,
    pub(super) selector: LabelSelector,
    pub(super) template: Template,
}

/// The template for the Machines of a set.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Template {
    pub(super) metadata: TemplateMetadata,
    pub(super) spec: MachineSpec,
}

/// Metadata for the Machines of a set.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct TemplateMetadata {
    pub(super) annotations: Map<String, Value>,
    pub(super) labels: Map<String, Value>,
}

/// Counts of the Machines of a set.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct MachineSetStatus {
    pub(super) available_replicas: i32,
    pub(super) fully_labeled_replicas: i32,
    pub(super) observed_generation: i64,
    pub(super) ready_replicas: i32,
    pub(super) replicas: i32,
}

impl Machine {
    pub(super) fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    pub(super) fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Whether its label marks it as a Windows machine.
    pub(super) fn is_windows(&self) -> bool {
        let labels = self.metadata.labels.as_ref();
        labels.and_then(|labels| labels.get(names::MACHINE_OS_LABEL)).map(String::as_str)
            == Some(names::OS_ID_WINDOWS)
    }

    /// Returns the name of the Secret with its user data, in its namespace.
    pub(super) fn user_data_secret(&self) -> Option<&str> {
        self.spec.rest.get("providerSpec")?.pointer("/value/userDataSecret/name")?.as_str()
    }
}

/// Returns the namespace of the Machine API and the definitions of its kinds.
///
/// [`start`](super::MachineApiBuilder::start) creates them in its cluster.
pub fn definitions() -> [Value; 3] {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let text = json!({"type": "string"});
    let number = json!({"type": "integer"});
    let labels = json!({"type": "object", "additionalProperties": text});
    let machine_spec = json!({
        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "properties": {
            "providerID": text,
            "providerSpec": {"type": "object", "properties": {"value": any}},
        },
    });
    let machine = json!({
        "spec": machine_spec,
        "status": {"type": "object", "properties": {
            "addresses": {"type": "array", "items": {"type": "object",
                "required": ["address", "type"], "properties": {"address": text, "type": text}}},
            "errorMessage": text,
            "errorReason": text,
            "lastUpdated": {"type": "string", "format": "date-time"},
            "nodeRef": {"type": "object", "properties": {
                "apiVersion": text, "kind": text, "name": text, "uid": text}},
            "phase": text,
        }},
    });
    let set = json!({
        "spec": {"type": "object", "properties": {
            "deletePolicy": {"type": "string", "enum": ["Random", "Newest", "Oldest"]},
            "replicas": {"type": "integer", "default": 1},
            "selector": any,
            "template": {"type": "object", "properties": {
                "metadata": {"type": "object",
                    "properties": {"annotations": labels, "labels": labels}},
                "spec": machine_spec,
            }},
        }},
        "status": {"type": "object", "properties": {
            "availableReplicas": number, "fullyLabeledReplicas": number,
            "observedGeneration": number, "readyReplicas": number, "replicas": number,
        }},
    });
    let column =
        |name: &str, kind: &str, path: &str| json!({"name": name, "type": kind, "jsonPath": path});
    [
        json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": objects::MACHINE_API_NAMESPACE}}),
        definition(
            "Machine",
            &machine,
            &[
                column("Phase", "string", ".status.phase"),
                column("Node", "string", ".status.nodeRef.name"),
                column("Age", "date", ".metadata.creationTimestamp"),
            ],
        ),
        definition(
            "MachineSet",
            &set,
            &[
                column("Desired", "integer", ".spec.replicas"),
                column("Current", "integer", ".status.replicas"),
                column("Ready", "integer", ".status.readyReplicas"),
                column("Age", "date", ".metadata.creationTimestamp"),
            ],
        ),
    ]
}

fn definition(kind: &str, properties: &Value, columns: &[Value]) -> Value {
    let (group, version, _) = objects::MACHINE;
    let singular = kind.to_lowercase();
    let plural = format!("{singular}s");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "listKind": format!("{kind}List"),
                "plural": plural, "singular": singular},
            "versions": [{
                "name": version, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
                "subresources": {"status": {}},
                "additionalPrinterColumns": columns,
            }],
        },
    })
}

/// Returns a MachineSet of Windows machines with the operator's user data.
///
/// ```
/// let set = wmco_sim::machines::machine_set("winworker", 3);
/// assert_eq!(set["spec"]["replicas"], 3);
/// ```
pub fn machine_set(name: &str, replicas: u32) -> Value {
    let (group, version, _) = objects::MACHINE;
    let own = json!({format!("{group}/cluster-api-machineset"): name});
    let mut labels = own.clone();
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(names::MACHINE_OS_LABEL.to_owned(), names::OS_ID_WINDOWS.into());
    }
    json!({
        "apiVersion": format!("{group}/{version}"), "kind": "MachineSet",
        "metadata": {"name": name, "namespace": objects::MACHINE_API_NAMESPACE},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": own},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"providerSpec": {"value": {
                    "userDataSecret": {"name": objects::USER_DATA_SECRET},
                }}},
            },
        },
    })
}
