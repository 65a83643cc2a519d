//! Checks the objects beside the ClusterServiceVersion.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    DEFINITIONS, DISRUPTION_BUDGET, Found, OBJECT_NAMES, PRIORITY_CLASS, REMOVED_APIS, ROLE_RULES,
    SERVICE_ACCOUNT, SERVICE_VERSION, SUPPORTED_KINDS, items, text,
};
use crate::text::is_dns_subdomain;

const KINDS: [&str; 22] = [
    "ClusterRole",
    "ClusterRoleBinding",
    SERVICE_VERSION,
    "ConfigMap",
    "ConsoleCLIDownload",
    "ConsoleLink",
    "ConsolePlugin",
    "ConsoleQuickStart",
    "ConsoleYAMLSample",
    DEFINITION,
    "NetworkPolicy",
    "PodDisruptionBudget",
    "PodMonitor",
    "PriorityClass",
    "PrometheusRule",
    "Role",
    "RoleBinding",
    "Secret",
    "Service",
    "ServiceAccount",
    "ServiceMonitor",
    "VerticalPodAutoscaler",
];

const DEFINITION: &str = "CustomResourceDefinition";

/// API versions that every supported cluster has removed.
///
/// Source: <https://kubernetes.io/docs/reference/using-api/deprecation-guide/>.
const REMOVED: [&str; 10] = [
    "apiextensions.k8s.io/v1beta1",
    "autoscaling/v2beta1",
    "autoscaling/v2beta2",
    "batch/v1beta1",
    "discovery.k8s.io/v1beta1",
    "extensions/v1beta1",
    "networking.k8s.io/v1beta1",
    "policy/v1beta1",
    "rbac.authorization.k8s.io/v1beta1",
    "scheduling.k8s.io/v1beta1",
];

pub(super) fn check(manifests: &BTreeMap<&str, Value>, found: &mut Found) {
    let mut seen = BTreeSet::new();
    for (file, object) in manifests {
        let (kind, version) = (text(object, "/kind"), text(object, "/apiVersion"));
        let name = text(object, "/metadata/name");
        if kind.is_empty() || version.is_empty() || !is_dns_subdomain(name) {
            let text = "lacks kind, apiVersion or a metadata.name in lower case, add them";
            found.push(OBJECT_NAMES, file, text);
        } else if !seen.insert((kind, name)) {
            found.push(
                OBJECT_NAMES,
                file,
                format!("is {kind} {name} a second time, leave one out"),
            );
        }
        if !kind.is_empty() && !KINDS.contains(&kind) {
            let text = format!("is a {kind}, which bundles cannot hold; apply it in another way");
            found.push(SUPPORTED_KINDS, file, text);
        }
        if REMOVED.contains(&version) {
            let text = format!("has apiVersion {version}, which clusters do not serve any more");
            found.push(REMOVED_APIS, file, text);
        }
        of_kind(kind, file, object, found);
    }
}

/// What holds for objects of one kind.
fn of_kind(kind: &str, file: &str, object: &Value, found: &mut Found) {
    match kind {
        "Role" | "ClusterRole" if items(object, "/rules").any(|rule| !is_whole(rule)) => {
            found.push(ROLE_RULES, file, NOT_WHOLE);
        }
        "PodDisruptionBudget" => {
            let spec = |field: &str| object.pointer(&format!("/spec/{field}"));
            let none = [Value::from(0), Value::from("0"), Value::from("0%")];
            let all = spec("minAvailable").is_some_and(|least| least == "100%");
            if all || spec("maxUnavailable").is_some_and(|most| none.contains(most)) {
                let text = "lets no pod go, so nodes cannot be drained; let one go";
                found.push(DISRUPTION_BUDGET, file, text);
            }
        }
        "PriorityClass" if object.get("globalDefault") == Some(&Value::Bool(true)) => {
            let text = "has globalDefault, which changes all pods of the cluster; leave it out";
            found.push(PRIORITY_CLASS, file, text);
        }
        _ => {}
    }
}

/// What is wrong with a rule that is not [whole](is_whole).
pub(super) const NOT_WHOLE: &str =
    "has a rule without verbs, or without apiGroups and resources or nonResourceURLs; add them";

/// Whether a rule of a role says what may be done, and with what.
pub(super) fn is_whole(rule: &Value) -> bool {
    let has = |field: &str| items(rule, &format!("/{field}")).next().is_some();
    has("verbs") && (has("nonResourceURLs") || has("apiGroups") && has("resources"))
}

/// Checks that the objects and the ClusterServiceVersion agree.
pub(super) fn check_against(version: &Value, manifests: &BTreeMap<&str, Value>, found: &mut Found) {
    let accounts: BTreeSet<&str> = items(version, "/spec/install/spec/deployments")
        .map(|deployment| text(deployment, "/spec/template/spec/serviceAccountName"))
        .collect();
    let mut defined = BTreeMap::new();
    for (file, object) in manifests {
        let name = text(object, "/metadata/name");
        match text(object, "/kind") {
            "ServiceAccount" if accounts.contains(name) => {
                let text = format!(
                    "is ServiceAccount {name} of the operator's pod, which is made by the ClusterServiceVersion; \
                     leave it out"
                );
                found.push(SERVICE_ACCOUNT, file, text);
            }
            DEFINITION => {
                defined.insert(name, *file);
            }
            _ => {}
        }
    }
    let owned: BTreeSet<&str> = items(version, "/spec/customresourcedefinitions/owned")
        .map(|definition| text(definition, "/name"))
        .collect();
    for name in owned.iter().filter(|name| !defined.contains_key(*name)) {
        let text =
            format!("says that it owns {name}, which is not in the bundle; add its definition");
        found.push(DEFINITIONS, super::MANIFESTS, text);
    }
    for (name, file) in defined.iter().filter(|(name, _)| !owned.contains(*name)) {
        let text =
            format!("defines {name}, which the ClusterServiceVersion does not own; add it there");
        found.push(DEFINITIONS, file, text);
    }
}
