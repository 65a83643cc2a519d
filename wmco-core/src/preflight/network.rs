//! The cluster's networks: plug-in, services, pods of Linux nodes.

use serde_json::Value;

use super::api_server::no_object;
use super::{ClusterSeen, Finding, Requirement, Seen, Severity, field, quoted, shown};
use crate::ip_network::{IpNetwork, NetworkError};
use crate::support_matrix::SUPPORTED;

pub(super) const NETWORK: &str = "networks.config.openshift.io/cluster";
pub(super) const OPERATOR_NETWORK: &str = "networks.operator.openshift.io/cluster";

/// Field of the latter with the overlay network of Windows nodes.
pub(super) const OVERLAY: &str = "spec.defaultNetwork.ovnKubernetesConfig.hybridOverlayConfig";

/// Its field with the networks of pods on Windows nodes.
pub(super) const OVERLAY_PODS: &str =
    "spec.defaultNetwork.ovnKubernetesConfig.hybridOverlayConfig.hybridClusterNetwork";

pub(super) fn check(seen: &ClusterSeen, found: &mut Vec<Finding>) {
    let network = match &seen.network {
        Seen::Object(network) => network,
        Seen::ObjectMissing => return found.push(no_object(NETWORK)),
        Seen::Unknown | Seen::KindMissing => return,
    };
    found.extend(plug_in(NETWORK, "spec.networkType", network));
    found.extend(services(network));
    found.extend(pods(network));
}

/// Checks the plug-in that `object` names in its `at`.
pub(super) fn plug_in(name: &str, at: &str, object: &Value) -> Option<Finding> {
    let found = object.pointer(&format!("/{}", at.replace('.', "/")));
    let is_supported = |name: &str| SUPPORTED.network_types.iter().any(|known| known == name);
    if found.and_then(Value::as_str).is_some_and(is_supported) {
        return None;
    }
    Some(Finding {
        requirement: Requirement::NetworkType,
        severity: Severity::Blocking,
        at: field(name, at),
        seen: shown(found),
        needed: SUPPORTED.network_types.join(" or "),
        next_step: "migrate the cluster's network; no other plug-in connects Windows nodes"
            .to_owned(),
    })
}

fn services(network: &Value) -> Option<Finding> {
    let found = network.pointer("/spec/serviceNetwork");
    let texts = found.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let texts: Option<Vec<&str>> = texts.iter().map(Value::as_str).collect();
    let usable = texts.map(IpNetwork::choose);
    let seen = match usable {
        Some(Ok(network)) => match network.reserved() {
            None => return None,
            Some(is) => in_reserved(&network, is),
        },
        None | Some(Err(NetworkError::NoIpv4)) => shown(found),
        Some(Err(error)) => format!("cannot be used: {error}"),
    };
    Some(Finding {
        requirement: Requirement::ServiceNetwork,
        severity: Severity::Blocking,
        at: field(NETWORK, "spec.serviceNetwork"),
        seen,
        needed: "an IPv4 network of ordinary addresses, the tenth of which is the DNS service's"
            .to_owned(),
        next_step:
            "a cluster keeps its service network for life: install it with another one, such as \
                    172.30.0.0/16"
                .to_owned(),
    })
}

fn pods(network: &Value) -> Vec<Finding> {
    let finding = |severity, at: &str, seen: String| Finding {
        requirement: Requirement::ClusterNetwork,
        severity,
        at: field(NETWORK, at),
        seen,
        needed: "a network of ordinary IPv4 addresses, such as 10.128.0.0/14".to_owned(),
        next_step: "add pods' networks that Windows can reach, and move Linux nodes there"
            .to_owned(),
    };
    let list = network.pointer("/spec/clusterNetwork").filter(|list| !list.is_null());
    let networks = cidrs(list);
    if !networks.iter().any(|network| network.as_ref().is_ok_and(IpNetwork::is_ipv4)) {
        // Nobody wrote any: there may be networks that this object does not show.
        let severity = if list.is_none() { Severity::Warning } else { Severity::Blocking };
        return vec![finding(severity, "spec.clusterNetwork", shown(list))];
    }
    let wrong = networks.into_iter().enumerate().filter_map(|(index, network)| {
        let seen = match network {
            Ok(network) => in_reserved(&network, network.reserved()?),
            Err(text) => text,
        };
        let at = format!("spec.clusterNetwork[{index}].cidr");
        Some(finding(Severity::Blocking, &at, seen))
    });
    wrong.collect()
}

/// A next step that changes an overlay: the network operator refuses to change one that runs.
pub(super) fn anew(change: &str) -> String {
    format!(
        "{change}; the network operator changes no overlay that runs: take `hybridOverlayConfig` out, wait until \
         clusteroperator `network` progresses no more, and set it anew (pods on Windows have no network meanwhile)"
    )
}

/// What is wrong with a network that has addresses of a reserved range.
pub(super) fn in_reserved(network: &IpNetwork, is: &str) -> String {
    format!("is {network}, which is {is} in part or whole")
}

/// The networks in a list of objects with a `cidr` each; invalid values as printable text.
pub(super) fn cidrs(list: Option<&Value>) -> Vec<Result<IpNetwork, String>> {
    let list = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let parsed = list.iter().map(|entry| {
        let cidr = entry.get("cidr");
        let Some(text) = cidr.and_then(Value::as_str) else { return Err(shown(cidr)) };
        text.parse().map_err(|_| format!("is {}, which is no network", quoted(text)))
    });
    parsed.collect()
}
