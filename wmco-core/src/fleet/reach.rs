//! How the host of an assignment is reached: address, port, user, host key.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::Ipv4Addr;

use super::Assignment;
use crate::content::usable_address;
use crate::host_key::HostKey;
use crate::host_record::HostRecord;
use crate::instances::{Entries, Field, Instance, Jump};
use crate::limits::SSH_PORT;
use crate::names;
use crate::node::NodeFacts;

/// Where a pinned host key stands. Its text says how to have another key trusted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Pin {
    /// In the entry: a person wrote it down.
    Entry {
        /// The entry's key.
        address: String,
        /// The line's key.
        field: Field,
    },
    /// In an annotation of the Node.
    Node {
        /// The Node.
        node: String,
    },
    /// In the ConfigMap of host keys.
    Kept {
        /// Its key there.
        name: String,
    },
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry { address, field } => write!(
                f,
                "change `{field}=` of entry `{address}` in ConfigMap {}",
                names::objects::INSTANCES_CONFIG_MAP
            ),
            Self::Node { node } => {
                write!(f, "remove annotation {} of node {node}", names::HOST_KEY_ANNOTATION)
            }
            Self::Kept { name } => {
                write!(f, "remove `{name}` from ConfigMap {}", names::objects::HOST_KEYS_CONFIG_MAP)
            }
        }
    }
}

/// A host key that has to be shown, and where it stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Pinned {
    /// Base64 wire form.
    pub key: String,
    /// Where it stands.
    pub by: Pin,
}

/// Where and as whom to connect.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reach {
    /// Address to dial: IPv4 where it is known.
    pub address: String,
    /// TCP port.
    pub port: u16,
    /// SSH user.
    pub username: String,
    /// The key that the host has to show.
    pub host_key: Option<Pinned>,
    /// Name under which a key seen for the first time is kept.
    pub key_name: String,
    /// Names of kept keys that are this instance's own.
    pub kept_keys: Vec<String>,
    /// What is on record of the host, if that can be read.
    pub record: Option<HostRecord>,
    /// The jump host; none: directly.
    pub via: Option<Via>,
}

