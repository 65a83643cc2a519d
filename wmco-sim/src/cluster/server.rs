//! From HTTP requests to the pipeline.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::{Bytes, to_bytes};
use axum::extract::{ConnectInfo, Query as QueryString, State as Shares};
use axum::http::{HeaderMap, Method, header, request::Parts};
use axum::response::Response;
use jiff::Timestamp;
use percent_encoding::percent_decode_str;
use serde_json::Value;
use tokio::sync::watch::Receiver;

use super::audit::{Fault, Request as Logged};
use super::call::{Call, Query, WriteOptions};
use super::error::{ApiError, Result};
use super::hooks::{self, Attributes, Credentials};
use super::identity::User;
use super::list::{self, ListOptions};
use super::negotiate::{Transform, Wanted, negotiate};
use super::registry::Known;
use super::resources::Resource;
use super::respond::{Reply, respond};
use super::route::{self, ResourcePath, Target};
use super::state::{Answer, Shared};
use super::tls::Peer;
use super::watch::Watch;
use super::write::{self, Body, DeleteOptions, Form, PatchKind, Source};
use super::{meta, paths, table};

/// The largest body, as of a real server.
const BODY_LIMIT: usize = 3 * 1024 * 1024;
/// How long a read waits for a version that is not reached yet, and how often it looks.
const VERSION_WAIT: Duration = Duration::from_secs(3);
const VERSION_CHECK: Duration = Duration::from_millis(20);

/// What every request gets.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) cluster: Arc<Shared>,
    /// Turns true when the server stops.
    pub(super) stop: Receiver<bool>,
}

/// A request in parts.
pub(super) struct Incoming {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: Query,
    pub(super) accept: String,
    headers: HeaderMap,
    body: Bytes,
}

impl Incoming {
    fn header(&self, name: header::HeaderName) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
    }

    /// The Content-Type without parameters.
    fn media_type(&self) -> &str {
        self.header(header::CONTENT_TYPE).split(';').next().unwrap_or("").trim()
    }
}

/// Answers one request.
pub(super) async fn handle(
    Shares(server): Shares<Server>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: axum::extract::Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let accept = joined(&parts.headers, &header::ACCEPT);
    let uri = parts.uri.to_string();
    let body = match to_bytes(body, BODY_LIMIT).await {
        Ok(body) => body,
        Err(error) => {
            let error = ApiError::too_large(&error.to_string());
            return respond(Err(error), &accept);
        }
    };
    let incoming = match incoming(parts, accept.clone(), body) {
        Ok(incoming) => incoming,
        Err(error) => return respond(Err(error), &accept),
    };
    let target = route::target(&incoming.path);
    let mut log = logged(&incoming, &target, uri);
    match server.cluster.audit.fault(&log) {
        None => {}
        Some(Fault::Delay(time)) => tokio::time::sleep(time).await,
        Some(Fault::Answer(error)) => {
            log.code = error.code;
            server.cluster.audit.record(log);
            return respond(Err(error), &accept);
        }
        Some(Fault::Hangup) => {
            server.cluster.audit.record(log);
            return hangup();
        }
    }
    let reply = answer(&server, &peer, &incoming, &target, &mut log).await;
    let response = respond(reply, &accept);
    log.code = response.status().as_u16();
    server.cluster.audit.record(log);
    server.cluster.requests.fetch_add(1, Ordering::Relaxed);
    response
}

/// A body that fails ends the connection.
fn hangup() -> Response {
    let broken = futures::stream::once(async {
        Err::<Bytes, _>(std::io::Error::other("connection closed on purpose"))
    });
    Response::new(axum::body::Body::from_stream(broken))
}

fn joined(headers: &HeaderMap, name: &header::HeaderName) -> String {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.collect::<Vec<_>>().join(",")
}

fn incoming(parts: Parts, accept: String, body: Bytes) -> Result<Incoming> {
    let query = QueryString::<Vec<(String, String)>>::try_from_uri(&parts.uri)
        .map_err(|error| ApiError::bad_request(error.to_string()))?;
    let path = percent_decode_str(parts.uri.path()).decode_utf8_lossy().into_owned();
    Ok(Incoming {
        method: parts.method,
        path,
        query: Query(query.0),
        accept,
        headers: parts.headers,
        body,
    })
}

fn is_watch(incoming: &Incoming, path: &ResourcePath) -> bool {
    path.is_watch || incoming.query.flag("watch")
}

fn verb_of(incoming: &Incoming, path: &ResourcePath) -> &'static str {
    let watch = is_watch(incoming, path);
    route::verb(&incoming.method, !path.name.is_empty(), watch).unwrap_or("")
}

