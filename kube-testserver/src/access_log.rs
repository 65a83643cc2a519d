//! The authorizers' decisions about requests, to compare granted with used rights.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Number of different decisions that are kept.
const KEPT: usize = 100_000;

/// A decision of the authorizers about a request or a part of one: the create of an apply, the signer of an
/// approved request and the role of a new binding have their own decisions. Reviews are not included.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub struct AccessDecision {
    /// Name of the user.
    pub user: String,
    /// Verb, for example `list` or `bind`.
    pub verb: String,
    /// API group, empty for core.
    pub group: String,
    /// Plural resource, with `/` and the sub-resource if any.
    pub resource: String,
    /// Namespace, empty for cluster scope.
    pub namespace: String,
    /// Object name, empty for collections.
    pub name: String,
    /// Whether it is allowed.
    pub allowed: bool,
}

/// Each different decision once.
#[derive(Debug, Default)]
pub(crate) struct AccessLog(Mutex<BTreeSet<AccessDecision>>);

impl AccessLog {
    /// Records a decision.
    pub(super) fn record(&self, decision: AccessDecision) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT {
            kept.insert(decision);
        }
    }

    /// All decisions, in order.
    pub(crate) fn all(&self) -> Vec<AccessDecision> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}
