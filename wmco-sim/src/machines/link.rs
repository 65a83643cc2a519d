//! Links Nodes to Machines.

use k8s_openapi::api::core::v1::{Node, NodeAddress};
use std::net::Ipv4Addr;

use super::cloud::Cloud;
use super::kinds::Machine;

/// Returns the provider ID of the instance with the Node's address, whatever addresses Machines report.
pub(super) fn provider_id<'a>(cloud: &'a Cloud, node: &Node) -> Option<&'a str> {
    let addresses = node.status.as_ref()?.addresses.as_deref()?;
    let of_node: Vec<Ipv4Addr> = internal(addresses).collect();
    let mut instances = cloud.instances.values();
    let instance = instances.find(|instance| of_node.contains(&instance.address))?;
    Some(&instance.provider_id)
}

/// Returns the Machine of a Node: the one with its provider ID, otherwise the only one that reports its address.
pub(super) fn machine<'a>(
    machines: &'a [Machine],
    node: &Node,
    provider_id: Option<&str>,
) -> Option<&'a Machine> {
    let written = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
    let provider_id = written.filter(|id| !id.is_empty()).or(provider_id);
    let by_provider_id = provider_id.and_then(|id| {
        machines.iter().find(|machine| machine.spec.provider_id.as_deref() == Some(id))
    });
    if by_provider_id.is_some() {
        return by_provider_id;
    }
    let of_node = node.status.as_ref()?.addresses.as_deref()?;
    let shows = |machine: &&Machine| {
        let shown = machine.status.as_ref().and_then(|status| status.addresses.as_deref());
        let mut shown = internal(shown.unwrap_or_default());
        shown.any(|address| internal(of_node).any(|own| own == address))
    };
    let mut showing = machines.iter().filter(shows);
    showing.next().filter(|_| showing.next().is_none())
}

fn internal(addresses: &[NodeAddress]) -> impl Iterator<Item = Ipv4Addr> {
    addresses
        .iter()
        .filter(|address| address.type_ == "InternalIP")
        .filter_map(|address| address.address.parse().ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(address: &str) -> serde_json::Value {
        json!({"addresses": [{"type": "InternalIP", "address": address}]})
    }

    fn node(address: &str, provider_id: Option<&str>) -> Node {
        let node = json!({"metadata": {"name": "n"}, "spec": {"providerID": provider_id},
            "status": shown(address)});
        serde_json::from_value(node).unwrap()
    }

    fn with(name: &str, address: &str, provider_id: Option<&str>) -> Machine {
        let machine = json!({"metadata": {"name": name}, "spec": {"providerID": provider_id},
            "status": shown(address)});
        serde_json::from_value(machine).unwrap()
    }

    #[track_caller]
    fn check(machines: &[Machine], node: &Node, expected: Option<&str>) {
        assert_eq!(machine(machines, node, None).map(Machine::name), expected);
    }

    #[test]
    fn the_provider_id_outranks_addresses() {
        let machines = [with("a", "10.0.0.1", None), with("b", "10.0.0.9", Some("sim:///b"))];
        check(&machines, &node("10.0.0.1", Some("sim:///b")), Some("b"));
    }

    #[test]
    fn an_address_counts_where_no_provider_id_is_known() {
        let machines = [with("a", "10.0.0.1", None), with("b", "10.0.0.2", None)];
        check(&machines, &node("10.0.0.2", None), Some("b"));
        check(&machines, &node("10.0.0.3", None), None);
    }

    #[test]
    fn two_machines_with_one_address_get_no_node() {
        let machines = [with("a", "10.0.0.1", None), with("b", "10.0.0.1", None)];
        check(&machines, &node("10.0.0.1", None), None);
    }
}
