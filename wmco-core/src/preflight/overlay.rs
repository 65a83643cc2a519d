//! Checks of the overlay network of Windows nodes.

use serde_json::Value;

use super::api_server::no_object;
use super::network::cidrs;
use super::{ClusterSeen, Finding, NodeSeen, Requirement, Seen, Severity, field, shown};
use crate::ip_network::IpNetwork;
use crate::support_matrix::SUPPORTED;

const OPERATOR_NETWORK: &str = "networks.operator.openshift.io/cluster";
const OVERLAY: &str = "spec.defaultNetwork.ovnKubernetesConfig.hybridOverlayConfig";

pub(super) fn check(seen: &ClusterSeen, found: &mut Vec<Finding>) {
    let network = match &seen.operator_network {
        Seen::Object(network) => network,
        Seen::ObjectMissing => return found.push(no_object(OPERATOR_NETWORK)),
        Seen::Unknown | Seen::KindMissing => return,
    };
    let pointer = format!("/{}", OVERLAY.replace('.', "/"));
    let Some(overlay) = network.pointer(&pointer).filter(|overlay| overlay.is_object()) else {
        return found.push(off());
    };
    let list = overlay.get("hybridClusterNetwork");
    let networks = cidrs(list);
    if networks.is_empty() {
        found.push(pods(OVERLAY_PODS, shown(list)));
    }
    for (index, network) in networks.iter().enumerate() {
        let at = format!("{OVERLAY_PODS}[{index}].cidr");
        match network {
            Ok(network) if !network.is_ipv4() => {
                found.push(pods(&at, format!("is {network}, which is not IPv4")));
            }
            Ok(network) => match network.reserved() {
                Some(is) => {
                    let seen = format!("is {network}, which is {is} in part or whole");
                    found.push(pods(&at, seen));
                }
                None => found.extend(overlap(&at, network, seen.network.object())),
            },
            Err(text) => found.push(pods(&at, text.clone())),
        }
    }
    port(overlay, &seen.nodes, found);
}

/// Field with the networks of pods on Windows nodes.
const OVERLAY_PODS: &str =
    "spec.defaultNetwork.ovnKubernetesConfig.hybridOverlayConfig.hybridClusterNetwork";

fn off() -> Finding {
    Finding {
        requirement: Requirement::HybridOverlay,
        severity: Severity::Blocking,
        at: field(OPERATOR_NETWORK, OVERLAY),
        seen: "is not set".to_owned(),
        needed: "OVN-Kubernetes with hybrid networking".to_owned(),
        next_step: "switch it on, with a network for pods on Windows: kubectl patch \
                    networks.operator.openshift.io cluster --type merge -p \
                    '{\"spec\":{\"defaultNetwork\":{\"ovnKubernetesConfig\":{\"hybridOverlayConfig\":\
                    {\"hybridClusterNetwork\":[{\"cidr\":\"10.132.0.0/14\",\"hostPrefix\":23}]}}}}}'"
            .to_owned(),
    }
}

fn pods(at: &str, seen: String) -> Finding {
    Finding {
        requirement: Requirement::HybridClusterNetwork,
        severity: Severity::Blocking,
        at: field(OPERATOR_NETWORK, at),
        seen,
        needed: "an IPv4 network of ordinary addresses for pods on Windows, such as 10.132.0.0/14"
            .to_owned(),
        next_step: "set one that nothing else in or around the cluster uses".to_owned(),
    }
}

fn overlap(at: &str, network: &IpNetwork, cluster: Option<&Value>) -> Option<Finding> {
    let spec = cluster?.get("spec")?;
    let services = spec.get("serviceNetwork").and_then(Value::as_array).into_iter().flatten();
    let services = services.filter_map(|text| text.as_str()?.parse().ok());
    let pods = cidrs(spec.get("clusterNetwork")).into_iter().filter_map(Result::ok);
    let services = services.map(|it: IpNetwork| ("spec.serviceNetwork", it));
    let mut others = services.chain(pods.map(|it| ("spec.clusterNetwork", it)));
    let (where_, other) = others.find(|(_, other)| other.overlaps(network))?;
    Some(Finding {
        requirement: Requirement::NetworkOverlap,
        severity: Severity::Blocking,
        at: field(OPERATOR_NETWORK, at),
        seen: format!("is {network}, which has addresses of {other}"),
        needed: format!("a network apart from `{where_}` of networks.config.openshift.io/cluster"),
        next_step: "set one that nothing else in or around the cluster uses".to_owned(),
    })
}

fn port(overlay: &Value, nodes: &[NodeSeen], found: &mut Vec<Finding>) {
    let at = || field(OPERATOR_NETWORK, &format!("{OVERLAY}.hybridOverlayVXLANPort"));
    let set = overlay.get("hybridOverlayVXLANPort").filter(|port| !port.is_null());
    let Some(set) = set else { return };
    let number = set.as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
    let Some(number) = number else {
        return found.push(Finding {
            requirement: Requirement::VxlanPort,
            severity: Severity::Blocking,
            at: at(),
            seen: shown(Some(set)),
            needed: "a UDP port, a number from 1 to 65535".to_owned(),
            next_step: format!("correct it, or leave it out for port {}", SUPPORTED.vxlan_port),
        });
    };
    if number == SUPPORTED.vxlan_port {
        return;
    }
    let cannot = |node: &&NodeSeen| {
        SUPPORTED.windows(&node.windows).is_some_and(|release| !release.custom_vxlan_port)
    };
    let Some(node) = nodes.iter().find(cannot) else { return };
    let release = SUPPORTED.windows(&node.windows).map(|release| release.name.as_str());
    found.push(Finding {
        requirement: Requirement::VxlanPort,
        severity: Severity::Warning,
        at: at(),
        seen: format!("is {number}, and node {} runs {}", node.name, release.unwrap_or_default()),
        needed: format!("port {} where that release has nodes", SUPPORTED.vxlan_port),
        next_step: "leave the port out, or use a later release of Windows".to_owned(),
    });
}
