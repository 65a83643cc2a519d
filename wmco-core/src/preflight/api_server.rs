//! Checks of the cluster's platform, and of the API server's URL for nodes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::Value;

use super::{ClusterSeen, Finding, Requirement, Seen, Severity, field, shown};
use crate::proxy::ProxyError;
use crate::support_matrix::SUPPORTED;
use crate::text::is_dns_subdomain;
use crate::tls_profile::TlsProfile;

pub(super) const INFRASTRUCTURE: &str = "infrastructures.config.openshift.io/cluster";

/// Its field with the URL of the API server for nodes.
pub(super) const API_SERVER_URL: &str = "status.apiServerInternalURI";

const API_SERVER: &str = "apiservers.config.openshift.io/cluster";

pub(super) fn check(seen: &ClusterSeen, found: &mut Vec<Finding>) {
    match &seen.infrastructure {
        Seen::Object(infrastructure) => {
            found.extend(platform(infrastructure));
            found.extend(internal_url(infrastructure));
            found.extend(control_plane(infrastructure));
        }
        Seen::ObjectMissing => found.push(no_object(INFRASTRUCTURE)),
        Seen::Unknown | Seen::KindMissing => {}
    }
    found.extend(seen.proxy.map(proxy));
    let spec = seen.api_server.object().and_then(|object| object.get("spec"));
    let read = TlsProfile::of_cluster(spec);
    found.extend(read.findings.iter().map(|finding| Finding {
        requirement: Requirement::TlsProfile,
        severity: Severity::Warning,
        at: field(API_SERVER, finding.field()),
        seen: format!("asks for what nodes pass over: {finding}"),
        needed: "versions and ciphers that servers on nodes can offer".to_owned(),
        next_step: "correct the profile, or leave it: nodes use the rest of it".to_owned(),
    }));
}

pub(super) fn no_object(name: &str) -> Finding {
    Finding {
        requirement: Requirement::ClusterObject,
        severity: Severity::Blocking,
        at: name.to_owned(),
        seen: "is not there".to_owned(),
        needed: "the object that the installation of the cluster writes".to_owned(),
        next_step: "wait until the installation is over; if it is, restore the object".to_owned(),
    }
}

fn platform(infrastructure: &Value) -> Option<Finding> {
    let found = infrastructure.pointer("/status/platformStatus/type");
    let is_supported = |name: &str| SUPPORTED.platform(name).is_some();
    if found.and_then(Value::as_str).is_some_and(is_supported) {
        return None;
    }
    Some(Finding {
        requirement: Requirement::Platform,
        severity: Severity::Blocking,
        at: field(INFRASTRUCTURE, "status.platformStatus.type"),
        seen: shown(found),
        needed: SUPPORTED.platform_names(),
        next_step:
            "Windows nodes need a cluster on one of these; hosts of your own go with any of them"
                .to_owned(),
    })
}

fn url_of(infrastructure: &Value) -> Option<&Value> {
    infrastructure.pointer("/status/apiServerInternalURI")
}

/// The IPv4 address of the API server for nodes, if its URL has one in place of a name.
pub(super) fn address(infrastructure: &Value) -> Option<Ipv4Addr> {
    let url: http::Uri = url_of(infrastructure)?.as_str()?.parse().ok()?;
    url.host()?.parse().ok()
}

fn internal_url(infrastructure: &Value) -> Option<Finding> {
    let found = url_of(infrastructure);
    let url = found.and_then(Value::as_str).unwrap_or_default();
    if is_usable(url) {
        return None;
    }
    Some(Finding {
        requirement: Requirement::ApiServerUrl,
        severity: Severity::Blocking,
        at: field(INFRASTRUCTURE, API_SERVER_URL),
        // They may have a password.
        seen: match url.chars().find(|letter| ['@', '?', '#'].contains(letter)) {
            Some('@') => "has a user".to_owned(),
            Some(_) => "has a query".to_owned(),
            None => shown(found),
        },
        needed: "an https URL by which nodes reach the API server".to_owned(),
        next_step: "see why the installation did not write it; kubelets have nowhere to connect to"
            .to_owned(),
    })
}

/// Whether `url` is one of https, of a host alone, with a port from 1 to 65535 if with any.
fn is_usable(url: &str) -> bool {
    // The parser drops it.
    if url.contains('#') {
        return false;
    }
    let Ok(url) = url.parse::<http::Uri>() else { return false };
    let Some(authority) = url.authority() else { return false };
    let port = authority.port_u16();
    let with_port = port.map_or_else(String::new, |port| format!(":{port}"));
    let is_whole = authority.as_str() == format!("{}{with_port}", authority.host());
    let is_alone = ["", "/"].contains(&url.path()) && url.query().is_none();
    url.scheme_str() == Some("https")
        && is_host(authority.host())
        && is_whole
        && is_alone
        && port != Some(0)
}

/// Whether it is a name of the DNS, an IPv4 address, or an IPv6 address in brackets, of somebody.
fn is_host(host: &str) -> bool {
    let ip = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(ipv6) => ipv6.parse::<Ipv6Addr>().map(IpAddr::V6),
        None => host.parse::<Ipv4Addr>().map(IpAddr::V4),
    };
    if let Ok(ip) = ip {
        return !ip.is_unspecified();
    }
    let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let last = name.rsplit('.').next().unwrap_or_default();
    // Resolvers take such a name for an address.
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit());
    is_dns_subdomain(&name) && !is_number
}

fn control_plane(infrastructure: &Value) -> Option<Finding> {
    let found = infrastructure.pointer("/status/controlPlaneTopology")?.as_str()?;
    (found == "External").then(|| Finding {
        requirement: Requirement::ControlPlane,
        severity: Severity::Warning,
        at: field(INFRASTRUCTURE, "status.controlPlaneTopology"),
        seen: "is External".to_owned(),
        needed: "a control plane in the cluster itself, as nothing else was tried".to_owned(),
        next_step: "list hosts of your own; such a cluster has no Machine API of its own"
            .to_owned(),
    })
}

fn proxy(error: ProxyError) -> Finding {
    let (at, next_step) = match error {
        ProxyError::NoUrl { .. } | ProxyError::NoStatus => {
            ("proxies.config.openshift.io/cluster", "correct `spec` of that object")
        }
        ProxyError::NoUrlInEnvironment { .. } => {
            ("the operator's environment", "correct the variable in its Subscription or Deployment")
        }
    };
    Finding {
        requirement: Requirement::Proxy,
        severity: Severity::Blocking,
        at: at.to_owned(),
        seen: format!("cannot be used: {error}"),
        needed: "URLs of proxies, or none".to_owned(),
        next_step: next_step.to_owned(),
    }
}
