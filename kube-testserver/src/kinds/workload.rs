//! Deployments, DaemonSets, ReplicaSets and StatefulSets: only objects, without Pods.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::call::Call;
use crate::error::{FieldError, Result};
use crate::label_selector::selects;
use crate::meta;
use crate::store::Store;

use super::ages::age;
use super::budget::NOT_NEGATIVE;
use super::pod::{defaults, warnings};
use super::values::{immutable, list, number, or_default, size, text};
use super::{Columns, NUMBER, Strategy, TEXT, labels};

/// Members of a StatefulSet's spec that may change.
const STATEFUL_SET_MAY_CHANGE: &[&str] = &[
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

/// The kinds of workloads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Workloads {
    DaemonSets,
    Deployments,
    ReplicaSets,
    StatefulSets,
}

impl Strategy for Workloads {
    fn default(&self, object: &mut Value) {
        default(*self, object);
    }

    /// The labels stay on `/status`.
    fn prepare_update(&self, _store: &Store, call: &Call, before: &Value, object: &mut Value) {
        if call.subresource == "status" && *self == Self::Deployments {
            meta::put(object, "labels", meta::get(before, "labels").cloned());
        }
    }

    fn generation_counts(&self) -> Option<&'static str> {
        (*self == Self::Deployments).then_some("annotations")
    }

    fn validate(&self, _call: &Call, object: &Value) -> Result<Vec<FieldError>> {
        Ok(workload(*self, object))
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
        Ok(workload(*self, object).into_iter().chain(change(*self, before, object)).collect())
    }

    fn warnings(&self, before: Option<&Value>, object: &Value) -> Vec<String> {
        let mut all = Vec::new();
        if before.is_none() && matches!(self, Self::Deployments | Self::ReplicaSets) {
            all = warnings::hostname(object, "Pod names and hostnames");
        }
        let same =
            before.is_some_and(|before| meta::generation(before) == meta::generation(object));
        if let Some(template) = object.pointer("/spec/template").filter(|_| !same) {
            all.extend(warnings::pod("spec.template.", template));
        }
        all
    }

    fn columns(&self) -> Columns {
        match self {
            Self::Deployments => &[
                ("Name", TEXT, 0),
                ("Ready", TEXT, 0),
                ("Up-to-date", NUMBER, 0),
                ("Available", NUMBER, 0),
                ("Age", TEXT, 0),
                ("Containers", TEXT, 1),
                ("Images", TEXT, 1),
                ("Selector", TEXT, 1),
            ],
            Self::DaemonSets => &[
                ("Name", TEXT, 0),
                ("Desired", NUMBER, 0),
                ("Current", NUMBER, 0),
                ("Ready", NUMBER, 0),
                ("Up-to-date", NUMBER, 0),
                ("Available", NUMBER, 0),
                ("Node Selector", TEXT, 0),
                ("Age", TEXT, 0),
                ("Containers", TEXT, 1),
                ("Images", TEXT, 1),
                ("Selector", TEXT, 1),
            ],
            Self::ReplicaSets => &[
                ("Name", TEXT, 0),
                ("Desired", NUMBER, 0),
                ("Current", NUMBER, 0),
                ("Ready", NUMBER, 0),
                ("Age", TEXT, 0),
                ("Containers", TEXT, 1),
                ("Images", TEXT, 1),
                ("Selector", TEXT, 1),
            ],
            Self::StatefulSets => &[
                ("Name", TEXT, 0),
                ("Ready", TEXT, 0),
                ("Age", TEXT, 0),
                ("Containers", TEXT, 1),
                ("Images", TEXT, 1),
            ],
        }
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        match self {
            Self::Deployments => deployment(object, now),
            Self::DaemonSets => daemon_set(object, now),
            Self::ReplicaSets => replica_set(object, now),
            Self::StatefulSets => stateful_set(object, now),
        }
    }
}

