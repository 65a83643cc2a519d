//! Requests about objects of resources.

use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use axum::http::{Method, header};
use jiff::Timestamp;
use serde_json::Value;

use super::call::{Call, WriteOptions};
use super::error::{ApiError, Result, Subject};
use super::identity::User;
use super::incoming::Incoming;
use super::left_out::is_left_out;
use super::list::{self, ListOptions};
use super::negotiate::{RowObject, Transform, Wanted, negotiate};
use super::registry::Known;
use super::resources::Resource;
use super::respond::{Answer, Reply};
use super::route::{self, ResourcePath};
use super::shared::Shared;
use super::state::State;
use super::watch::Watch;
use super::write::{self, Body, DeleteOptions, Form, PatchKind, Source};
use super::{meta, protobuf, table, virtual_resources};

/// How long a read waits for a version that is not reached yet, and the poll interval.
const VERSION_WAIT: Duration = Duration::from_secs(3);
const VERSION_CHECK: Duration = Duration::from_millis(20);

/// Requests about objects.
pub(super) async fn objects(
    cluster: &Arc<Shared>,
    incoming: &Incoming,
    path: &ResourcePath,
    user: User,
) -> Result<Reply> {
    let found = {
        let state = cluster.lock();
        let known = state.registry.knows(&path.group, &path.version);
        let is_custom = state.registry.is_custom(&path.group);
        match state.registry.find(&path.group, &path.version, &path.plural) {
            Some(resource) => Arc::clone(resource),
            None if is_left_out(path) => {
                let group = if path.group.is_empty() { "" } else { "." };
                let what = format!("{}{group}{}", path.plural, path.group);
                return Err(ApiError::not_implemented(&what));
            }
            None if known == Known::Nothing || is_custom => return Ok(Reply::no_such_page()),
            None => return Err(ApiError::no_such_resource()),
        }
    };
    if !has_scope(&found, incoming, path) {
        return Ok(Reply::no_such_page());
    }
    let Some(verb) = allowed(&found, incoming, path)? else {
        return Err(method_not_allowed(&found, incoming));
    };
    let call = Call {
        user,
        subresource: path.subresource.clone(),
        namespace: path.namespace.clone(),
        name: path.name.clone(),
        options: WriteOptions::default(),
        now: Timestamp::now(),
        resource: found,
    };
    let mut wanted = negotiate(&incoming.accept, call.resource.custom.is_some())?;
    if let Transform::Table(_) = wanted.transform {
        let include = RowObject::parse(incoming.query.get("includeObject").unwrap_or(""))?;
        wanted.transform = Transform::Table(include);
    }
    match verb {
        "get" => get(cluster, incoming, &call, wanted).await,
        "list" => list_objects(cluster, incoming, &call, wanted).await,
        "watch" => watch(cluster, incoming, call, wanted),
        _ => {
            let written = write_objects(cluster, incoming, call, verb, wanted);
            written.map(|answer| Reply::Object(answer, wanted))
        }
    }
}

/// Sub-resources of real servers that this server does not have.
const LEFT_OUT: &[&str] =
    &["attach", "ephemeralcontainers", "exec", "log", "portforward", "proxy", "resize"];

/// Whether the path of a custom resource has the scope of its definition; with another scope the resource is
/// unknown. Lists and watches may span all namespaces.
fn has_scope(resource: &Resource, incoming: &Incoming, path: &ResourcePath) -> bool {
    if resource.custom.is_none() {
        return true;
    }
    let is_read = matches!(incoming.verb(path), "list" | "watch");
    let in_namespace = !path.namespace.is_empty();
    if resource.namespaced { in_namespace || is_read } else { !in_namespace }
}

