//! Reconciles the ServiceMonitor of the exporters on nodes.
//!
//! # Guarantees
//! - It is changed in place, and only where a field of ours differs: fields of others, such as the API server's
//!   defaults, stay, and nothing flaps.
//! - It is not changed unless the namespace is labeled for cluster monitoring.
//!
//! Source: `docs/contract/cluster.md`, CLU25.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Action, Because, Plan, Revision};
use crate::monitoring::exporter_monitor;
use crate::names::monitoring::CLUSTER_MONITORING_LABEL;

/// An existing ServiceMonitor.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ServiceMonitor {
    /// Its labels.
    pub labels: BTreeMap<String, Value>,
    /// Its `spec`.
    pub spec: Value,
    /// The observed revision.
    pub revision: Revision,
}

/// The label's value is not a boolean.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "label {CLUSTER_MONITORING_LABEL} of the namespace is `{0}`, write `true` or `false`; until then nothing \
     changes"
)]
pub struct BadLabel(pub String);

/// Whether the cluster's Prometheus is to scrape a namespace, by the namespace's label; not without the label.
///
/// # Errors
/// [`BadLabel`] for a value that Go does not parse as a boolean.
///
/// ```
/// use wmco_core::cluster::monitoring::is_enabled;
///
/// assert_eq!(is_enabled(Some("true")), Ok(true));
/// assert_eq!(is_enabled(None), Ok(false));
/// assert!(is_enabled(Some("yes")).is_err());
/// ```
pub fn is_enabled(label: Option<&str>) -> Result<bool, BadLabel> {
    match label {
        Some("1" | "t" | "T" | "TRUE" | "true" | "True") => Ok(true),
        None | Some("0" | "f" | "F" | "FALSE" | "false" | "False") => Ok(false),
        Some(other) => Err(BadLabel(other.to_owned())),
    }
}

/// Returns the plan for a namespace that is monitored.
pub fn reconcile(found: Option<&ServiceMonitor>, namespace: &str) -> Plan {
    let mut plan = Plan::default();
    let wanted = exporter_monitor(namespace);
    match found {
        None => plan.push(Action::CreateServiceMonitor, Because::Missing),
        Some(found) => {
            let labels = found.labels.clone().into_iter().collect();
            let has = |found: &Value, field: &str| {
                wanted.pointer(field).is_none_or(|wanted| contains(found, wanted))
            };
            let as_wanted =
                has(&Value::Object(labels), "/metadata/labels") && has(&found.spec, "/spec");
            if !as_wanted {
                let found = found.revision.clone();
                plan.push(Action::ChangeServiceMonitor { found }, Because::Differs);
            }
        }
    }
    plan
}

/// Whether `found` contains all of `wanted`. Objects may have additional fields, lists no additional items.
fn contains(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, wanted)| found.get(key).is_some_and(|found| contains(found, wanted))),
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len() && found.iter().zip(wanted).all(|(f, w)| contains(f, w))
        }
        (found, wanted) => found == wanted,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seen() -> ServiceMonitor {
        let wanted = exporter_monitor("ns");
        let labels = wanted["metadata"]["labels"].as_object().unwrap().clone();
        ServiceMonitor {
            labels: labels.into_iter().collect(),
            spec: wanted["spec"].clone(),
            revision: Revision::default(),
        }
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut ServiceMonitor), expected: &[&str]) {
        let mut found = seen();
        change(&mut found);
        let steps = reconcile(Some(&found), "ns").steps;
        assert_eq!(steps.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    }

    const CHANGED: [&str; 1] = ["change-service-monitor, because it differs"];

    #[test]
    fn what_others_add_is_no_difference() {
        check(|_| {}, &[]);
        check(|found| found.spec["endpoints"][0]["enableHttp2"] = true.into(), &[]);
        check(|found| found.spec["targetLimit"] = 7.into(), &[]);
        check(|found| drop(found.labels.insert("mine".into(), "x".into())), &[]);
    }

    #[test]
    fn another_value_is_put_right() {
        check(|found| found.spec["endpoints"][0]["interval"] = "5s".into(), &CHANGED);
        check(|found| found.labels.clear(), &CHANGED);
        let drop_it = |found: &mut ServiceMonitor| {
            found.spec["endpoints"][0].as_object_mut().unwrap().remove("tlsConfig");
        };
        check(drop_it, &CHANGED);
    }

    #[test]
    fn one_more_element_is_a_difference() {
        let more = |found: &mut ServiceMonitor| {
            let rules = &mut found.spec["endpoints"][0]["relabelings"];
            rules.as_array_mut().unwrap().push(json!({"action": "drop"}));
        };
        check(more, &CHANGED);
    }

    #[test]
    fn one_that_is_missing_is_made() {
        let steps = reconcile(None, "ns").steps;
        assert_eq!(steps[0].to_string(), "create-service-monitor, because it is missing");
    }

    #[test]
    fn labels_are_read_as_go_reads_them() {
        for label in ["1", "t", "T", "TRUE", "true", "True"] {
            assert_eq!(is_enabled(Some(label)), Ok(true));
        }
        for label in ["0", "f", "F", "FALSE", "false", "False"] {
            assert_eq!(is_enabled(Some(label)), Ok(false));
        }
        for label in ["", "yes", "tRUE", " true"] {
            assert_eq!(is_enabled(Some(label)), Err(BadLabel(label.into())));
        }
    }
}
