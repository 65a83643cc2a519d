//! Which Node is this host's own.
//!
//! Source: `spec/wicd.md`, sections 6 and 23.2, row 17.

use std::net::Ipv4Addr;

use wmco_core::names::host;
use wmco_core::winpath::WindowsPath;

use super::claim::NodeClaim;
use crate::identity;
use crate::windows::{Interface, Windows, WindowsError};

/// Longest name that an object may have.
const MOST_NAME: usize = 253;

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

/// The names to ask the cluster for, one after the other, before it is asked for all Windows Nodes; see
/// [`settles`]. What cannot be the name of a Node is not among them.
pub fn names_to_ask(marks: &Marks) -> impl Iterator<Item = &str> {
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let ends = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_name = move |name: &&String| {
        name.len() <= MOST_NAME && name.starts_with(ends) && name.chars().all(legal)
    };
    marks.names.iter().filter(is_name).map(String::as_str)
}

/// The answer, if this Node settles the search whatever others say: it is a Windows Node that a
/// certificate names and that has an address of the host, as [`find_node`] asks first. Of several such
/// Nodes the first of [`names_to_ask`] is the one.
pub fn settles(node: &NodeClaim, marks: &Marks) -> Option<Search> {
    let named = marks.names.contains(&node.name);
    let right = node.is_windows && named && node.has(&own_texts(marks), false);
    right.then(|| Search { node: Some(node.name.clone()), doubts: doubts(&node.name, marks) })
}

/// The Windows Node that this host is. The first name of a certificate whose Node has an address of the
/// host decides. Without one, addresses do, internal ones first, since a certificate may be one of a
/// former name, or copied with a disk. Where no Node has an address of the host, a name is believed
/// alone: a host may have new addresses, and the kubelet, which would report them, waits for the daemon.
///
/// # Errors
/// [`NodeSearchError`] when several Nodes have an address of the host and no certificate names one of them.
pub fn find_node<N: Into<NodeClaim>>(
    nodes: impl IntoIterator<Item = N>,
    marks: &Marks,
) -> Result<Search, NodeSearchError> {
    let own = own_texts(marks);
    let windows: Vec<NodeClaim> =
        nodes.into_iter().map(Into::into).filter(|node| node.is_windows).collect();
    let here = |internal_only: bool| -> Vec<&str> {
        let here = windows.iter().filter(|node| node.has(&own, internal_only));
        here.map(|node| node.name.as_str()).collect()
    };
    let (inside, anywhere) = (here(true), here(false));
    let certified = |among: &[&str]| marks.names.iter().find(|name| among.contains(&name.as_str()));
    let found = match (certified(&anywhere), inside.as_slice(), anywhere.as_slice()) {
        (Some(name), _, _) => Some(name.as_str()),
        (None, [one], _) | (None, [], [one]) => Some(*one),
        (None, [], []) => {
            let all: Vec<&str> = windows.iter().map(|node| node.name.as_str()).collect();
            certified(&all).map(String::as_str)
        }
        (None, [], several) | (None, several, _) => {
            let names = several.iter().map(|name| (*name).to_owned()).collect();
            return Err(NodeSearchError { names });
        }
    };
    let doubts = found.map_or_else(|| marks.problems.clone(), |found| doubts(found, marks));
    Ok(Search { node: found.map(str::to_owned), doubts })
}

/// The addresses of the host as they stand on Nodes.
fn own_texts(marks: &Marks) -> Vec<String> {
    marks.addresses.iter().filter(|it| counts(**it)).map(ToString::to_string).collect()
}

/// What people should know when the host is the Node `found`.
fn doubts(found: &str, marks: &Marks) -> Vec<String> {
    let others = marks.names.iter().filter(|name| *name != found).map(|name| {
        format!(
            "a certificate on this host is one of node {name}, but the host is node {found}; \
             delete the certificate if the host was renamed or copied"
        )
    });
    marks.problems.iter().cloned().chain(others).collect()
}
