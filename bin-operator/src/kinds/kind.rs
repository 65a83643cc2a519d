//! All objects of one kind, cut down to facts.

use std::collections::BTreeMap;

/// So often in a row a kind has to be missing before its objects are forgotten; with the pauses between,
/// half a minute.
pub(crate) const PROOFS: u32 = 6;

/// What is known of the objects of a kind, by name.
#[derive(Debug)]
pub struct Kind<F> {
    known: Option<BTreeMap<String, F>>,
    /// While all of them are being listed: those seen so far.
    listed: BTreeMap<String, F>,
    /// How often in a row the kind was missing.
    doubts: u32,
    /// How often in a row it has to be missing before that is believed at the start.
    proofs: u32,
    /// Whether that is believed.
    lacking: bool,
}

// Not derived: that would ask for a default of the facts.
impl<F> Default for Kind<F> {
    fn default() -> Self {
        Self { known: None, listed: BTreeMap::new(), doubts: 0, proofs: 1, lacking: false }
    }
}

impl<F: PartialEq> Kind<F> {
    /// A kind whose lack takes something from nodes, so that one answer is not enough at the start either.
    pub(crate) fn of_consequence() -> Self {
        Self { proofs: PROOFS, ..Self::default() }
    }

    /// The objects; `None` before they have been listed.
    pub(crate) fn known(&self) -> Option<&BTreeMap<String, F>> {
        self.known.as_ref()
    }

    /// Whether the cluster does not have the kind, or nobody knows yet.
    pub(crate) fn is_lacking(&self) -> bool {
        self.lacking || self.known.is_none()
    }

    pub(crate) fn list_begins(&mut self) {
        self.listed.clear();
    }

    pub(crate) fn list_shows(&mut self, name: String, facts: F) {
        self.listed.insert(name, facts);
    }

    /// The list is complete. Tells whether anything is another now, as the functions below do.
    pub(crate) fn list_ends(&mut self) -> bool {
        self.doubts = 0;
        let listed = std::mem::take(&mut self.listed);
        // A kind that the cluster now has is a change, even without objects.
        let was_lacking = std::mem::take(&mut self.lacking);
        let changed = was_lacking || self.known.as_ref() != Some(&listed);
        self.known = Some(listed);
        changed
    }

    pub(crate) fn set(&mut self, name: String, facts: F) -> bool {
        let Some(known) = &mut self.known else { return false };
        if known.get(&name) == Some(&facts) {
            return false;
        }
        known.insert(name, facts);
        true
    }

    pub(crate) fn remove(&mut self, name: &str) -> bool {
        self.known.as_mut().is_some_and(|known| known.remove(name).is_some())
    }

    /// The cluster says that it does not have the kind. An API server that starts may say so for a
    /// while, so objects that were there are gone when it has said so [`PROOFS`] times.
    pub(crate) fn is_missing(&mut self) -> bool {
        self.listed.clear();
        let has_some = self.known.as_ref().is_some_and(|known| !known.is_empty());
        self.doubts += 1;
        let proofs = if has_some { PROOFS } else { self.proofs };
        if self.doubts < proofs {
            return false;
        }
        let changed = !std::mem::replace(&mut self.lacking, true);
        self.known = Some(BTreeMap::new());
        changed
    }
}
