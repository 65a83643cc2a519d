//! Requests outside of objects: health, version, discovery, OpenAPI.

use axum::http::{Method, StatusCode};

use super::discovery;
use super::error::{ApiError, Result};
use super::incoming::Incoming;
use super::negotiate::preferred;
use super::registry::{Known, Registry};
use super::respond::Reply;
use super::shared::Shared;

/// The checks of `/livez`, `/readyz` and `/healthz`.
const CHECKS: &[&str] = &["ping", "log", "etcd"];

pub(super) fn answer(cluster: &Shared, incoming: &Incoming) -> Result<Reply> {
    if !matches!(incoming.method, Method::GET | Method::HEAD) {
        return Err(ApiError::method_not_allowed());
    }
    let parts: Vec<&str> = incoming.path.trim_matches('/').split('/').collect();
    let state = cluster.lock();
    let registry = &state.registry;
    match parts.as_slice() {
        [""] => Ok(Reply::json(discovery::root(registry))),
        ["version"] => Ok(Reply::json(discovery::version())),
        [check @ ("healthz" | "livez" | "readyz"), inner @ ..] => {
            Ok(health(check, inner, incoming.query.get("verbose").is_some()))
        }
        ["api" | "apis"] if wants_aggregated(&incoming.accept) => {
            let document = discovery::aggregated(registry, parts == ["api"]);
            Ok(Reply::Document(document, discovery::AGGREGATED))
        }
        ["api"] => Ok(Reply::json(discovery::core_versions(&cluster.address()))),
        ["apis"] => Ok(Reply::json(discovery::group_list(registry))),
        ["api", version] => document(discovery::resource_list(registry, "", version)),
        ["apis", group] => {
            Ok(discovery::group(registry, group).map_or_else(Reply::no_such_page, Reply::json))
        }
        ["apis", group, version] => match registry.knows(group, version) {
            Known::Nothing => Ok(Reply::no_such_page()),
            Known::Group if registry.is_custom(group) => Ok(Reply::no_such_page()),
            Known::Group | Known::Version => {
                document(discovery::resource_list(registry, group, version))
            }
        },
        ["openapi", "v2"] => openapi_v2(&incoming.accept),
        ["openapi", "v3"] => {
            Ok(Reply::Document(discovery::openapi_v3_root(registry), "text/plain; charset=utf-8"))
        }
        ["openapi", "v3", "api", version] => Ok(openapi(registry, "", version)),
        ["openapi", "v3", "apis", group, version] => Ok(openapi(registry, group, version)),
        ["metrics"] => Err(ApiError::not_implemented("/metrics")),
        _ => Ok(Reply::no_such_page()),
    }
}

fn document(found: Option<serde_json::Value>) -> Result<Reply> {
    found.map(Reply::json).ok_or_else(ApiError::no_such_resource)
}

fn openapi(registry: &Registry, group: &str, version: &str) -> Reply {
    let found = discovery::openapi_v3(registry, group, version);
    found.map_or_else(Reply::no_such_page, Reply::json)
}

/// The document in the form that the client prefers of those that there are.
fn openapi_v2(accept: &str) -> Result<Reply> {
    const JSON: &str = "application/json";
    match preferred(accept, &[JSON, discovery::OPENAPI_V2_PROTOBUF_ASKED]) {
        Some(JSON) => Ok(Reply::json(discovery::openapi_v2())),
        Some(_) => {
            let bytes = discovery::openapi_v2_protobuf();
            Ok(Reply::Bytes(bytes, discovery::OPENAPI_V2_PROTOBUF))
        }
        None => Err(ApiError::not_acceptable(format!(
            "only the following media types are accepted: {JSON}, {}",
            discovery::OPENAPI_V2_PROTOBUF_ASKED
        ))),
    }
}

fn health(check: &str, inner: &[&str], verbose: bool) -> Reply {
    match inner {
        [] if verbose => {
            let lines: Vec<String> = CHECKS.iter().map(|name| format!("[+]{name} ok")).collect();
            Reply::Text(StatusCode::OK, format!("{}\n{check} check passed\n", lines.join("\n")))
        }
        [] => Reply::Text(StatusCode::OK, "ok".to_owned()),
        [name] if CHECKS.contains(name) => Reply::Text(StatusCode::OK, "ok".to_owned()),
        _ => Reply::no_such_page(),
    }
}

/// Whether the client requests the aggregated discovery document.
fn wants_aggregated(accept: &str) -> bool {
    accept.split(',').any(|clause| {
        let has = |wanted: &str| clause.split(';').any(|param| param.trim() == wanted);
        has("as=APIGroupDiscoveryList") && has("v=v2")
    })
}
