//! Objects that another writer changes again and again.

use std::collections::BTreeMap;

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use tokio::time::Instant;
use wmco_core::cluster::OwnObject;
use wmco_core::corrections::Corrections;
use wmco_core::digest::Sha256;
use wmco_core::fleet::Topic;
use wmco_core::names::events;

use super::look::named;
use crate::other_writer::{changes_again_and_again, last_writer};
use crate::problems::Problem;

/// Corrections of our own objects, and what is to be told of them.
pub(super) struct Contention {
    corrections: Corrections,
    /// What the times of corrections are counted from.
    begun: Instant,
    /// By object.
    problems: BTreeMap<String, Problem>,
    /// Who has written an object: what we have deleted to make it anew tells nobody any more.
    writers: BTreeMap<String, String>,
    /// When the first one that rested in this pass may be corrected.
    next: Option<Instant>,
}

impl Contention {
    pub(super) fn new() -> Self {
        Self {
            corrections: Corrections::default(),
            begun: Instant::now(),
            problems: BTreeMap::new(),
            writers: BTreeMap::new(),
            next: None,
        }
    }

    /// Begins a pass.
    pub(super) fn begin_pass(&mut self) {
        self.next = None;
        self.corrections.forget_calm(self.begun.elapsed());
        let corrections = &self.corrections;
        self.problems.retain(|object, _| corrections.is_contended(object));
        self.writers.retain(|object, _| corrections.is_remembered(object));
    }

    /// Whether the object was corrected so often that the next correction waits.
    pub(super) fn rests(&mut self, object: &OwnObject) -> bool {
        let until = self.corrections.rests_until(&object.to_string());
        let until = until.map(|at| self.begun + at).filter(|at| Instant::now() < *at);
        self.next = self.next.into_iter().chain(until).min();
        until.is_some()
    }

    /// Who has written the object, if that matters by now.
    pub(super) async fn writer(&mut self, object: &OwnObject, client: &Client) -> Option<String> {
        let name = object.to_string();
        if self.corrections.is_remembered(&name)
            && let Some(writer) = writer_of(object, client).await
        {
            self.writers.insert(name.clone(), writer);
        }
        self.writers.get(&name).cloned()
    }

    /// The object was corrected, which `writer` had written.
    pub(super) fn corrected(&mut self, object: &OwnObject, wanted: Sha256, writer: Option<&str>) {
        /// Two may be chance.
        const TOLD_FROM: u32 = 3;
        let name = object.to_string();
        if self.corrections.note(&name, wanted, self.begun.elapsed()) < TOLD_FROM {
            return;
        }
        let text = changes_again_and_again(writer, &name);
        let problem = Problem {
            reason: events::OWNED_OBJECT_FAILURE,
            topic: Some(Topic::Retold(name.clone())),
            ..Problem::from(text)
        };
        self.problems.insert(name, problem);
    }

    /// What people are to hear.
    pub(super) fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.problems.values()
    }

    /// When something may be corrected.
    pub(super) const fn next(&self) -> Option<Instant> {
        self.next
    }
}

/// The field manager that wrote last; `None` if there is no such object or nobody says.
async fn writer_of(object: &OwnObject, client: &Client) -> Option<String> {
    let kind = GroupVersionKind::gvk(object.group, object.version, object.kind);
    let resource = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = match &object.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    // Without the name the rest is still worth telling.
    let found = named(&api, &object.name).await.ok()??;
    last_writer(&found.metadata)
}
