//! Objects, their versions and their recent history.
//!
//! # Guarantees
//! - A single counter gives every write of every resource its resourceVersion.
//! - A list and the start of a watch from it share one lock: no change is lost or duplicated.
//! - History is limited; a request for an expired version gets 410.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::watch;

use super::access_log::AccessLog;
use super::meta;
use super::resources::StorageKey;

/// Number of changes per resource that are kept for watches and older lists.
pub(crate) const HISTORY: usize = 4096;

/// The kind of a change.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ChangeKind {
    /// The object was created.
    Added,
    /// The object was replaced.
    Modified,
    /// The object was deleted.
    Deleted,
}

/// An entry of the history.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// The resourceVersion of the write.
    pub version: u64,
    /// The kind of the change.
    pub kind: ChangeKind,
    /// `namespace/name`, or the name.
    pub key: String,
    /// The new state; for deletions the last state with the resourceVersion of the deletion.
    pub object: Arc<Value>,
    /// The state before; `None` for a new object.
    pub before: Option<Arc<Value>>,
}

/// The objects of one resource.
#[derive(Debug)]
struct Table {
    objects: BTreeMap<String, Arc<Value>>,
    history: VecDeque<Change>,
    /// Changes up to this version have expired (or never existed).
    floor: u64,
    latest: watch::Sender<u64>,
}

impl Table {
    fn new(floor: u64) -> Self {
        Self {
            objects: BTreeMap::new(),
            history: VecDeque::new(),
            floor,
            latest: watch::Sender::new(floor),
        }
    }
}

/// All objects of the cluster. The owner wraps it in a mutex.
#[derive(Debug, Default)]
pub(crate) struct Store {
    version: u64,
    compacted: u64,
    tables: BTreeMap<StorageKey, Table>,
    /// The authorizers' decisions.
    pub(super) access: AccessLog,
}

/// The requested state has expired.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct TooOld {
    /// The oldest version that is still available.
    pub oldest: u64,
}

/// The key of an object in its resource; the byte order of keys is list order.
pub(crate) fn object_key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

impl Store {
    /// The resourceVersion of the last write.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Creates the place if it does not exist. Its history starts now.
    pub(crate) fn open(&mut self, place: &StorageKey) {
        let floor = self.version;
        self.tables.entry(place.clone()).or_insert_with(|| Table::new(floor));
    }

    /// Deletes a place with its history, for example of a deleted CustomResourceDefinition.
    pub(crate) fn close(&mut self, place: &StorageKey) {
        self.tables.remove(place);
    }

    /// Returns an object.
    pub(crate) fn get(
        &self,
        place: &StorageKey,
        namespace: &str,
        name: &str,
    ) -> Option<&Arc<Value>> {
        self.tables.get(place)?.objects.get(&object_key(namespace, name))
    }

    /// All objects of a namespace, or of all namespaces if it is empty, in list order.
    pub(crate) fn list<'a>(
        &'a self,
        place: &StorageKey,
        namespace: &str,
    ) -> impl Iterator<Item = &'a Arc<Value>> + use<'a> {
        let prefix = prefix(namespace);
        let objects = self.tables.get(place).map(|table| &table.objects);
        objects
            .into_iter()
            .flatten()
            .filter(move |(key, _)| key.starts_with(&prefix))
            .map(|(_, object)| object)
    }

    /// The objects with their keys in the state right after the write `version`.
    ///
    /// # Errors
    /// The history does not go back that far.
    pub(crate) fn list_at(
        &self,
        place: &StorageKey,
        namespace: &str,
        version: u64,
    ) -> Result<BTreeMap<String, Arc<Value>>, TooOld> {
        let prefix = prefix(namespace);
        let Some(table) = self.tables.get(place) else { return Ok(BTreeMap::new()) };
        let oldest = table.floor.max(self.compacted);
        if version < oldest {
            return Err(TooOld { oldest });
        }
        let mut objects = table.objects.clone();
        let later = table.history.iter().rev().take_while(|change| change.version > version);
        for change in later {
            match &change.before {
                Some(before) => objects.insert(change.key.clone(), Arc::clone(before)),
                None => objects.remove(&change.key),
            };
        }
        objects.retain(|key, _| key.starts_with(&prefix));
        Ok(objects)
    }

    /// Stores a new or changed object under a new resourceVersion, which is written into it.
    pub(crate) fn put(&mut self, place: &StorageKey, mut object: Value) -> Arc<Value> {
        self.open(place);
        self.version += 1;
        let version = self.version;
        meta::set(&mut object, "resourceVersion", version.to_string().into());
        let key = object_key(meta::namespace(&object), meta::name(&object));
        let object = Arc::new(object);
        if let Some(table) = self.tables.get_mut(place) {
            let before = table.objects.insert(key.clone(), Arc::clone(&object));
            let kind = if before.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
            record(table, Change { version, kind, key, object: Arc::clone(&object), before });
        }
        object
    }

    /// Removes an object. Returns its last state with the resourceVersion of the deletion.
    pub(crate) fn remove(
        &mut self,
        place: &StorageKey,
        namespace: &str,
        name: &str,
    ) -> Option<Arc<Value>> {
        let key = object_key(namespace, name);
        let table = self.tables.get_mut(place)?;
        let before = table.objects.remove(&key)?;
        self.version += 1;
        let version = self.version;
        let mut object = Value::clone(&before);
        meta::set(&mut object, "resourceVersion", version.to_string().into());
        let object = Arc::new(object);
        let change = Change {
            version,
            kind: ChangeKind::Deleted,
            key,
            object: Arc::clone(&object),
            before: Some(before),
        };
        record(table, change);
        Some(object)
    }

    /// The changes of a resource after `version`.
    ///
    /// # Errors
    /// Some of them have expired.
    pub(crate) fn changes_after(
        &self,
        place: &StorageKey,
        version: u64,
    ) -> Result<impl Iterator<Item = &Change>, TooOld> {
        let table = self.tables.get(place);
        let floor = table.map_or(self.version, |table| table.floor).max(self.compacted);
        if version < floor {
            return Err(TooOld { oldest: floor });
        }
        let history = table.map(|table| &table.history);
        Ok(history.into_iter().flat_map(move |history| {
            let start = history.partition_point(|change| change.version <= version);
            history.range(start..)
        }))
    }

    /// A receiver that reports changes of a resource. The value is the version of its last change.
    pub(crate) fn subscribe(&mut self, place: &StorageKey) -> watch::Receiver<u64> {
        self.open(place);
        match self.tables.get(place) {
            Some(table) => table.latest.subscribe(),
            None => watch::Sender::new(0).subscribe(),
        }
    }

    /// All existing places.
    pub(crate) fn places(&self) -> impl Iterator<Item = &StorageKey> {
        self.tables.keys()
    }

    /// Starts the history now, like a server at its start.
    pub(crate) fn start_history(&mut self) {
        self.compact();
    }

    /// Discards the history up to now: older versions and continue tokens expire.
    pub(crate) fn compact(&mut self) {
        self.compacted = self.version;
        for table in self.tables.values_mut() {
            table.floor = self.version;
            table.history.clear();
        }
    }
}

