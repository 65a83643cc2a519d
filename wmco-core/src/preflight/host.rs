//! Checks whether a host can become a node.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use super::{Finding, Requirement, Severity, quoted};
use crate::cluster_identity::ClusterIdentity;
use crate::facts::NodeFacts;
use crate::instances::Host;
use crate::ip_network::IpNetwork;
use crate::limits;
use crate::names::TAKE_OVER_ANNOTATION;
use crate::names::host::{CONTAINERD_SERVICE, KUBELET_SERVICE, SERVICE_TAG};
use crate::names::objects::{HOST_KEYS_CONFIG_MAP, INSTANCES_CONFIG_MAP};
use crate::protocol::{ForeignService, Probe};
use crate::support_matrix::SUPPORTED;

/// Known facts about a host.
#[derive(Clone, Copy, Debug)]
pub struct HostSeen<'a> {
    /// The report of its agent.
    pub probe: &'a Probe,
    /// Reverse DNS names of its address; `None` if the DNS was not asked.
    pub reverse_names: Option<&'a [String]>,
    /// The port of the cluster's overlay network, if it is not the default.
    pub vxlan_port: Option<u16>,
    /// The cluster that the host is to join; `None` if that does not matter.
    pub cluster: Option<&'a ClusterIdentity>,
    /// Its Node, if that is another machine's.
    pub other_machine: Option<OtherMachine<'a>>,
    /// Who asks for work on it.
    pub asked_by: AskedBy,
}

/// What shows that the Node of a host is another machine's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OtherMachine<'a> {
    /// The Node is ready at other addresses.
    RunsElsewhere(&'a NodeFacts),
    /// The Node was registered by a host with this name, and this one has another.
    HasOtherName(&'a NodeFacts, &'a str),
}

/// Who asks for work on a host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AskedBy {
    /// Its entry.
    Entry,
    /// Its Machine.
    Machine,
    /// Nobody any more: it is to leave the cluster.
    Nobody,
}

impl<'a> HostSeen<'a> {
    /// The report of a host's agent, and nothing besides.
    pub const fn of(probe: &'a Probe) -> Self {
        Self {
            probe,
            reverse_names: None,
            vxlan_port: None,
            cluster: None,
            other_machine: None,
            asked_by: AskedBy::Entry,
        }
    }
}

/// Finds problems that keep a host from becoming a working node, blocking findings first. For an existing node,
/// only findings that still apply are reported.
///
/// ```
/// use serde_json::json;
/// use wmco_core::preflight::{self, HostSeen, Requirement};
/// use wmco_core::protocol::Probe;
///
/// // What the agent tells of a host that runs Windows Server 2016.
/// let probe: Probe = serde_json::from_value(json!({
///     "protocol": 1,
///     "agent": {"version": "1", "sha256": "0".repeat(64), "installed": null},
///     "hostName": "win-1",
///     "osBuild": "10.0.14393",
///     "addresses": ["10.0.0.5"],
///     "containers": "enabled",
///     "reboot": [],
///     "bootId": "1",
///     "files": {},
///     "services": {},
///     "environment": {},
///     "networks": [],
///     "directories": [],
///     "daemonCertificateValid": false,
///     "state": null,
/// }))?;
///
/// let findings = preflight::host(&HostSeen::of(&probe));
/// assert_eq!(findings[0].requirement, Requirement::WindowsRelease);
/// assert!(findings[0].blocks() && findings[0].needed.contains("Windows Server 2022"));
/// Ok::<(), serde_json::Error>(())
/// ```
pub fn host(seen: &HostSeen<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(installation(seen.probe));
    found.extend(release(seen));
    found.extend(rights(seen.probe));
    found.extend(name(seen.probe));
    found.extend(address(seen.probe));
    found.extend(other_cluster(seen));
    found.extend(other_machine(seen));
    found.extend(foreign(seen.probe));
    found.extend(ports(seen.probe));
    found.extend(disk(seen.probe));
    found.extend(default_route(seen.probe));
    found.extend(reverse_name(seen));
    found.sort();
    found.sort_by_key(|finding| finding.severity);
    found
}