/// Fills in the defaults of a workload.
fn default(kind: Workloads, object: &mut Value) {
    defaults::template(object, "/spec/template");
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if kind != Workloads::DaemonSets {
        or_default(spec, "replicas", 1);
    }
    let surge = |unavailable: Value, surge: Value| json!({"maxUnavailable": unavailable, "maxSurge": surge});
    let (member, rolling) = match kind {
        Workloads::Deployments => {
            or_default(spec, "revisionHistoryLimit", 10);
            or_default(spec, "progressDeadlineSeconds", 600);
            ("strategy", surge("25%".into(), "25%".into()))
        }
        Workloads::DaemonSets => {
            or_default(spec, "revisionHistoryLimit", 10);
            ("updateStrategy", surge(1.into(), 0.into()))
        }
        Workloads::StatefulSets => {
            or_default(spec, "revisionHistoryLimit", 10);
            or_default(spec, "podManagementPolicy", "OrderedReady");
            let retention = json!({"whenDeleted": "Retain", "whenScaled": "Retain"});
            or_default(spec, "persistentVolumeClaimRetentionPolicy", retention);
            ("updateStrategy", json!({"partition": 0}))
        }
        Workloads::ReplicaSets => return,
    };
    let strategy = spec.entry(member).or_insert_with(|| json!({}));
    let Some(strategy) = strategy.as_object_mut() else { return };
    or_default(strategy, "type", "RollingUpdate");
    if strategy.get("type").and_then(Value::as_str) == Some("RollingUpdate") {
        let own = strategy.entry("rollingUpdate").or_insert_with(|| json!({}));
        if let (Some(own), Value::Object(rolling)) = (own.as_object_mut(), rolling) {
            for (member, value) in rolling {
                own.entry(member).or_insert(value);
            }
        }
    }
}

/// Validation errors of a workload.
fn workload(kind: Workloads, object: &Value) -> Vec<FieldError> {
    let mut errors = selector(kind, object);
    let numbers =
        ["replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"];
    for member in numbers {
        let number = object.pointer(&format!("/spec/{member}")).and_then(Value::as_i64);
        if let Some(number) = number.filter(|number| *number < 0) {
            let field = format!("spec.{member}");
            errors.push(FieldError::invalid(&field, &number.into(), NOT_NEGATIVE));
        }
    }
    errors.extend(strategy(kind, object));
    if object.pointer("/spec/template/spec").is_some() {
        let template = json!({"spec": object.pointer("/spec/template/spec")});
        errors.extend(
            super::pod::pod(&template).into_iter().map(|error| FieldError {
                field: format!("spec.template.{}", error.field),
                ..error
            }),
        );
    }
    let policy = text(object, "/spec/template/spec/restartPolicy");
    if !policy.is_empty() && policy != "Always" {
        let field = "spec.template.spec.restartPolicy";
        errors.push(FieldError::not_supported(field, &policy.into(), &["Always"]));
    }
    errors
}

/// Validation errors of a selector that is missing, empty or for other Pods than those of the template.
fn selector(kind: Workloads, object: &Value) -> Vec<FieldError> {
    let Some(selector) = object.pointer("/spec/selector").filter(|it| !it.is_null()) else {
        return vec![FieldError::required("spec.selector", "")];
    };
    let parts = ["matchLabels", "matchExpressions"];
    if parts.iter().all(|part| size(selector, &format!("/{part}")) == 0) {
        let what = match kind {
            Workloads::DaemonSets => "daemonset",
            // The API says the same of both.
            Workloads::Deployments | Workloads::ReplicaSets => "deployment",
            Workloads::StatefulSets => "statefulset",
        };
        let why = format!("empty selector is invalid for {what}");
        return vec![FieldError::invalid("spec.selector", selector, &why)];
    }
    let template = object.pointer("/spec/template").unwrap_or(&Value::Null);
    if selects(Some(selector), template) {
        return vec![];
    }
    let labels = template.pointer("/metadata/labels").unwrap_or(&Value::Null);
    let why = "`selector` does not match template `labels`";
    vec![FieldError::invalid("spec.template.metadata.labels", labels, why)]
}

/// Validation errors of how Pods are replaced.
fn strategy(kind: Workloads, object: &Value) -> Vec<FieldError> {
    let (member, other) = match kind {
        Workloads::Deployments => ("strategy", "Recreate"),
        Workloads::DaemonSets | Workloads::StatefulSets => ("updateStrategy", "OnDelete"),
        Workloads::ReplicaSets => return vec![],
    };
    let of = |below: &str| object.pointer(&format!("/spec/{member}{below}"));
    let given = of("/type").and_then(Value::as_str).unwrap_or("");
    let rolling = of("/rollingUpdate").filter(|rolling| !rolling.is_null());
    let field = format!("spec.{member}");
    if given != "RollingUpdate" && given != other {
        let known = if kind == Workloads::Deployments {
            [other, "RollingUpdate"]
        } else {
            ["RollingUpdate", other]
        };
        let error = FieldError::not_supported(&format!("{field}.type"), &given.into(), &known);
        return vec![error];
    }
    if kind == Workloads::Deployments && given == other && rolling.is_some() {
        let why = format!("may not be specified when strategy `type` is '{other}'");
        return vec![FieldError::forbidden(&format!("{field}.rollingUpdate"), &why)];
    }
    let is_zero = |name: &str| {
        let value = rolling.and_then(|rolling| rolling.get(name));
        value.is_some_and(|value| *value == 0 || *value == "0%")
    };
    if kind == Workloads::Deployments && is_zero("maxUnavailable") && is_zero("maxSurge") {
        let value = rolling.and_then(|rolling| rolling.get("maxUnavailable"));
        let why = "may not be 0 when `maxSurge` is 0";
        let field = format!("{field}.rollingUpdate.maxUnavailable");
        return vec![FieldError::invalid(&field, value.unwrap_or(&Value::Null), why)];
    }
    vec![]
}

