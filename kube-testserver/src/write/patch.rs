//! PATCH with its four patch types.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::call::{Call, FieldValidation};
use crate::error::{ApiError, FieldError, Result, Subject};
use crate::state::State;
use crate::{apply, kinds, meta, patches, schema};

use super::body::{Body, Form, must_be_kind, other_kind, typed};
use super::{Source, create, update};

/// The patch types.
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
    /// The patch type of a Content-Type.
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

/// The result of a patch.
#[derive(Debug)]
pub(crate) struct Patched {
    /// The new state of the object.
    pub object: Arc<Value>,
    /// Whether an apply created it.
    pub created: bool,
    /// Warnings about unknown fields.
    pub warnings: Vec<String>,
}

/// Patches an object; an apply may create it.
///
/// # Errors
/// 404 without the object, 400 for an unreadable patch, 409 and 422 as for an update.
pub(crate) fn patch(
    state: &mut State,
    call: &Call,
    kind: PatchKind,
    bytes: &[u8],
) -> Result<Patched> {
    if kind == PatchKind::Apply {
        return apply(state, call, bytes);
    }
    let before = state.store.get(&call.place(), &call.namespace, &call.name).cloned();
    let before = before.ok_or_else(|| call.not_found())?;
    let body = Body::json(bytes).map_err(|why| undecodable(kind, &why))?;
    let shown = call.resource.present(&before);
    let mut document = match kind {
        PatchKind::Json => patches::json_patch(&shown, &body.value)?,
        PatchKind::Merge => patches::merge_patch(&shown, &body.value)?,
        PatchKind::Strategic | PatchKind::Apply => {
            let of = schema::kind(&call.resource.api_version(), &call.resource.kind);
            let of = of.ok_or_else(|| ApiError::not_implemented("strategic merge of this kind"))?;
            patches::strategic_merge_patch(&shown, &body.value, of)?
        }
    };
    let quoted = if kind == PatchKind::Strategic {
        // Such a patch is merged into an object of the kind, whatever type the patch has.
        for (field, value) in
            [("kind", call.resource.kind.clone()), ("apiVersion", call.resource.api_version())]
        {
            kinds::put(&mut document, field, value.into());
        }
        go_map(&body.value)
    } else {
        let quoted = document.to_string();
        check_type(state, call, &mut document, &quoted)?;
        quoted
    };
    let (object, unknown) =
        typed(call, document).map_err(|error| bad_patch(&quoted, &error.to_string()))?;
    let misspelt =
        if kind == PatchKind::Json { patches::unknown_members(&body.value) } else { vec![] };
    let warnings = judge(call, problems(kind, &body, misspelt, unknown), &quoted)?;
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

/// 400 for a patch that is not JSON.
fn undecodable(kind: PatchKind, why: &str) -> ApiError {
    match kind {
        PatchKind::Strategic => ApiError::bad_request(why),
        _ => ApiError::bad_request(format!("error decoding patch: {why}")),
    }
}

/// Checks that a patch does not change the object's kind.
fn check_type(state: &State, call: &Call, document: &mut Value, quoted: &str) -> Result<()> {
    let text = |document: &Value, field: &str| {
        document.get(field).and_then(Value::as_str).unwrap_or("").to_owned()
    };
    let (expected, kind) = (call.resource.api_version(), call.resource.kind.as_str());
    if text(document, "kind").is_empty() && call.resource.custom.is_none() {
        kinds::put(document, "kind", kind.into());
    }
    let (given_version, given_kind) = (text(document, "apiVersion"), text(document, "kind"));
    if given_kind == kind && given_version == expected {
        return Ok(());
    }
    if call.resource.custom.is_some() && given_version == expected && !given_kind.is_empty() {
        return Err(must_be_kind(document, kind));
    }
    let given = [given_version.as_str(), given_kind.as_str()];
    Err(bad_patch(quoted, &other_kind(&state.registry, given, [&expected, kind])))
}

/// A value in Go's format, for example `map[data:map[k:1]]`.
fn go_map(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(go_map).collect::<Vec<_>>().join(" "))
        }
        Value::Object(members) => {
            let sorted: BTreeMap<_, _> = members.iter().collect();
            let shown = sorted.into_iter().map(|(key, value)| format!("{key}:{}", go_map(value)));
            format!("map[{}]", shown.collect::<Vec<_>>().join(" "))
        }
        other => other.to_string(),
    }
}

/// 422 for a patch whose result is not an object of the kind.
fn bad_patch(shown: &str, why: &str) -> ApiError {
    let error = FieldError::invalid("patch", &shown.into(), why);
    ApiError::invalid(Subject { group: "", kind: "", name: "" }, &[error])
}

/// Messages about repeated and unknown members of the patch.
fn problems(
    kind: PatchKind,
    body: &Body,
    misspelt: Vec<String>,
    mut unknown: Vec<String>,
) -> Vec<String> {
    unknown.sort();
    let of = if kind == PatchKind::Json { "json patch " } else { "" };
    let duplicates = body.duplicates.iter().map(|path| format!("{of}duplicate field {path:?}"));
    let misspelt = misspelt.into_iter().map(|path| format!("{of}unknown field {path:?}"));
    let unknown = unknown.into_iter().map(|path| format!("unknown field {path:?}"));
    duplicates.chain(misspelt).chain(unknown).collect()
}

/// Turns problems of the patch into warnings, or into an error under strict validation.
fn judge(call: &Call, problems: Vec<String>, quoted: &str) -> Result<Vec<String>> {
    match call.options.validation {
        FieldValidation::Strict if !problems.is_empty() => {
            let why = format!("strict decoding error: {}", problems.join(", "));
            Err(bad_patch(quoted, &why))
        }
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Strict | FieldValidation::Warn => Ok(problems),
    }
}

fn apply(state: &mut State, call: &Call, bytes: &[u8]) -> Result<Patched> {
    let body = Body::parse(Form::Yaml, bytes, &call.resource.kind)?;
    let before = state.store.get(&call.place(), &call.namespace, &call.name).cloned();
    if before.is_none() && !call.subresource.is_empty() {
        return Err(call.not_found());
    }
    if before.is_none() {
        create::must_be_allowed(state, call)?;
    }
    let shown = before.as_deref().map(|before| call.resource.present(before));
    let merged = apply::apply(call, shown.as_ref(), &body.value)?;
    let read = typed(call, merged).map_err(|error| ApiError::bad_request(error.to_string()));
    let (object, unknown) = read?;
    let problems = problems(PatchKind::Apply, &body, vec![], unknown);
    let warnings = judge(call, problems, &body.text)?;
    let stated_uid = meta::uid(&object);
    if before.is_none() && !stated_uid.is_empty() {
        let why = format!(
            "uid mismatch: the provided object specified uid {stated_uid}, and no existing object \
             was found"
        );
        return Err(ApiError::conflict(call.subject(), &why));
    }
    update::check_identity(call, &object)?;
    let mut object = call.resource.to_storage(object);
    let Some(before) = before else {
        // The version that the client last saw does not keep apply from creating the object.
        meta::remove(&mut object, "resourceVersion");
        let object = create(state, call, object, Source::Apply)?;
        return Ok(Patched { object, created: true, warnings });
    };
    update::check_version(call, &before, &object)?;
    let object = update::change(state, call, &before, object, Source::Apply)?;
    Ok(Patched { object, created: false, warnings })
}
