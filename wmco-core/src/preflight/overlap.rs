//! Networks of a cluster that have addresses in common.

use serde_json::Value;

use super::api_server::{self, API_SERVER_URL, INFRASTRUCTURE};
use super::network::{NETWORK, OPERATOR_NETWORK, OVERLAY_PODS, anew, cidrs};
use super::{ClusterSeen, Finding, Requirement, Severity, field, shown};
use crate::ip_network::IpNetwork;

const SERVICES: &str = "spec.serviceNetwork";
const PODS: &str = "spec.clusterNetwork";
const NODES: &str = "status.addresses";

/// Networks that are in force while those of the specification are to come.
const SERVICES_IN_FORCE: &str = "status.serviceNetwork";
const PODS_IN_FORCE: &str = "status.clusterNetwork";

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
    found.extend(unreadable(seen));
    let around = around(seen);
    for named in networks.iter().filter(|named| named.list == OVERLAY_PODS) {
        // The addresses of Nodes come last, so none of them hides what blocks.
        let other = around.iter().find(|other| other.network.overlaps(&named.network));
        found.extend(other.map(|other| finding(named, other)));
    }
}

/// A network for pods on Windows that nothing else in the cluster uses, as far as it is known; `None` if all of the
/// examples are in use.
pub(super) fn free(seen: &ClusterSeen) -> Option<&'static str> {
    let used: Vec<_> = networks(seen).into_iter().chain(around(seen)).collect();
    let is_free = |text: &&&str| {
        let network: Option<IpNetwork> = text.parse().ok();
        network.is_some_and(|network| !used.iter().any(|other| other.network.overlaps(&network)))
    };
    EXAMPLES.iter().find(is_free).copied()
}

/// Private networks that pods on Windows may have, of all three ranges of RFC 1918.
const EXAMPLES: [&str; 9] = [
    "10.132.0.0/14",
    "10.140.0.0/14",
    "10.200.0.0/14",
    "10.240.0.0/14",
    "10.64.0.0/14",
    "172.20.0.0/14",
    "172.16.0.0/14",
    "192.168.0.0/16",
    "172.24.0.0/14",
];

/// Networks by which OVN-Kubernetes connects nodes: the fields that set each, the present one first, and its value where
/// none does. Source:
/// <https://docs.okd.io/latest/networking/ovn_kubernetes_network_provider/configure-ovn-kubernetes-subnets.html>.
const OF_OVN: [([&str; 2], &str); 3] = [
    (
        [
            "spec.defaultNetwork.ovnKubernetesConfig.ipv4.internalJoinSubnet",
            "spec.defaultNetwork.ovnKubernetesConfig.v4InternalSubnet",
        ],
        "100.64.0.0/16",
    ),
    (
        ["spec.defaultNetwork.ovnKubernetesConfig.ipv4.internalTransitSwitchSubnet"; 2],
        "100.88.0.0/16",
    ),
    (
        ["spec.defaultNetwork.ovnKubernetesConfig.gatewayConfig.ipv4.internalMasqueradeSubnet"; 2],
        "169.254.0.0/17",
    ),
];

/// Networks of the machines, where the installation noted them.
const OF_MACHINES: [&str; 2] = [
    "status.platformStatus.vsphere.machineNetworks",
    "status.platformStatus.baremetal.machineNetworks",
];

/// Addresses of the API server and of the ingress, where the installation noted them.
const OF_SERVERS: [&str; 6] = [
    "status.platformStatus.vsphere.apiServerInternalIPs",
    "status.platformStatus.vsphere.ingressIPs",
    "status.platformStatus.baremetal.apiServerInternalIPs",
    "status.platformStatus.baremetal.ingressIPs",
    "status.platformStatus.nutanix.apiServerInternalIPs",
    "status.platformStatus.nutanix.ingressIPs",
];

