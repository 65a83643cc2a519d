//! WATCH: a stream of changes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use futures::Stream;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch::Receiver;
use tokio::time::Instant;

use super::call::Call;
use super::error::ApiError;
use super::list::ListOptions;
use super::negotiate::{Encoding, Transform, Wanted};
use super::shared::Shared;
use super::store::{Change, ChangeKind, TooOld};
use super::{protobuf, table};

/// Default duration of a watch.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(45 * 60);
/// Pause between BOOKMARKs without other events.
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);
/// How long before its end a watch sends its last BOOKMARK.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);
/// Annotation of the BOOKMARK after the initial events.
const INITIAL_END: &str = "k8s.io/initial-events-end";

/// A running watch.
pub(crate) struct Watch {
    cluster: Arc<Shared>,
    call: Call,
    options: ListOptions,
    wanted: Wanted,
    changed: Receiver<u64>,
    stop: Receiver<bool>,
    /// Changes up to this version have been sent or are in `queue`.
    seen: u64,
    queue: VecDeque<Bytes>,
    ends: Instant,
    next_bookmark: Instant,
    /// Whether the columns of a Table were sent; only the first event has them.
    columns_sent: bool,
    finished: bool,
}

impl Watch {
    /// Begins a watch: initial events and the subscription are taken under one lock.
    ///
    /// # Errors
    /// 500 for a resourceVersion that is not a number, like the API.
    pub(crate) fn begin(
        cluster: &Arc<Shared>,
        call: Call,
        options: ListOptions,
        wanted: Wanted,
    ) -> Result<Self, ApiError> {
        let from: u64 = match options.version.as_str() {
            "" => 0,
            text => text.parse().map_err(|_| {
                ApiError::plain(format!("strconv.ParseUint: parsing {text:?}: invalid syntax"))
            })?,
        };
        let timeout = options.timeout_s.map_or(DEFAULT_TIMEOUT, Duration::from_secs);
        let now = Instant::now();
        let place = call.place();
        let mut state = cluster.lock();
        let mut watch = Self {
            cluster: Arc::clone(cluster),
            changed: state.store.subscribe(&place),
            stop: cluster.stopped(),
            seen: from,
            queue: VecDeque::new(),
            ends: now + timeout,
            next_bookmark: now + BOOKMARK_PERIOD.min(timeout.saturating_sub(LAST_BOOKMARK)),
            columns_sent: false,
            finished: false,
            call,
            options,
            wanted,
        };
        let shows_all = match watch.options.initial_events {
            Some(wanted) => wanted,
            None => from == 0,
        };
        if shows_all {
            watch.seen = watch.seen.max(state.store.version());
            let objects: Vec<_> =
                state.store.list(&place, &watch.call.namespace).cloned().collect();
            for object in objects {
                if watch.options.selection.matches(&object) {
                    watch.event("ADDED", &object);
                }
            }
            if watch.options.initial_events == Some(true) && watch.options.bookmarks {
                watch.bookmark(true);
            }
        } else if from == 0 {
            watch.seen = state.store.version();
        }
        drop(state);
        Ok(watch)
    }

