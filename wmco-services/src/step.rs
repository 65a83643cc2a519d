//! What plans are made of.

use schemars::JsonSchema;
use serde::Serialize;

/// An action with its reason.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step<A, B> {
    /// What to do.
    pub action: A,
    /// Why.
    pub because: B,
}
