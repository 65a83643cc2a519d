//! Pods: strategy, validation and the admission that fills in account, tolerations and priority.

use serde_json::{Value, json};

use crate::cluster::call::Call;
use crate::cluster::error::{ApiError, FieldError, Result};
use crate::cluster::meta;
use crate::cluster::names::dns1123_label;
use crate::cluster::random;
use crate::cluster::resources::StorageKey;
use crate::cluster::store::Store;

use super::{keep, list, put, text};

/// How long a Pod stays on a Node that is not ready or not reachable.
const TOLERATED_S: i64 = 300;
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const MIRROR: &str = "kubernetes.io/config.mirror";

/// The first status of a Pod.
pub(super) fn prepare_create(pod: &mut Value) {
    let class = quality(pod);
    put(pod, "status", json!({"phase": "Pending", "qosClass": class}));
}

/// `/status` keeps the spec and owners, the main path the status.
pub(super) fn prepare_update(subresource: &str, before: &Value, pod: &mut Value) {
    if subresource != "status" {
        return;
    }
    keep(before, pod, "spec");
    meta::put(pod, "ownerReferences", meta::get(before, "ownerReferences").cloned());
    let class = before.pointer("/status/qosClass").cloned();
    if let (Some(status), Some(class)) =
        (pod.get_mut("status").and_then(Value::as_object_mut), class)
    {
        status.entry("qosClass").or_insert(class);
    }
}

/// `Guaranteed` if every container limits cpu and memory to what it requests, `BestEffort` if
/// none says anything, else `Burstable`.
fn quality(pod: &Value) -> &'static str {
    let containers =
        || list(pod, "/spec/containers").iter().chain(list(pod, "/spec/initContainers"));
    let at = |container: &Value, kind: &str, name: &str| {
        container.pointer(&format!("/resources/{kind}/{name}")).cloned()
    };
    let names = ["cpu", "memory"];
    let says = |container: &Value| {
        names.iter().any(|name| {
            at(container, "limits", name).is_some() || at(container, "requests", name).is_some()
        })
    };
    let guaranteed = |container: &Value| {
        names.iter().all(|name| {
            let limit = at(container, "limits", name);
            limit.is_some() && limit == at(container, "requests", name)
        })
    };
    if !containers().any(says) {
        "BestEffort"
    } else if containers().all(guaranteed) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Complaints about a Pod.
pub(super) fn pod(pod: &Value) -> Vec<FieldError> {
    let mut errors = vec![];
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let mut volumes: Vec<&str> = vec![];
    for (index, volume) in list(spec, "/volumes").iter().enumerate() {
        let field = format!("spec.volumes[{index}].name");
        errors.extend(name(&field, text(volume, "/name"), &mut volumes));
    }
    let mut seen: Vec<&str> = vec![];
    if list(spec, "/containers").is_empty() {
        errors.push(FieldError::required("spec.containers", ""));
    }
    for member in ["containers", "initContainers"] {
        for (index, container) in list(spec, &format!("/{member}")).iter().enumerate() {
            let path = format!("spec.{member}[{index}]");
            errors.extend(name(&format!("{path}.name"), text(container, "/name"), &mut seen));
            if text(container, "/image").trim().is_empty() {
                errors.push(FieldError::required(&format!("{path}.image"), ""));
            }
            errors.extend(mounts(&path, container, &volumes));
        }
    }
    let policies = ["Always", "OnFailure", "Never"];
    let policy = text(spec, "/restartPolicy");
    if !policies.contains(&policy) {
        let field = "spec.restartPolicy";
        errors.push(FieldError::not_supported(field, &policy.into(), &policies));
    }
    errors
}

fn name<'a>(field: &str, name: &'a str, seen: &mut Vec<&'a str>) -> Vec<FieldError> {
    if name.is_empty() {
        return vec![FieldError::required(field, "")];
    }
    let mut errors = super::invalid_for(field, name, &dns1123_label(name));
    if seen.contains(&name) {
        errors.push(FieldError::duplicate(field, &name.into()));
    }
    seen.push(name);
    errors
}

fn mounts(path: &str, container: &Value, volumes: &[&str]) -> Vec<FieldError> {
    let mut errors = vec![];
    let mut paths: Vec<&str> = vec![];
    for (index, mount) in list(container, "/volumeMounts").iter().enumerate() {
        let field = |member: &str| format!("{path}.volumeMounts[{index}].{member}");
        let (name, at) = (text(mount, "/name"), text(mount, "/mountPath"));
        if name.is_empty() {
            errors.push(FieldError::required(&field("name"), ""));
        } else if !volumes.contains(&name) {
            errors.push(FieldError::not_found(&field("name"), &name.into()));
        }
        if at.is_empty() {
            errors.push(FieldError::required(&field("mountPath"), ""));
        } else if paths.contains(&at) {
            let why = "must be unique";
            errors.push(FieldError::invalid(&field("mountPath"), &at.into(), why));
        }
        paths.push(at);
    }
    errors
}

/// A Pod's spec is fixed but for images, deadlines and more tolerations.
pub(super) fn change(before: &Value, pod: &Value) -> Option<FieldError> {
    let fixed = |of: &Value| {
        let mut spec = of.get("spec").cloned().unwrap_or_default();
        for list in ["/containers", "/initContainers"] {
            for container in super::items_mut(&mut spec, list) {
                container.remove("image");
            }
        }
        if let Some(spec) = spec.as_object_mut() {
            for free in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
                spec.remove(free);
            }
        }
        spec
    };
    let tolerated = |of: &Value| list(of, "/spec/tolerations").to_vec();
    let kept = tolerated(before).iter().all(|own| tolerated(pod).contains(own));
    if fixed(before) == fixed(pod) && kept {
        return None;
    }
    let why = "pod updates may not change fields other than `spec.containers[*].image`,\
               `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
               `spec.tolerations` (only additions to existing tolerations)";
    Some(FieldError::forbidden("spec", why))
}

