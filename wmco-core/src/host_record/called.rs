//! Names of hosts, and of the Nodes that they register by them.

use std::net::Ipv4Addr;

/// Whether a host with the name `name` may have registered a Node called `node`: by its full name or by its first label.
pub(crate) fn calls(name: &str, node: &str) -> bool {
    forms(name).iter().any(|name| name.eq_ignore_ascii_case(node))
}

/// The Node names that a host with the name `name` may register; an address has no other form.
pub(crate) fn forms(name: &str) -> [&str; 2] {
    let name = name.strip_suffix('.').unwrap_or(name);
    let label = name.split_once('.').filter(|_| name.parse::<Ipv4Addr>().is_err());
    [name, label.map_or(name, |(label, _)| label)]
}
