//! PodDisruptionBudgets and Leases.

use serde_json::Value;

use crate::cluster::error::FieldError;

use super::text;

const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

/// Complaints about a PodDisruptionBudget.
pub(super) fn budget(budget: &Value) -> Vec<FieldError> {
    let mut errors = vec![];
    let spec = budget.get("spec").unwrap_or(&Value::Null);
    let member = |name: &str| spec.get(name).unwrap_or(&Value::Null);
    let (least, most) = (member("minAvailable"), member("maxUnavailable"));
    if !least.is_null() && !most.is_null() {
        let shown = format!(
            "{{\"MinAvailable\":{least},\"Selector\":{},\"MaxUnavailable\":{most},\
             \"UnhealthyPodEvictionPolicy\":{}}}",
            member("selector"),
            member("unhealthyPodEvictionPolicy"),
        );
        let why = "minAvailable and maxUnavailable cannot be both set";
        errors.push(FieldError::invalid_text("spec", &shown, why));
    }
    for (name, value) in [("minAvailable", least), ("maxUnavailable", most)] {
        let field = format!("spec.{name}");
        match value {
            Value::String(share) if !is_percentage(share) => {
                let why = "must be a valid percent string (e.g. '1%',  or '93%', regex used for \
                           validation is '[0-9]+%')";
                errors.push(FieldError::invalid(&field, value, why));
            }
            Value::Number(_) if value.as_i64().is_some_and(|number| number < 0) => {
                errors.push(FieldError::invalid(&field, value, NOT_NEGATIVE));
            }
            _ => {}
        }
    }
    let policy = text(spec, "/unhealthyPodEvictionPolicy");
    let known = ["AlwaysAllow", "IfHealthyBudget"];
    if !policy.is_empty() && !known.contains(&policy) {
        let field = "spec.unhealthyPodEvictionPolicy";
        errors.push(FieldError::not_supported(field, &policy.into(), &known));
    }
    errors
}

fn is_percentage(text: &str) -> bool {
    text.strip_suffix('%').is_some_and(|digits| {
        !digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_digit())
    })
}

/// Complaints about a Lease.
pub(super) fn lease(lease: &Value) -> Vec<FieldError> {
    let mut errors = vec![];
    let number = |name: &str| lease.pointer(&format!("/spec/{name}")).and_then(Value::as_i64);
    if let Some(seconds) = number("leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        let field = "spec.leaseDurationSeconds";
        errors.push(FieldError::invalid(field, &seconds.into(), "must be greater than 0"));
    }
    if let Some(count) = number("leaseTransitions").filter(|count| *count < 0) {
        errors.push(FieldError::invalid("spec.leaseTransitions", &count.into(), NOT_NEGATIVE));
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::texts;
    use super::*;

    #[test]
    fn one_limit_at_a_time() {
        let both = json!({"spec": {"minAvailable": 1, "maxUnavailable": 1}});
        assert_eq!(
            texts(&budget(&both)),
            ["spec: Invalid value: {\"MinAvailable\":1,\"Selector\":null,\"MaxUnavailable\":1,\
              \"UnhealthyPodEvictionPolicy\":null}: minAvailable and maxUnavailable cannot be \
              both set"]
        );
    }

    #[test]
    fn shares_are_percentages() {
        assert!(budget(&json!({"spec": {"minAvailable": "50%"}})).is_empty());
        assert_eq!(budget(&json!({"spec": {"minAvailable": "half"}})).len(), 1);
        assert_eq!(budget(&json!({"spec": {"minAvailable": -1}})).len(), 1);
    }

    #[test]
    fn leases_last_a_while() {
        let of = |spec: Value| texts(&lease(&json!({"spec": spec})));
        assert_eq!(
            of(json!({"leaseDurationSeconds": 0})),
            ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"]
        );
        assert_eq!(of(json!({"leaseTransitions": -1})).len(), 1);
        assert!(of(json!({"leaseDurationSeconds": 1, "leaseTransitions": 0})).is_empty());
    }
}
