//! Initial objects of a new cluster, and writes without HTTP.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::call::{Call, WriteOptions};
use super::error::{ApiError, Result};
use super::identity::{MASTERS, User};
use super::resources::split_api_version;
use super::shared::Shared;
use super::write::{self, Body, Source};
use super::{auth, meta};

/// The namespaces of a new cluster.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Creates the initial objects of a new cluster.
pub(super) fn preload(cluster: &Shared) {
    for name in NAMESPACES {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        log(put(cluster, &namespace));
    }
    for (_, object) in auth::defaults::objects() {
        log(put(cluster, &object));
    }
    cluster.lock().store.start_history();
}

fn log(done: Result<Arc<Value>>) {
    if let Err(error) = done {
        tracing::error!(%error, "fill the API server");
    }
}

/// Creates or replaces an object with administrator rights.
pub(super) fn put(cluster: &Shared, object: &Value) -> Result<Arc<Value>> {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or("");
    let (group, version) = split_api_version(text("apiVersion"));
    let mut state = cluster.lock();
    let resource = state.registry.find_kind(group, version, text("kind")).cloned();
    let resource = resource.ok_or_else(|| {
        ApiError::bad_request(format!("no kind {:?} in {:?}", text("kind"), text("apiVersion")))
    })?;
    let namespace = meta::namespace(object);
    let namespace = if namespace.is_empty() && resource.namespaced { "default" } else { namespace };
    let call = Call {
        user: User::authenticated("system:admin", &[MASTERS.to_owned()]),
        resource,
        subresource: String::new(),
        namespace: namespace.to_owned(),
        name: meta::name(object).to_owned(),
        options: WriteOptions {
            manager: "simulated-cluster".to_owned(),
            ..WriteOptions::default()
        },
        now: Timestamp::now(),
    };
    let body = Body { value: object.clone(), ..Body::default() };
    let (mut object, _) = body.decode(&call, &state.registry)?;
    let before = state.store.get(&call.place(), &call.namespace, &call.name).cloned();
    let stored = match before {
        None => write::create(&mut state, &call, call.resource.to_storage(object), Source::Put),
        Some(before) => {
            meta::put(
                &mut object,
                "resourceVersion",
                meta::get(&before, "resourceVersion").cloned(),
            );
            let object = call.resource.to_storage(object);
            write::update(&mut state, &call, object).map(|(stored, _)| stored)
        }
    };
    let _ = cluster.react(&mut state);
    stored
}
