//! The state for requests: the objects and the served resources.

use super::registry::Registry;
use super::store::Store;

/// The state that requests read and write.
#[derive(Debug)]
pub(crate) struct State {
    /// The objects.
    pub store: Store,
    /// The served resources.
    pub registry: Registry,
    /// Admission warnings of the present write.
    pub warnings: Vec<String>,
}

impl State {
    /// Makes a state without objects, with a place for each built-in resource.
    pub(crate) fn new() -> Self {
        let mut store = Store::default();
        let registry = Registry::builtin();
        for resource in registry.all() {
            store.open(&resource.storage());
        }
        Self { store, registry, warnings: Vec::new() }
    }
}
