//! The `NodeRestriction` admission: limits an authorized write of a kubelet to its own objects.
//!
//! Source: Kubernetes documentation, "Admission Control in Kubernetes", `NodeRestriction`.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer as _;

use crate::auth::node;
use crate::call::{Call, Operation};
use crate::error::{ApiError, Result};
use crate::meta;
use crate::resources::StorageKey;
use crate::store::Store;

/// Labels under `kubernetes.io` and `k8s.io` that a kubelet may set on its Node.
const KUBELET_LABELS: [&str; 11] = [
    "kubernetes.io/hostname",
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
];
const KUBELET_LABEL_DOMAINS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
const MIRROR: &str = "kubernetes.io/config.mirror";

/// Refuses writes that a node may not make. Other users pass.
///
/// # Errors
/// 403 with the reason.
pub(crate) fn admit(
    store: &Store,
    call: &Call,
    operation: Operation,
    before: Option<&Value>,
    object: Option<&Value>,
) -> Result<()> {
    let Some(node) = node::identity(&call.user) else { return Ok(()) };
    let plural = call.resource.plural.as_str();
    let refusal = match (call.resource.group.as_str(), plural, call.subresource.as_str()) {
        ("", "nodes", "" | "status") => on_node(node, call, operation, before, object),
        ("", "pods", "") => on_pod(store, node, operation, before, object),
        ("", "pods", "status") => on_pod_status(node, before, object),
        ("", "pods", "eviction") => evicts(node, before),
        ("coordination.k8s.io", "leases", _) => on_lease(node, call, object),
        ("certificates.k8s.io", "certificatesigningrequests", "") => {
            on_request(node, operation, object)
        }
        ("", "serviceaccounts", "token") => on_token(store, node, call, object),
        _ => None,
    };
    match refusal {
        None => Ok(()),
        Some(why) => Err(ApiError::forbidden(call.subject(), &why)),
    }
}

fn on_node(
    node: &str,
    call: &Call,
    operation: Operation,
    before: Option<&Value>,
    object: Option<&Value>,
) -> Option<String> {
    let name = if call.name.is_empty() { object.map_or("", meta::name) } else { &call.name };
    if name != node {
        return Some(format!("node {node:?} is not allowed to modify node {name:?}"));
    }
    let object = object?;
    let taints = |node: &Value| node.pointer("/spec/taints").cloned();
    let owners = |node: &Value| meta::get(node, "ownerReferences").cloned();
    match (operation, before) {
        (Operation::Update, Some(before)) if taints(before) != taints(object) => {
            Some(format!("node {node:?} is not allowed to modify taints"))
        }
        (Operation::Update, Some(before)) if owners(before) != owners(object) => {
            Some(format!("node {node:?} is not allowed to modify ownerReferences"))
        }
        (Operation::Update, before) => {
            let labels = forbidden_labels(before, object);
            (!labels.is_empty()).then(|| format!("is not allowed to modify labels: {labels}"))
        }
        (Operation::Create, _) => {
            let labels = forbidden_labels(None, object);
            (!labels.is_empty()).then(|| {
                format!("node {node:?} is not allowed to set the following labels: {labels}")
            })
        }
        (Operation::Delete, _) => None,
    }
}

fn forbidden_labels(before: Option<&Value>, object: &Value) -> String {
    let keys = |object: &Value| {
        let labels = meta::get(object, "labels").and_then(Value::as_object);
        labels.into_iter().flatten().map(|(key, _)| key.clone()).collect::<BTreeSet<_>>()
    };
    let mut all = keys(object);
    all.extend(before.map(keys).unwrap_or_default());
    let changed = |key: &String| {
        before.and_then(|before| meta::label(before, key)) != meta::label(object, key)
    };
    let forbidden: Vec<_> =
        all.into_iter().filter(changed).filter(|key| is_forbidden(key)).collect();
    forbidden.join(", ")
}

fn within(domain: &str, of: &str) -> bool {
    domain == of || domain.ends_with(&format!(".{of}"))
}

fn is_forbidden(label: &str) -> bool {
    let domain = label.split_once('/').map_or("", |(domain, _)| domain);
    let kubernetes = within(domain, "kubernetes.io") || within(domain, "k8s.io");
    let kubelet = KUBELET_LABELS.contains(&label)
        || KUBELET_LABEL_DOMAINS.iter().any(|own| within(domain, own));
    // Labels of `node-restriction.kubernetes.io` are among these.
    kubernetes && !kubelet
}

fn on_pod(
    store: &Store,
    node: &str,
    operation: Operation,
    before: Option<&Value>,
    object: Option<&Value>,
) -> Option<String> {
    match (operation, before, object) {
        (Operation::Delete, Some(pod), _) => (!node::runs_on(pod, node)).then(|| {
            format!("node {node:?} can only delete pods with spec.nodeName set to itself")
        }),
        (Operation::Create, _, Some(pod)) => new_pod(store, node, pod),
        _ => None,
    }
}

