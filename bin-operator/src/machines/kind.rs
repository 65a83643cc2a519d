//! All objects of one kind, cut down to facts.

use std::collections::BTreeMap;

/// So often in a row a kind has to be missing before its objects are forgotten; with the pauses between,
/// half a minute.
pub(super) const PROOFS: u32 = 6;

/// What is known of the objects of a kind, by name.
#[derive(Debug)]
pub(super) struct Kind<F> {
    known: Option<BTreeMap<String, F>>,
    /// While all of them are being listed: those seen so far.
    listed: BTreeMap<String, F>,
    /// How often in a row the kind was missing although there are objects of it.
    doubts: u32,
}

// Not derived: that would ask for a default of the facts.
impl<F> Default for Kind<F> {
    fn default() -> Self {
        Self { known: None, listed: BTreeMap::new(), doubts: 0 }
    }
}

impl<F: PartialEq> Kind<F> {
    /// The objects; `None` before they have been listed.
    pub(super) fn known(&self) -> Option<&BTreeMap<String, F>> {
        self.known.as_ref()
    }

    pub(super) fn list_begins(&mut self) {
        self.listed.clear();
    }

    pub(super) fn list_shows(&mut self, name: String, facts: F) {
        self.listed.insert(name, facts);
    }

    /// The list is complete. Tells whether anything is another now, as the functions below do.
    pub(super) fn list_ends(&mut self) -> bool {
        self.doubts = 0;
        let listed = std::mem::take(&mut self.listed);
        let changed = self.known.as_ref() != Some(&listed);
        self.known = Some(listed);
        changed
    }

    pub(super) fn set(&mut self, name: String, facts: F) -> bool {
        let Some(known) = &mut self.known else { return false };
        if known.get(&name) == Some(&facts) {
            return false;
        }
        known.insert(name, facts);
        true
    }

    pub(super) fn remove(&mut self, name: &str) -> bool {
        self.known.as_mut().is_some_and(|known| known.remove(name).is_some())
    }

    /// The cluster says that it does not have the kind. An API server that starts may say so for a
    /// while, so objects that were there are gone when it has said so [`PROOFS`] times.
    pub(super) fn is_missing(&mut self) -> bool {
        self.listed.clear();
        let has_some = self.known.as_ref().is_some_and(|known| !known.is_empty());
        self.doubts += 1;
        if has_some && self.doubts < PROOFS {
            return false;
        }
        let changed = has_some || self.known.is_none();
        self.known = Some(BTreeMap::new());
        changed
    }
}
