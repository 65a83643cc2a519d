//! Handles HTTP requests.

use std::sync::Arc;

use axum::body::{Bytes, to_bytes};
use axum::extract::{ConnectInfo, State as Shares};
use axum::http::header;
use axum::response::Response;
use jiff::Timestamp;

use super::audit::{Fault, Request as Logged};
use super::auth::{self, Attributes, Credentials};
use super::error::{ApiError, Result};
use super::identity::User;
use super::incoming::{self, Incoming};
use super::listen::Peer;
use super::objects::objects;
use super::paths;
use super::respond::{Reply, respond};
use super::route::{self, Target};
use super::selectors;
use super::shared::Shared;

/// The largest body, as on a real server.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// Answers one request.
pub(super) async fn handle(
    Shares(cluster): Shares<Arc<Shared>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: axum::extract::Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let accept = incoming::accept(&parts.headers);
    let uri = parts.uri.to_string();
    let Ok(body) = to_bytes(body, BODY_LIMIT).await else {
        let error = ApiError::too_large(&format!("limit is {BODY_LIMIT}"));
        return respond(Err(error), &accept);
    };
    let incoming = match Incoming::new(parts, accept.clone(), body) {
        Ok(incoming) => incoming,
        Err(error) => return respond(Err(error), &accept),
    };
    let target = route::target(&incoming.path);
    let mut log = logged(&incoming, &target, uri);
    let method = incoming.method.as_str().to_lowercase();
    let fields = selectors::equality_terms(incoming.query.get("fieldSelector").unwrap_or(""));
    let of = attributes(&incoming, &target, &method, &fields);
    let user = authenticate(&cluster, &peer, &incoming, &of);
    if let Ok(user) = &user {
        log.user.clone_from(&user.name);
    }
    let fault = cluster.audit.fault(&log);
    let number = cluster.audit.arrived(log);
    let user = match fault {
        None => user,
        Some(Fault::Answer(error)) => Err(error),
        Some(Fault::Hangup) => return hangup(),
        Some(Fault::Delay(time)) => {
            tokio::time::sleep(time).await;
            user
        }
    };
    let reply = match user {
        Ok(user) => answer(&cluster, &incoming, &target, user, &of).await,
        Err(error) => Err(error),
    };
    let response = respond(reply, &accept);
    cluster.audit.answered(number, response.status().as_u16());
    response
}

/// A failing body, which closes the connection.
fn hangup() -> Response {
    let broken = futures::stream::once(async {
        Err::<Bytes, _>(std::io::Error::other("connection closed on purpose"))
    });
    Response::new(axum::body::Body::from_stream(broken))
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
        incoming.verb(path).clone_into(&mut log.verb);
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

/// The attributes of a request for the authorizers; `method` is in lower case.
fn attributes<'a>(
    incoming: &'a Incoming,
    target: &'a Target,
    method: &'a str,
    fields: &'a [(String, String)],
) -> Attributes<'a> {
    let path = match target {
        Target::Resource(path) => path,
        Target::Other => {
            return Attributes { verb: method, path: &incoming.path, ..Attributes::default() };
        }
    };
    let verb = incoming.verb(path);
    Attributes {
        verb: if verb.is_empty() { method } else { verb },
        group: &path.group,
        resource: &path.plural,
        subresource: &path.subresource,
        // For the authorizer, a Namespace is in itself.
        namespace: if path.plural == "namespaces" { &path.name } else { &path.namespace },
        name: if path.name.is_empty() { selected_name(fields) } else { &path.name },
        path: &incoming.path,
        fields,
    }
}

fn authenticate(
    cluster: &Shared,
    peer: &Peer,
    incoming: &Incoming,
    of: &Attributes<'_>,
) -> Result<User> {
    let now = Timestamp::now();
    let authorization = incoming.headers.get(header::AUTHORIZATION);
    let credentials = Credentials {
        certificate: peer.certificate.as_deref(),
        certificate_time: cluster.pki.certificate_time(now),
        authorization: authorization.and_then(|value| value.to_str().ok()),
        headers: &incoming.headers,
    };
    let state = cluster.lock();
    auth::authenticate(&state.store, cluster.pki.tokens(), credentials, of, now)
}

async fn answer(
    cluster: &Arc<Shared>,
    incoming: &Incoming,
    target: &Target,
    user: User,
    of: &Attributes<'_>,
) -> Result<Reply> {
    auth::require(&cluster.lock().store, &user, of)?;
    match target {
        Target::Resource(path) => objects(cluster, incoming, path, user).await,
        Target::Other => paths::answer(cluster, incoming),
    }
}

/// A list selected by one name is authorized like a request for that object.
fn selected_name(fields: &[(String, String)]) -> &str {
    let name = fields.iter().find(|(field, _)| field == "metadata.name");
    name.map_or("", |(_, name)| name)
}
