//! Finds the entry with the SSH user of a Node.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node;

use super::value;

/// Why the user name of a Node is not known.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum UsernameError {
    /// The entry is invalid.
    #[error(transparent)]
    Entry(#[from] super::EntryError),
    /// None of the Node's addresses is listed.
    #[error(
        "node `{node}` is not listed, add one of its addresses to ConfigMap {}",
        crate::names::objects::INSTANCES_CONFIG_MAP
    )]
    NotListed {
        /// The Node's name.
        node: String,
    },
}

/// Returns the SSH user of `node` from the ConfigMap's `data`. The entry is the one whose key equals the first such
/// address of the Node, without name resolution.
///
/// Source: `docs/contract/ssh.md`, SSH18.
///
/// # Errors
/// [`UsernameError`] if no entry is found, or the entry is invalid.
pub fn username_of(node: &Node, data: &BTreeMap<String, String>) -> Result<String, UsernameError> {
    let (address, text) =
        addresses(node).find_map(|address| data.get_key_value(address)).ok_or_else(|| {
            UsernameError::NotListed { node: node.metadata.name.clone().unwrap_or_default() }
        })?;
    let value = value::parse(text).map_err(|(field, problem)| super::EntryError {
        address: address.clone(),
        field,
        problem,
    })?;
    Ok(value.username)
}

fn addresses(node: &Node) -> impl Iterator<Item = &str> {
    node.status
        .iter()
        .flat_map(|status| status.addresses.iter().flatten())
        .map(|address| address.address.as_str())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{NodeAddress, NodeStatus};

    use super::*;

    fn node(name: &str, addresses: &[(&str, &str)]) -> Node {
        let addresses = addresses
            .iter()
            .map(|(type_, address)| NodeAddress {
                type_: (*type_).to_owned(),
                address: (*address).to_owned(),
            })
            .collect();
        let mut node = Node::default();
        node.metadata.name = Some(name.to_owned());
        node.status = Some(NodeStatus { addresses: Some(addresses), ..NodeStatus::default() });
        node
    }

    #[test]
    fn the_error_of_a_wrong_value_names_the_entry() {
        let node = node("n", &[("InternalIP", "10.0.0.5")]);
        let data = BTreeMap::from([("10.0.0.5".to_owned(), "user=a".to_owned())]);
        let error = username_of(&node, &data).unwrap_err().to_string();
        assert!(error.starts_with("entry `10.0.0.5` of ConfigMap"), "{error}");
    }
}
