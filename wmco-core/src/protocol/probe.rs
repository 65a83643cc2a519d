//! What the agent tells about its host.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(doc)]
use super::Access;
use crate::digest::Sha256;
use crate::instances::Host;
use crate::winpath::WindowsPath;

/// One look at a Windows host. It holds no secret: contents and variables appear as digests.
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
    /// IPv4 addresses of all interfaces but loopback, in the system's order.
    pub addresses: Vec<Ipv4Addr>,
    /// The containers feature.
    pub containers: FeatureState,
    /// Why the host wants a restart; empty when it does not.
    pub reboot: BTreeSet<RebootReason>,
    /// Changes with every start of the host.
    pub boot_id: String,
    /// Every file below our folders, and every recorded file, with what is in it now.
    pub files: BTreeMap<WindowsPath, FileState>,
    /// Every Windows service with our tag, by name.
    pub services: BTreeMap<String, ServiceFacts>,
    /// Digests of the values of the variables that we manage and that are set.
    pub environment: BTreeMap<String, Sha256>,
    /// HNS networks of the overlay that are there.
    pub networks: BTreeSet<String>,
    /// Folders of [`host::DIRECTORIES`](crate::names::host::DIRECTORIES) that are there and have the
    /// access of [`Access::of_directory`].
    pub directories: BTreeSet<WindowsPath>,
    /// Who may change what lies below our root. Older agents do not tell.
    #[serde(default)]
    pub root: RootAccess,
    /// Digests of the contents and agents that are staged, whole and as their names say; none unless
    /// the root is closed.
    #[serde(default)]
    pub staged: BTreeSet<Sha256>,
    /// Whether the daemon's client certificate is there and valid now.
    pub daemon_certificate_valid: bool,
    /// What the agent recorded when it placed things; `None` on a host that we never configured.
    pub state: Option<HostState>,
}

impl Probe {
    /// Its host name, if it is one: a host may report anything.
    pub fn valid_host_name(&self) -> Option<&str> {
        let name = self.host_name.trim();
        let is_name = matches!(name.to_lowercase().parse(), Ok(Host::Name(_)));
        is_name.then_some(name)
    }
}

/// Who may change what lies below [`host::ROOT`](crate::names::host::ROOT).
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RootAccess {
    /// The root and the staging folder are folders that have [`Access::Administrators`], and an agent
    /// of ours has dealt with all that lay there before.
    Closed,
    /// Others may, or nobody can tell.
    #[default]
    Open,
}

/// Which agent answered.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// Version that it was built as.
    pub version: String,
    /// Digest of its own file.
    pub sha256: Sha256,
    /// Digest of the file at [`host::AGENT`](crate::names::host::AGENT), if there is one and it is not
    /// one of [`HostState::doubted`].
    pub installed: Option<Sha256>,
}

/// State of a Windows feature.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum FeatureState {
    /// It is off.
    Disabled,
    /// It is on.
    Enabled,
    /// It is on after the next restart.
    Pending,
}

/// Why a host wants a restart.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "camelCase")]
pub enum RebootReason {
    /// A feature was switched on.
    Feature,
    /// The computer was renamed.
    Rename,
    /// System-wide variables of ours changed after the last start.
    Environment,
    /// Trusted roots changed after the last start.
    Roots,
    /// What this version does not know; an agent of another version said so.
    #[serde(other)]
    Other,
}

impl RebootReason {
    /// Whether the host is as it was before us only after that restart.
    pub const fn comes_from_leaving(self) -> bool {
        match self {
            Self::Environment | Self::Roots => true,
            Self::Feature | Self::Rename | Self::Other => false,
        }
    }
}

/// One file.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileState {
    /// Digest of its content.
    pub sha256: Sha256,
    /// Whether it has [`Access::Administrators`], whatever its folder has. Older agents do not tell.
    #[serde(default)]
    pub protected: bool,
    /// Whether it is one of [`HostState::doubted`].
    #[serde(default)]
    pub doubted: bool,
}

/// State of a Windows service; pending states count as what they leave.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ServiceRunState {
    /// It runs.
    Running,
    /// It does not.
    Stopped,
    /// It is on its way to running.
    Starting,
    /// It is on its way to stopped.
    Stopping,
    /// It is paused.
    Paused,
}

/// One Windows service as the Service Control Manager knows it.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceFacts {
    /// What it does now.
    pub state: ServiceRunState,
    /// Its whole command line.
    pub command: String,
    /// Its description, which starts with our tag.
    pub description: String,
    /// Services that run before it.
    pub dependencies: Vec<String>,
}

/// The record of what the agent placed, kept in [`host::STATE_FILE`](crate::names::host::STATE_FILE).
///
/// A path is recorded before it is made, so nothing is ever left that the record does not know.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostState {
    /// Files that we placed.
    pub files: BTreeSet<WindowsPath>,
    /// Folders that did not exist before us.
    pub directories: BTreeSet<WindowsPath>,
    /// Files with names of ours that were found below an open root while services ran from there.
    /// Somebody may have them open still, so they are believed only when they are written anew.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub doubted: BTreeSet<WindowsPath>,
    /// What was moved away because it was not ours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quarantined: Vec<Quarantined>,
}

impl HostState {
    /// Whether the file is not believed, whatever is in it.
    pub fn doubts(&self, path: &WindowsPath) -> bool {
        self.doubted.contains(path)
    }
}

/// What the agent moved away when it closed the root.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Quarantined {
    /// Folder below [`host::QUARANTINE`](crate::names::host::QUARANTINE) in which it is now.
    pub folder: WindowsPath,
    /// How many files, folders and links.
    pub things: usize,
    /// The first few, where they were.
    pub first: Vec<WindowsPath>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_of_another_version_is_read() {
        let reasons: BTreeSet<RebootReason> =
            serde_json::from_str(r#"["roots", "moonPhase", "environment"]"#).unwrap();
        let expected = [RebootReason::Environment, RebootReason::Roots, RebootReason::Other];
        assert_eq!(reasons, BTreeSet::from(expected));
    }
}
