//! PATCH in its four forms.

use std::sync::Arc;

use serde_json::Value;

use crate::cluster::call::{Call, FieldValidation};
use crate::cluster::error::{ApiError, FieldError, Result, Subject};
use crate::cluster::state::State;
use crate::cluster::{apply, meta, patches, schema};

use super::body::{Body, Form, typed};
use super::{Source, create, update};

/// The forms of a patch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PatchKind {
    /// Server-side apply.
    Apply,
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    /// Strategic merge patch, for built-in kinds only.
    Strategic,
}

impl PatchKind {
    /// The form that a Content-Type stands for.
    pub(crate) fn from_media_type(media_type: &str) -> Option<Self> {
        match media_type {
            "application/apply-patch+yaml" => Some(Self::Apply),
            "application/json-patch+json" => Some(Self::Json),
            "application/merge-patch+json" => Some(Self::Merge),
            "application/strategic-merge-patch+json" => Some(Self::Strategic),
            _ => None,
        }
    }
}

/// What a patch led to.
#[derive(Debug)]
pub(crate) struct Patched {
    /// The object as it is now.
    pub object: Arc<Value>,
    /// Whether apply created it.
    pub created: bool,
    /// Warnings about unknown fields.
    pub warnings: Vec<String>,
}

/// Patches one object, or creates it by apply.
///
/// # Errors
/// 404 when there is nothing to patch, 400 for an unreadable patch, 409 and 422 as for an update.
pub(crate) fn patch(
    state: &mut State,
    call: &Call,
    kind: PatchKind,
    bytes: &[u8],
) -> Result<Patched> {
    if kind == PatchKind::Apply {
        return apply(state, call, bytes);
    }
    let body = Body::parse(Form::Json, bytes, &call.resource.kind)?;
    let before = state.store.get(&call.place(), &call.namespace, &call.name).cloned();
    let before = before.ok_or_else(|| call.not_found())?;
    let shown = call.resource.present(&before);
    let document = match kind {
        PatchKind::Json => patches::json_patch(&shown, &body.value)?,
        PatchKind::Merge => patches::merge_patch(&shown, &body.value)?,
        PatchKind::Strategic | PatchKind::Apply => {
            let of = schema::kind(&call.resource.api_version(), &call.resource.kind);
            let of = of.ok_or_else(|| ApiError::not_implemented("strategic merge of this kind"))?;
            patches::strategic_merge_patch(&shown, &body.value, of)?
        }
    };
    let shown = document.to_string();
    check_type(call, &document)?;
    let (object, unknown) =
        typed(call, document).map_err(|error| bad_patch(&shown, &error.message))?;
    let warnings = judge(call, &body, &shown, unknown)?;
    let changed = update::check_identity(call, &object)
        .and_then(|()| update::check_version(call, &before, &object))
        .and_then(|()| {
            let object = call.resource.to_storage(object);
            update::change(state, call, &before, object, Source::Patch)
        });
    match changed {
        Ok(object) => Ok(Patched { object, created: false, warnings }),
        Err(error) => Err(ApiError { warnings, ..error }),
    }
}

/// A patch may not turn an object into one of another kind.
fn check_type(call: &Call, document: &Value) -> Result<()> {
    let text = |field: &str| document.get(field).and_then(Value::as_str).unwrap_or("");
    if text("kind") != call.resource.kind || text("apiVersion") != call.resource.api_version() {
        return Err(ApiError::bad_request(format!(
            "the patch changes kind or apiVersion to {} {}",
            text("apiVersion"),
            text("kind")
        )));
    }
    Ok(())
}

/// 422 for a patch whose outcome is no object of the kind.
fn bad_patch(shown: &str, why: &str) -> ApiError {
    let error = FieldError::invalid("patch", &shown.into(), why);
    ApiError::invalid(Subject { group: "", kind: "", name: "" }, &[error])
}

/// Unknown fields of the patch: warnings, or an error under strict validation.
fn judge(call: &Call, body: &Body, shown: &str, mut unknown: Vec<String>) -> Result<Vec<String>> {
    unknown.sort();
    let mut problems: Vec<String> =
        body.duplicates.iter().map(|path| format!("duplicate field {path:?}")).collect();
    problems.extend(unknown.iter().map(|path| format!("unknown field {path:?}")));
    match call.options.validation {
        FieldValidation::Strict if !problems.is_empty() => {
            let why = format!("strict decoding error: {}", problems.join(", "));
            Err(bad_patch(shown, &why))
        }
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Strict | FieldValidation::Warn => Ok(problems),
    }
}

fn apply(state: &mut State, call: &Call, bytes: &[u8]) -> Result<Patched> {
    let mut body = Body::parse(Form::Yaml, bytes, &call.resource.kind)?;
    let before = state.store.get(&call.place(), &call.namespace, &call.name).cloned();
    if before.is_none() && !call.subresource.is_empty() {
        return Err(call.not_found());
    }
    if meta::name(&body.value).is_empty() && body.value.is_object() {
        meta::set(&mut body.value, "name", call.name.clone().into());
    }
    if before.is_none() {
        create::must_be_allowed(state, call)?;
    }
    let shown = before.as_deref().map(|before| call.resource.present(before));
    let merged = apply::apply(call, shown.as_ref(), &body.value)?;
    let (object, unknown) = typed(call, merged)?;
    let warnings = judge(call, &body, &body.text, unknown)?;
    update::check_identity(call, &object)?;
    let object = call.resource.to_storage(object);
    let Some(before) = before else {
        let object = create(state, call, object, Source::Apply)?;
        return Ok(Patched { object, created: true, warnings });
    };
    update::check_version(call, &before, &object)?;
    let object = update::change(state, call, &before, object, Source::Apply)?;
    Ok(Patched { object, created: false, warnings })
}