/// How the jump host of a [`Reach`] is reached.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Via {
    /// Address to dial; a name stays one.
    pub address: String,
    /// TCP port.
    pub port: u16,
    /// SSH user.
    pub username: String,
    /// The key that it has to show.
    pub host_key: Option<Pinned>,
    /// Name under which its key is kept, see [`Jump::key_name`].
    pub key_name: String,
    /// Whether its key is not kept yet under that name.
    pub to_keep: bool,
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
    let in_entry = |key: &HostKey, field| Pinned {
        key: key.to_string(),
        by: Pin::Entry { address: assignment.address.clone(), field },
    };
    let in_map = |name: &String| {
        let (key, name) = (kept.get(name)?.clone(), name.clone());
        Some(Pinned { key, by: Pin::Kept { name } })
    };
    let on_node = |node: &NodeFacts| {
        let key = node.annotation(names::HOST_KEY_ANNOTATION)?.to_owned();
        Some(Pinned { key, by: Pin::Node { node: node.name.clone() } })
    };
    let host_key = instance
        .and_then(|instance| Some(in_entry(instance.host_key.as_ref()?, Field::HostKey)))
        .or_else(|| on_node(node?))
        .or_else(|| in_map(kept_keys.first()?));
    let key_name = origin.unwrap_or(&assignment.address).to_owned();
    let record_of = |name: &str| {
        kept.get(&HostRecord::key_name(name)).and_then(|text| serde_json::from_str(text).ok())
    };
    let via = |jump: &Jump, pinned: Option<&HostKey>, username: &str| {
        let key_name = jump.key_name();
        let kept_key = in_map(&key_name);
        let pinned = pinned.map(|key| in_entry(key, Field::ViaHostKey));
        let same = |one: &Pinned| kept_key.as_ref().is_some_and(|kept| kept.key == one.key);
        Via {
            address: jump.host.to_string(),
            port: jump.port,
            username: jump.username.clone().unwrap_or_else(|| username.to_owned()),
            to_keep: kept_key.is_none() || pinned.as_ref().is_some_and(|pinned| !same(pinned)),
            host_key: pinned.or(kept_key),
            key_name,
        }
    };
    if let Some(instance) = instance {
        let pinned = instance.via_host_key.as_ref();
        return Ok(Reach {
            via: instance.via.as_ref().map(|jump| via(jump, pinned, &instance.username)),
            address: instance.ipv4.to_string(),
            port: instance.port,
            username: instance.username.clone(),
            host_key,
            record: record_of(&instance.address),
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
    let via = node.and_then(remembered_jump).map(|jump| via(&jump, None, &username));
    let record = record_of(&key_name);
    Ok(Reach { address, port, username, host_key, key_name, kept_keys, record, via })
}

/// The port as `node` is to remember it: the usual one only if another stands there.
pub fn remembered_port(instance: &Instance, node: Option<&NodeFacts>) -> Option<u16> {
    let marked = node.is_some_and(|node| node.annotation(names::SSH_PORT_ANNOTATION).is_some());
    (marked || instance.port != SSH_PORT).then_some(instance.port)
}

/// The jump host as `node` is to remember it: none, as an empty text, only if one stands there.
pub fn remembered_via(instance: &Instance, node: Option<&NodeFacts>) -> Option<String> {
    let marked = node.is_some_and(|node| node.annotation(names::SSH_VIA_ANNOTATION).is_some());
    match &instance.via {
        Some(jump) => Some(jump.to_string()),
        None => marked.then(String::new),
    }
}

/// Names of the kept keys of jump hosts that somebody needs. While an entry is broken nobody knows
/// which it means, so then every name of a jump host counts.
pub fn jump_keys_in_use(
    entries: &Entries,
    nodes: &[NodeFacts],
    kept: &BTreeMap<String, String>,
) -> BTreeSet<String> {
    if entries.errors().next().is_some() {
        let of_jump_host =
            |name: &&String| name.contains('_') && HostRecord::address_in(name).is_none();
        return kept.keys().filter(of_jump_host).cloned().collect();
    }
    let listed = entries.instances().filter_map(|instance| instance.via.clone());
    listed.chain(nodes.iter().filter_map(remembered_jump)).map(|jump| jump.key_name()).collect()
}

fn remembered_jump(node: &NodeFacts) -> Option<Jump> {
    node.annotation(names::SSH_VIA_ANNOTATION)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::Because;
    use crate::instances::{self, Resolutions};
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

    fn key_of(pinned: Option<&Pinned>) -> &str {
        &pinned.unwrap().key
    }

    #[test]
    fn a_pin_says_how_to_let_go_of_it() {
        let value = format!("username=a\nhostKey={KEY}\nvia=c.test\nviaHostKey={KEY}");
        let (entries, node) = (listed(&value), node(&[(names::HOST_KEY_ANNOTATION, "its key")]));
        let instance = entries.instances().next();
        let reach = reach(&assignment(), instance, Some(&node), &kept(&[]), |_| None).unwrap();
        let texts =
            [reach.host_key, reach.via.unwrap().host_key].map(|key| key.unwrap().by.to_string());
        assert_eq!(
            texts,
            [
                "change `hostKey=` of entry `10.0.0.5` in ConfigMap windows-instances",
                "change `viaHostKey=` of entry `10.0.0.5` in ConfigMap windows-instances"
            ]
        );
        let by = Pin::Kept { name: "c.test_22".into() };
        assert_eq!(by.to_string(), "remove `c.test_22` from ConfigMap windows-ssh-host-keys");
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
        assert_eq!((reach.username.as_str(), key_of(reach.host_key.as_ref())), ("core", "its key"));
        assert_eq!(reach.host_key.unwrap().by, Pin::Node { node: "win-1".into() });
        assert_eq!(reach.kept_keys, ["10.0.0.5"]);
    }

    #[test]
    fn the_kept_key_counts_while_the_node_has_none() {
        let node = node(&[(names::USERNAME_ANNOTATION, "sealed core")]);
        let reach = to(&node, &kept(&["10.0.0.5"])).unwrap();
        assert_eq!((key_of(reach.host_key.as_ref()), reach.port), ("key of 10.0.0.5", 22));
        assert_eq!(reach.host_key.unwrap().by, Pin::Kept { name: "10.0.0.5".into() });
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

    const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

    fn listed(value: &str) -> Entries {
        instances::parse([("10.0.0.5", value)], &Resolutions::default())
    }

    fn via_of(value: &str, kept: &BTreeMap<String, String>) -> Via {
        let entries = listed(value);
        let instance = entries.instances().next();
        reach(&assignment(), instance, None, kept, |_| None).unwrap().via.unwrap()
    }

    #[test]
    fn a_jump_host_has_its_own_user_port_and_key() {
        let via = via_of("username=a\nvia=b@c.test:23", &kept(&["c.test_23", "10.0.0.5"]));
        assert_eq!((via.address.as_str(), via.port, via.username.as_str()), ("c.test", 23, "b"));
        assert_eq!((key_of(via.host_key.as_ref()), via.to_keep), ("key of c.test_23", false));
        let via = via_of("username=a\nvia=c.test", &kept(&["c.test_23"]));
        assert_eq!((via.username.as_str(), via.host_key, via.to_keep), ("a", None, true));
    }

    #[test]
    fn the_key_in_the_entry_counts_more_than_the_kept_one_of_a_jump_host() {
        let value = format!("username=a\nvia=c.test\nviaHostKey={KEY}");
        let via = via_of(&value, &kept(&["c.test_22"]));
        assert_eq!((key_of(via.host_key.as_ref()), via.to_keep), (KEY, true));
        let via = via_of(&value, &[("c.test_22".to_owned(), KEY.to_owned())].into());
        assert!(!via.to_keep);
    }

    #[test]
    fn an_unlisted_node_tells_its_jump_host_until_it_has_none() {
        let user = (names::USERNAME_ANNOTATION, "sealed core");
        let through = node(&[user, (names::SSH_VIA_ANNOTATION, "c.test:23")]);
        let via = to(&through, &kept(&[])).unwrap().via.unwrap();
        assert_eq!((via.username.as_str(), via.key_name.as_str()), ("core", "c.test_23"));
        let direct = node(&[user, (names::SSH_VIA_ANNOTATION, "")]);
        assert_eq!(to(&direct, &kept(&[])).unwrap().via, None);

        let entries = listed("username=a");
        let instance = entries.instances().next().unwrap();
        assert_eq!(remembered_via(instance, Some(&through)).as_deref(), Some(""));
        assert_eq!(remembered_via(instance, Some(&node(&[]))), None);
        let marked = node(&[(names::SSH_PORT_ANNOTATION, "2222")]);
        assert_eq!(remembered_port(instance, Some(&marked)), Some(22));
        assert_eq!(remembered_port(instance, None), None);
    }

    #[test]
    fn keys_of_jump_hosts_are_kept_while_somebody_needs_them() {
        let kept = kept(&["a_22", "b_22", "c_22", "10.0.0.5"]);
        let nodes = [node(&[(names::SSH_VIA_ANNOTATION, "b")])];
        let in_use = |value| jump_keys_in_use(&listed(value), &nodes, &kept);
        assert_eq!(in_use("username=x\nvia=a"), ["a_22".into(), "b_22".into()].into());
        let all = ["a_22".into(), "b_22".into(), "c_22".into()];
        assert_eq!(in_use("user=x"), all.into(), "a broken entry may mean any of them");
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