/// A desktop release may have the build of a server.
fn installation(probe: &Probe) -> Option<Finding> {
    let kind = probe.fitness.installation.as_deref()?;
    kind.eq_ignore_ascii_case("Client").then(|| Finding {
        requirement: Requirement::WindowsRelease,
        severity: Severity::Blocking,
        at: "Windows on the host".to_owned(),
        seen: format!(
            "is a desktop release, such as Windows 11 (build {})",
            quoted(&probe.os_build)
        ),
        needed: format!("a server: {}", SUPPORTED.windows_names()),
        next_step: "install one of these on the host".to_owned(),
    })
}

fn address(probe: &Probe) -> Option<Finding> {
    let is_usable = |ip: &Ipv4Addr| {
        format!("{ip}/32").parse().is_ok_and(|it: IpNetwork| it.reserved().is_none())
    };
    let all: Vec<_> = probe.addresses.iter().map(Ipv4Addr::to_string).collect();
    (!probe.addresses.iter().any(is_usable)).then(|| Finding {
        requirement: Requirement::HostAddress,
        severity: Severity::Blocking,
        at: "the host".to_owned(),
        seen: if all.is_empty() {
            "has no IPv4 address".to_owned()
        } else {
            format!("has no IPv4 address but {}", quoted(&all.join(", ")))
        },
        needed: "one that the cluster's nodes reach: it is the node's".to_owned(),
        next_step: "give one of its network cards an address (Get-NetIPAddress)".to_owned(),
    })
}

fn release(seen: &HostSeen<'_>) -> Option<Finding> {
    let build = &seen.probe.os_build;
    let finding = |requirement, seen: String, needed: String, next_step: &str| Finding {
        requirement,
        severity: Severity::Blocking,
        at: "Windows on the host".to_owned(),
        seen,
        needed,
        next_step: next_step.to_owned(),
    };
    let Some(release) = SUPPORTED.windows(build) else {
        return Some(finding(
            Requirement::WindowsRelease,
            format!("is {}", quoted(build)),
            SUPPORTED.windows_names(),
            "install one of these on the host",
        ));
    };
    let port = seen.vxlan_port.filter(|port| *port != SUPPORTED.vxlan_port)?;
    (!release.custom_vxlan_port).then(|| {
        finding(
            Requirement::VxlanPort,
            format!("is {}, and the overlay's port is {port}", release.name),
            format!("port {} with that release", SUPPORTED.vxlan_port),
            "use a later release, or set the overlay up anew without hybridOverlayVXLANPort where the platform can do without",
        )
    })
}

fn name(probe: &Probe) -> Option<Finding> {
    let name = probe.host_name.trim();
    let is_name = matches!(name.to_lowercase().parse(), Ok(Host::Name(_))) && !name.ends_with('.');
    (!is_name).then(|| Finding {
        requirement: Requirement::HostName,
        severity: Severity::Blocking,
        at: "the host's name".to_owned(),
        seen: format!("is {}", quoted(name)),
        needed: "letters, digits and hyphens, not digits alone and with none of the hyphens at an end, as RFC 1123 \
                 and Windows have it: it becomes the node's name"
            .to_owned(),
        next_step: "rename the computer (Rename-Computer) and restart it".to_owned(),
    })
}

fn rights(probe: &Probe) -> Option<Finding> {
    (probe.fitness.is_administrator == Some(false)).then(|| Finding {
        requirement: Requirement::Administrator,
        severity: Severity::Blocking,
        at: "the login user".to_owned(),
        seen: "has no rights of an administrator".to_owned(),
        needed: "those rights: services and features are installed".to_owned(),
        next_step: "list an administrator, or add the user to the host's group Administrators \
                    (Add-LocalGroupMember)"
            .to_owned(),
    })
}

