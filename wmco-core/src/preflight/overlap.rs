//! Networks of a cluster that have addresses in common.

use serde_json::Value;

use super::network::{NETWORK, cidrs};
use super::overlay::{OPERATOR_NETWORK, OVERLAY_PODS};
use super::{ClusterSeen, Finding, Requirement, Severity, field};
use crate::ip_network::IpNetwork;

const SERVICES: &str = "spec.serviceNetwork";
const PODS: &str = "spec.clusterNetwork";

/// A network with the field that names it.
struct Named {
    object: &'static str,
    /// The list in which it stands.
    list: &'static str,
    field: String,
    network: IpNetwork,
    /// Whether the other object has it, too.
    in_both: bool,
}

impl Named {
    /// Whether both may not have an address in common. One list in both objects is one list, which may change.
    fn is_beside(&self, other: &Self) -> bool {
        self.object == other.object || self.in_both || other.in_both || self.list != other.list
    }
}

pub(super) fn check(seen: &ClusterSeen, found: &mut Vec<Finding>) {
    let networks = networks(seen);
    for (number, named) in networks.iter().enumerate() {
        let mut before = networks.iter().take(number).filter(|other| other.is_beside(named));
        let other = before.find(|other| other.network.overlaps(&named.network));
        found.extend(other.map(|other| finding(named, other)));
    }
}

/// All networks that can be read. What the network operator is asked for counts beside what it has set up, where both
/// differ: a change of networks is on its way then.
fn networks(seen: &ClusterSeen) -> Vec<Named> {
    let (set_up, asked) = (seen.network.object(), seen.operator_network.object());
    let mut networks: Vec<Named> = Vec::new();
    for (object, from) in [(NETWORK, set_up), (OPERATOR_NETWORK, asked)] {
        let services = texts(from, SERVICES).into_iter();
        let services = services.map(|(at, text)| (SERVICES, at, text.parse().ok()));
        let pods = of_pods(from, PODS).map(|(at, network)| (PODS, at, network));
        for (list, field, network) in services.chain(pods) {
            let Some(network) = network else { continue };
            let is_same = |named: &&mut Named| {
                named.object != object
                    && named.list == list
                    && !named.in_both
                    && named.network.is_same(&network)
            };
            if let Some(same) = networks.iter_mut().find(is_same) {
                same.in_both = true;
            } else {
                networks.push(Named { object, list, field, network, in_both: false });
            }
        }
    }
    let overlay = of_pods(asked, OVERLAY_PODS);
    networks.extend(overlay.filter_map(|(field, network)| {
        let (object, list) = (OPERATOR_NETWORK, OVERLAY_PODS);
        Some(Named { object, list, field, network: network?, in_both: false })
    }));
    networks
}

fn texts<'a>(object: Option<&'a Value>, at: &str) -> Vec<(String, &'a str)> {
    let list = object.and_then(|object| object.pointer(&pointer(at))?.as_array());
    let items = list.into_iter().flatten().enumerate();
    items.filter_map(|(index, item)| Some((format!("{at}[{index}]"), item.as_str()?))).collect()
}

fn of_pods(object: Option<&Value>, at: &str) -> impl Iterator<Item = (String, Option<IpNetwork>)> {
    let list = object.and_then(|object| object.pointer(&pointer(at)));
    let networks = cidrs(list).into_iter().enumerate();
    networks.map(move |(index, network)| (format!("{at}[{index}].cidr"), network.ok()))
}

fn pointer(field: &str) -> String {
    format!("/{}", field.replace('.', "/"))
}

fn finding(named: &Named, other: &Named) -> Finding {
    Finding {
        requirement: Requirement::NetworkOverlap,
        severity: Severity::Blocking,
        at: field(named.object, &named.field),
        seen: format!("is {}, which has addresses of {}", named.network, other.network),
        needed: format!("a network apart from `{}` of {}", other.field, other.object),
        next_step: "set one that nothing else in or around the cluster uses".to_owned(),
    }
}