/// The verb; `None` if the resource does not support it.
fn allowed(
    resource: &Resource,
    incoming: &Incoming,
    path: &ResourcePath,
) -> Result<Option<&'static str>> {
    let is_collection = path.name.is_empty();
    if path.namespace.is_empty() == resource.namespaced && !is_collection {
        return Err(ApiError::no_such_resource());
    }
    if !path.namespace.is_empty() && !resource.namespaced {
        return Err(ApiError::no_such_resource());
    }
    if incoming.method == Method::HEAD && resource.custom.is_none() {
        return Ok(None);
    }
    let watch = incoming.is_watch(path);
    let Some(verb) = route::verb(&incoming.method, !is_collection, watch) else { return Ok(None) };
    if !path.subresource.is_empty() {
        let core = resource.group.is_empty();
        if core && LEFT_OUT.contains(&path.subresource.as_str()) {
            let what = format!("{}/{}", path.plural, path.subresource);
            return Err(ApiError::not_implemented(&what));
        }
        let sub = resource.subresource(&path.subresource).filter(|_| !path.too_long);
        let Some(sub) = sub else { return Err(no_such_subresource(resource, path)) };
        if sub.name == "scale" {
            return Err(ApiError::not_implemented(&format!("{}/scale", path.plural)));
        }
        return Ok(sub.verbs.contains(&verb).then_some(verb));
    }
    let over_all = resource.namespaced && path.namespace.is_empty();
    if over_all && !matches!(verb, "list" | "watch") {
        return Ok(None);
    }
    if resource.custom.is_some() && is_collection && matches!(verb, "update" | "patch") {
        return Err(ApiError::bad_request("name must be provided"));
    }
    let on_collection = matches!(verb, "list" | "watch" | "create" | "deletecollection");
    Ok((resource.verbs.contains(&verb) && on_collection == is_collection).then_some(verb))
}

/// The error for a custom resource, as if the object did not exist.
fn no_such_subresource(resource: &Resource, path: &ResourcePath) -> ApiError {
    if resource.custom.is_none() {
        return ApiError::no_such_resource();
    }
    let of = Subject { group: &resource.group, kind: &resource.plural, name: &path.name };
    ApiError::not_found(of)
}

fn method_not_allowed(resource: &Resource, incoming: &Incoming) -> ApiError {
    if resource.custom.is_none() {
        return ApiError::method_not_allowed();
    }
    let verb = incoming.method.as_str().to_lowercase();
    ApiError::verb_not_supported(&verb, &resource.group, &resource.plural)
}

/// Waits until the requested version of a read is reached.
async fn reached(cluster: &Shared, version: &str) -> Result<()> {
    let deadline = tokio::time::Instant::now() + VERSION_WAIT;
    loop {
        let Some(error) = list::not_reached(&cluster.lock(), version) else {
            return Ok(());
        };
        if tokio::time::Instant::now() >= deadline {
            return Err(error);
        }
        tokio::time::sleep(VERSION_CHECK).await;
    }
}

async fn get(cluster: &Shared, incoming: &Incoming, call: &Call, wanted: Wanted) -> Result<Reply> {
    let version = incoming.query.get("resourceVersion").unwrap_or("");
    if !version.is_empty() && version.parse::<u64>().is_err() {
        return Err(ApiError::plain(format!(
            "strconv.ParseUint: parsing {version:?}: invalid syntax"
        )));
    }
    reached(cluster, version).await?;
    let stored = {
        let state = cluster.lock();
        state.store.get(&call.place(), &call.namespace, &call.name).cloned()
    };
    let stored = stored.ok_or_else(|| call.not_found())?;
    let object = shown(call, &stored, wanted)?;
    Ok(Reply::Object(Answer::new(200, object), wanted))
}

async fn list_objects(
    cluster: &Shared,
    incoming: &Incoming,
    call: &Call,
    wanted: Wanted,
) -> Result<Reply> {
    let options = ListOptions::parse(&incoming.query, call, false)?;
    reached(cluster, &options.version).await?;
    let page = list::list(&cluster.lock(), call, &options)?;
    let body = match wanted.transform {
        Transform::None => page.to_list(call),
        Transform::Table(include) => {
            let objects: Vec<Value> =
                page.items.iter().map(|item| call.resource.present(item)).collect();
            let mut table = table::table_of(&call.resource, &objects, include, call.now);
            set(&mut table, "metadata", page.metadata(false));
            table
        }
        Transform::Metadata { list: true } => {
            let items: Vec<Value> =
                page.items.iter().map(|item| table::partial_metadata(item)).collect();
            serde_json::json!({
                "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                "metadata": page.metadata(false), "items": items,
            })
        }
        Transform::Metadata { list: false } => {
            return Err(ApiError::not_acceptable(
                "you may not request PartialObjectMetadata when requesting a list of objects",
            ));
        }
    };
    Ok(Reply::Object(Answer::new(200, body), wanted))
}