fn other_cluster(seen: &HostSeen<'_>) -> Option<Finding> {
    let (cluster, state) = (seen.cluster?, seen.probe.state.as_ref()?);
    let owner = cluster.owner_besides(state)?;
    // A command is never made of what a host may choose freely.
    let is_plain =
        owner.len() <= 64 && owner.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let taken = if cluster.lost(state) { ", which took it from this one" } else { "" };
    let or_allow = if taken.is_empty() && is_plain {
        format!(
            "; if that cluster is gone, allow that its hosts are taken: \
             `kubectl annotate --overwrite configmap {INSTANCES_CONFIG_MAP} {TAKE_OVER_ANNOTATION}={owner}`, in the \
             operator's namespace"
        )
    } else {
        String::new()
    };
    let here = if seen.asked_by == AskedBy::Nobody {
        format!(
            "; to forget it here, delete its node and its two keys in ConfigMap {HOST_KEYS_CONFIG_MAP}"
        )
    } else {
        ", or the one here".to_owned()
    };
    Some(Finding {
        requirement: Requirement::OtherCluster,
        severity: Severity::Blocking,
        at: "the host".to_owned(),
        seen: format!("belongs to the cluster {}{taken}", quoted(owner)),
        needed: format!("a host of this cluster ({}), or of none", quoted(&cluster.id)),
        next_step: format!(
            "remove its entry from {INSTANCES_CONFIG_MAP} there, so that it is cleaned{here}{or_allow}"
        ),
    })
}

fn other_machine(seen: &HostSeen<'_>) -> Option<Finding> {
    let node = match seen.other_machine? {
        OtherMachine::RunsElsewhere(node) => node,
        OtherMachine::HasOtherName(node, name) => return Some(other_name(seen, node, name)),
    };
    let there = node.addresses.iter().filter(|text| text.parse::<Ipv4Addr>().is_ok());
    let there = there.map(String::as_str).collect::<Vec<_>>().join(" or ");
    let (shows, next_step) = match seen.asked_by {
        AskedBy::Nobody => (
            ", whose key and name it shows",
            format!(
                "list {there} again, so that the machine of that node can leave, or delete node {}: then this host is \
                 cleaned",
                node.name
            ),
        ),
        AskedBy::Entry => (
            ", whose key and name it shows",
            format!(
                "list {there} in place of this entry and give the copy a key and a name of its own, or, if this is \
                 the machine, write its key into the entry (`hostKey=`)"
            ),
        ),
        AskedBy::Machine => (
            "",
            "wait until its Machine and the node show the same address, restart the kubelet if it shows an old one, or \
             delete the Machine, so that its MachineSet, if it has one, makes another"
                .to_owned(),
        ),
    };
    Some(Finding {
        requirement: Requirement::OtherMachine,
        severity: Severity::Blocking,
        at: "the host".to_owned(),
        seen: format!("is not at {there}, where node {} is ready{shows}", node.name),
        needed: "the machine of that node, not another one".to_owned(),
        next_step,
    })
}

fn other_name(seen: &HostSeen<'_>, node: &NodeFacts, name: &str) -> Finding {
    let node = &node.name;
    let then = match seen.asked_by {
        AskedBy::Nobody => "cleaned",
        AskedBy::Entry | AskedBy::Machine => "configured",
    };
    Finding {
        requirement: Requirement::OtherMachine,
        severity: Severity::Blocking,
        at: "the host".to_owned(),
        seen: format!(
            "calls itself {}, and node {node} was registered by a host with the same key and the name {}",
            quoted(&seen.probe.host_name),
            quoted(name)
        ),
        needed: "the machine of that node, not another one".to_owned(),
        next_step: format!(
            "give the machine of that node its address back, or, if it is gone or was renamed, delete node {node}: then this \
             host is {then}"
        ),
    }
}

fn foreign(probe: &Probe) -> Vec<Finding> {
    let finding = |requirement, service: &ForeignService, what: &str| {
        Finding {
        requirement,
        severity: Severity::Blocking,
        at: format!("the service {}", quoted(&service.name)),
        seen: format!(
            "runs a {what} that is not ours and that we do not take over: {}",
            quoted(program(&service.command))
        ),
        needed: format!("no {what} but ours"),
        next_step: "stop and remove that service (`sc.exe stop`, then `sc.exe delete`), and the operator goes \
                    on by itself"
            .to_owned(),
    }
    };
    let containerd = probe.foreign_containerd.iter();
    let containerd = containerd.filter(|_| !probe.services.contains_key(CONTAINERD_SERVICE));
    let kubelet = probe.fitness.foreign_kubelet.iter();
    let kubelet = kubelet.filter(|_| !probe.services.contains_key(KUBELET_SERVICE));
    let containerd =
        containerd.map(|it| finding(Requirement::ForeignContainerd, it, CONTAINERD_SERVICE));
    let kubelet = kubelet.map(|it| finding(Requirement::ForeignKubelet, it, KUBELET_SERVICE));
    containerd.chain(kubelet).collect()
}