/// Account with its token, tolerations and priority of a new Pod.
///
/// # Errors
/// 403 without the service account.
pub(crate) fn admit(store: &Store, call: &Call, pod: &mut Value) -> Result<()> {
    tolerate(pod);
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return Ok(()) };
    spec.entry("priority").or_insert_with(|| 0.into());
    spec.entry("preemptionPolicy").or_insert_with(|| "PreemptLowerPriority".into());
    if meta::annotation(pod, MIRROR).is_some() {
        return Ok(());
    }
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return Ok(()) };
    let account = spec.get("serviceAccountName").and_then(Value::as_str).unwrap_or("default");
    let account = account.to_owned();
    let place = StorageKey::new("", "serviceaccounts");
    let Some(found) = store.get(&place, &call.namespace, &account) else {
        let why = format!(
            "error looking up service account {}/{account}: serviceaccount {account:?} not found",
            call.namespace
        );
        return Err(ApiError::forbidden(call.subject(), &why));
    };
    spec.insert("serviceAccountName".to_owned(), account.clone().into());
    spec.insert("serviceAccount".to_owned(), account.into());
    let own = spec.get("automountServiceAccountToken").and_then(Value::as_bool);
    let its = found.get("automountServiceAccountToken").and_then(Value::as_bool);
    if own.or(its).unwrap_or(true) {
        mount_token(pod);
    }
    Ok(())
}

fn tolerate(pod: &mut Value) {
    let mut all = list(pod, "/spec/tolerations").to_vec();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let there = all.iter().any(|own| {
            ["", "NoExecute"].contains(&text(own, "/effect"))
                && ["", key].contains(&text(own, "/key"))
        });
        if !there {
            all.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": TOLERATED_S,
            }));
        }
    }
    if let Some(spec) = pod.get_mut("spec") {
        put(spec, "tolerations", all.into());
    }
}

fn mount_token(pod: &mut Value) {
    let mounted = |container: &Value| {
        list(container, "/volumeMounts").iter().any(|own| text(own, "/mountPath") == TOKEN_PATH)
    };
    let name = format!("kube-api-access-{}", random::suffix());
    let mount = json!({"name": name, "readOnly": true, "mountPath": TOKEN_PATH});
    let mut used = false;
    for member in ["containers", "initContainers"] {
        let mut containers = list(pod, &format!("/spec/{member}")).to_vec();
        for container in containers.iter_mut().filter(|container| !mounted(container)) {
            let mut mounts = list(container, "/volumeMounts").to_vec();
            mounts.push(mount.clone());
            put(container, "volumeMounts", mounts.into());
            used = true;
        }
        if let Some(spec) = pod.get_mut("spec").filter(|_| !containers.is_empty()) {
            put(spec, member, containers.into());
        }
    }
    if !used {
        return;
    }
    let namespace = json!({"apiVersion": "v1", "fieldPath": "metadata.namespace"});
    let mut volumes = list(pod, "/spec/volumes").to_vec();
    volumes.push(json!({"name": name, "projected": {"defaultMode": 0o644, "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt",
            "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace}]}},
    ]}}));
    if let Some(spec) = pod.get_mut("spec") {
        put(spec, "volumes", volumes.into());
    }
}

#[cfg(test)]
mod tests {
    use super::super::texts;
    use super::*;

    fn with(container: &Value) -> Value {
        json!({"spec": {"restartPolicy": "Always", "containers": [container]}})
    }

    #[test]
    fn containers_are_named_and_have_images() {
        let none = json!({"spec": {"restartPolicy": "Always"}});
        assert_eq!(texts(&pod(&none)), ["spec.containers: Required value"]);
        let bare = with(&json!({"name": "c"}));
        assert_eq!(texts(&pod(&bare)), ["spec.containers[0].image: Required value"]);
    }

    #[test]
    fn mounts_need_their_volume() {
        let container = json!({"name": "c", "image": "a",
            "volumeMounts": [{"name": "v", "mountPath": "/x"}]});
        assert_eq!(
            texts(&pod(&with(&container))),
            ["spec.containers[0].volumeMounts[0].name: Not found: \"v\""]
        );
    }

    #[test]
    fn images_and_more_tolerations_may_change_but_no_node_name() {
        let before = with(&json!({"name": "c", "image": "a"}));
        assert_eq!(change(&before, &with(&json!({"name": "c", "image": "b"}))), None);
        let mut moved = before.clone();
        moved["spec"]["nodeName"] = "n2".into();
        assert!(change(&before, &moved).is_some());
        let mut tolerant = before.clone();
        tolerant["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
        assert_eq!(change(&before, &tolerant), None);
        assert!(change(&tolerant, &before).is_some());
    }

    #[test]
    fn quality_of_service() {
        let of = |resources: Value| quality(&with(&json!({"resources": resources})));
        assert_eq!(of(json!({})), "BestEffort");
        assert_eq!(of(json!({"requests": {"cpu": "1"}})), "Burstable");
        let full = json!({"cpu": "1", "memory": "1Gi"});
        assert_eq!(of(json!({"limits": full, "requests": full})), "Guaranteed");
    }
}
