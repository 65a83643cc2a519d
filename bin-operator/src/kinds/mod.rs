//! Kinds that a cluster may lack, cut down to facts, with what is made of the facts of several kinds.
//!
//! # Guarantees
//! - Nothing is known of a kind before its objects have been listed. From then on what was seen last is known,
//!   also while a watch is broken.
//! - A cluster that lacks a kind has no objects of it. It is looked at again, less and less often, in case
//!   that it gets it. A failure of any other sort is no answer.
//! - Objects that were there are not forgotten over one answer that their kind is missing.
//! - A change of an object that changes none of its facts notifies nobody.

mod follow;
mod kind;
mod one;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

#[cfg(test)]
pub(crate) use follow::Missing;
pub(crate) use follow::{Followed, Seen, enter, follow};
pub use kind::Kind;
#[cfg(test)]
pub(crate) use kind::PROOFS;
pub use one::Optional;
pub(crate) use one::{body, watch_named, watch_one};

/// Facts of several kinds.
pub trait Kinds: Default {
    /// What is made of them.
    type Inventory;

    /// Whether enough is known to make it.
    fn is_known(&self) -> bool;

    /// All of it.
    fn collect(&self) -> Self::Inventory;
}

/// What watches show of several kinds; cheap to clone.
///
/// [`Sources::changes`](crate::sources::Sources::changes) tells of changes.
pub struct KindsWatch<K: Kinds> {
    state: Arc<Mutex<State<K>>>,
    known: Arc<watch::Sender<bool>>,
}

struct State<K: Kinds> {
    kinds: K,
    /// Made of the kinds when somebody asks; none after a change.
    inventory: Option<Arc<K::Inventory>>,
}

// Not derived: that would ask for clones of what is shared.
impl<K: Kinds> Clone for KindsWatch<K> {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state), known: Arc::clone(&self.known) }
    }
}

impl<K: Kinds> KindsWatch<K> {
    /// Nothing is known yet.
    pub(crate) fn unknown() -> Self {
        let state = State { kinds: K::default(), inventory: None };
        Self { state: Arc::new(Mutex::new(state)), known: Arc::new(watch::Sender::new(false)) }
    }

    /// What is known; `None` before the kinds have been listed.
    pub fn inventory(&self) -> Option<Arc<K::Inventory>> {
        let mut state = self.lock();
        if state.inventory.is_none() && state.kinds.is_known() {
            state.inventory = Some(Arc::new(state.kinds.collect()));
        }
        state.inventory.clone()
    }

    /// Waits until something is known.
    pub async fn known(&self) {
        // It is not closed as long as we have it.
        let _ = self.known.subscribe().wait_for(|known| *known).await;
    }

    /// Has the kinds changed by `change`, which tells whether it did; then `tell` is called.
    pub(crate) fn update(&self, tell: &impl Fn(), change: impl FnOnce(&mut K) -> bool) {
        let known = {
            let mut state = self.lock();
            if !change(&mut state.kinds) {
                return;
            }
            state.inventory = None;
            state.kinds.is_known()
        };
        self.known.send_if_modified(|is_known| !std::mem::replace(is_known, known) && known);
        tell();
    }

    /// Looks at the kinds themselves.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&K) -> T) -> T {
        look(&self.lock().kinds)
    }

    #[cfg(test)]
    pub(crate) fn is_known(&self) -> bool {
        *self.known.borrow()
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
