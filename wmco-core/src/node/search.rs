//! Finds the Node of a host.

use std::collections::BTreeSet;
use std::fmt;
use std::net::Ipv4Addr;

use schemars::JsonSchema;
use serde::Serialize;

use crate::instances::Host;
use crate::protocol::Probe;

/// Names and address of a host's Node, from the list and from records.
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
pub struct KnownAs {
    /// Names that the Node may have: the recorded name, and the listed name of the host.
    pub names: BTreeSet<String>,
    /// The address that reaches the host.
    pub ipv4: Option<Ipv4Addr>,
}

/// A query to the API server: one Node per name, and any Node with one of the addresses. Not by label, because any
/// writer of the Node can remove labels.
///
/// ```
/// use wmco_core::node::NodeSearch;
///
/// let search = NodeSearch {
///     names: ["win-1".to_owned()].into(),
///     addresses: ["10.0.0.5".parse()?].into(),
/// };
/// assert_eq!(search.to_string(), "named win-1 or at 10.0.0.5");
/// Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
pub struct NodeSearch {
    /// Names that the host's kubelet can register: the known names, and its host name, whole and up to the first
    /// dot, in lower case.
    pub names: BTreeSet<String>,
    /// Addresses of the host, listed or reported.
    pub addresses: BTreeSet<Ipv4Addr>,
}

impl NodeSearch {
    /// The query for the Node of the host that gave `probe`.
    pub fn of(known_as: &KnownAs, probe: &Probe) -> Self {
        let whole = probe.host_name.to_lowercase();
        let label = whole.split('.').next().unwrap_or_default().to_owned();
        let names = known_as.names.iter().cloned().chain([whole, label]);
        let addresses = known_as.ipv4.into_iter().chain(probe.addresses.iter().copied());
        Self {
            // A host may report anything; a text that is no valid object name cannot be a Node's name.
            names: names.filter(|name| matches!(name.parse(), Ok(Host::Name(_)))).collect(),
            addresses: addresses.collect(),
        }
    }

    /// Whether a Node with these addresses matches.
    pub fn is_at(&self, addresses: &[String]) -> bool {
        self.addresses.iter().any(|ip| addresses.contains(&ip.to_string()))
    }
}

impl fmt::Display for NodeSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let addresses: Vec<String> = self.addresses.iter().map(ToString::to_string).collect();
        write!(f, "named {} or at {}", names.join(" or "), addresses.join(" or "))
    }
}
