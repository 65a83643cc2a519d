//! Server-side apply, and the record of field managers.
//!
//! Source: Kubernetes documentation, "Server-Side Apply"; the algorithm is that of
//! `sigs.k8s.io/structured-merge-diff`.

mod diff;
mod managers;
mod set;
mod typed;

use serde_json::{Value, json};

use super::call::Call;
use super::error::{ApiError, Result};
use super::meta;
use super::resources::split_api_version;
use super::schema;
use super::store::rfc3339;

use diff::{compare, fields_of, merge, prune};
use managers::{APPLY, Entry, Managed, UPDATE};
use set::FieldSet;
use typed::Node;

/// Manager of fields from before the first apply.
const BEFORE_APPLY: &str = "before-first-apply";
/// Fields of metadata that belong to the server.
const SERVERS: [&str; 8] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "name",
    "namespace",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The types of the call's object.
fn node_of(call: &Call) -> Node<'_> {
    if let Some(custom) = &call.resource.custom {
        return Node::Open(&custom.schema, true);
    }
    schema::kind(&call.resource.api_version(), &call.resource.kind)
        .map_or(Node::Unknown, Node::Message)
}

/// Parts that the path of a call never writes.
fn ignored(call: &Call) -> &'static [&'static str] {
    match call.subresource.as_str() {
        "" if call.resource.has_status() => &["f:status"],
        "status" if call.resource.custom.is_some() => &["f:spec", "f:metadata"],
        "status" | "approval" => &["f:spec"],
        _ => &[],
    }
}

/// Removes fields without owners.
fn stripped(set: &FieldSet) -> FieldSet {
    let mut server = FieldSet::default();
    for member in ["apiVersion", "kind", "metadata"] {
        server.insert(&[typed::named(member)]);
    }
    for member in SERVERS {
        server.insert(&[typed::named("metadata"), typed::named(member)]);
    }
    set.difference(&server)
}

fn without_record(object: &Value) -> Value {
    let mut object = object.clone();
    meta::remove(&mut object, "managedFields");
    object
}

/// An empty new object of the kind.
fn empty(call: &Call) -> Value {
    let message = schema::kind(&call.resource.api_version(), &call.resource.kind);
    let message = message.filter(|_| call.resource.custom.is_none());
    message.map_or_else(|| json!({}), |of| schema::shape::zero(&schema::Type::Message(of.name)))
}

fn entry(call: &Call, manager: &str, operation: &str, set: FieldSet) -> Entry {
    Entry {
        manager: manager.to_owned(),
        operation: operation.to_owned(),
        api_version: call.resource.api_version(),
        subresource: call.subresource.clone(),
        time: Some(rfc3339(call.now)),
        set,
    }
}

/// Records the fields that a create or update has set; `before` is `None` for a create.
pub(crate) fn track(call: &Call, before: Option<&Value>, object: &mut Value) {
    let of = |object: Option<&Value>| match object.map(managers::parse) {
        Some(Managed::Entries(entries)) => entries,
        Some(Managed::Cleared) | None => vec![],
    };
    let entries = match managers::parse(object) {
        Managed::Cleared if call.subresource.is_empty() => vec![],
        Managed::Entries(sent) if call.subresource.is_empty() && !sent.is_empty() => sent,
        _ => of(before),
    };
    // Objects without a record get none until the first apply.
    let entries = if entries.is_empty() && before.is_some() {
        vec![]
    } else {
        let live = before.map_or_else(|| empty(call), without_record);
        updated(call, entries, &call.options.manager, &live, &without_record(object))
    };
    meta::put(object, "managedFields", managers::write(entries));
}

/// The entries after `manager` wrote `new` over `live`.
fn updated(
    call: &Call,
    mut entries: Vec<Entry>,
    manager: &str,
    live: &Value,
    new: &Value,
) -> Vec<Entry> {
    let difference = compare(node_of(call), live, new).without(ignored(call));
    let written = stripped(&difference.written());
    for entry in &mut entries {
        entry.set = entry.set.difference(&written).difference(&difference.removed);
    }
    if !written.is_empty() {
        let new = entry(call, manager, UPDATE, written);
        match entries.iter_mut().find(|entry| entry.is(&new)) {
            Some(own) => {
                own.set = own.set.union(&new.set);
                own.time = new.time;
            }
            None => entries.push(new),
        }
    }
    entries
}

