//! What earlier passes left, as a pass goes by it.

use std::collections::{BTreeMap, BTreeSet};

use super::{Replacement, UserData};

/// What earlier passes left, as a pass goes by it. A missing fact may disrupt two nodes at a time.
#[derive(Clone, Debug)]
pub(super) struct Recalled {
    /// Names of Nodes with a permit whose mark may not be visible yet. A name is removed when the pass with the
    /// permit is over and the Nodes show its result.
    pub(super) granted: BTreeSet<String>,
    /// Names of Machines with a permit to be replaced, whose deletion may not be visible yet.
    pub(super) replaced: BTreeSet<String>,
    /// Replacements of the last pass, from [`Assignments::replacing`](super::Assignments::replacing). After a restart the
    /// records tell; while the operator runs, nobody can make it forget one.
    pub(super) replacing: BTreeMap<String, Replacement>,
    /// Names of Machines that have had no ready Node for
    /// [`limits::LOGIN_REFUSED`](crate::limits::LOGIN_REFUSED).
    pub(super) unready: BTreeSet<String>,
    /// Addresses of instances whose hosts have refused our key for
    /// [`limits::LOGIN_REFUSED`](crate::limits::LOGIN_REFUSED).
    pub(super) refused: BTreeSet<String>,
    /// Addresses of instances whose hosts have not answered for
    /// [`limits::ROTATION_PATIENCE`](crate::limits::ROTATION_PATIENCE).
    pub(super) unanswered: BTreeSet<String>,
    /// Whether the user data of new Machines contain every key of ours, and for how long.
    pub(super) user_data: UserData,
}

impl Recalled {
    /// Nothing, and user data that have been right for long.
    pub(super) const fn nothing() -> Self {
        Self {
            granted: BTreeSet::new(),
            replaced: BTreeSet::new(),
            replacing: BTreeMap::new(),
            unready: BTreeSet::new(),
            refused: BTreeSet::new(),
            unanswered: BTreeSet::new(),
            user_data: UserData::Settled,
        }
    }
}

impl Default for Recalled {
    fn default() -> Self {
        Self::nothing()
    }
}
