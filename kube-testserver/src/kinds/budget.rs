//! PodDisruptionBudgets.

use jiff::Timestamp;
use serde_json::Value;

use crate::call::Call;
use crate::error::{FieldError, Result};
use crate::meta;

use super::ages::age;
use super::values::{number, text};
use super::{Columns, NUMBER, Strategy, TEXT};

/// PodDisruptionBudgets.
#[derive(Debug)]
pub(super) struct PodDisruptionBudgets;

impl Strategy for PodDisruptionBudgets {
    fn validate(&self, _call: &Call, object: &Value) -> Result<Vec<FieldError>> {
        Ok(budget(object))
    }

    fn columns(&self) -> Columns {
        &[
            ("Name", TEXT, 0),
            ("Min Available", TEXT, 0),
            ("Max Unavailable", TEXT, 0),
            ("Allowed Disruptions", NUMBER, 0),
            ("Age", TEXT, 0),
        ]
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let limit = |pointer: &str| match object.pointer(pointer) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => "N/A".to_owned(),
        };
        vec![
            meta::name(object).into(),
            limit("/spec/minAvailable").into(),
            limit("/spec/maxUnavailable").into(),
            number(object, "/status/disruptionsAllowed").into(),
            age(object, now),
        ]
    }
}

pub(super) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

/// Validation errors of a PodDisruptionBudget.
fn budget(budget: &Value) -> Vec<FieldError> {
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
            Value::String(share)
                if share.trim_end_matches('%').parse::<u32>().is_ok_and(|it| it > 100) =>
            {
                errors.push(FieldError::invalid(&field, value, "must not be greater than 100%"));
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::values::texts;
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
        assert_eq!(
            texts(&budget(&json!({"spec": {"minAvailable": "150%"}}))),
            ["spec.minAvailable: Invalid value: \"150%\": must not be greater than 100%"]
        );
    }
}