fn set(object: &mut Value, field: &str, value: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert(field.to_owned(), value);
    }
}

/// An object in the requested form.
fn shown(call: &Call, stored: &Value, wanted: Wanted) -> Result<Value> {
    let object = call.resource.present(stored);
    match wanted.transform {
        Transform::None => Ok(object),
        Transform::Metadata { list: false } => Ok(table::partial_metadata(&object)),
        Transform::Metadata { list: true } => Err(ApiError::not_acceptable(
            "you requested PartialObjectMetadataList, but the requested object is not a list",
        )),
        Transform::Table(include) => {
            let mut table = table::table_of(&call.resource, &[object], include, call.now);
            let version = meta::text(stored, "resourceVersion");
            set(&mut table, "metadata", serde_json::json!({"resourceVersion": version}));
            Ok(table)
        }
    }
}

fn watch(cluster: &Arc<Shared>, incoming: &Incoming, call: Call, wanted: Wanted) -> Result<Reply> {
    let options = ListOptions::parse(&incoming.query, &call, true)?;
    let watch = Watch::begin(cluster, call, options, wanted)?;
    Ok(Reply::Watch(Box::new(watch), wanted))
}

fn write_objects(
    cluster: &Shared,
    incoming: &Incoming,
    mut call: Call,
    verb: &str,
    wanted: Wanted,
) -> Result<Answer> {
    let agent = incoming.header(header::USER_AGENT);
    let parse = |kind: &str, apply: bool| WriteOptions::parse(&incoming.query, kind, agent, apply);
    match verb {
        "create" => {
            let form = form(incoming, call.resource.custom.is_some())?;
            call.options = parse("CreateOptions", false)?;
            create(cluster, incoming, &call, form, wanted)
        }
        "update" => {
            let form = form(incoming, call.resource.custom.is_some())?;
            call.options = parse("UpdateOptions", false)?;
            update(cluster, incoming, &call, form, wanted)
        }
        "patch" => {
            let kind = patch_kind(&call.resource, incoming.media_type())?;
            call.options = parse("PatchOptions", kind == PatchKind::Apply)?;
            patch(cluster, incoming, &call, kind, wanted)
        }
        _ => delete(cluster, incoming, &call, wanted),
    }
}

fn form(incoming: &Incoming, is_custom: bool) -> Result<Form> {
    let has_protobuf = protobuf::IS_OFFERED && !is_custom;
    match incoming.media_type() {
        "" | "application/json" => Ok(Form::Json),
        "application/yaml" => Ok(Form::Yaml),
        protobuf::MEDIA_TYPE if has_protobuf => Ok(Form::Protobuf),
        _ => {
            let protobuf = if has_protobuf { ", application/vnd.kubernetes.protobuf" } else { "" };
            Err(ApiError::unsupported_media_type(format!(
                "the body of the request was in an unknown format - accepted media types include: \
                 application/json, application/yaml{protobuf}"
            )))
        }
    }
}

fn patch_kind(resource: &Resource, media_type: &str) -> Result<PatchKind> {
    let kind = PatchKind::from_media_type(media_type);
    let is_custom = resource.custom.is_some();
    match kind {
        Some(PatchKind::Strategic) | None if is_custom => Err(ApiError::unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: \
             application/json-patch+json, application/merge-patch+json, \
             application/apply-patch+yaml",
        )),
        Some(kind) => Ok(kind),
        None => Err(ApiError::unsupported_media_type("415: Unsupported Media Type")
            .with_details(serde_json::json!({}))),
    }
}

