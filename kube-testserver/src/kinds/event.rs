//! Events, whose two APIs share a stored form.

use jiff::Timestamp;
use serde_json::Value;

use crate::call::Call;
use crate::error::{FieldError, Result};
use crate::meta;
use crate::names::qualified_name;
use crate::schema::shape::is_zero;

use super::ages::age_of;
use super::values::{invalid_for, number, or, text};
use super::{Columns, SelectableField, Strategy, TEXT};

/// Events, of the core group or of `events.k8s.io`.
#[derive(Debug)]
pub(super) struct Events {
    pub(super) is_new_api: bool,
}

impl Strategy for Events {
    fn validate(&self, _call: &Call, object: &Value) -> Result<Vec<FieldError>> {
        Ok(event(self.is_new_api, None, object))
    }

    fn validate_update(
        &self,
        _call: &Call,
        before: &Value,
        object: &Value,
    ) -> Result<Vec<FieldError>> {
        Ok(event(self.is_new_api, Some(before), object))
    }

    fn columns(&self) -> Columns {
        &[
            ("Last Seen", TEXT, 0),
            ("Type", TEXT, 0),
            ("Reason", TEXT, 0),
            ("Object", TEXT, 0),
            ("Subobject", TEXT, 1),
            ("Source", TEXT, 1),
            ("Message", TEXT, 0),
            ("First Seen", TEXT, 1),
            ("Count", TEXT, 1),
            ("Name", TEXT, 1),
        ]
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        cells(object, now)
    }

    /// Both Event APIs name the same stored members.
    fn fields(&self) -> Option<Vec<SelectableField>> {
        let (object, component) = if self.is_new_api {
            ("regarding", "reportingController")
        } else {
            ("involvedObject", "reportingComponent")
        };
        let members =
            ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"];
        let of_object = members.map(|member| {
            (format!("{object}.{member}"), vec![format!("/involvedObject/{member}")])
        });
        let source = ["/source/component", "/reportingComponent"].map(str::to_owned).to_vec();
        let others = [
            (component.to_owned(), vec!["/reportingComponent".to_owned()]),
            ("reason".to_owned(), vec!["/reason".to_owned()]),
            ("type".to_owned(), vec!["/type".to_owned()]),
            ("source".to_owned(), source),
        ];
        Some(of_object.into_iter().chain(others).collect())
    }
}

const LONGEST: usize = 128;
const LONGEST_NOTE: usize = 1024;

/// Members of an event that never change, under their names in core v1 and in events.k8s.io.
const FIXED: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("reason", "reason"),
    ("message", "note"),
    ("type", "type"),
    ("action", "action"),
    ("related", "related"),
    ("reportingComponent", "reportingController"),
    ("reportingInstance", "reportingInstance"),
    ("eventTime", "eventTime"),
];
/// Members that events.k8s.io has for old events only.
const OLD_FORM: &[(&str, &str)] = &[
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("source", "deprecatedSource"),
];

/// A text of an event, under its name in core v1 or in events.k8s.io.
fn either<'a>(event: &'a Value, core: &str, new: &str) -> &'a str {
    match text(event, core) {
        "" => text(event, new),
        found => found,
    }
}

/// Validation errors of an event.
fn event(new_api: bool, before: Option<&Value>, event: &Value) -> Vec<FieldError> {
    let mut errors = vec![];
    let about = either(event, "/involvedObject/namespace", "/regarding/namespace");
    let own = meta::namespace(event);
    // Events with an exact time may be about objects elsewhere.
    let is_exact = !text(event, "/eventTime").is_empty();
    let fits = match about {
        "" => ["", "default"].contains(&own) || is_exact && own == "kube-system",
        about => is_exact || about == own,
    };
    if !fits {
        let field = "involvedObject.namespace";
        errors.push(FieldError::invalid(field, &about.into(), "does not match event.namespace"));
    }
    if is_exact {
        errors.extend(reporter(event));
    } else if new_api && before.is_none() {
        errors.push(FieldError::required("eventTime", ""));
    }
    let kind = text(event, "/type");
    if new_api && before.is_none() && !["Normal", "Warning"].contains(&kind) {
        let why = format!("has invalid value: {kind}");
        errors.push(FieldError::invalid("type", &"".into(), &why));
    }
    if new_api {
        errors.extend(new_form(before, event));
    }
    errors
}