/// Merges the applied configuration into `before` and records the owners of fields.
///
/// # Errors
/// 409 naming every field that another manager owns with another value, 400 and 500 for
/// configurations that do not fit the kind.
pub(crate) fn apply(call: &Call, before: Option<&Value>, configuration: &Value) -> Result<Value> {
    check(call, configuration)?;
    let node = node_of(call);
    let mut entries = match before.map(managers::parse) {
        Some(Managed::Entries(entries)) => entries,
        Some(Managed::Cleared) | None => vec![],
    };
    let live = before.map_or_else(|| json!({}), without_record);
    if let (Some(_), true) = (before, entries.is_empty()) {
        let start = Call { subresource: String::new(), ..call.clone() };
        entries = updated(&start, vec![], BEFORE_APPLY, &empty(call), &live);
    }
    let configured = fields_of(node, configuration).without(ignored(call));
    let mut new = entry(call, &call.options.manager, APPLY, stripped(&configured));
    let at = entries.iter().position(|entry| entry.is(&new));
    let last = at.map(|at| entries.remove(at));

    let mut merged = merge(node, &live, configuration);
    if let Some(last) = &last {
        let kept = entries.iter().fold(configured, |all, entry| all.union(&entry.set));
        prune(node, &mut merged, &last.set, &kept);
    }
    let difference = compare(node, &live, &merged).without(ignored(call));
    let written = stripped(&difference.written());
    let conflicts: Vec<(String, Vec<String>)> = entries
        .iter()
        .map(|entry| (entry.shown(), entry.set.intersection(&written).paths()))
        .filter(|(_, paths)| !paths.is_empty())
        .collect();
    if !conflicts.is_empty() && !call.options.force {
        return Err(conflict(&conflicts));
    }
    for entry in &mut entries {
        entry.set = entry.set.difference(&written).difference(&difference.removed);
    }
    if difference.is_same() && before.is_some() {
        new.time = last.and_then(|last| last.time);
    }
    entries.push(new);
    meta::put(&mut merged, "managedFields", managers::write(entries));
    Ok(merged)
}

/// Checks that a configuration is valid for the kind.
fn check(call: &Call, configuration: &Value) -> Result<()> {
    let text = |member: &str| configuration.get(member).and_then(Value::as_str).unwrap_or("");
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let expected = call.resource.api_version();
    if !configuration.is_object() {
        return Err(ApiError::bad_request("error decoding YAML: the configuration is no object"));
    }
    if api_version != expected {
        return Err(ApiError::bad_request(format!(
            "Incorrect version specified in apply patch. Specified patch version: {api_version}, \
             expected: {expected}"
        )));
    }
    if meta::get(configuration, "managedFields").is_some() {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    let (group, version) = split_api_version(api_version);
    let untyped = |why: &str| {
        let (namespace, name) = (meta::namespace(configuration), meta::name(configuration));
        ApiError::plain(format!(
            "failed to create typed patch object ({namespace}/{name}; {group}/{version}, \
             Kind={kind}): {why}"
        ))
    };
    if kind != call.resource.kind {
        return Err(untyped(&format!("no corresponding type for {group}/{version}, Kind={kind}")));
    }
    match typed::errors(node_of(call), configuration).as_slice() {
        [] => Ok(()),
        [one] => Err(untyped(one)),
        many => Err(untyped(&format!("errors:\n  {}", many.join("\n  ")))),
    }
}

/// 409 with a cause for each conflicting field.
fn conflict(conflicts: &[(String, Vec<String>)]) -> ApiError {
    let causes: Vec<Value> = conflicts
        .iter()
        .flat_map(|(manager, paths)| {
            paths.iter().map(move |path| {
                json!({
                    "reason": "FieldManagerConflict",
                    "message": format!("conflict with {manager}"),
                    "field": path,
                })
            })
        })
        .collect();
    let message = match conflicts {
        [(manager, paths)] if paths.len() == 1 => {
            format!("Apply failed with 1 conflict: conflict with {manager}: {}", paths.concat())
        }
        _ => {
            let mut lines = vec![];
            for (manager, paths) in conflicts {
                lines.push(format!("conflicts with {manager}:"));
                lines.extend(paths.iter().map(|path| format!("- {path}")));
            }
            format!("Apply failed with {} conflicts: {}", causes.len(), lines.join("\n"))
        }
    };
    ApiError::apply_conflict(message, causes)
}

#[cfg(test)]
mod tests;
