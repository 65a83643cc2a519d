//! CertificateSigningRequests: defaults, validation, and the signer.
//!
//! Source: Kubernetes documentation, "Certificates and Certificate Signing Requests".

pub(crate) mod signer;
mod strategy;

pub(crate) use strategy::{admit, prepare_create, prepare_update, validate};

use serde_json::Value;

/// Condition of an approved request.
pub(crate) const APPROVED: &str = "Approved";
/// Condition of a denied request.
pub(crate) const DENIED: &str = "Denied";
/// Condition of an approved request that cannot be signed.
pub(crate) const FAILED: &str = "Failed";

/// Signer of client certificates for any user.
pub(crate) const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
/// Signer of client certificates for kubelets.
pub(crate) const KUBELET_CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// Signer of serving certificates for kubelets.
pub(crate) const KUBELET_SERVING_SIGNER: &str = "kubernetes.io/kubelet-serving";

/// `status.conditions`.
fn conditions(request: &Value) -> &[Value] {
    let list = request.pointer("/status/conditions").and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

/// The condition of that type.
fn condition<'a>(request: &'a Value, of: &str) -> Option<&'a Value> {
    conditions(request).iter().find(|condition| kind(condition) == of)
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value.get(member).and_then(Value::as_str).unwrap_or("")
}

fn kind(condition: &Value) -> &str {
    text(condition, "type")
}

/// `spec.usages`.
fn usages(request: &Value) -> Vec<&str> {
    let list = request.pointer("/spec/usages").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}
