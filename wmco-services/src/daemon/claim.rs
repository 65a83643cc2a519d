//! Parses the facts of a Node that the search for the host's own Node needs.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use wmco_core::names;

/// The part of a Node that the search for the host's own Node needs. The rest, which is much larger, is skipped while
/// parsing.
///
/// ```
/// use wmco_services::daemon::NodeClaim;
///
/// let node: NodeClaim = serde_json::from_str(
///     r#"{"metadata": {"name": "win-7", "labels": {"kubernetes.io/os": "windows"}, "uid": "1"},
///         "spec": {}, "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.7"}]}}"#,
/// )?;
/// assert_eq!(node.name(), "win-7");
/// Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(from = "Read")]
pub struct NodeClaim {
    pub(super) name: String,
    pub(super) is_windows: bool,
    addresses: Vec<Address>,
}

impl NodeClaim {
    /// The name of the Node.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the Node has one of these addresses.
    pub(super) fn has(&self, own: &[String], internal_only: bool) -> bool {
        self.addresses.iter().any(|address| {
            (!internal_only || address.kind == "InternalIP") && own.contains(&address.address)
        })
    }
}

impl From<&Value> for NodeClaim {
    /// Parses a Node given as JSON. JSON that is no Node yields a claim that matches nothing.
    fn from(node: &Value) -> Self {
        Self::deserialize(node).unwrap_or_default()
    }
}

impl From<Read> for NodeClaim {
    fn from(Read { metadata, status }: Read) -> Self {
        let labels = metadata.labels.unwrap_or_default();
        let system = labels.get(names::OS_LABEL).map(String::as_str);
        Self {
            is_windows: system == Some(names::OS_WINDOWS) && !metadata.name.is_empty(),
            name: metadata.name,
            addresses: status.addresses.unwrap_or_default(),
        }
    }
}

#[derive(Deserialize)]
struct Read {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Default, Deserialize)]
struct Status {
    addresses: Option<Vec<Address>>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
struct Address {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    address: String,
}
