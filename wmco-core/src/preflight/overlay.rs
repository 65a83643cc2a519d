//! Checks of the overlay network of Windows nodes.

use serde_json::Value;

use super::api_server::no_object;
use super::network::{cidrs, in_reserved, plug_in};
use super::{ClusterSeen, Finding, NodeSeen, Requirement, Seen, Severity, field, shown};
use crate::ip_network::IpNetwork;
use crate::support_matrix::SUPPORTED;

pub(super) const OPERATOR_NETWORK: &str = "networks.operator.openshift.io/cluster";
const OVERLAY: &str = "spec.defaultNetwork.ovnKubernetesConfig.hybridOverlayConfig";

pub(super) fn check(seen: &ClusterSeen, found: &mut Vec<Finding>) {
    let network = match &seen.operator_network {
        Seen::Object(network) => network,
        Seen::ObjectMissing => return found.push(no_object(OPERATOR_NETWORK)),
        Seen::Unknown | Seen::KindMissing => return,
    };
    if network.pointer("/spec/defaultNetwork/type").is_some() {
        found.extend(plug_in(OPERATOR_NETWORK, "spec.defaultNetwork.type", network));
    }
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
            Ok(network) => {
                let reserved = network.reserved().map(|is| in_reserved(network, is));
                found.extend(reserved.map(|seen| pods(&at, seen)));
                if network.prefix() > NODE_PREFIX {
                    let seen = format!("is {network}, which has no /{NODE_PREFIX} for a node");
                    found.push(pods(&at, seen));
                }
                let entry = list.and_then(|list| list.get(index));
                found.extend(entry.and_then(|entry| undivided(entry, network, index)));
            }
            Err(text) => found.push(pods(&at, text.clone())),
        }
    }
    port(overlay, &seen.nodes, found);
}

/// Field with the networks of pods on Windows nodes.
pub(super) const OVERLAY_PODS: &str =
    "spec.defaultNetwork.ovnKubernetesConfig.hybridOverlayConfig.hybridClusterNetwork";

/// What each node gets of such a network.
const NODE_PREFIX: u8 = 24;

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

/// A `hostPrefix` that divides the network into no parts for nodes. The overlay does not read it today.
fn undivided(entry: &Value, network: &IpNetwork, index: usize) -> Option<Finding> {
    let prefix = entry.get("hostPrefix").filter(|prefix| !prefix.is_null())?;
    let divides = |prefix: u64| prefix > u64::from(network.prefix()) && prefix <= 32;
    let is_divided = prefix.as_u64().is_some_and(divides);
    (!is_divided).then(|| Finding {
        requirement: Requirement::HybridClusterNetwork,
        severity: Severity::Warning,
        at: field(OPERATOR_NETWORK, &format!("{OVERLAY_PODS}[{index}].hostPrefix")),
        seen: format!("{} in network {network}", shown(Some(prefix))),
        needed: "a longer prefix than that of the network, of at most 32".to_owned(),
        next_step: format!(
            "correct it: so long as the overlay does not read it nodes get parts of /{NODE_PREFIX}"
        ),
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
