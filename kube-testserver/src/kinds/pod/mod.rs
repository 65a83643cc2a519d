//! Pods: strategy, validation and the admission that fills in account, tolerations and priority.

mod container;
pub(super) mod defaults;
mod row;
pub(super) mod warnings;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::call::Call;
use crate::error::{ApiError, FieldError, Result};
use crate::meta;
use crate::names::{dns1123_label, label_value, qualified_name};
use crate::random;
use crate::resources::StorageKey;
use crate::store::Store;

use super::values::{invalid_for, items_mut, keep, list, put, text};
use super::{Columns, SelectableField, Strategy, TEXT, same_as_stored};

/// Pods.
#[derive(Debug)]
pub(super) struct Pods;

impl Strategy for Pods {
    fn default(&self, object: &mut Value) {
        defaults::pod(object);
    }

    fn prepare_create(&self, _store: &Store, _call: &Call, object: &mut Value) {
        prepare_create(object);
    }

    fn prepare_update(&self, _store: &Store, call: &Call, before: &Value, object: &mut Value) {
        prepare_update(&call.subresource, before, object);
    }

    fn validate(&self, _call: &Call, object: &Value) -> Result<Vec<FieldError>> {
        Ok(pod(object))
    }

    fn validate_update(
        &self,
        call: &Call,
        before: &Value,
        object: &Value,
    ) -> Result<Vec<FieldError>> {
        if !call.subresource.is_empty() {
            return Ok(vec![]);
        }
        Ok(pod(object).into_iter().chain(change(before, object)).collect())
    }

    /// People seldom write to Pods that are there.
    fn warnings(&self, before: Option<&Value>, object: &Value) -> Vec<String> {
        if before.is_some() {
            return vec![];
        }
        [warnings::hostname(object, "the Pod's hostname"), warnings::pod("", object)].concat()
    }

    fn columns(&self) -> Columns {
        &[
            ("Name", TEXT, 0),
            ("Ready", TEXT, 0),
            ("Status", TEXT, 0),
            ("Restarts", TEXT, 0),
            ("Age", TEXT, 0),
            ("IP", TEXT, 1),
            ("Node", TEXT, 1),
            ("Nominated Node", TEXT, 1),
            ("Readiness Gates", TEXT, 1),
        ]
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        row::cells(object, now)
    }

    fn fields(&self) -> Option<Vec<SelectableField>> {
        Some(same_as_stored(&[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ]))
    }
}

/// How long a Pod stays on a Node that is not ready or unreachable.
const TOLERATED_S: i64 = 300;
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const MIRROR: &str = "kubernetes.io/config.mirror";

/// Sets the first status of a Pod.
fn prepare_create(pod: &mut Value) {
    let class = quality(pod);
    put(pod, "status", json!({"phase": "Pending", "qosClass": class}));
}

/// Keeps the spec and owners on `/status`, and the status on the main path.
fn prepare_update(subresource: &str, before: &Value, pod: &mut Value) {
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

/// The QoS class: `Guaranteed` if every container has limits of cpu and memory equal to its requests, `BestEffort`
/// if no container has any, else `Burstable`.
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

/// Validation errors of a Pod.
pub(super) fn pod(pod: &Value) -> Vec<FieldError> {
    let mut errors = vec![];
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let mut volumes: Vec<&str> = vec![];
    for (index, volume) in list(spec, "/volumes").iter().enumerate() {
        let field = format!("spec.volumes[{index}].name");
        errors.extend(name(&field, text(volume, "/name"), &mut volumes));
    }
    let on_host = spec.get("hostNetwork") == Some(&Value::Bool(true));
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
            errors.extend(container::errors(&path, container, on_host));
        }
    }
    for (key, value) in spec.get("nodeSelector").and_then(Value::as_object).into_iter().flatten() {
        let value = value.as_str().unwrap_or("");
        errors.extend(invalid_for("spec.nodeSelector", key, &qualified_name(key)));
        errors.extend(invalid_for("spec.nodeSelector", value, &label_value(value)));
    }
    for (index, toleration) in list(spec, "/tolerations").iter().enumerate() {
        if text(toleration, "/operator") == "Exists" && !text(toleration, "/value").is_empty() {
            let why = "value must be empty when `operator` is 'Exists'";
            let field = format!("spec.tolerations[{index}].operator");
            errors.push(FieldError::invalid(&field, &toleration["value"], why));
        }
    }
    let policies = ["Always", "OnFailure", "Never"];
    let policy = text(spec, "/restartPolicy");
    if !policies.contains(&policy) {
        let field = "spec.restartPolicy";
        errors.push(FieldError::not_supported(field, &policy.into(), &policies));
    }
    let policies = ["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"];
    let policy = text(spec, "/dnsPolicy");
    if !policies.contains(&policy) {
        let field = "spec.dnsPolicy";
        errors.push(FieldError::not_supported(field, &policy.into(), &policies));
    }
    let systems = ["linux", "windows"];
    let system = text(spec, "/os/name");
    if spec.get("os").is_some() && !systems.contains(&system) {
        let field = "spec.os.name";
        errors.push(if system.is_empty() {
            FieldError::required(field, "")
        } else {
            FieldError::not_supported(field, &system.into(), &systems)
        });
    }
    errors
}

