//! The right to disrupt one node.

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
