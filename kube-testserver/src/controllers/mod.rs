//! The controllers of the server: service accounts and their tokens, namespaces, garbage collection, certificate
//! signing, and optionally the taints of Nodes.
//!
//! They are level-triggered and run under the server's lock right after each write, for all changes since their
//! last run, until no work is left, and once a second for objects whose owners did not appear.

mod garbage;
mod namespaces;
mod nodes;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::call::{Call, WriteOptions};
use super::identity::{MASTERS, User};
use super::meta;
use super::pki::Pki;
use super::resources::{Resource, StorageKey};
use super::state::State;
use super::store::{Change, ChangeKind};
use super::tokens::secrets;
use super::write::{self, DeleteOptions, Source};

/// Limit for a controller that would write endlessly by mistake, so that it does not hang the server.
const MOST_ROUNDS: usize = 100;

/// The controllers, with their state between two writes.
#[derive(Debug)]
pub(crate) struct Controllers {
    /// Whether taints of Nodes follow their conditions.
    taints_nodes: bool,
    /// All writes up to this resourceVersion have been handled.
    seen: u64,
    suspects: garbage::Suspects,
}

impl Controllers {
    /// Makes controllers that have handled no write yet.
    pub(crate) fn new(taints_nodes: bool) -> Self {
        Self { taints_nodes, seen: 0, suspects: garbage::Suspects::default() }
    }

    /// Runs the controllers until they are settled.
    pub(crate) fn react(&mut self, state: &mut State, pki: &Pki, now: Timestamp) {
        self.suspects.collect(state, now);
        for _ in 0..MOST_ROUNDS {
            let (seen, version) = (self.seen, state.store.version());
            if version == seen {
                break;
            }
            let changes = changes_after(state, seen);
            self.seen = version;
            for (place, change) in &changes {
                self.look(state, pki, now, place, change);
            }
            namespaces::finish(state, now);
        }
    }

    /// Runs every controller for such objects on one change.
    fn look(
        &mut self,
        state: &mut State,
        pki: &Pki,
        now: Timestamp,
        place: &StorageKey,
        change: &Change,
    ) {
        let gone = change.kind == ChangeKind::Deleted;
        let object = &change.object;
        match (place.group.as_str(), place.plural.as_str()) {
            ("", "namespaces") if !gone => default_account(state, now, meta::name(object)),
            ("", "serviceaccounts") => {
                default_account(state, now, meta::namespace(object));
                let secrets = StorageKey::new("", "secrets");
                let of: Vec<_> =
                    state.store.list(&secrets, meta::namespace(object)).cloned().collect();
                for secret in &of {
                    fill_secret(state, pki, now, secret);
                }
            }
            ("", "secrets") if !gone => {
                let current = state.store.get(place, meta::namespace(object), meta::name(object));
                if let Some(secret) = current.cloned() {
                    fill_secret(state, pki, now, &secret);
                }
            }
            ("", "nodes") if !gone && self.taints_nodes => {
                nodes::taint(state, meta::name(object), now);
            }
            ("certificates.k8s.io", _) if !gone => {
                let current = state.store.get(place, "", meta::name(object)).cloned();
                if let Some(signed) = current.and_then(|request| pki.sign(&request, now)) {
                    state.store.put(place, signed);
                }
            }
            _ => {}
        }
        self.suspects.look(state, now, place, change);
    }
}

/// All changes after `seen`, in order.
fn changes_after(state: &State, seen: u64) -> Vec<(StorageKey, Change)> {
    let mut all = vec![];
    for place in state.store.places() {
        match state.store.changes_after(place, seen) {
            Ok(changes) => all.extend(changes.map(|change| (place.clone(), change.clone()))),
            // The history is gone: handle every object.
            Err(_) => all.extend(state.store.list(place, "").map(|object| {
                let change = Change {
                    version: seen,
                    kind: ChangeKind::Modified,
                    key: String::new(),
                    object: Arc::clone(object),
                    before: None,
                };
                (place.clone(), change)
            })),
        }
    }
    all.sort_by_key(|(_, change)| change.version);
    all
}

/// A request of the controllers themselves.
fn call(resource: &Arc<Resource>, namespace: &str, name: &str, now: Timestamp) -> Call {
    Call {
        user: User::authenticated("system:kube-controller-manager", &[MASTERS.to_owned()]),
        resource: Arc::clone(resource),
        subresource: String::new(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        options: WriteOptions::default(),
        now,
    }
}

/// Deletes an object and ignores the result.
fn delete(state: &mut State, place: &StorageKey, namespace: &str, name: &str, now: Timestamp) {
    let resource =
        state.registry.all().find(|resource| resource.storage() == *place).map(Arc::clone);
    if let Some(resource) = resource {
        let call = call(&resource, namespace, name, now);
        // An object that is already deleted or cannot be deleted is handled again with the next change.
        let _ = write::delete(state, &call, &DeleteOptions::default());
    }
}

/// Creates the service account `default` of an active namespace.
fn default_account(state: &mut State, now: Timestamp, namespace: &str) {
    let found = state.store.get(&StorageKey::new("", "namespaces"), "", namespace);
    let active = found.is_some_and(|found| !meta::is_deleting(found));
    let accounts = StorageKey::new("", "serviceaccounts");
    if !active || state.store.get(&accounts, namespace, "default").is_some() {
        return;
    }
    let Some(resource) = state.registry.find("", "v1", "serviceaccounts").map(Arc::clone) else {
        return;
    };
    let account = json!({
        "kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "default"},
    });
    let call = call(&resource, namespace, "", now);
    // The namespace exists and the name is free, so the create cannot be refused.
    let _ = write::create(state, &call, account, Source::Put);
}

fn fill_secret(state: &mut State, pki: &Pki, now: Timestamp, secret: &Value) {
    let place = StorageKey::new("", "secrets");
    let (namespace, name) = (meta::namespace(secret), meta::name(secret));
    match secrets::reconcile(&state.store, pki.tokens(), pki.ca_pem(), secret) {
        secrets::Step::Leave => {}
        secrets::Step::Update(filled) => drop(state.store.put(&place, filled)),
        secrets::Step::Delete => delete(state, &place, namespace, name, now),
    }
}
