//! The plan that `wicd apply` carries out on a host.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ServicesData;
use crate::authorized_key::AuthorizedKey;
use crate::digest::Sha256;
use crate::names::host;
use crate::winpath::WindowsPath;

/// The steps of one run of `wicd apply`, in order. It stops at the first failed step; every step may be repeated.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostPlan {
    /// [`PROTOCOL`](super::PROTOCOL) of the operator; the agent refuses any other version.
    pub protocol: u32,
    /// Boot identity of the host when it had no Node and nothing on it could register one. The agent refuses the
    /// plan after another start, or while a kubelet runs. `None` for work on a host that may have a Node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vacant_since: Option<String>,
    /// The steps.
    pub steps: Vec<HostStep>,
}

/// Access rights of a created object.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Access {
    /// Inherited from the parent folder.
    Inherited,
    /// Administrators and the system only; inheritance is off, and one of them is the owner.
    Administrators,
}

impl Access {
    /// Access rights of a folder of ours.
    ///
    /// Everything below [`host::ROOT`] is run by the system or secret. A folder there does not rely on its parent:
    /// a user who created it before us would still own it.
    pub fn of_directory(path: &WindowsPath) -> Self {
        let ours = host::ROOT.parse().is_ok_and(|root| path.is_within(&root));
        if ours { Self::Administrators } else { Self::Inherited }
    }
}

/// An idempotent step on the host.
///
/// The node planner makes steps that end or change running programs only with a
/// [`DisruptionPermit`](crate::fleet::DisruptionPermit), or for a host without a Node.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "step")]
pub enum HostStep {
    /// Record in the state file that the host belongs to this cluster.
    #[serde(rename_all = "camelCase")]
    JoinCluster {
        /// Its [`ClusterIdentity::id`](crate::cluster_identity::ClusterIdentity::id).
        id: String,
    },
    /// Stop the daemon's service if it runs, then copy the running agent to its final place.
    InstallAgent,
    /// Create the folder if it is missing, and correct its access rights.
    #[serde(rename_all = "camelCase")]
    EnsureDirectory {
        /// The folder; its parents exist.
        path: WindowsPath,
        /// Its access rights.
        access: Access,
    },
    /// Unpack staged content beside `path`, verify it, and move it over `path`.
    #[serde(rename_all = "camelCase")]
    PlaceFile {
        /// The file's final path.
        path: WindowsPath,
        /// Digest of the unpacked content, which also names the staged file.
        sha256: Sha256,
        /// Its access rights.
        access: Access,
    },
    /// Remove a file if it exists, and the folder of a registry if it is then empty.
    #[serde(rename_all = "camelCase")]
    RemoveFile {
        /// The file.
        path: WindowsPath,
    },
    /// Remove a folder with its content if it exists.
    #[serde(rename_all = "camelCase")]
    RemoveDirectory {
        /// The folder.
        path: WindowsPath,
    },
    /// Allow administrators' logins with the keys of `add` and no longer with those of `remove`, by exchanging only
    /// their lines of [`host::AUTHORIZED_KEYS`]: see [`exchange_keys`](crate::authorized_key::exchange_keys).
    ///
    /// Keys of a user who is no administrator are in that user's own folder, which is not changed. Only a login
    /// proves that sshd accepts a key: its configuration may name another file.
    #[serde(rename_all = "camelCase")]
    EnsureAuthorizedKeys {
        /// Keys that have to be in the file.
        add: BTreeSet<AuthorizedKey>,
        /// Keys that must not be in the file, none of them in `add`.
        remove: BTreeSet<AuthorizedKey>,
    },
    /// Enable the Containers feature; a restart may then be pending.
    EnableContainers,
    /// Rename the computer; a restart is then pending.
    #[serde(rename_all = "camelCase")]
    RenameComputer {
        /// The new first label of the host name.
        name: String,
    },
    /// Stop the daemon, the kubelet, and services that depend on it, so that no Node is registered any more.
    /// Containers keep running.
    StopKubelet,
    /// Stop and delete the daemon's service and end its process.
    RemoveDaemon,
    /// Stop and remove every service with our tag, dependents first, and the variables that the manifests watch or
    /// that we set; end remaining containers.
    #[serde(rename_all = "camelCase")]
    RemoveServices {
        /// Services ConfigMaps that the node may use; unreadable ones are ignored.
        manifests: Vec<ServicesData>,
    },
    /// Create or correct the bootstrap services and start them, in dependency order.
    #[serde(rename_all = "camelCase")]
    Bootstrap {
        /// The services ConfigMap of the desired version.
        manifest: ServicesData,
    },
    /// Create or correct the daemon's service and start it; a changed command line restarts it.
    #[serde(rename_all = "camelCase")]
    EnsureDaemon {
        /// Arguments after the agent's path, none of which needs quoting.
        arguments: Vec<String>,
    },
    /// Remove an HNS network if it exists.
    #[serde(rename_all = "camelCase")]
    RemoveNetwork {
        /// The network's name.
        name: String,
    },
    /// Remove the trusted roots that we imported, and everything that the state file records: files, then folders
    /// that are empty or wholly ours, then the state file. The operator removes the running agent and its folder.
    RemoveInstallation,
    /// Request a restart and return; the connection may drop at any time after that.
    Restart,
}

