//! Finds this host's own Node.
//!
//! Source: `docs/contract/wicd.md`, WICD35 to WICD38.

use std::net::Ipv4Addr;

use wmco_core::names::host;
use wmco_core::winpath::WindowsPath;

use super::claim::NodeClaim;
use crate::identity;
use crate::windows::{Interface, Windows, WindowsError};

/// Most bytes of an object's name.
const MOST_NAME: usize = 253;

/// Names and addresses by which a host finds its own Node: the names in its certificates first, then its addresses.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HostIdentity {
    /// Addresses by which other hosts reach this host; see [`own_addresses`].
    pub addresses: Vec<Ipv4Addr>,
    /// Node names in certificates on the host, valid or not: the kubelet's, then the daemon's.
    pub names: Vec<String>,
    /// Certificates that cannot be read, one line each.
    pub problems: Vec<String>,
}

/// The result of a search.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Search {
    /// The name of the own Node; `None` if there is none (yet).
    pub node: Option<String>,
    /// Warnings about the result, one line each.
    pub warnings: Vec<String>,
}

/// Several Nodes have an address of this host.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("nodes {} all have an address of this host, delete the wrong ones", .names.join(", "))]
pub struct NodeSearchError {
    /// Their names.
    pub names: Vec<String>,
}

/// Reads the host's certificates and addresses. `certificates` is the folder of the daemon's certificates. A
/// certificate that cannot be read is reported; the search works without it.
///
/// # Errors
/// [`WindowsError`] when the network interfaces cannot be listed.
pub fn host_identity(
    windows: &dyn Windows,
    certificates: &WindowsPath,
) -> Result<HostIdentity, WindowsError> {
    let (names, problems) = identity::known_nodes(windows.files(), certificates);
    let addresses = own_addresses(&windows.machine().interfaces()?);
    Ok(HostIdentity { addresses, names, problems })
}

/// Returns the addresses by which other hosts reach this host, in the system's order: no loopback or link-local
/// addresses, and none of a container network. A network that takes over the host's own adapter, as overlays do, makes
/// it virtual, too, but then a default route uses it.
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

/// Returns the names to request from the cluster, one after the other, before all Windows Nodes are listed; see
/// [`search_result_of`]. Invalid Node names are left out.
pub fn names_to_ask(identity: &HostIdentity) -> impl Iterator<Item = &str> {
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let ends = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_name = move |name: &&String| {
        name.len() <= MOST_NAME && name.starts_with(ends) && name.chars().all(legal)
    };
    identity.names.iter().filter(is_name).map(String::as_str)
}

/// Returns the search result if this Node alone decides it: a Windows Node that a certificate names and that has an
/// address of the host, which is the first rule of [`find_node`]. Of several such Nodes the first in [`names_to_ask`]
/// is the own one.
pub fn search_result_of(node: &NodeClaim, identity: &HostIdentity) -> Option<Search> {
    let named = identity.names.contains(&node.name);
    let right = node.is_windows && named && node.has(&own_texts(identity), false);
    right
        .then(|| Search { node: Some(node.name.clone()), warnings: warnings(&node.name, identity) })
}

/// Finds the host's own Windows Node. The first certificate name whose Node has an address of the host decides. Without
/// one, addresses decide, internal ones first, since a certificate may hold a former name or be copied with a disk. If
/// no Node has an address of the host, a name alone decides: the host may have new addresses, and the kubelet, which
/// would report them, waits for the daemon.
///
/// # Errors
/// [`NodeSearchError`] when several Nodes have an address of the host and no certificate names one of them.
pub fn find_node<N: Into<NodeClaim>>(
    nodes: impl IntoIterator<Item = N>,
    identity: &HostIdentity,
) -> Result<Search, NodeSearchError> {
    let own = own_texts(identity);
    let windows: Vec<NodeClaim> =
        nodes.into_iter().map(Into::into).filter(|node| node.is_windows).collect();
    let here = |internal_only: bool| -> Vec<&str> {
        let here = windows.iter().filter(|node| node.has(&own, internal_only));
        here.map(|node| node.name.as_str()).collect()
    };
    let (inside, anywhere) = (here(true), here(false));
    let certified =
        |among: &[&str]| identity.names.iter().find(|name| among.contains(&name.as_str()));
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
    let warnings =
        found.map_or_else(|| identity.problems.clone(), |found| warnings(found, identity));
    Ok(Search { node: found.map(str::to_owned), warnings })
}

/// Renders the host's addresses as Nodes hold them.
fn own_texts(identity: &HostIdentity) -> Vec<String> {
    identity.addresses.iter().filter(|it| counts(**it)).map(ToString::to_string).collect()
}

/// Returns warnings about identifying the host as the Node `found`.
fn warnings(found: &str, identity: &HostIdentity) -> Vec<String> {
    let others = identity.names.iter().filter(|name| *name != found).map(|name| {
        format!(
            "a certificate on this host is one of node {name}, but the host is node {found}; \
             delete the certificate if the host was renamed or copied"
        )
    });
    identity.problems.iter().cloned().chain(others).collect()
}
