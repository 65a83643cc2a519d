//! The right to disrupt one node, or to have one Machine replaced.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// Proof that the fleet's budget lets us disrupt one node now.
///
/// Draining, stopping services, restarting and deleting take one; only
/// [`fleet::reconcile`](super::reconcile) makes it, counted from what the API shows.
///
/// ```compile_fail
/// // Nobody else can make one, from a name ...
/// let permit = wmco_core::fleet::DisruptionPermit { node: "win-1".to_owned() };
/// ```
///
/// ```compile_fail
/// // ... or from a text.
/// let permit: wmco_core::fleet::DisruptionPermit = serde_json::from_str(r#""win-1""#)?;
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(transparent)]
pub struct DisruptionPermit {
    node: String,
}

impl DisruptionPermit {
    pub(super) fn for_node(node: &str) -> Self {
        Self { node: node.to_owned() }
    }

    /// The node that may be disrupted, and no other.
    pub fn node(&self) -> &str {
        &self.node
    }
}

impl fmt::Display for DisruptionPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "permit for {}", self.node)
    }
}

/// Proof that the fleet's budget lets us delete one Machine now, so that its MachineSet makes another.
///
/// Only [`fleet::reconcile`](super::reconcile) makes it, for a Machine whose host does not let us in, while
/// the rest of its MachineSet is healthy, or waits for this very Machine.
///
/// ```compile_fail
/// // Nobody else can make one.
/// let permit = wmco_core::fleet::ReplacementPermit { machine: "win".into(), uid: "u-1".into() };
/// ```
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
pub struct ReplacementPermit {
    machine: String,
    uid: String,
}

impl ReplacementPermit {
    pub(super) fn for_machine(machine: &str, uid: &str) -> Self {
        Self { machine: machine.to_owned(), uid: uid.to_owned() }
    }

    /// The Machine that may be deleted.
    pub fn machine(&self) -> &str {
        &self.machine
    }

    /// Its UID: no Machine that took its name is meant.
    pub fn uid(&self) -> &str {
        &self.uid
    }
}

impl fmt::Display for ReplacementPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "permit to replace {}", self.machine)
    }
}
