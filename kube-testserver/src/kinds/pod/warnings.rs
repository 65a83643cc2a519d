//! Warnings about Pods and templates of Pods.
//!
//! Source: the `WarningsOnCreate` and `WarningsOnUpdate` of the strategies of Kubernetes.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::values::{list, text};
use crate::{meta, names};

/// Node labels that selectors should no longer use.
const OLD_LABELS: [(&str, &str); 5] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
];
const OLD_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

/// Warns of a name that is no DNS label.
pub(crate) fn hostname(object: &Value, used: &str) -> Vec<String> {
    let wrong = names::dns1123_label(meta::name(object));
    if wrong.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "metadata.name: this is used in {used}, which can result in surprising behavior; a DNS \
         label is recommended: [{}]",
        wrong.join(" ")
    )]
}

/// Warnings about a Pod, or a Pod template at `path`.
pub(crate) fn pod(path: &str, pod: &Value) -> Vec<String> {
    let mut all = Vec::new();
    let selector = pod.pointer("/spec/nodeSelector").and_then(Value::as_object);
    for (label, _) in selector.into_iter().flatten() {
        if let Some((_, why)) = OLD_LABELS.iter().find(|(old, _)| old == label) {
            all.push(format!("{path}spec.nodeSelector[{label}]: {why}"));
        }
    }
    for (index, spread) in list(pod, "/spec/topologySpreadConstraints").iter().enumerate() {
        let path = format!("{path}spec.topologySpreadConstraints[{index}]");
        let key = text(spread, "/topologyKey");
        if let Some((_, why)) = OLD_LABELS.iter().find(|(old, _)| *old == key) {
            all.push(format!("{path}.topologyKey: {key} is {why}"));
        }
        if spread.get("labelSelector").is_none_or(Value::is_null) {
            let why = "a null labelSelector results in matching no pod";
            all.push(format!("{path}.labelSelector: {why}"));
        }
    }
    for (annotation, why) in OLD_ANNOTATIONS {
        if meta::annotation(pod, annotation).is_some() {
            all.push(format!("{path}metadata.annotations[{annotation}]: {why}"));
        }
    }
    for (index, volume) in list(pod, "/spec/volumes").iter().enumerate() {
        if volume.get("gitRepo").is_some() {
            all.push(format!("{path}spec.volumes[{index}].gitRepo: deprecated in v1.11"));
        }
    }
    for (member, key) in [("hostAliases", "ip"), ("imagePullSecrets", "name")] {
        all.extend(repeated(path, pod, member, key));
    }
    for (index, secret) in list(pod, "/spec/imagePullSecrets").iter().enumerate() {
        if text(secret, "/name").is_empty() {
            all.push(format!("{path}spec.imagePullSecrets[{index}].name: invalid empty name \"\""));
        }
    }
    all.extend(containers(path, pod));
    let grace = pod.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    if grace.is_some_and(|grace| grace < 0) {
        let why = "must be >= 0; negative values are invalid and will be treated as 1";
        all.push(format!("{path}spec.terminationGracePeriodSeconds: {why}"));
    }
    all
}

fn repeated(path: &str, pod: &Value, member: &str, key: &str) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let items = list(pod, &format!("/spec/{member}")).iter().enumerate();
    let values = items.map(|(index, item)| (index, text(item, &format!("/{key}"))));
    values
        .filter(|(_, value)| !seen.insert(*value))
        .map(|(index, value)| {
            format!("{path}spec.{member}[{index}].{key}: duplicate {key} {value:?}")
        })
        .collect()
}

/// Warnings about hidden environment variables and repeated ports.
fn containers(path: &str, pod: &Value) -> Vec<String> {
    let (mut variables, mut ports) = (Vec::new(), Vec::new());
    let mut seen_ports: Vec<(String, &Value)> = Vec::new();
    for member in ["initContainers", "containers"] {
        for (index, container) in list(pod, &format!("/spec/{member}")).iter().enumerate() {
            let path = format!("{path}spec.{member}[{index}]");
            let mut seen = BTreeSet::new();
            for (index, variable) in list(container, "/env").iter().enumerate() {
                let name = text(variable, "/name");
                let (value, own) = (text(variable, "/value"), format!("$({name})"));
                let extends = variable.get("valueFrom").is_none_or(Value::is_null)
                    && value != own
                    && value.contains(&own);
                if !seen.insert(name) && !extends {
                    variables.push(format!(
                        "{path}.env[{index}]: hides previous definition of {name:?}, which may be \
                         dropped when using apply"
                    ));
                }
            }
            for (index, port) in list(container, "/ports").iter().enumerate() {
                let field = format!("{path}.ports[{index}]");
                let same = |other: &Value, member: &str| port.get(member) == other.get(member);
                let others = seen_ports.iter().filter(|(_, other)| {
                    ["containerPort", "protocol", "hostIP", "hostPort"]
                        .iter()
                        .all(|member| same(other, member))
                });
                ports.extend(
                    others.map(|(other, _)| {
                        format!("{field}: duplicate port definition with {other}")
                    }),
                );
                seen_ports.push((field, port));
            }
        }
    }
    variables.extend(ports);
    variables
}