/// Validation errors of changed members that may not change.
fn change(kind: Workloads, before: &Value, object: &Value) -> Vec<FieldError> {
    if kind != Workloads::StatefulSets {
        let changed = immutable(before, object, "/spec/selector", "spec.selector");
        return changed.into_iter().collect();
    }
    let fixed = |object: &Value| {
        let mut spec = object.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
        spec.retain(|member, _| !STATEFUL_SET_MAY_CHANGE.contains(&member.as_str()));
        spec
    };
    if fixed(before) == fixed(object) {
        return vec![];
    }
    let (last, others) = STATEFUL_SET_MAY_CHANGE.split_last().unwrap_or((&"", &[]));
    let named: Vec<_> = others.iter().map(|member| format!("'{member}'")).collect();
    let why = format!(
        "updates to statefulset spec for fields other than {} and '{last}' are forbidden",
        named.join(", ")
    );
    vec![FieldError::forbidden("spec", &why)]
}

/// Names and images of the containers of a template, and the selector.
fn template(object: &Value) -> [Value; 3] {
    let joined = |member: &str| {
        let containers = list(object, "/spec/template/spec/containers").iter();
        containers.map(|container| text(container, member)).collect::<Vec<_>>().join(",")
    };
    let selector = labels(object, "/spec/selector/matchLabels");
    [joined("/name").into(), joined("/image").into(), selector.into()]
}

fn deployment(object: &Value, now: Timestamp) -> Vec<Value> {
    let wanted = object.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    let ready = number(object, "/status/readyReplicas");
    let mut row: Vec<Value> = vec![
        meta::name(object).into(),
        format!("{ready}/{wanted}").into(),
        number(object, "/status/updatedReplicas").into(),
        number(object, "/status/availableReplicas").into(),
        age(object, now),
    ];
    row.extend(template(object));
    row
}

fn replica_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let number = |pointer: &str| Value::from(number(object, pointer));
    let mut row = vec![
        meta::name(object).into(),
        number("/spec/replicas"),
        number("/status/replicas"),
        number("/status/readyReplicas"),
        age(object, now),
    ];
    row.extend(template(object));
    row
}

fn stateful_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let (ready, wanted) =
        (number(object, "/status/readyReplicas"), number(object, "/spec/replicas"));
    let [names, images, _] = template(object);
    let ready = format!("{ready}/{wanted}");
    vec![meta::name(object).into(), ready.into(), age(object, now), names, images]
}

fn daemon_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let status = |member: &str| Value::from(number(object, &format!("/status/{member}")));
    let mut row: Vec<Value> = vec![
        meta::name(object).into(),
        status("desiredNumberScheduled"),
        status("currentNumberScheduled"),
        status("numberReady"),
        status("updatedNumberScheduled"),
        status("numberAvailable"),
        labels(object, "/spec/template/spec/nodeSelector").into(),
        age(object, now),
    ];
    row.extend(template(object));
    row
}

#[cfg(test)]
mod tests {
    use super::super::values::texts;
    use super::*;

    fn deployment() -> Value {
        json!({"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i:1"}]}}}})
    }

    #[test]
    fn defaults_make_it_valid() {
        let mut object = deployment();
        default(Workloads::Deployments, &mut object);
        assert_eq!(object["spec"]["replicas"], 1);
        assert_eq!(object["spec"]["strategy"]["rollingUpdate"]["maxSurge"], "25%");
        assert!(workload(Workloads::Deployments, &object).is_empty());
    }

    #[test]
    fn the_selector_fits_and_stays() {
        let mut object = deployment();
        default(Workloads::Deployments, &mut object);
        let mut other = object.clone();
        other["spec"]["selector"]["matchLabels"]["a"] = "c".into();
        assert_eq!(change(Workloads::Deployments, &object, &other).len(), 1);
        assert_eq!(
            texts(&workload(Workloads::Deployments, &other)),
            ["spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not \
              match template `labels`"]
        );
    }
}