/// Takes the lock for a write, and drops the warnings of an earlier failed write.
fn begin(cluster: &Shared) -> MutexGuard<'_, State> {
    let mut state = cluster.lock();
    state.warnings.clear();
    state
}

fn create(
    cluster: &Shared,
    incoming: &Incoming,
    call: &Call,
    form: Form,
    wanted: Wanted,
) -> Result<Answer> {
    let body = Body::parse(form, &incoming.body, &call.resource.kind)?;
    let mut state = begin(cluster);
    let (object, warnings) = body.decode(call, &state.registry)?;
    if !call.subresource.is_empty() || call.resource.rules.virtual_only {
        let answer = Answer::new(
            201,
            virtual_resources::post(&mut state, cluster.pki.tokens(), call, object)?,
        );
        let more = cluster.react(&mut state);
        return Ok(answer.with_warnings(warnings).with_warnings(more));
    }
    let object = call.resource.to_storage(object);
    let stored = match write::create(&mut state, call, object, Source::Put) {
        Ok(stored) => stored,
        Err(error) => return Err(ApiError { warnings, ..error }),
    };
    let more = cluster.react(&mut state);
    let answer = Answer::new(201, shown(call, &stored, wanted)?).with_warnings(warnings);
    Ok(answer.with_warnings(more))
}

fn update(
    cluster: &Shared,
    incoming: &Incoming,
    call: &Call,
    form: Form,
    wanted: Wanted,
) -> Result<Answer> {
    let body = Body::parse(form, &incoming.body, &call.resource.kind)?;
    let mut state = begin(cluster);
    let (object, warnings) = body.decode(call, &state.registry)?;
    let object = call.resource.to_storage(object);
    let (stored, created) = match write::update(&mut state, call, object) {
        Ok(done) => done,
        Err(error) => return Err(ApiError { warnings, ..error }),
    };
    let admission = cluster.react(&mut state);
    let code = if created { 201 } else { 200 };
    let answer = Answer::new(code, shown(call, &stored, wanted)?).with_warnings(warnings);
    Ok(answer.with_warnings(admission))
}

fn patch(
    cluster: &Shared,
    incoming: &Incoming,
    call: &Call,
    kind: PatchKind,
    wanted: Wanted,
) -> Result<Answer> {
    let mut state = begin(cluster);
    let patched = write::patch(&mut state, call, kind, &incoming.body)?;
    let admission = cluster.react(&mut state);
    let code = if patched.created { 201 } else { 200 };
    let answer = Answer::new(code, shown(call, &patched.object, wanted)?);
    Ok(answer.with_warnings(patched.warnings).with_warnings(admission))
}

fn delete(cluster: &Shared, incoming: &Incoming, call: &Call, wanted: Wanted) -> Result<Answer> {
    let body = if incoming.body.is_empty() {
        None
    } else {
        Some(Body::parse(form(incoming, false)?, &incoming.body, "DeleteOptions")?.value)
    };
    let options = DeleteOptions::parse(&incoming.query, body.as_ref())?;
    let mut state = begin(cluster);
    if call.name.is_empty() {
        let listing = ListOptions::parse(&incoming.query, call, false)?;
        let mut page = list::list(&state, call, &listing)?;
        let names: Vec<(String, String)> = page
            .items
            .iter()
            .map(|item| (meta::namespace(item).to_owned(), meta::name(item).to_owned()))
            .collect();
        page.items = write::delete_collection(&mut state, call, &options, &names)?;
        let admission = cluster.react(&mut state);
        return Ok(Answer::new(200, page.to_list(call)).with_warnings(admission));
    }
    let left = write::delete(&mut state, call, &options)?;
    let admission = cluster.react(&mut state);
    let is_status = left.get("kind").and_then(Value::as_str) == Some("Status");
    let answer = if is_status {
        Answer::new(200, left)
    } else {
        Answer::new(200, shown(call, &left, wanted)?)
    };
    Ok(answer.with_warnings(admission))
}