fn new_pod(store: &Store, node: &str, pod: &Value) -> Option<String> {
    if meta::annotation(pod, MIRROR).is_none() {
        return Some(format!(
            "pod does not have {MIRROR:?} annotation, node {node:?} can only create mirror pods"
        ));
    }
    if !node::runs_on(pod, node) {
        let what = "can only create pods with spec.nodeName set to itself";
        return Some(format!("node {node:?} {what}"));
    }
    let owners = meta::get(pod, "ownerReferences").and_then(Value::as_array);
    let owners = owners.map(Vec::as_slice).unwrap_or_default();
    let owner = match owners {
        [owner] => owner,
        [] => {
            let what = "can only create pods with an owner reference set to itself";
            return Some(format!("node {node:?} {what}"));
        }
        _ => {
            let what = "can only create pods with a single owner reference set to itself";
            return Some(format!("node {node:?} {what}"));
        }
    };
    let text = |member| owner.get(member).and_then(Value::as_str).unwrap_or("");
    let own = store.get(&StorageKey::new("", "nodes"), "", node);
    let uid = own.map_or("", |node| meta::uid(node));
    if text("apiVersion") != "v1" || text("kind") != "Node" || text("name") != node {
        let what = "can only create pods with an owner reference set to itself";
        return Some(format!("node {node:?} {what}"));
    }
    if owner.get("controller") != Some(&true.into()) {
        let what = "can only create pods with a controller owner reference set to itself";
        return Some(format!("node {node:?} {what}"));
    }
    if text("uid") != uid {
        return Some(format!("node {node} UID mismatch: expected {} got {uid}", text("uid")));
    }
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let account = spec.get("serviceAccountName").and_then(Value::as_str).unwrap_or("");
    let what = if !account.is_empty() {
        "a service account"
    } else if node::refers(spec, "secret", None) {
        "secrets"
    } else if node::refers(spec, "configMap", None) {
        "configmaps"
    } else {
        return None;
    };
    Some(format!("node {node:?} can not create pods that reference {what}"))
}

fn on_pod_status(node: &str, before: Option<&Value>, object: Option<&Value>) -> Option<String> {
    let before = before?;
    if !node::runs_on(before, node) {
        let what = "can only update pod status for pods with spec.nodeName set to itself";
        return Some(format!("node {node:?} {what}"));
    }
    let changed = object.is_some_and(|pod| meta::get(pod, "labels") != meta::get(before, "labels"));
    changed.then(|| format!("node {node:?} cannot update labels through pod status"))
}

fn evicts(node: &str, pod: Option<&Value>) -> Option<String> {
    (!node::runs_on(pod?, node))
        .then(|| format!("node {node} can only evict pods with spec.nodeName set to itself"))
}

fn on_lease(node: &str, call: &Call, object: Option<&Value>) -> Option<String> {
    if call.namespace != "kube-node-lease" {
        return Some("can only access leases in the \"kube-node-lease\" system namespace".into());
    }
    let name = if call.name.is_empty() { object.map_or("", meta::name) } else { &call.name };
    (name != node)
        .then(|| "can only access node lease with the same name as the requesting node".to_owned())
}

fn on_request(node: &str, operation: Operation, object: Option<&Value>) -> Option<String> {
    let spec = object.filter(|_| operation == Operation::Create)?.get("spec")?;
    let signer = spec.get("signerName").and_then(Value::as_str).unwrap_or("");
    let kubelet = ["kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"];
    if !kubelet.contains(&signer) {
        return None;
    }
    match csr_subject(spec) {
        Err(why) => Some(format!("unable to parse csr: {why}")),
        Ok(name) => (name != format!("system:node:{node}"))
            .then(|| format!("can only create a node CSR with CN=system:node:{node}")),
    }
}

/// The common name in the request of a CertificateSigningRequest's spec; otherwise the error.
fn csr_subject(spec: &Value) -> std::result::Result<String, String> {
    let pem = spec.get("request").and_then(Value::as_str).unwrap_or("");
    let pem = STANDARD.decode(pem).map_err(|error| error.to_string())?;
    let (_, block) = x509_parser::pem::parse_x509_pem(&pem)
        .map_err(|_| "PEM block type must be CERTIFICATE REQUEST".to_owned())?;
    let (_, request) =
        X509CertificationRequest::from_der(&block.contents).map_err(|error| error.to_string())?;
    let subject = &request.certification_request_info.subject;
    let name = subject.iter_common_name().next().and_then(|name| name.as_str().ok());
    Ok(name.unwrap_or("").to_owned())
}

fn on_token(store: &Store, node: &str, call: &Call, object: Option<&Value>) -> Option<String> {
    let bound = object?.pointer("/spec/boundObjectRef").unwrap_or(&Value::Null);
    let text = |member| bound.get(member).and_then(Value::as_str).unwrap_or("");
    if text("apiVersion") != "v1" || text("kind") != "Pod" || text("name").is_empty() {
        return Some("node requested token not bound to a pod".to_owned());
    }
    if text("uid").is_empty() {
        return Some("node requested token with a pod binding without a uid".to_owned());
    }
    let pod = store.get(&StorageKey::new("", "pods"), &call.namespace, text("name"))?;
    (!node::runs_on(pod, node))
        .then(|| "node requested token bound to a pod scheduled on a different node".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn own_domain_labels_are_free_and_restricted_ones_are_not() {
        assert!(!is_forbidden("kubernetes.io/os"));
        assert!(!is_forbidden("node.kubernetes.io/windows-build"));
        assert!(!is_forbidden("example.test/anything"));
        assert!(is_forbidden("node-role.kubernetes.io/worker"));
        assert!(is_forbidden("x.node-restriction.kubernetes.io/a"));
    }

    #[test]
    fn only_changed_labels_count() {
        let before = json!({"metadata": {"labels": {"node-role.kubernetes.io/worker": ""}}});
        assert_eq!(forbidden_labels(Some(&before), &before), "");
        assert_eq!(forbidden_labels(None, &before), "node-role.kubernetes.io/worker");
        let without = json!({"metadata": {}});
        assert_eq!(forbidden_labels(Some(&before), &without), "node-role.kubernetes.io/worker");
    }
}
