//! The building block of plans.

use schemars::JsonSchema;
use serde::Serialize;

/// An action with its reason.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step<A, B> {
    /// The action.
    pub action: A,
    /// The reason.
    pub because: B,
}