    /// The stream of events as the body of the answer.
    pub(crate) fn stream(self) -> impl Stream<Item = Result<Bytes, std::convert::Infallible>> {
        futures::stream::unfold(self, |mut watch| async move {
            let bytes = watch.next().await?;
            Some((Ok(bytes), watch))
        })
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.queue.pop_front() {
                return Some(bytes);
            }
            if self.finished || *self.stop.borrow() {
                return None;
            }
            self.changed.mark_unchanged();
            if self.collect() {
                continue;
            }
            let bookmark_due = self.next_bookmark;
            tokio::select! {
                changed = self.changed.changed() => {
                    // The sender is dropped with the resource.
                    self.finished = changed.is_err();
                }
                _ = self.stop.changed() => return None,
                () = tokio::time::sleep_until(self.ends) => self.finished = true,
                () = tokio::time::sleep_until(bookmark_due) => self.bookmark_now(),
            }
        }
    }

    fn bookmark_now(&mut self) {
        let now = Instant::now();
        let last = self.ends.checked_sub(LAST_BOOKMARK).unwrap_or(self.ends);
        self.next_bookmark = now + BOOKMARK_PERIOD;
        if now < last && last < self.next_bookmark {
            self.next_bookmark = last;
        }
        if self.options.bookmarks {
            // Everything up to the present version has been sent: there was nothing to collect.
            self.seen = self.seen.max(self.cluster.lock().store.version());
            self.bookmark(false);
        }
    }

    /// Queues the changes; returns whether there were any.
    fn collect(&mut self) -> bool {
        let cluster = Arc::clone(&self.cluster);
        let state = cluster.lock();
        if self.seen > state.store.version() {
            return false;
        }
        let changes: Result<Vec<Change>, TooOld> = state
            .store
            .changes_after(&self.call.place(), self.seen)
            .map(|changes| changes.cloned().collect());
        drop(state);
        match changes {
            Ok(changes) => {
                for change in &changes {
                    self.seen = change.version;
                    self.change(change);
                }
                !changes.is_empty() && !self.queue.is_empty()
            }
            Err(TooOld { oldest }) => {
                let message = format!("too old resource version: {} ({oldest})", self.seen);
                let status = ApiError::expired(message).to_status();
                self.queue.push_back(self.frame("ERROR", &status));
                self.finished = true;
                true
            }
        }
    }

    /// Queues a change as the selectors see it: an object that enters is ADDED, one that leaves is DELETED.
    fn change(&mut self, change: &Change) {
        let namespace = &self.call.namespace;
        if !namespace.is_empty() && super::meta::namespace(&change.object) != namespace {
            return;
        }
        let selection = &self.options.selection;
        let was = change.before.as_ref().is_some_and(|before| selection.matches(before));
        let is = change.kind != ChangeKind::Deleted && selection.matches(&change.object);
        match (was, is, &change.before) {
            (false, true, _) => self.event("ADDED", &change.object),
            (true, true, _) => self.event("MODIFIED", &change.object),
            (true, false, Some(before)) => {
                // The last selected state, with the version of the write that ended it.
                let mut last = Value::clone(before);
                let version = Value::from(change.version.to_string());
                super::meta::set(&mut last, "resourceVersion", version);
                self.event("DELETED", &last);
            }
            (true | false, false, _) => {}
        }
    }

    fn event(&mut self, kind: &str, stored: &Value) {
        let object = self.call.resource.present(stored);
        let shown = match self.wanted.transform {
            Transform::None => object,
            Transform::Metadata { .. } => table::partial_metadata(&object),
            Transform::Table(include) => {
                let resource = &self.call.resource;
                let mut table = table::table_of(resource, &[object], include, Timestamp::now());
                if self.columns_sent
                    && let Some(members) = table.as_object_mut()
                {
                    members.insert("columnDefinitions".to_owned(), Value::Null);
                }
                self.columns_sent = true;
                table
            }
        };
        self.queue.push_back(self.frame(kind, &shown));
    }

    fn bookmark(&mut self, ends_initial: bool) {
        let mut meta = json!({"resourceVersion": self.seen.to_string()});
        if let (true, Some(meta)) = (ends_initial, meta.as_object_mut()) {
            meta.insert("annotations".to_owned(), json!({INITIAL_END: "true"}));
        }
        let resource = &self.call.resource;
        let (kind, api_version) = match self.wanted.transform {
            Transform::Metadata { .. } => {
                ("PartialObjectMetadata".to_owned(), "meta.k8s.io/v1".to_owned())
            }
            Transform::None | Transform::Table(_) => {
                (resource.kind.clone(), resource.api_version())
            }
        };
        let object = json!({"kind": kind, "apiVersion": api_version, "metadata": meta});
        let object = if let Transform::Table(include) = self.wanted.transform {
            table::table_of(resource, &[object], include, Timestamp::now())
        } else {
            object
        };
        self.queue.push_back(self.frame("BOOKMARK", &object));
    }

    fn frame(&self, kind: &str, object: &Value) -> Bytes {
        if self.wanted.encoding == Encoding::Protobuf
            && let Some(frame) = protobuf::watch_frame(kind, object)
        {
            return frame.into();
        }
        let mut line = json!({"type": kind, "object": object}).to_string();
        line.push('\n');
        line.into()
    }
}
