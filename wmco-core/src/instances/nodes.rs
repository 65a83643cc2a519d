//! Which Node belongs to which entry.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use k8s_openapi::api::core::v1::Node;

use super::resolve::canonical;
use super::{Entries, Resolve, value};

/// Why the user name of a Node is not known.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum UsernameError {
    /// An entry is there, and wrong.
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

/// The first of `nodes` that has the address `ipv4`, of whatever type.
///
/// Source: `spec/ssh.md`, section 1.2.
pub fn node_of<'a>(ipv4: Ipv4Addr, nodes: impl IntoIterator<Item = &'a Node>) -> Option<&'a Node> {
    let ipv4 = ipv4.to_string();
    nodes.into_iter().find(|node| addresses(node).any(|address| address == ipv4))
}

/// Name of the SSH user of `node`, from the ConfigMap's `data`: the entry is the one whose key is,
/// letter by letter, the first such address of the Node. Nothing is resolved.
///
/// Source: `spec/ssh.md`, section 1.3.
///
/// # Errors
/// [`UsernameError`] if no entry is found, or it is wrong.
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

impl Entries {
    /// Key of the entry that lists `node`; `None` means that the node is to be removed.
    ///
    /// An entry lists a node when one of the node's addresses is the entry's key or its IPv4
    /// address, or when a reverse name of one of the node's IP addresses is the entry's key. Names
    /// are compared without regard to case and a dot at the end.
    ///
    /// A wrong entry counts by its key: a typing mistake, or a DNS that does not answer, must not
    /// remove a node. Source: `spec/operator.md`, sections 6.2 and 13 (row 34).
    pub fn listing<'a>(&'a self, node: &Node, names: &impl Resolve) -> Option<&'a str> {
        let mut known: Vec<String> = addresses(node).map(canonical).collect();
        for ip in addresses(node).filter_map(|address| address.parse::<IpAddr>().ok()) {
            known.extend(names.reverse(ip).iter().map(|name| canonical(name)));
        }
        self.iter()
            .find(|(key, entry)| {
                let ipv4 = entry.as_ref().ok().map(|instance| instance.ipv4.to_string());
                known.contains(&canonical(key)) || ipv4.is_some_and(|ipv4| known.contains(&ipv4))
            })
            .map(|(key, _)| key)
    }
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

    use super::super::{Resolutions, parse};
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

    fn listing(data: &[(&str, &str)], node: &Node, names: &Resolutions) -> Option<String> {
        parse(data.iter().copied(), names).listing(node, names).map(str::to_owned)
    }

    #[test]
    fn a_node_is_listed_by_address_or_by_what_the_key_resolves_to() {
        let node = node("n", &[("InternalIP", "10.0.0.5"), ("Hostname", "WIN-1.example.test")]);
        let mut names = Resolutions::default();
        names.insert("other.example.test", Ok(Ipv4Addr::new(10, 0, 0, 5)));
        for key in ["10.0.0.5", "win-1.example.test.", "other.example.test"] {
            assert_eq!(listing(&[(key, "username=a")], &node, &names).as_deref(), Some(key));
        }
        assert_eq!(listing(&[("10.0.0.6", "username=a")], &node, &names), None);
    }

    #[test]
    fn a_node_is_listed_by_a_reverse_name_with_its_dot() {
        let node = node("n", &[("InternalIP", "10.0.0.5")]);
        let mut names = Resolutions::default();
        names.insert_reverse(IpAddr::from([10, 0, 0, 5]), vec!["Win-1.example.test.".to_owned()]);
        let key = "win-1.example.test";
        assert_eq!(listing(&[(key, "username=a")], &node, &names).as_deref(), Some(key));
        let part = "win-1.example";
        assert_eq!(listing(&[(part, "username=a")], &node, &names), None, "a part is no match");
    }

    #[test]
    fn a_wrong_entry_still_keeps_its_node() {
        let node = node("n", &[("InternalIP", "10.0.0.5")]);
        let data = [("10.0.0.5", "usrname=a")];
        assert!(listing(&data, &node, &Resolutions::default()).is_some());
    }

    #[test]
    fn the_error_of_a_wrong_value_names_the_entry() {
        let node = node("n", &[("InternalIP", "10.0.0.5")]);
        let data = BTreeMap::from([("10.0.0.5".to_owned(), "user=a".to_owned())]);
        let error = username_of(&node, &data).unwrap_err().to_string();
        assert!(error.starts_with("entry `10.0.0.5` of ConfigMap"), "{error}");
    }
}