/// Validation errors of events.k8s.io: complete series, no members of the old form, and nothing else than the series
/// changes.
fn new_form(before: Option<&Value>, event: &Value) -> Vec<FieldError> {
    let mut errors = vec![];
    let member = |of: &Value, core: &str, new: &str| of.get(core).or(of.get(new)).cloned();
    let series = event
        .get("series")
        .filter(|series| before.and_then(|it| it.get("series")) != Some(*series));
    if let Some(series) = series {
        if number(series, "/count") < 2 {
            errors.push(FieldError::invalid("series.count", &"".into(), "should be at least 2"));
        }
        if text(series, "/lastObservedTime").is_empty() {
            errors.push(FieldError::required("series.lastObservedTime", ""));
        }
    }
    let Some(before) = before else {
        for (core, new) in OLD_FORM {
            if member(event, core, new).is_some_and(|value| !is_zero(&value)) {
                errors.push(FieldError::invalid(new, &"".into(), "needs to be unset"));
            }
        }
        return errors;
    };
    for (core, new) in FIXED.iter().chain(OLD_FORM) {
        let (old, now) = (member(before, core, new), member(event, core, new));
        if old != now {
            let value = now.unwrap_or_default();
            errors.push(FieldError::invalid(new, &value, "field is immutable"));
        }
    }
    errors
}

/// Checks the reporter, which events with an exact time require.
fn reporter(event: &Value) -> Vec<FieldError> {
    let mut errors = vec![];
    let controller = either(event, "/reportingComponent", "/reportingController");
    if controller.is_empty() {
        errors.push(FieldError::required("reportingController", ""));
    }
    let wrong = if controller.is_empty() { vec![] } else { qualified_name(controller) };
    errors.extend(invalid_for("reportingController", controller, &wrong));
    for member in ["reportingInstance", "action", "reason"] {
        let value = text(event, &format!("/{member}"));
        if value.is_empty() {
            errors.push(FieldError::required(member, ""));
        } else if value.len() > LONGEST {
            let why = format!("can have at most {LONGEST} characters");
            errors.push(FieldError::invalid(member, &"".into(), &why));
        }
    }
    if either(event, "/message", "/note").len() > LONGEST_NOTE {
        let why = format!("can have at most {LONGEST_NOTE} characters");
        errors.push(FieldError::invalid("message", &"".into(), &why));
    }
    errors
}

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let either = |core: &str, new: &str| or(text(object, core), text(object, new)).to_owned();
    let first = either("/firstTimestamp", "/deprecatedFirstTimestamp");
    let last = either("/lastTimestamp", "/deprecatedLastTimestamp");
    let first = or(&first, text(object, "/eventTime")).to_owned();
    let count = number(object, "/series/count").max(number(object, "/count")).max(1);
    let last = or(text(object, "/series/lastObservedTime"), or(&last, &first)).to_owned();
    let reference =
        if object.get("regarding").is_some() { "/regarding" } else { "/involvedObject" };
    let part = |member: &str| text(object, &format!("{reference}/{member}")).to_owned();
    let component = either("/reportingComponent", "/reportingController");
    let old =
        |member: &str| either(&format!("/source/{member}"), &format!("/deprecatedSource/{member}"));
    let host = or(&old("host"), text(object, "/reportingInstance")).to_owned();
    let source = or(&old("component"), &component).to_owned();
    let source = if host.is_empty() { source } else { format!("{source}, {host}") };
    vec![
        age_of(&last, now).into(),
        text(object, "/type").into(),
        text(object, "/reason").into(),
        format!("{}/{}", part("kind").to_lowercase(), part("name")).into(),
        part("fieldPath").into(),
        source.into(),
        either("/message", "/note").trim().into(),
        age_of(&first, now).into(),
        count.into(),
        meta::name(object).into(),
    ]
}