fn logged(incoming: &Incoming, target: &Target, uri: String) -> Logged {
    let mut log = Logged {
        user: String::new(),
        verb: incoming.method.as_str().to_lowercase(),
        group: String::new(),
        resource: String::new(),
        namespace: String::new(),
        name: String::new(),
        uri,
        code: 0,
    };
    if let Target::Resource(path) = target {
        verb_of(incoming, path).clone_into(&mut log.verb);
        log.group.clone_from(&path.group);
        log.resource.clone_from(&path.plural);
        if !path.subresource.is_empty() {
            log.resource = format!("{}/{}", path.plural, path.subresource);
        }
        log.namespace.clone_from(&path.namespace);
        log.name.clone_from(&path.name);
    }
    log
}

async fn answer(
    server: &Server,
    peer: &Peer,
    incoming: &Incoming,
    target: &Target,
    log: &mut Logged,
) -> Result<Reply> {
    let method = incoming.method.as_str().to_lowercase();
    let mut of = Attributes {
        verb: &method,
        group: "",
        version: "",
        resource: "",
        subresource: "",
        namespace: "",
        name: "",
        path: &incoming.path,
        fields: &[],
    };
    let fields = field_terms(incoming.query.get("fieldSelector").unwrap_or(""));
    if let Target::Resource(path) = target {
        let verb = verb_of(incoming, path);
        of = Attributes {
            verb: if verb.is_empty() { &method } else { verb },
            group: &path.group,
            version: &path.version,
            resource: &path.plural,
            subresource: &path.subresource,
            // A Namespace is in itself, for the authorizer.
            namespace: if path.plural == "namespaces" { &path.name } else { &path.namespace },
            // Who lists or watches a single name asks for just that one.
            name: match fields.iter().find(|(field, _)| field == "metadata.name") {
                Some((_, name)) if matches!(verb, "list" | "watch" | "deletecollection") => name,
                _ => &path.name,
            },
            path: &incoming.path,
            fields: &fields,
        };
    }
    let authorization = incoming.headers.get(header::AUTHORIZATION);
    let credentials = Credentials {
        certificate: peer.certificate.as_deref(),
        authorization: authorization.and_then(|value| value.to_str().ok()),
        headers: &incoming.headers,
    };
    let user = hooks::authenticate(&server.cluster, credentials, &of)?;
    log.user.clone_from(&user.name);
    hooks::authorize(&server.cluster.lock(), &user, &of)?;
    match target {
        Target::Resource(path) => objects(server, incoming, path, user).await,
        Target::Other => paths::answer(&server.cluster, incoming),
    }
}

/// The terms of a field selector that ask for equality, as an authorizer may rely on them.
fn field_terms(selector: &str) -> Vec<(String, String)> {
    let terms = selector.split(',').filter(|term| !term.contains("!="));
    let terms = terms.filter_map(|term| term.split_once('='));
    terms
        .map(|(field, value)| (field.to_owned(), value.trim_start_matches('=').to_owned()))
        .collect()
}

/// Requests about objects.
async fn objects(
    server: &Server,
    incoming: &Incoming,
    path: &ResourcePath,
    user: User,
) -> Result<Reply> {
    let found = {
        let state = server.cluster.lock();
        let known = state.registry.knows(&path.group, &path.version);
        let is_custom = state
            .registry
            .all()
            .filter(|resource| resource.group == path.group)
            .all(|resource| resource.custom.is_some());
        match state.registry.find(&path.group, &path.version, &path.plural) {
            Some(resource) => Arc::clone(resource),
            None if known == Known::Nothing || is_custom => return Ok(Reply::no_such_page()),
            None => return Err(ApiError::no_such_resource()),
        }
    };
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
    let wanted = negotiate(&incoming.accept, call.resource.custom.is_some())?;
    match verb {
        "get" => get(server, incoming, &call, wanted).await,
        "list" => list_objects(server, incoming, &call, wanted).await,
        "watch" => watch(server, incoming, call, wanted),
        _ => {
            let written = write_objects(server, incoming, call, verb, wanted);
            written.map(|answer| Reply::Object(answer, wanted))
        }
    }
}

/// Sub-resources that a real server has and this one does not.
const LEFT_OUT: &[&str] =
    &["attach", "binding", "ephemeralcontainers", "exec", "log", "portforward", "proxy", "resize"];

