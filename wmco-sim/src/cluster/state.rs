//! What requests read and write: the objects and the resources that are served.

use super::registry::Registry;
use super::store::Store;

/// Everything that requests read and write.
#[derive(Debug)]
pub(crate) struct State {
    /// The objects.
    pub store: Store,
    /// The resources that are served now.
    pub registry: Registry,
    /// What admission has to say about the write that is under way.
    pub warnings: Vec<String>,
}

impl State {
    /// No objects, and a place for those of each built-in resource.
    pub(crate) fn new() -> Self {
        let mut store = Store::default();
        let registry = Registry::builtin();
        for resource in registry.all() {
            store.open(&resource.storage());
        }
        Self { store, registry, warnings: Vec::new() }
    }
}
