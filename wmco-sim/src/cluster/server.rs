//! From HTTP requests to the pipeline.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::{Bytes, to_bytes};
use axum::extract::{ConnectInfo, Query as QueryString, State as Shares};
use axum::http::{HeaderMap, Method, header, request::Parts};
use axum::response::Response;
use percent_encoding::percent_decode_str;
use tokio::sync::watch::Receiver;

use super::audit::{Fault, Request as Logged};
use super::call::Query;
use super::error::{ApiError, Result};
use super::hooks::{self, Attributes, Credentials};
use super::objects::objects;
use super::paths;
use super::respond::{Reply, respond};
use super::route::{self, ResourcePath, Target};
use super::state::Shared;
use super::tls::Peer;

/// The largest body, as of a real server.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

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
    pub(super) body: Bytes,
}

impl Incoming {
    pub(super) fn header(&self, name: header::HeaderName) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
    }

    /// The Content-Type without parameters.
    pub(super) fn media_type(&self) -> &str {
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
    let Ok(body) = to_bytes(body, BODY_LIMIT).await else {
        let error = ApiError::too_large(&format!("limit is {BODY_LIMIT}"));
        return respond(Err(error), &accept);
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

pub(super) fn is_watch(incoming: &Incoming, path: &ResourcePath) -> bool {
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
            resource: &path.plural,
            subresource: &path.subresource,
            // A Namespace is in itself, for the authorizer.
            namespace: if path.plural == "namespaces" { &path.name } else { &path.namespace },
            name: if path.name.is_empty() { selected_name(&fields) } else { &path.name },
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

/// A list of one name is authorized like a request for that object.
fn selected_name(fields: &[(String, String)]) -> &str {
    let name = fields.iter().find(|(field, _)| field == "metadata.name");
    name.map_or("", |(_, name)| name)
}

/// The terms of a field selector that ask for equality, as an authorizer may rely on them.
fn field_terms(selector: &str) -> Vec<(String, String)> {
    let terms = selector.split(',').filter(|term| !term.contains("!="));
    let terms = terms.filter_map(|term| term.split_once('='));
    terms
        .map(|(field, value)| (field.to_owned(), value.trim_start_matches('=').to_owned()))
        .collect()
}
