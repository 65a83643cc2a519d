//! Admission policy that limits the operator's right to write Secrets in other namespaces.
//!
//! A client that may create Secrets in a namespace can create a token of each ServiceAccount there, and no RBAC
//! rule can restrict the types of Secrets. An admission policy can.

use serde_json::json;

use super::text::{Document, File};
use crate::names::objects::{CLUSTER_API_NAMESPACE, MACHINE_API_NAMESPACE, OPAQUE_TYPE, OPERATOR};

/// Name of the policy and of its binding.
const NAME: &str = "windows-machine-config-operator-secrets";

const GROUP: &str = "admissionregistration.k8s.io";

/// The policy with its binding, for an operator in `namespace`.
pub(crate) fn file(namespace: &str) -> File {
    let user = format!("system:serviceaccount:{namespace}:{OPERATOR}");
    let elsewhere = [CLUSTER_API_NAMESPACE, MACHINE_API_NAMESPACE];
    let is_user_data = format!(
        "request.namespace in {} && object.type == '{OPAQUE_TYPE}'",
        json!(elsewhere).to_string().replace('"', "'"),
    );
    let message = format!(
        "outside of {namespace} the operator may write Secrets of type {OPAQUE_TYPE} for machines, and no others"
    );
    let policy = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": NAME},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"],
                "operations": ["CREATE", "UPDATE"],
            }]},
            "matchConditions": [
                {"name": "operator", "expression": format!("request.userInfo.username == '{user}'")},
                {"name": "elsewhere", "expression": format!("request.namespace != '{namespace}'")},
            ],
            "validations": [{"expression": is_user_data, "message": message}],
        },
    });
    let binding = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": NAME},
        "spec": {"policyName": NAME, "validationActions": ["Deny"]},
    });
    File::new(
        "secrets-policy.yaml",
        "Who may create Secrets in a namespace may become each ServiceAccount there, by a Secret that asks for its\n\
         token. The operator needs no such Secret outside of its namespace, so it may not have one.",
        [Document::of(policy), Document::of(binding)],
    )
}
