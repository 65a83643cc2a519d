//! The agent's report about its host.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(doc)]
use super::Access;
use crate::digest::Sha256;
use crate::instances::Host;
use crate::winpath::WindowsPath;

/// A report about a Windows host. It holds no secret: contents and variables appear as digests.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Probe {
    /// [`PROTOCOL`](super::PROTOCOL) of the agent.
    pub protocol: u32,
    /// The agent that answered.
    pub agent: Agent,
    /// Host name with its domain, if it has one, as Windows spells it.
    pub host_name: String,
    /// Windows build, for example `10.0.20348`.
    pub os_build: String,
    /// IPv4 addresses of all interfaces except loopback, in the system's order.
    pub addresses: Vec<Ipv4Addr>,
    /// IPv6 addresses of all interfaces by which other hosts may reach it: neither loopback nor link-local ones. Older
    /// agents do not report them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ipv6: Vec<Ipv6Addr>,
    /// The name that the cloud's metadata service gives the machine, on Amazon's and Google's machines: their kubelet
    /// takes its name from there. Older agents do not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_name: Option<String>,
    /// The containers feature.
    pub containers: FeatureState,
    /// Why the host needs a restart; empty if it does not.
    pub reboot: BTreeSet<RebootReason>,
    /// Changes with every start of the host.
    pub boot_id: String,
    /// Every file below our folders, and every recorded file, with its present state.
    pub files: BTreeMap<WindowsPath, FileState>,
    /// Every Windows service with our tag, by name.
    pub services: BTreeMap<String, ServiceFacts>,
    /// A foreign containerd that would conflict with ours. Older agents do not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign_containerd: Option<ForeignService>,
    /// Further facts that decide whether the host can become a node. Older agents do not report them.
    #[serde(default, skip_serializing_if = "HostFitness::is_unknown")]
    pub fitness: HostFitness,
    /// Digests of the values of the variables that we manage, if they are set.
    pub environment: BTreeMap<String, Sha256>,
    /// Existing HNS networks of the overlay.
    pub networks: BTreeSet<String>,
    /// Existing folders of [`host::DIRECTORIES`](crate::names::host::DIRECTORIES) with the access rights of
    /// [`Access::of_directory`].
    pub directories: BTreeSet<WindowsPath>,
    /// Who may change files below our root folder. Older agents do not report it.
    #[serde(default)]
    pub root: RootAccess,
    /// Digests of the staged contents and agents that are complete and match their names; empty unless the root
    /// folder is closed.
    #[serde(default)]
    pub staged: BTreeSet<Sha256>,
    /// Whether the daemon's client certificate exists and is valid now.
    pub daemon_certificate_valid: bool,
    /// The agent's record of its changes; `None` on a host that was never configured.
    pub state: Option<HostState>,
}

impl Probe {
    /// Its host name, if it is valid: a host may report anything.
    pub fn valid_host_name(&self) -> Option<&str> {
        valid_name(&self.host_name)
    }

    /// Its name in the cloud's metadata service, if it is valid, without last dots.
    pub fn valid_metadata_name(&self) -> Option<&str> {
        let name = self.metadata_name.as_deref()?.trim().trim_end_matches('.');
        valid_name(name)
    }

    /// All addresses that it reports, of both families.
    pub fn all_addresses(&self) -> impl Iterator<Item = IpAddr> {
        let ipv4 = self.addresses.iter().copied().map(IpAddr::from);
        ipv4.chain(self.ipv6.iter().copied().map(IpAddr::from))
    }
}

fn valid_name(name: &str) -> Option<&str> {
    let name = name.trim();
    let is_name = matches!(name.to_lowercase().parse(), Ok(Host::Name(_)));
    is_name.then_some(name)
}

/// Who may change files below [`host::ROOT`](crate::names::host::ROOT).
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RootAccess {
    /// The root and the staging folder are folders with [`Access::Administrators`], and our agent has checked all
    /// files that were there before.
    Closed,
    /// Others may, or it is unknown.
    #[default]
    Open,
}

/// The agent that answered.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// Its build version.
    pub version: String,
    /// Digest of its own file.
    pub sha256: Sha256,
    /// Digest of the file at [`host::AGENT`](crate::names::host::AGENT), if it exists and is not one of
    /// [`HostState::doubted`].
    pub installed: Option<Sha256>,
}

/// State of a Windows feature.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum FeatureState {
    /// The feature is disabled.
    Disabled,
    /// The feature is enabled.
    Enabled,
    /// The feature is enabled after the next restart.
    Pending,
}

/// Why a host needs a restart.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "camelCase")]
pub enum RebootReason {
    /// A feature was enabled.
    Feature,
    /// The computer was renamed.
    Rename,
    /// System-wide variables of ours changed after the last start.
    Environment,
    /// Trusted roots changed after the last start.
    Roots,
    /// A reason that this version does not know, from an agent of another version.
    #[serde(other)]
    Other,
}

impl RebootReason {
    /// Whether the host needs that restart to return to its former state.
    pub const fn comes_from_leaving(self) -> bool {
        match self {
            Self::Environment | Self::Roots => true,
            Self::Feature | Self::Rename | Self::Other => false,
        }
    }
}

/// A file.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileState {
    /// Digest of its content.
    pub sha256: Sha256,
    /// Whether it has [`Access::Administrators`] itself, whatever its folder has. Older agents do not report it.
    #[serde(default)]
    pub protected: bool,
    /// Whether it is one of [`HostState::doubted`].
    #[serde(default)]
    pub doubted: bool,
}