impl HostStep {
    /// Short stable name for logs, metrics and tests.
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::JoinCluster { .. } => "join-cluster",
            Self::InstallAgent => "install-agent",
            Self::EnsureDirectory { .. } => "ensure-directory",
            Self::PlaceFile { .. } => "place-file",
            Self::RemoveFile { .. } => "remove-file",
            Self::RemoveDirectory { .. } => "remove-directory",
            Self::EnsureAuthorizedKeys { .. } => "ensure-authorized-keys",
            Self::EnableContainers => "enable-containers",
            Self::RenameComputer { .. } => "rename-computer",
            Self::StopKubelet => "stop-kubelet",
            Self::RemoveDaemon => "remove-daemon",
            Self::RemoveServices { .. } => "remove-services",
            Self::Bootstrap { .. } => "bootstrap",
            Self::EnsureDaemon { .. } => "ensure-daemon",
            Self::RemoveNetwork { .. } => "remove-network",
            Self::RemoveInstallation => "remove-installation",
            Self::Restart => "restart",
        }
    }
}

impl fmt::Display for HostStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb())?;
        match self {
            Self::EnsureDirectory { path, .. }
            | Self::PlaceFile { path, .. }
            | Self::RemoveFile { path }
            | Self::RemoveDirectory { path } => write!(f, " {path}"),
            Self::JoinCluster { id: name }
            | Self::RenameComputer { name }
            | Self::RemoveNetwork { name } => write!(f, " {name}"),
            Self::EnsureAuthorizedKeys { add, remove } => {
                add.iter().try_for_each(|key| write!(f, " +{}", key.fingerprint()))?;
                remove.iter().try_for_each(|key| write!(f, " -{}", key.fingerprint()))
            }
            Self::InstallAgent
            | Self::EnableContainers
            | Self::StopKubelet
            | Self::RemoveDaemon
            | Self::RemoveServices { .. }
            | Self::Bootstrap { .. }
            | Self::EnsureDaemon { .. }
            | Self::RemoveInstallation
            | Self::Restart => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
    const NEW: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

    fn exchange() -> HostStep {
        HostStep::EnsureAuthorizedKeys {
            add: [NEW.parse().unwrap()].into(),
            remove: [OLD.parse().unwrap()].into(),
        }
    }

    #[test]
    fn keys_travel_as_their_lines() {
        let json = serde_json::json!({
            "step": "ensureAuthorizedKeys",
            "add": [NEW],
            "remove": [OLD],
        });
        assert_eq!(serde_json::to_value(exchange()).unwrap(), json);
        assert_eq!(serde_json::from_value::<HostStep>(json).unwrap(), exchange());
    }

    #[test]
    fn keys_are_shown_by_their_fingerprints() {
        insta::assert_snapshot!(exchange(), @"ensure-authorized-keys +SHA256:AWVWAZ9nmTXEWZC7xUJavDuG7+e/PVWGamVp/2KOnoY -SHA256:ZkAslGjFiUHdGf/WUL8rQvkib4PTvQatUV0OUQSncCA");
    }
}
