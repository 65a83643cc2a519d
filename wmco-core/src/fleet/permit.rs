//! Permits to disrupt a node, or to replace a Machine.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// Proof that the disruption budget allows the disruption of one node now.
///
/// Draining, stopping services, restarting and deleting require a permit. Only
/// [`fleet::reconcile`](super::reconcile) makes it, from the state that the API shows.
///
/// ```compile_fail
/// // Nobody else can make one, from a name ...
/// let permit = wmco_core::fleet::DisruptionPermit { node: "win-1".to_owned() };
/// ```
///
/// ```compile_fail
/// // ... or from a text.
/// let permit: wmco_core::fleet::DisruptionPermit = serde_json::from_str(r#""win-1""#)?;
/// Ok::<(), serde_json::Error>(())
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

    /// The node that may be disrupted.
    pub fn node(&self) -> &str {
        &self.node
    }
}

impl fmt::Display for DisruptionPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "permit for {}", self.node)
    }
}

/// Proof that the disruption budget allows the deletion of one Machine now, so that its MachineSet creates a
/// replacement.
///
/// Only [`fleet::reconcile`](super::reconcile) makes it, for a Machine whose host refuses our keys, while the rest
/// of its MachineSet is healthy, or waits for this Machine.
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

    /// The Machine's UID, so that no successor of the same name is deleted.
    pub fn uid(&self) -> &str {
        &self.uid
    }
}

impl fmt::Display for ReplacementPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "permit to replace {}", self.machine)
    }
}