/// The program of a command line, whose arguments may have passwords.
fn program(command: &str) -> &str {
    let command = command.trim();
    if let Some(rest) = command.strip_prefix('"') {
        return rest.split('"').next().unwrap_or_default();
    }
    let ends = command.char_indices().filter(|(_, letter)| *letter == ' ').map(|(at, _)| at);
    let mut heads = ends.chain([command.len()]).filter_map(|end| command.get(..end));
    // A path may have blanks.
    let is_program = |head: &&str| {
        head.get(head.len().saturating_sub(4)..).is_some_and(|it| it.eq_ignore_ascii_case(".exe"))
    };
    heads.clone().find(is_program).or_else(|| heads.next()).unwrap_or_default()
}

/// On a host with our services, these services use the ports.
fn ports(probe: &Probe) -> Option<Finding> {
    let is_ours = probe.services.values().any(|it| it.description.starts_with(SERVICE_TAG));
    let taken: &BTreeSet<u16> = &probe.fitness.taken_ports;
    if is_ours || taken.is_empty() {
        return None;
    }
    let taken: Vec<_> = taken.iter().map(u16::to_string).collect();
    Some(Finding {
        requirement: Requirement::Ports,
        severity: Severity::Blocking,
        at: "programs on the host".to_owned(),
        seen: format!("listen on TCP port {}", taken.join(" and ")),
        needed: "ports of the node that are free".to_owned(),
        next_step:
            "see who listens (Get-NetTCPConnection -State Listen) and stop or move that program"
                .to_owned(),
    })
}

fn disk(probe: &Probe) -> Option<Finding> {
    let free = probe.fitness.free_bytes?;
    let (least, advised) = (limits::FREE_DISK_LEAST, limits::FREE_DISK_ADVISED);
    let gigabytes =
        |bytes: u64| format!("{}.{} GB", bytes / 1_000_000_000, bytes / 100_000_000 % 10);
    (free < advised).then(|| Finding {
        requirement: Requirement::DiskSpace,
        severity: if free < least { Severity::Blocking } else { Severity::Warning },
        at: "the disk of C:".to_owned(),
        seen: format!("has {} free", gigabytes(free)),
        needed: format!(
            "{} at least for programs, {} with logs and images",
            gigabytes(least),
            gigabytes(advised)
        ),
        next_step: "free space or enlarge the disk".to_owned(),
    })
}

fn default_route(probe: &Probe) -> Option<Finding> {
    let routes = probe.fitness.default_routes?;
    let (seen, next_step) = match routes {
        0 => ("has no default route", "set its gateway"),
        1 => return None,
        _ => ("has several default routes", "leave one of its network cards without a gateway"),
    };
    Some(Finding {
        requirement: Requirement::DefaultRoute,
        severity: Severity::Warning,
        at: "the host".to_owned(),
        seen: seen.to_owned(),
        needed: "one network card that leads to the cluster: its address is the node's".to_owned(),
        next_step: next_step.to_owned(),
    })
}

fn reverse_name(seen: &HostSeen<'_>) -> Option<Finding> {
    let names = seen.reverse_names?;
    let host = seen.probe.host_name.trim().to_lowercase();
    let label = |name: &str| name.split('.').next().unwrap_or_default().to_lowercase();
    let leads_back = names.iter().any(|name| label(name) == label(&host));
    (!leads_back).then(|| Finding {
        requirement: Requirement::ReverseName,
        severity: Severity::Warning,
        at: "the DNS, asked for the host's address,".to_owned(),
        seen: match names {
            [] => "has no name".to_owned(),
            names => format!("answers {}", quoted(&names.join(", "))),
        },
        needed: format!("a PTR record for {}", quoted(&host)),
        next_step: "add it where the host is listed by its address: there it is a witness for the name in the \
                    serving certificate"
            .to_owned(),
    })
}
