//! How the host of an assignment is reached: address, port, user, host key.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use super::Assignment;
use crate::content::usable_address;
use crate::instances::Instance;
use crate::limits::SSH_PORT;
use crate::names;
use crate::node::NodeFacts;

/// Where and as whom to connect.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reach {
    /// Address to dial: IPv4 where it is known.
    pub address: String,
    /// TCP port.
    pub port: u16,
    /// SSH user.
    pub username: String,
    /// Base64 wire form of the key that the host has to show.
    pub host_key: Option<String>,
    /// Name under which a key seen for the first time is kept.
    pub key_name: String,
    /// Names of kept keys that are this instance's own.
    pub kept_keys: Vec<String>,
}

/// Why nobody knows how to reach a host.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Unreachable {
    /// The Node has no address.
    #[error("node {node} has no usable address, delete it if its host is gone")]
    NoAddress {
        /// The Node.
        node: String,
    },
    /// Neither an entry nor the Node tells the user.
    #[error(
        "nobody knows the ssh user of node {node}: it is not listed and its annotation {} {problem}; \
         list its address again, or delete the node if its host is gone",
        names::USERNAME_ANNOTATION
    )]
    NoUsername {
        /// The Node.
        node: String,
        /// What is wrong with the annotation.
        problem: &'static str,
    },
}

/// The way to the host of `assignment`.
///
/// `instance` is its entry, if it is listed. `decrypt` reads the Node's user name annotation, `kept`
/// is the ConfigMap of host keys. A key in the entry counts most, since a person wrote it down, then
/// the Node's, then the kept one. Source: `spec/ssh.md`, section 5.2.
///
/// # Errors
/// [`Unreachable`] for a Node that is not listed and tells too little.
pub fn reach(
    assignment: &Assignment,
    instance: Option<&Instance>,
    node: Option<&NodeFacts>,
    kept: &BTreeMap<String, String>,
    decrypt: impl Fn(&str) -> Option<String>,
) -> Result<Reach, Unreachable> {
    let origin = node.and_then(|node| node.annotation(names::INSTANCE_ANNOTATION));
    let mut own: Vec<&str> = vec![&assignment.address];
    own.extend(origin);
    own.extend(node.into_iter().flat_map(|node| node.addresses.iter().map(String::as_str)));
    let kept_keys: Vec<String> =
        kept.keys().filter(|name| own.contains(&name.as_str())).cloned().collect();
    let entry_key = instance.and_then(|i| i.host_key.as_ref()).map(ToString::to_string);
    let node_key = node.and_then(|node| node.annotation(names::HOST_KEY_ANNOTATION));
    let host_key = entry_key
        .or_else(|| node_key.map(str::to_owned))
        .or_else(|| kept_keys.first().and_then(|name| kept.get(name)).cloned());
    let key_name = origin.unwrap_or(&assignment.address).to_owned();
    if let Some(instance) = instance {
        return Ok(Reach {
            address: instance.ipv4.to_string(),
            port: instance.port,
            username: instance.username.clone(),
            host_key,
            key_name: instance.address.clone(),
            kept_keys,
        });
    }
    let name = || node.map_or_else(|| assignment.address.clone(), |node| node.name.clone());
    let address = node
        .and_then(usable_address)
        .map(str::to_owned)
        .or_else(|| assignment.address.parse::<Ipv4Addr>().ok().map(|ip| ip.to_string()))
        .ok_or_else(|| Unreachable::NoAddress { node: name() })?;
    let no_username = |problem| Unreachable::NoUsername { node: name(), problem };
    let sealed = node
        .and_then(|node| node.annotation(names::USERNAME_ANNOTATION))
        .ok_or_else(|| no_username("is missing"))?;
    let username = decrypt(sealed).ok_or_else(|| no_username("cannot be read with this key"))?;
    let port = node
        .and_then(|node| node.annotation(names::SSH_PORT_ANNOTATION))
        .and_then(|port| port.parse().ok())
        .unwrap_or(SSH_PORT);
    Ok(Reach { address, port, username, host_key, key_name, kept_keys })
}

/// The port as a Node remembers it: only one that is not the usual one.
pub fn remembered_port(instance: &Instance) -> Option<u16> {
    (instance.port != SSH_PORT).then_some(instance.port)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::Because;
    use crate::node::Intent;

    fn assignment() -> Assignment {
        Assignment {
            address: "10.0.0.5".into(),
            node: Some("win-1".into()),
            intent: Intent::Leave,
            because: Because::Unlisted,
        }
    }

    fn node(annotations: &[(&str, &str)]) -> NodeFacts {
        NodeFacts {
            name: "win-1".into(),
            addresses: vec!["win-1".into(), "10.0.0.5".into()],
            annotations: annotations.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
            ..NodeFacts::default()
        }
    }

    fn kept(names: &[&str]) -> BTreeMap<String, String> {
        names.iter().map(|name| ((*name).to_owned(), format!("key of {name}"))).collect()
    }

    fn to(node: &NodeFacts, kept: &BTreeMap<String, String>) -> Result<Reach, Unreachable> {
        reach(&assignment(), None, Some(node), kept, |text| {
            text.strip_prefix("sealed ").map(Into::into)
        })
    }

    #[test]
    fn an_unlisted_node_tells_user_port_and_key() {
        let node = node(&[
            (names::USERNAME_ANNOTATION, "sealed core"),
            (names::SSH_PORT_ANNOTATION, "2222"),
            (names::HOST_KEY_ANNOTATION, "its key"),
        ]);
        let reach = to(&node, &kept(&["10.0.0.5", "10.0.0.6"])).unwrap();
        assert_eq!((reach.address.as_str(), reach.port), ("10.0.0.5", 2222));
        assert_eq!((reach.username.as_str(), reach.host_key.as_deref()), ("core", Some("its key")));
        assert_eq!(reach.kept_keys, ["10.0.0.5"]);
    }

    #[test]
    fn the_kept_key_counts_while_the_node_has_none() {
        let node = node(&[(names::USERNAME_ANNOTATION, "sealed core")]);
        let reach = to(&node, &kept(&["10.0.0.5"])).unwrap();
        assert_eq!((reach.host_key.as_deref(), reach.port), (Some("key of 10.0.0.5"), 22));
    }

    #[test]
    fn keys_are_kept_under_the_entry_that_the_node_comes_from() {
        let node = node(&[
            (names::USERNAME_ANNOTATION, "sealed core"),
            (names::INSTANCE_ANNOTATION, "win-1.test"),
        ]);
        let reach = to(&node, &kept(&["win-1.test"])).unwrap();
        assert_eq!(
            (reach.key_name.as_str(), reach.kept_keys),
            ("win-1.test", vec!["win-1.test".into()])
        );
    }

    #[test]
    fn without_a_readable_user_the_error_names_the_node() {
        let error = to(&node(&[(names::USERNAME_ANNOTATION, "?")]), &kept(&[])).unwrap_err();
        assert_eq!(
            error,
            Unreachable::NoUsername {
                node: "win-1".into(),
                problem: "cannot be read with this key"
            }
        );
    }
}
