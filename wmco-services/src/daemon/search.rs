//! Which Node is this host's own.
//!
//! Source: `spec/wicd.md`, sections 6 and 23.2, row 17.

use std::net::Ipv4Addr;

use serde_json::Value;
use wmco_core::names::{self, host};
use wmco_core::winpath::WindowsPath;

use super::node::list;
use crate::identity;
use crate::windows::{Interface, Windows, WindowsError};

/// By what a host knows its Node.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Marks {
    /// Addresses by which others may know the host; see [`own_addresses`].
    pub addresses: Vec<Ipv4Addr>,
    /// Nodes in certificates that lie on the host, valid or not: the kubelet's, then the daemon's.
    pub names: Vec<String>,
    /// Certificates that cannot be read, one line each.
    pub problems: Vec<String>,
}

/// What a search came to.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Search {
    /// The name of the own Node; `None` when there is none (yet).
    pub node: Option<String>,
    /// What people should know although there is an answer, one line each.
    pub doubts: Vec<String>,
}

/// Several Nodes claim to be this host.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("nodes {} all have an address of this host, delete the wrong ones", .names.join(", "))]
pub struct NodeSearchError {
    /// Their names.
    pub names: Vec<String>,
}

/// Reads what a host knows itself by. `certificates` is the folder of the daemon's certificates. A
/// certificate that cannot be read is told and locks nobody out.
///
/// # Errors
/// [`WindowsError`] when the network interfaces cannot be listed.
pub fn marks(windows: &dyn Windows, certificates: &WindowsPath) -> Result<Marks, WindowsError> {
    let (names, problems) = identity::known_nodes(windows.files(), certificates);
    let addresses = own_addresses(&windows.machine().interfaces()?);
    Ok(Marks { addresses, names, problems })
}

/// Addresses of a host by which others may know it, in the system's order: none that every host has, and
/// none of a container network. Where a network takes over the host's own adapter, as overlays do, that
/// becomes a virtual one, too; but then a default route leads through it.
pub fn own_addresses(interfaces: &[Interface]) -> Vec<Ipv4Addr> {
    let of_containers = |interface: &&Interface| {
        let begins = |text: &str, with: &str| {
            text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with))
        };
        let is_virtual = begins(&interface.name, host::VIRTUAL_ADAPTER_NAME)
            || begins(&interface.description, host::VIRTUAL_ADAPTER_DESCRIPTION);
        is_virtual && !interface.leads_out
    };
    let interfaces = interfaces.iter().filter(|interface| !of_containers(interface));
    interfaces
        .flat_map(|interface| &interface.addresses)
        .copied()
        .filter(|it| counts(*it))
        .collect()
}

fn counts(address: Ipv4Addr) -> bool {
    !(address.is_loopback() || address.is_link_local() || address.is_unspecified())
}

/// The Windows Node that this host is. The first name of a certificate whose Node has an address of the
/// host decides. Without one, addresses do, internal ones first, since a certificate may be one of a
/// former name, or copied with a disk. Where no Node has an address of the host, a name is believed
/// alone: a host may have new addresses, and the kubelet, which would report them, waits for the daemon.
///
/// # Errors
/// [`NodeSearchError`] when several Nodes have an address of the host and no certificate names one of them.
pub fn find_node(nodes: &[Value], marks: &Marks) -> Result<Search, NodeSearchError> {
    let own: Vec<String> =
        marks.addresses.iter().filter(|it| counts(**it)).map(ToString::to_string).collect();
    let windows: Vec<(&str, &Value)> = nodes
        .iter()
        .filter(|node| is_windows(node))
        .filter_map(|node| Some((node.pointer("/metadata/name")?.as_str()?, node)))
        .collect();
    let here = |internal_only: bool| -> Vec<&str> {
        let here = windows.iter().filter(|(_, node)| has(node, &own, internal_only));
        here.map(|(name, _)| *name).collect()
    };
    let (inside, anywhere) = (here(true), here(false));
    let certified = |among: &[&str]| marks.names.iter().find(|name| among.contains(&name.as_str()));
    let found = match (certified(&anywhere), inside.as_slice(), anywhere.as_slice()) {
        (Some(name), _, _) => Some(name.as_str()),
        (None, [one], _) | (None, [], [one]) => Some(*one),
        (None, [], []) => {
            let all: Vec<&str> = windows.iter().map(|(name, _)| *name).collect();
            certified(&all).map(String::as_str)
        }
        (None, [], several) | (None, several, _) => {
            let names = several.iter().map(|name| (*name).to_owned()).collect();
            return Err(NodeSearchError { names });
        }
    };
    let mut doubts = marks.problems.clone();
    if let Some(found) = found {
        let others = marks.names.iter().filter(|name| *name != found);
        doubts.extend(others.map(|name| {
            format!(
                "a certificate on this host is one of node {name}, but the host is node {found}; \
                 delete the certificate if the host was renamed or copied"
            )
        }));
    }
    Ok(Search { node: found.map(str::to_owned), doubts })
}

fn is_windows(node: &Value) -> bool {
    let labels = node.get("metadata").and_then(|metadata| metadata.get("labels"));
    let system = labels.and_then(|labels| labels.get(names::OS_LABEL));
    system.and_then(Value::as_str) == Some(names::OS_WINDOWS)
}

/// Whether the Node has one of these addresses.
fn has(node: &Value, own: &[String], internal_only: bool) -> bool {
    list(node.pointer("/status/addresses")).iter().any(|address| {
        let field = |name| address.get(name).and_then(Value::as_str);
        let counts = !internal_only || field("type") == Some("InternalIP");
        counts && field("address").is_some_and(|text| own.iter().any(|own| own == text))
    })
}
