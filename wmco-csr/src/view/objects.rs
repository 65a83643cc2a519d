//! Fills a [`View`] from Kubernetes objects.

use k8s_openapi::api::core::v1::Node;
use wmco_core::names::OS_LABEL;

use super::{NodeFacts, View, fold};

impl View {
    /// Adds a Node or replaces what was known about it.
    pub fn set_node(&mut self, node: &Node) {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        self.set_node_facts(name, NodeFacts::from(node));
    }
}

impl From<&Node> for NodeFacts {
    /// Source of the address types: `spec/csr.md`, W-7.
    fn from(node: &Node) -> Self {
        let labels = node.metadata.labels.as_ref();
        let mut facts = Self {
            os: labels.and_then(|labels| labels.get(OS_LABEL)).cloned(),
            created: node.metadata.creation_timestamp.as_ref().map(|time| time.0),
            ..Self::default()
        };
        let addresses = node.status.as_ref().and_then(|status| status.addresses.as_ref());
        for entry in addresses.into_iter().flatten() {
            let ip = entry.address.parse();
            match (entry.type_.as_str(), ip) {
                ("InternalIP" | "ExternalIP", Ok(ip)) => facts.addresses.push(ip),
                ("Hostname" | "InternalDNS" | "ExternalDNS", Err(_)) => {
                    facts.names.push(fold(&entry.address));
                }
                _ => {}
            }
        }
        facts
    }
}