/// State of a Windows service; a pending pause or continue counts as the state before it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ServiceRunState {
    /// The service is running.
    Running,
    /// The service is stopped.
    Stopped,
    /// The service is starting.
    Starting,
    /// The service is stopping.
    Stopping,
    /// The service is paused.
    Paused,
}

/// A Windows service in the Service Control Manager.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceFacts {
    /// Its state.
    pub state: ServiceRunState,
    /// Its whole command line.
    pub command: String,
    /// Its description, which starts with our tag.
    pub description: String,
    /// Services that have to run before it.
    pub dependencies: Vec<String>,
}

/// A Windows service that is not ours.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ForeignService {
    /// Its name.
    pub name: String,
    /// Its whole command line.
    pub command: String,
}

/// Facts that only decide whether a host can become a node, for [`preflight::host`](crate::preflight::host).
///
/// If one fact cannot be determined, the others are still reported.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HostFitness {
    /// Number of interfaces with a default route.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_routes: Option<usize>,
    /// Kind of the Windows installation: `Server`, `Server Core` or `Client`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installation: Option<String>,
    /// Whether the agent has the rights of an administrator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_administrator: Option<bool>,
    /// Free bytes on the disk with [`host::ROOT`](crate::names::host::ROOT).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
    /// Ports of a node that are already in use.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub taken_ports: BTreeSet<u16>,
    /// A foreign kubelet that would conflict with ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign_kubelet: Option<ForeignService>,
}

impl HostFitness {
    /// Whether the agent reported nothing, as older agents do.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// The agent's record of its changes, stored in [`host::STATE_FILE`](crate::names::host::STATE_FILE).
///
/// A path is recorded before it is created, so every created path is in the record.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostState {
    /// Files that we placed.
    pub files: BTreeSet<WindowsPath>,
    /// Folders that did not exist before us.
    pub directories: BTreeSet<WindowsPath>,
    /// Files with our names that were found below an open root folder while services ran from there. Another
    /// process may still have them open, so they are trusted only after they are written again.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub doubted: BTreeSet<WindowsPath>,
    /// Foreign files that were moved to quarantine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quarantined: Vec<Quarantined>,
    /// [Identity](crate::cluster_identity::ClusterIdentity::id) of the cluster that the host belongs to; earlier
    /// versions did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Clusters that it was taken from without having been cleaned there.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub taken_from: BTreeSet<String>,
}

impl HostState {
    /// Records that the host belongs to `cluster`.
    pub fn join(&mut self, cluster: &str) {
        let before = self.cluster.replace(cluster.to_owned());
        self.taken_from.extend(before.filter(|before| before != cluster));
    }

    /// Whether the file is not trusted, whatever its content.
    pub fn doubts(&self, path: &WindowsPath) -> bool {
        self.doubted.contains(path)
    }
}

/// Files that the agent moved away when it closed the root folder.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Quarantined {
    /// Folder below [`host::QUARANTINE`](crate::names::host::QUARANTINE) with the files.
    pub folder: WindowsPath,
    /// Number of files, folders and links.
    pub things: usize,
    /// The first few, with their former paths.
    pub first: Vec<WindowsPath>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an agent of an earlier version says, and nothing more.
    fn old() -> serde_json::Value {
        serde_json::json!({
            "protocol": 1,
            "agent": {"version": "1", "sha256": Sha256::of(b"agent"), "installed": null},
            "hostName": "win-1", "osBuild": "10.0.20348", "addresses": ["10.0.0.5"],
            "containers": "enabled", "reboot": [], "bootId": "1", "files": {}, "services": {},
            "environment": {}, "networks": [], "directories": [], "root": "closed", "staged": [],
            "daemonCertificateValid": false, "state": null,
        })
    }

    #[test]
    fn agents_that_know_neither_ipv6_nor_metadata_are_read_and_understood() {
        let probe: Probe = serde_json::from_value(old()).unwrap();
        assert_eq!((probe.ipv6.len(), &probe.metadata_name), (0, &None));
        // Such an operator reads what is left out, too.
        assert_eq!(serde_json::to_value(&probe).unwrap(), old());
    }

    #[test]
    fn both_families_are_reported() {
        let mut report = old();
        report["ipv6"] = serde_json::json!(["2001:db8::5"]);
        let probe: Probe = serde_json::from_value(report).unwrap();
        let all: Vec<_> = probe.all_addresses().map(|address| address.to_string()).collect();
        assert_eq!(all, ["10.0.0.5", "2001:db8::5"]);
    }

    #[test]
    fn a_metadata_name_counts_only_if_it_is_a_name() {
        let name = |text: Option<&str>| {
            let metadata_name = text.map(str::to_owned);
            let probe = Probe { metadata_name, ..serde_json::from_value(old()).unwrap() };
            probe.valid_metadata_name().map(str::to_owned)
        };
        let right = "ip-10-0-0-5.corp.example";
        assert_eq!(name(Some("ip-10-0-0-5.corp.example.")).as_deref(), Some(right));
        for no_name in [None, Some(""), Some("<html>"), Some("10.0.0.5"), Some("a b")] {
            assert_eq!(name(no_name), None, "{no_name:?}");
        }
    }

    #[test]
    fn a_reason_of_another_version_is_read() {
        let reasons: BTreeSet<RebootReason> =
            serde_json::from_str(r#"["roots", "moonPhase", "environment"]"#).unwrap();
        let expected = [RebootReason::Environment, RebootReason::Roots, RebootReason::Other];
        assert_eq!(reasons, BTreeSet::from(expected));
    }
}
