//! Deployments, DaemonSets, ReplicaSets and StatefulSets: objects only, nothing runs them.

use serde_json::{Value, json};

use crate::cluster::error::FieldError;

use super::{immutable, or_default, pod_defaults, text};

/// Fills in what a workload leaves out.
pub(super) fn default(plural: &str, object: &mut Value) {
    pod_defaults::template(object, "/spec/template");
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if plural != "daemonsets" {
        or_default(spec, "replicas", 1);
    }
    let surge = |unavailable: Value, surge: Value| json!({"maxUnavailable": unavailable, "maxSurge": surge});
    let (member, rolling) = match plural {
        "deployments" => {
            or_default(spec, "revisionHistoryLimit", 10);
            or_default(spec, "progressDeadlineSeconds", 600);
            ("strategy", surge("25%".into(), "25%".into()))
        }
        "daemonsets" => {
            or_default(spec, "revisionHistoryLimit", 10);
            ("updateStrategy", surge(1.into(), 0.into()))
        }
        "statefulsets" => {
            or_default(spec, "revisionHistoryLimit", 10);
            or_default(spec, "podManagementPolicy", "OrderedReady");
            let retention = json!({"whenDeleted": "Retain", "whenScaled": "Retain"});
            or_default(spec, "persistentVolumeClaimRetentionPolicy", retention);
            ("updateStrategy", json!({"partition": 0}))
        }
        _ => return,
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

/// Complaints about a workload.
pub(super) fn workload(object: &Value) -> Vec<FieldError> {
    let mut errors = vec![];
    let wanted = object.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
    if object.pointer("/spec/selector").is_none_or(Value::is_null) {
        errors.push(FieldError::required("spec.selector", ""));
    }
    let labels = object.pointer("/spec/template/metadata/labels").unwrap_or(&Value::Null);
    let fits = wanted
        .is_none_or(|wanted| wanted.iter().all(|(key, value)| labels.get(key) == Some(value)));
    if !fits {
        let field = "spec.template.metadata.labels";
        let why = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid(field, labels, why));
    }
    if let Some(replicas) = object.pointer("/spec/replicas").and_then(Value::as_i64)
        && replicas < 0
    {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("spec.replicas", &replicas.into(), why));
    }
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

/// The selector stays.
pub(super) fn change(before: &Value, object: &Value) -> Option<FieldError> {
    immutable(before, object, "/spec/selector", "spec.selector")
}

#[cfg(test)]
mod tests {
    use super::super::texts;
    use super::*;

    fn deployment() -> Value {
        json!({"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i:1"}]}}}})
    }

    #[test]
    fn defaults_make_it_valid() {
        let mut object = deployment();
        default("deployments", &mut object);
        assert_eq!(object["spec"]["replicas"], 1);
        assert_eq!(object["spec"]["strategy"]["rollingUpdate"]["maxSurge"], "25%");
        assert!(workload(&object).is_empty());
    }

    #[test]
    fn the_selector_fits_and_stays() {
        let mut object = deployment();
        default("deployments", &mut object);
        let mut other = object.clone();
        other["spec"]["selector"]["matchLabels"]["a"] = "c".into();
        assert!(change(&object, &other).is_some());
        assert_eq!(
            texts(&workload(&other)),
            ["spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not \
              match template `labels`"]
        );
    }
}