fn name<'a>(field: &str, name: &'a str, seen: &mut Vec<&'a str>) -> Vec<FieldError> {
    if name.is_empty() {
        return vec![FieldError::required(field, "")];
    }
    let mut errors = invalid_for(field, name, &dns1123_label(name));
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

/// Checks that a Pod's spec changes only in images, earlier deadlines and more tolerations.
fn change(before: &Value, pod: &Value) -> Option<FieldError> {
    const DEADLINE: &str = "spec.activeDeadlineSeconds";
    let deadline = |of: &Value| of.pointer("/spec/activeDeadlineSeconds").and_then(Value::as_i64);
    match (deadline(before), deadline(pod)) {
        (Some(old), Some(new)) if new > old => {
            let why = "must be less than or equal to previous value";
            return Some(FieldError::invalid(DEADLINE, &new.into(), why));
        }
        (Some(_), None) => {
            let why = "must not update from a positive integer to nil value";
            return Some(FieldError::invalid(DEADLINE, &Value::Null, why));
        }
        _ => {}
    }
    let fixed = |of: &Value| {
        let mut spec = of.get("spec").cloned().unwrap_or_default();
        for list in ["/containers", "/initContainers"] {
            for container in items_mut(&mut spec, list) {
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

/// Sets account with token, tolerations and priority of a new Pod.
///
/// # Errors
/// 403 without the service account, or with a priority other than that of its class.
pub(crate) fn admit(store: &Store, call: &Call, pod: &mut Value) -> Result<()> {
    tolerate(pod);
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return Ok(()) };
    let class = spec.get("priorityClassName").and_then(Value::as_str).unwrap_or("");
    if !["", "system-cluster-critical", "system-node-critical"].contains(&class) {
        let why = format!("no PriorityClass with name {class} was found");
        return Err(ApiError::forbidden(call.subject(), &why));
    }
    let computed = if class.is_empty() { 0 } else { priority_of(class) };
    if let Some(stated) = spec.get("priority").and_then(Value::as_i64)
        && stated != computed
    {
        let why = format!(
            "the integer value of priority ({stated}) must not be provided in pod spec; priority \
             admission controller computed {computed} from the given PriorityClass name"
        );
        return Err(ApiError::forbidden(call.subject(), &why));
    }
    spec.insert("priority".to_owned(), computed.into());
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
    if spec.get("imagePullSecrets").and_then(Value::as_array).is_none_or(Vec::is_empty)
        && let Some(secrets) = found.get("imagePullSecrets")
    {
        spec.insert("imagePullSecrets".to_owned(), secrets.clone());
    }
    let own = spec.get("automountServiceAccountToken").and_then(Value::as_bool);
    let its = found.get("automountServiceAccountToken").and_then(Value::as_bool);
    if own.or(its).unwrap_or(true) {
        mount_token(pod);
    }
    Ok(())
}

/// The priority of a class; only the two built-in classes exist here.
fn priority_of(class: &str) -> i64 {
    if class == "system-node-critical" { 2_000_001_000 } else { 2_000_000_000 }
}

/// Adds the tolerations that every Pod has, on creation and on changes.
pub(crate) fn tolerate(pod: &mut Value) {
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
    use super::super::values::texts;
    use super::*;

    fn with(container: &Value) -> Value {
        json!({"spec": {
            "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "containers": [container],
        }})
    }

    #[test]
    fn containers_are_named_and_have_images() {
        let mut none = with(&json!({}));
        none["spec"]["containers"] = json!([]);
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
    fn a_deadline_comes_no_later() {
        let until = |seconds: Value| json!({"spec": {"activeDeadlineSeconds": seconds}});
        let errors = |old: Value, new: Value| {
            texts(&change(&until(old), &until(new)).into_iter().collect::<Vec<_>>())
        };
        assert_eq!(errors(json!(5), json!(3)), [""; 0]);
        assert_eq!(errors(Value::Null, json!(3)), [""; 0]);
        assert_eq!(
            errors(json!(5), json!(6)),
            [
                "spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous \
              value"
            ]
        );
        assert_eq!(
            errors(json!(5), Value::Null),
            ["spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive \
              integer to nil value"]
        );
    }

    #[test]
    fn words_of_a_pod_are_known() {
        let mut own = with(&json!({"name": "c", "image": "i", "imagePullPolicy": "Always"}));
        assert_eq!(texts(&pod(&own)), [""; 0]);
        own["spec"]["dnsPolicy"] = "X".into();
        own["spec"]["os"] = json!({"name": "bsd"});
        own["spec"]["nodeSelector"] = json!({"a": "b c"});
        own["spec"]["tolerations"] = json!([{"key": "a", "operator": "Exists", "value": "b"}]);
        let errors = pod(&own);
        assert_eq!(
            errors.iter().map(|error| error.field.as_str()).collect::<Vec<_>>(),
            ["spec.nodeSelector", "spec.tolerations[0].operator", "spec.dnsPolicy", "spec.os.name"]
        );
        assert_eq!(
            errors[2].message,
            "Unsupported value: \"X\": supported values: \"ClusterFirst\", \
             \"ClusterFirstWithHostNet\", \"Default\", \"None\""
        );
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