/// What else a network for pods on Windows may have no address of: networks of OVN-Kubernetes, of machines and in force, and the
/// addresses of the API server, the ingress and Nodes.
fn around(seen: &ClusterSeen) -> Vec<Named> {
    let named = |object, list: &'static str, field: String, text: &str| {
        Some(Named { object, list, field, network: text.parse().ok()?, in_both: false })
    };
    let of_ovn = of_ovn(seen).filter_map(|(field, text)| {
        named(OPERATOR_NETWORK, field, field.to_owned(), text.as_str()?)
    });
    let infrastructure = seen.infrastructure.object();
    let of_machines = OF_MACHINES.iter().flat_map(|list| {
        let networks = texts(infrastructure, list).into_iter();
        networks.filter_map(|(field, text)| named(INFRASTRUCTURE, list, field, text))
    });
    let of_nodes = seen.nodes.iter().flat_map(|node| {
        let network = |address: &String| {
            let field = format!("status.addresses of node {}", node.name);
            named("the cluster", NODES, field, &format!("{address}/32"))
        };
        node.addresses.iter().filter_map(network)
    });
    let api_server = seen.infrastructure.object().and_then(api_server::address);
    let api_server = api_server.and_then(|ip| {
        named(INFRASTRUCTURE, API_SERVER_URL, API_SERVER_URL.to_owned(), &format!("{ip}/32"))
    });
    let of_servers = OF_SERVERS.iter().flat_map(|list| {
        let addresses = texts(infrastructure, list).into_iter();
        let network =
            move |(field, text)| named(INFRASTRUCTURE, list, field, &format!("{text}/32"));
        addresses.filter_map(network)
    });
    let network = seen.network.object();
    let services = texts(network, SERVICES_IN_FORCE).into_iter();
    let services = services.map(|(at, text)| (SERVICES_IN_FORCE, at, text.parse().ok()));
    let pods = of_pods(network, PODS_IN_FORCE).map(|(at, network)| (PODS_IN_FORCE, at, network));
    let mut asked = networks(seen);
    asked.retain(|asked| asked.list != OVERLAY_PODS);
    let in_force = services.chain(pods).filter_map(|(list, field, network)| {
        let network: IpNetwork = network?;
        let is_asked = asked.iter().any(|asked| asked.network.is_same(&network));
        (!is_asked).then_some(Named { object: NETWORK, list, field, network, in_both: false })
    });
    of_ovn
        .chain(in_force)
        .chain(of_machines)
        .chain(api_server)
        .chain(of_servers)
        .chain(of_nodes)
        .collect()
}

/// The networks of OVN-Kubernetes with the field of each; an empty text is none.
fn of_ovn(seen: &ClusterSeen) -> impl Iterator<Item = (&'static str, Value)> {
    let asked = seen.operator_network.object().into_iter();
    asked.flat_map(|asked| {
        OF_OVN.iter().map(|([present, former], default)| {
            let set = |field: &&'static str| {
                let value = asked.pointer(&pointer(field))?;
                let is_set = !value.is_null() && value.as_str() != Some("");
                is_set.then(|| (*field, value.clone()))
            };
            let set = [present, former].into_iter().find_map(set);
            set.unwrap_or_else(|| (present, (*default).into()))
        })
    })
}

/// Whether such a network has addresses of the overlay's is not known, where it cannot be read.
fn unreadable(seen: &ClusterSeen) -> impl Iterator<Item = Finding> {
    let is_network = |value: &Value| {
        let text = value.as_str().unwrap_or_default();
        text.parse().is_ok_and(|network: IpNetwork| network.is_ipv4())
    };
    let wrong = of_ovn(seen).filter(move |(_, value)| !is_network(value));
    wrong.map(|(at, value)| Finding {
        requirement: Requirement::NetworkOverlap,
        severity: Severity::Warning,
        at: field(OPERATOR_NETWORK, at),
        seen: shown(Some(&value)),
        needed: "an IPv4 network, by which OVN-Kubernetes connects nodes".to_owned(),
        next_step: "correct it, or leave it out: OVN-Kubernetes chooses one then".to_owned(),
    })
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
    // It uses the first alone.
    let overlay = of_pods(asked, OVERLAY_PODS).take(1);
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
        // A kubelet writes the addresses of its Node as it likes, and holds up nobody's work by that.
        severity: if other.list == NODES { Severity::Warning } else { Severity::Blocking },
        at: field(named.object, &named.field),
        seen: format!("is {}, which has addresses of {}", named.network, other.network),
        needed: format!("a network apart from `{}` of {}", other.field, other.object),
        next_step: match (named.list, other.list) {
            (OVERLAY_PODS, NODES) => anew(
                "see whether the node has that address; if so, set a network that nothing else uses",
            ),
            (OVERLAY_PODS, _) => anew("set one that nothing else in or around the cluster uses"),
            (_, _) => "set one that nothing else in or around the cluster uses".to_owned(),
        },
    }
}
