//! Checks of the overlay network of Windows nodes.

use serde_json::Value;

use super::api_server::no_object;
use super::network::{OPERATOR_NETWORK, OVERLAY, OVERLAY_PODS, anew, cidrs, in_reserved, plug_in};
use super::{ClusterSeen, Finding, NodeSeen, Requirement, Seen, Severity, field, overlap, shown};
use crate::ip_network::IpNetwork;
use crate::support_matrix::{OtherVxlanPort, SUPPORTED, SupportedPlatform};

const PORT: &str = "hybridOverlayVXLANPort";

/// The port in examples that need another one than the default.
const OTHER_PORT: u16 = 9898;

/// The port by which Linux nodes reach each other: its field, and its value where none is set.
const GENEVE: (&str, u16) = ("/spec/defaultNetwork/ovnKubernetesConfig/genevePort", 6081);

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
        if other_port(seen) == OtherVxlanPort::No {
            port(&Value::Null, seen, found);
        }
        return found.push(off(seen));
    };
    let list = overlay.get("hybridClusterNetwork");
    let networks = cidrs(list);
    if networks.is_empty() {
        found.push(pods(OVERLAY_PODS, shown(list)));
    }
    if networks.len() > 1 {
        found.push(Finding {
            severity: Severity::Warning,
            needed: "one network: the overlay uses the first alone".to_owned(),
            next_step: "leave it where the first is large enough for the pods of all Windows nodes"
                .to_owned(),
            ..pods(OVERLAY_PODS, format!("has {} networks", networks.len()))
        });
    }
    for (index, network) in networks.iter().enumerate().take(1) {
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
    port(overlay, seen, found);
}

/// What each node gets of such a network.
const NODE_PREFIX: u8 = 24;

fn off(seen: &ClusterSeen) -> Finding {
    let other = other_port(seen);
    let is_taken = geneve_port(seen) == SUPPORTED.vxlan_port;
    let needs_port = match other {
        OtherVxlanPort::Required => true,
        OtherVxlanPort::Possible => is_taken,
        OtherVxlanPort::No => false,
    };
    let port = if needs_port { format!(",\"{PORT}\":{}", free_port(seen)) } else { String::new() };
    let network = overlap::free(seen);
    let instead = network.map_or(" (write one in place of NETWORK)", |_| "");
    let network = network.unwrap_or("NETWORK");
    Finding {
        requirement: Requirement::HybridOverlay,
        severity: Severity::Blocking,
        at: field(OPERATOR_NETWORK, OVERLAY),
        seen: "is not set".to_owned(),
        needed: "OVN-Kubernetes with hybrid networking".to_owned(),
        next_step: format!(
            "switch it on, with a network for pods on Windows that nothing else uses{instead}: kubectl patch \
             networks.operator.openshift.io cluster --type merge -p \
             '{{\"spec\":{{\"defaultNetwork\":{{\"ovnKubernetesConfig\":{{\"hybridOverlayConfig\":\
             {{\"hybridClusterNetwork\":[{{\"cidr\":\"{network}\",\"hostPrefix\":23}}]{port}}}}}}}}}}}'"
        ),
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
        next_step: anew("set one that nothing else in or around the cluster uses"),
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
            "leave it until you set up the overlay again: nobody reads it, and nodes get parts of /{NODE_PREFIX}"
        ),
    })
}

fn port(overlay: &Value, seen: &ClusterSeen, found: &mut Vec<Finding>) {
    let finding = |severity, seen, needed, next_step: String| Finding {
        requirement: Requirement::VxlanPort,
        severity,
        at: field(OPERATOR_NETWORK, &format!("{OVERLAY}.{PORT}")),
        seen,
        needed,
        next_step,
    };
    let (geneve, free) = (geneve_port(seen), free_port(seen));
    let set = overlay.get(PORT).filter(|port| !port.is_null());
    let read = |port: &Value| u16::try_from(port.as_u64()?).ok().filter(|port| *port > 0);
    let number = set.map_or(Some(SUPPORTED.vxlan_port), read);
    let (platform, other) = (platform(seen), other_port(seen));
    let name =
        platform.map_or_else(String::new, |platform| format!(" on platform {}", platform.name));
    let default = SUPPORTED.vxlan_port;
    let Some(number) = number.filter(|number| *number != geneve) else {
        let needed = format!(
            "a UDP port, a number from 1 to 65535 other than {geneve}, by which Linux nodes reach each other (`genevePort`)"
        );
        let next = match other {
            OtherVxlanPort::No if geneve == default => format!(
                "set up the cluster with another `genevePort`: the overlay has port {default}{name}"
            ),
            OtherVxlanPort::No => anew("leave it out"),
            OtherVxlanPort::Required | OtherVxlanPort::Possible => {
                anew(&format!("set a free one, such as {free}"))
            }
        };
        return found.push(finding(Severity::Blocking, shown(set), needed, next));
    };
    let is_default = number == default;
    let cannot = |node: &&NodeSeen| {
        SUPPORTED.windows(&node.windows).is_some_and(|release| !release.custom_vxlan_port)
    };
    let old = seen.nodes.iter().find(cannot);
    let wrong = match other {
        OtherVxlanPort::Required if is_default => Some((
            format!("another port than {number}{name}, which itself uses that one"),
            if old.is_some() {
                format!(
                    "move to a release of Windows that can use another port, then set a free one, such as {free}"
                )
            } else {
                format!(
                    "set a free one, such as {free}: pods on two Windows nodes may not reach each other else"
                )
            },
        )),
        OtherVxlanPort::No if !is_default => {
            Some((format!("port {default}{name}"), "leave the port out".to_owned()))
        }
        _ => None,
    };
    found.extend(
        wrong.map(|(needed, next)| finding(Severity::Warning, shown(set), needed, anew(&next))),
    );
    let Some(node) = old.filter(|_| !is_default) else { return };
    let release = SUPPORTED.windows(&node.windows).map(|release| release.name.as_str());
    found.push(finding(
        Severity::Warning,
        format!("is {number}, and node {} runs {}", node.name, release.unwrap_or_default()),
        format!("port {default} where that release has nodes"),
        match other {
            OtherVxlanPort::Required => {
                "use a later release of Windows: the platform needs another port".to_owned()
            }
            _ => anew("use a later release of Windows, or leave the port out"),
        },
    ));
}

/// The port by which Linux nodes reach each other.
fn geneve_port(seen: &ClusterSeen) -> u16 {
    let set = seen.operator_network.object().and_then(|network| network.pointer(GENEVE.0));
    set.and_then(Value::as_u64).and_then(|port| port.try_into().ok()).unwrap_or(GENEVE.1)
}

/// Another port for the overlay than the default.
fn free_port(seen: &ClusterSeen) -> u16 {
    let geneve = geneve_port(seen);
    if geneve == OTHER_PORT { OTHER_PORT + 1 } else { OTHER_PORT }
}

fn other_port(seen: &ClusterSeen) -> OtherVxlanPort {
    platform(seen).map_or(OtherVxlanPort::Possible, |platform| platform.other_vxlan_port)
}

/// The platform of the cluster, if it is known and supported.
fn platform(seen: &ClusterSeen) -> Option<&'static SupportedPlatform> {
    let name = seen.infrastructure.object()?.pointer("/status/platformStatus/type")?;
    SUPPORTED.platform(name.as_str()?)
}