/// The verb, `None` when the resource does not have it.
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
    if incoming.method == Method::HEAD {
        return Ok(None);
    }
    let watch = is_watch(incoming, path);
    let Some(verb) = route::verb(&incoming.method, !is_collection, watch) else { return Ok(None) };
    if !path.subresource.is_empty() {
        let core = resource.group.is_empty();
        if core && LEFT_OUT.contains(&path.subresource.as_str()) {
            let what = format!("{}/{}", path.plural, path.subresource);
            return Err(ApiError::not_implemented(&what));
        }
        let sub = resource.subresource(&path.subresource).filter(|_| !path.too_long);
        let sub = sub.ok_or_else(ApiError::no_such_resource)?;
        if sub.name == "scale" {
            return Err(ApiError::not_implemented(&format!("{}/scale", path.plural)));
        }
        return Ok(sub.verbs.contains(&verb).then_some(verb));
    }
    let over_all = resource.namespaced && path.namespace.is_empty();
    if over_all && !matches!(verb, "list" | "watch") {
        return Ok(None);
    }
    let on_collection = matches!(verb, "list" | "watch" | "create" | "deletecollection");
    Ok((resource.verbs.contains(&verb) && on_collection == is_collection).then_some(verb))
}

fn method_not_allowed(resource: &Resource, incoming: &Incoming) -> ApiError {
    if resource.custom.is_none() {
        return ApiError::method_not_allowed();
    }
    let verb = incoming.method.as_str().to_lowercase();
    ApiError::verb_not_supported(&verb, &resource.group, &resource.plural)
}

/// Waits until the version that a read asks for is reached.
async fn reached(server: &Server, version: &str) -> Result<()> {
    let deadline = tokio::time::Instant::now() + VERSION_WAIT;
    loop {
        let Some(error) = list::not_reached(&server.cluster.lock(), version) else {
            return Ok(());
        };
        if tokio::time::Instant::now() >= deadline {
            return Err(error);
        }
        tokio::time::sleep(VERSION_CHECK).await;
    }
}

async fn get(server: &Server, incoming: &Incoming, call: &Call, wanted: Wanted) -> Result<Reply> {
    let version = incoming.query.get("resourceVersion").unwrap_or("");
    if !version.is_empty() && version.parse::<u64>().is_err() {
        return Err(ApiError::plain(format!(
            "strconv.ParseUint: parsing {version:?}: invalid syntax"
        )));
    }
    reached(server, version).await?;
    let stored = {
        let state = server.cluster.lock();
        state.store.get(&call.place(), &call.namespace, &call.name).cloned()
    };
    let stored = stored.ok_or_else(|| call.not_found())?;
    let object = shown(call, &stored, wanted)?;
    Ok(Reply::Object(Answer::new(200, object), wanted))
}