fn prefix(namespace: &str) -> String {
    if namespace.is_empty() { String::new() } else { format!("{namespace}/") }
}

fn record(table: &mut Table, change: Change) {
    let version = change.version;
    table.history.push_back(change);
    if table.history.len() > HISTORY {
        table.floor = table.history.pop_front().map_or(table.floor, |oldest| oldest.version);
    }
    table.latest.send_replace(version);
}

/// Formats a time such as `2026-01-01T00:00:00Z`: object metadata has whole seconds.
pub(crate) fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn place() -> StorageKey {
        StorageKey::new("", "configmaps")
    }

    fn object(namespace: &str, name: &str) -> Value {
        json!({"metadata": {"namespace": namespace, "name": name}})
    }

    fn names(objects: &BTreeMap<String, Arc<Value>>) -> Vec<&str> {
        objects.values().map(|object| meta::name(object)).collect()
    }

    #[test]
    fn lists_are_in_byte_order_of_namespace_and_name() {
        let mut store = Store::default();
        for namespace in ["a", "a-b", "a2"] {
            store.put(&place(), object(namespace, "x"));
        }
        let listed = store.list(&place(), "").map(|object| meta::namespace(object));
        assert_eq!(listed.collect::<Vec<_>>(), ["a-b", "a", "a2"]);
        assert_eq!(store.list(&place(), "a").count(), 1);
    }

    #[test]
    fn every_earlier_state_can_be_listed() {
        let mut store = Store::default();
        store.put(&place(), object("n", "a"));
        store.put(&place(), object("n", "b"));
        store.remove(&place(), "n", "a");
        store.put(&place(), object("n", "c"));
        let expected: [&[&str]; 5] = [&[], &["a"], &["a", "b"], &["b"], &["b", "c"]];
        for (version, expected) in (0_u64..).zip(expected) {
            let listed = store.list_at(&place(), "n", version).unwrap();
            assert_eq!(names(&listed), expected, "at {version}");
        }
    }

    #[test]
    fn a_removal_has_a_version_of_its_own_and_the_last_state() {
        let mut store = Store::default();
        store.put(&place(), object("n", "a"));
        let gone = store.remove(&place(), "n", "a").unwrap();
        assert_eq!(meta::text(&gone, "resourceVersion"), "2");
        let changes: Vec<_> = store.changes_after(&place(), 1).unwrap().collect();
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].kind, ChangeKind::Deleted);
    }

    #[test]
    fn history_is_bounded_and_says_so() {
        let mut store = Store::default();
        for _ in 0..=HISTORY {
            store.put(&place(), object("n", "a"));
        }
        assert_eq!(store.changes_after(&place(), 1).unwrap().count(), HISTORY);
        let oldest = store.changes_after(&place(), 0).map(Iterator::count).unwrap_err();
        assert_eq!(oldest, TooOld { oldest: 1 });
    }

    #[test]
    fn compaction_forgets_what_was() {
        let mut store = Store::default();
        store.put(&place(), object("n", "a"));
        store.put(&place(), object("n", "b"));
        store.compact();
        assert!(store.list_at(&place(), "n", 1).is_err());
        assert_eq!(names(&store.list_at(&place(), "n", 2).unwrap()), ["a", "b"]);
        assert_eq!(store.changes_after(&place(), 2).unwrap().count(), 0);
    }
}
