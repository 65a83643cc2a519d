//! Options of a deletion, in the query or in the body.

use serde_json::Value;

use crate::call::{Query, dry_run_error, options_subject};
use crate::error::{ApiError, FieldError, Result};

/// What happens to the dependents of the deleted object.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Propagation {
    /// They are deleted afterwards.
    Background,
    /// They are deleted first.
    Foreground,
    /// They are kept, without the owner reference.
    Orphan,
}

/// Conditions for a deletion to happen.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Preconditions {
    /// The object's uid.
    pub uid: Option<String>,
    /// The object's resourceVersion.
    pub resource_version: Option<String>,
}

/// `DeleteOptions`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct DeleteOptions {
    /// Grace period in seconds.
    pub grace_s: Option<i64>,
    /// Whether to answer without deleting.
    pub dry_run: bool,
    /// Propagation policy; `None` for the kind's default, which is background.
    pub propagation: Option<Propagation>,
    /// Preconditions.
    pub preconditions: Preconditions,
}

impl DeleteOptions {
    /// Reads the options from the body, or from the query if there is no body.
    ///
    /// # Errors
    /// 400 if the body is not a `DeleteOptions`, 422 for invalid values.
    pub(crate) fn parse(query: &Query, body: Option<&Value>) -> Result<Self> {
        let from_query;
        let options = if let Some(body) = body {
            let kind = body.get("kind").and_then(Value::as_str).unwrap_or("DeleteOptions");
            if kind != "DeleteOptions" || !body.is_object() {
                return Err(ApiError::bad_request(format!(
                    "decoded object cannot be converted to DeleteOptions: it is a {kind}"
                )));
            }
            body
        } else {
            from_query = in_query(query)?;
            &from_query
        };
        Self::read(options, query)
    }

    fn read(options: &Value, query: &Query) -> Result<Self> {
        let wrong = |what: &str| {
            ApiError::bad_request(format!(
                "DeleteOptions cannot be decoded: {what} has a wrong type"
            ))
        };
        let text = |pointer: &str| match options.pointer(pointer) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(wrong(pointer)),
        };
        let grace_s = match options.get("gracePeriodSeconds") {
            None | Some(Value::Null) => None,
            Some(value) => Some(value.as_i64().ok_or_else(|| wrong("gracePeriodSeconds"))?),
        };
        let orphan = match options.get("orphanDependents") {
            None | Some(Value::Null) => None,
            Some(value) => Some(value.as_bool().ok_or_else(|| wrong("orphanDependents"))?),
        };
        let policy = text("/propagationPolicy")?;
        let propagation = propagation(policy.as_deref(), orphan, query, options)?;
        let dry_run =
            options.get("dryRun").and_then(Value::as_array).is_some_and(|l| !l.is_empty());
        Ok(Self {
            grace_s,
            dry_run: dry_run || query.get("dryRun").is_some_and(|value| !value.is_empty()),
            propagation,
            preconditions: Preconditions {
                uid: text("/preconditions/uid")?,
                resource_version: text("/preconditions/resourceVersion")?,
            },
        })
    }
}

fn propagation(
    policy: Option<&str>,
    orphan: Option<bool>,
    query: &Query,
    options: &Value,
) -> Result<Option<Propagation>> {
    const FIELD: &str = "propagationPolicy";
    let mut errors = Vec::new();
    if let (Some(policy), Some(_)) = (policy, orphan) {
        let why = "orphanDependents and deletionPropagation cannot be both set";
        errors.push(FieldError::invalid(FIELD, &policy.into(), why));
    }
    let known = match policy {
        None => None,
        Some("Background") => Some(Propagation::Background),
        Some("Foreground") => Some(Propagation::Foreground),
        Some("Orphan") => Some(Propagation::Orphan),
        Some(other) => {
            let words = ["Foreground", "Background", "Orphan", "nil"];
            errors.push(FieldError::not_supported(FIELD, &other.into(), &words));
            None
        }
    };
    errors.extend(dry_run_error(query));
    if let Some(values) = options.get("dryRun").and_then(Value::as_array)
        && values.iter().any(|value| value != "All")
    {
        let values = Value::from(values.clone());
        errors.push(FieldError::not_supported("dryRun", &values, &["All"]));
    }
    if errors.is_empty() {
        let orphan =
            orphan.map(|yes| if yes { Propagation::Orphan } else { Propagation::Background });
        return Ok(known.or(orphan));
    }
    Err(ApiError::invalid(options_subject("DeleteOptions"), &errors))
}

fn in_query(query: &Query) -> Result<Value> {
    let mut options = serde_json::Map::new();
    if let Some(grace) = query.number("gracePeriodSeconds")? {
        options.insert("gracePeriodSeconds".to_owned(), grace.into());
    }
    if let Some(policy) = query.get("propagationPolicy") {
        options.insert("propagationPolicy".to_owned(), policy.into());
    }
    if query.get("orphanDependents").is_some() {
        options.insert("orphanDependents".to_owned(), query.flag("orphanDependents").into());
    }
    Ok(options.into())
}
