//! Events, whose two APIs share one stored form.

use serde_json::Value;

use crate::cluster::call::Call;
use crate::cluster::error::FieldError;
use crate::cluster::meta;
use crate::cluster::names::qualified_name;

use super::text;

const LONGEST: usize = 128;

/// A text of an event, named as in core v1 or as in events.k8s.io.
fn either<'a>(event: &'a Value, core: &str, new: &str) -> &'a str {
    match text(event, core) {
        "" => text(event, new),
        found => found,
    }
}

/// Complaints about an event.
pub(super) fn event(call: &Call, before: Option<&Value>, event: &Value) -> Vec<FieldError> {
    let new_api = call.resource.group == "events.k8s.io";
    let mut errors = vec![];
    let about = either(event, "/involvedObject/namespace", "/regarding/namespace");
    let own = meta::namespace(event);
    let fits = if about.is_empty() { own.is_empty() || own == "default" } else { about == own };
    if !fits {
        let field = "involvedObject.namespace";
        errors.push(FieldError::invalid(field, &about.into(), "does not match event.namespace"));
    }
    if !text(event, "/eventTime").is_empty() {
        errors.extend(reporter(event));
    } else if new_api && before.is_none() {
        errors.push(FieldError::required("eventTime", ""));
    }
    let kind = text(event, "/type");
    if new_api && before.is_none() && !["Normal", "Warning"].contains(&kind) {
        let why = format!("has invalid value: {kind}");
        errors.push(FieldError::invalid("type", &"".into(), &why));
    }
    errors
}

/// Who reports, which events with an exact time have to say.
fn reporter(event: &Value) -> Vec<FieldError> {
    let mut errors = vec![];
    let controller = either(event, "/reportingComponent", "/reportingController");
    if controller.is_empty() {
        errors.push(FieldError::required("reportingController", ""));
    }
    let wrong = if controller.is_empty() { vec![] } else { qualified_name(controller) };
    errors.extend(super::invalid_for("reportingController", controller, &wrong));
    for member in ["reportingInstance", "action", "reason"] {
        let value = text(event, &format!("/{member}"));
        if value.is_empty() {
            errors.push(FieldError::required(member, ""));
        } else if value.len() > LONGEST {
            let why = format!("can have at most {LONGEST} characters");
            errors.push(FieldError::invalid(member, &"".into(), &why));
        }
    }
    errors
}