async fn list_objects(
    server: &Server,
    incoming: &Incoming,
    call: &Call,
    wanted: Wanted,
) -> Result<Reply> {
    let options = ListOptions::parse(&incoming.query, call, false)?;
    reached(server, &options.version).await?;
    let page = list::list(&server.cluster.lock(), call, &options)?;
    let body = match wanted.transform {
        Transform::None => page.to_list(call),
        Transform::Table => {
            let objects: Vec<Value> =
                page.items.iter().map(|item| call.resource.present(item)).collect();
            let mut table = table::table_of(&call.resource, &objects, call.now);
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

/// One object in the form that was asked for.
fn shown(call: &Call, stored: &Value, wanted: Wanted) -> Result<Value> {
    let object = call.resource.present(stored);
    match wanted.transform {
        Transform::None => Ok(object),
        Transform::Metadata { list: false } => Ok(table::partial_metadata(&object)),
        Transform::Metadata { list: true } => Err(ApiError::not_acceptable(
            "you requested PartialObjectMetadataList, but the requested object is not a list",
        )),
        Transform::Table => {
            let mut table = table::table_of(&call.resource, &[object], call.now);
            let version = meta::text(stored, "resourceVersion");
            set(&mut table, "metadata", serde_json::json!({"resourceVersion": version}));
            Ok(table)
        }
    }
}

fn watch(server: &Server, incoming: &Incoming, call: Call, wanted: Wanted) -> Result<Reply> {
    let options = ListOptions::parse(&incoming.query, &call, true)?;
    let stop = server.stop.clone();
    let watch = Watch::begin(&server.cluster, call, options, wanted, stop)?;
    Ok(Reply::Watch(Box::new(watch), wanted))
}

fn write_objects(
    server: &Server,
    incoming: &Incoming,
    mut call: Call,
    verb: &str,
    wanted: Wanted,
) -> Result<Answer> {
    let agent = incoming.header(header::USER_AGENT);
    let parse = |kind: &str, apply: bool| WriteOptions::parse(&incoming.query, kind, agent, apply);
    match verb {
        "create" => {
            let form = form(incoming)?;
            call.options = parse("CreateOptions", false)?;
            create(server, incoming, &call, form, wanted)
        }
        "update" => {
            let form = form(incoming)?;
            call.options = parse("UpdateOptions", false)?;
            update(server, incoming, &call, form, wanted)
        }
        "patch" => {
            let kind = patch_kind(&call.resource, incoming.media_type())?;
            call.options = parse("PatchOptions", kind == PatchKind::Apply)?;
            patch(server, incoming, &call, kind, wanted)
        }
        _ => delete(server, incoming, &call, wanted),
    }
}

fn form(incoming: &Incoming) -> Result<Form> {
    match incoming.media_type() {
        "" | "application/json" => Ok(Form::Json),
        "application/yaml" => Ok(Form::Yaml),
        "application/vnd.kubernetes.protobuf" => Ok(Form::Protobuf),
        _ => Err(ApiError::unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: \
             application/json, application/yaml, application/vnd.kubernetes.protobuf",
        )),
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

fn create(
    server: &Server,
    incoming: &Incoming,
    call: &Call,
    form: Form,
    wanted: Wanted,
) -> Result<Answer> {
    let body = Body::parse(form, &incoming.body, &call.resource.kind)?;
    let mut state = server.cluster.lock();
    let (object, warnings) = body.decode(call, &state.registry)?;
    if !call.subresource.is_empty() || call.resource.rules.virtual_only {
        let answer = hooks::post(&server.cluster, &mut state, call, object)?;
        hooks::react(&server.cluster, &mut state);
        return Ok(answer.with_warnings(warnings));
    }
    let object = call.resource.to_storage(object);
    let stored = write::create(&mut state, call, object, Source::Put)?;
    hooks::react(&server.cluster, &mut state);
    Ok(Answer::new(201, shown(call, &stored, wanted)?).with_warnings(warnings))
}

fn update(
    server: &Server,
    incoming: &Incoming,
    call: &Call,
    form: Form,
    wanted: Wanted,
) -> Result<Answer> {
    let body = Body::parse(form, &incoming.body, &call.resource.kind)?;
    let mut state = server.cluster.lock();
    let (object, warnings) = body.decode(call, &state.registry)?;
    let object = call.resource.to_storage(object);
    let (stored, created) = write::update(&mut state, call, object)?;
    hooks::react(&server.cluster, &mut state);
    let code = if created { 201 } else { 200 };
    Ok(Answer::new(code, shown(call, &stored, wanted)?).with_warnings(warnings))
}

fn patch(
    server: &Server,
    incoming: &Incoming,
    call: &Call,
    kind: PatchKind,
    wanted: Wanted,
) -> Result<Answer> {
    let mut state = server.cluster.lock();
    let patched = write::patch(&mut state, call, kind, &incoming.body)?;
    hooks::react(&server.cluster, &mut state);
    let code = if patched.created { 201 } else { 200 };
    Ok(Answer::new(code, shown(call, &patched.object, wanted)?).with_warnings(patched.warnings))
}

fn delete(server: &Server, incoming: &Incoming, call: &Call, wanted: Wanted) -> Result<Answer> {
    let body = if incoming.body.is_empty() {
        None
    } else {
        Some(Body::parse(form(incoming)?, &incoming.body, "DeleteOptions")?.value)
    };
    let options = DeleteOptions::parse(&incoming.query, body.as_ref())?;
    let mut state = server.cluster.lock();
    if call.name.is_empty() {
        let listing = ListOptions::parse(&incoming.query, call, false)?;
        let mut page = list::list(&state, call, &listing)?;
        let names: Vec<(String, String)> = page
            .items
            .iter()
            .map(|item| (meta::namespace(item).to_owned(), meta::name(item).to_owned()))
            .collect();
        page.items = write::delete_collection(&mut state, call, &options, &names)?;
        hooks::react(&server.cluster, &mut state);
        return Ok(Answer::new(200, page.to_list(call)));
    }
    let left = write::delete(&mut state, call, &options)?;
    hooks::react(&server.cluster, &mut state);
    let is_status = left.get("kind").and_then(Value::as_str) == Some("Status");
    if is_status {
        return Ok(Answer::new(200, left));
    }
    Ok(Answer::new(200, shown(call, &left, wanted)?))
}
