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

/// What one run of `wicd apply` does, in order. It stops at the first step that fails; every step
/// may be repeated.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostPlan {
    /// [`PROTOCOL`](super::PROTOCOL) of the operator; the agent refuses any other.
    pub protocol: u32,
    /// Boot identity of the host when no Node stood for it and nothing on it could register one.
    /// The agent refuses the plan after another start, or while a kubelet runs. `None` for work that
    /// a Node may stand for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vacant_since: Option<String>,
    /// The steps.
    pub steps: Vec<HostStep>,
}

/// Who may read what a step makes.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Access {
    /// Whoever may read the folder above.
    Inherited,
    /// Administrators and the system only; inheritance is off, and one of them is the owner.
    Administrators,
}

impl Access {
    /// Who may read a folder of ours.
    ///
    /// Everything below [`host::ROOT`] is run by the system or secret. A folder there does not rely on
    /// the one above: whoever made it before us would still own it.
    pub fn of_directory(path: &WindowsPath) -> Self {
        let ours = host::ROOT.parse().is_ok_and(|root| path.is_within(&root));
        if ours { Self::Administrators } else { Self::Inherited }
    }
}

/// One idempotent step on the host.
///
/// Steps that end or change what runs there are built by the node planner only while it holds a
/// [`DisruptionPermit`](crate::fleet::DisruptionPermit) or the host has no node.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "step")]
pub enum HostStep {
    /// Stop the daemon's service if it runs, then copy the running agent to its final place.
    InstallAgent,
    /// Make the folder if it is missing, and correct who may read it.
    #[serde(rename_all = "camelCase")]
    EnsureDirectory {
        /// The folder; its parents exist.
        path: WindowsPath,
        /// Who may read it.
        access: Access,
    },
    /// Unpack staged content beside `path`, verify it, and move it over `path`.
    #[serde(rename_all = "camelCase")]
    PlaceFile {
        /// The file's final place.
        path: WindowsPath,
        /// Digest of the unpacked content, which also names the staged file.
        sha256: Sha256,
        /// Who may read it.
        access: Access,
    },
    /// Remove one file, if it is there.
    #[serde(rename_all = "camelCase")]
    RemoveFile {
        /// The file.
        path: WindowsPath,
    },
    /// Remove a folder with all that is in it, if it is there.
    #[serde(rename_all = "camelCase")]
    RemoveDirectory {
        /// The folder.
        path: WindowsPath,
    },
    /// Let the keys of `add` log in as administrators and those of `remove` no more, by exchanging their
    /// lines of [`host::AUTHORIZED_KEYS`] and no other: see
    /// [`exchange_keys`](crate::authorized_key::exchange_keys).
    ///
    /// The keys of a user who is no administrator lie in that user's own folder, which this does not
    /// touch. Whether sshd takes a key is proven by a login only: its configuration may name another file.
    #[serde(rename_all = "camelCase")]
    EnsureAuthorizedKeys {
        /// Keys that have to be there.
        add: BTreeSet<AuthorizedKey>,
        /// Keys that must not be there, none of them in `add`.
        remove: BTreeSet<AuthorizedKey>,
    },
    /// Switch the containers feature on; a restart may then be pending.
    EnableContainers,
    /// Give the computer another name; a restart is then pending.
    #[serde(rename_all = "camelCase")]
    RenameComputer {
        /// The new first label of the host name.
        name: String,
    },
    /// Stop the daemon, the kubelet, and what depends on it, so that no Node is registered any more.
    /// Containers run on.
    StopKubelet,
    /// Stop and delete the daemon's service and end its process.
    RemoveDaemon,
    /// Stop and remove every service with our tag, dependents first, and the variables that the manifests
    /// watch or that we set; end left-over containers.
    #[serde(rename_all = "camelCase")]
    RemoveServices {
        /// Services ConfigMaps that may be in force on the node; unreadable ones are passed over.
        manifests: Vec<ServicesData>,
    },
    /// Create or correct the bootstrap services and start them, in dependency order.
    #[serde(rename_all = "camelCase")]
    Bootstrap {
        /// The services ConfigMap of the wanted version.
        manifest: ServicesData,
    },
    /// Create or correct the daemon's service and start it; a changed command line restarts it.
    #[serde(rename_all = "camelCase")]
    EnsureDaemon {
        /// Arguments after the agent's path, none of which needs quoting.
        arguments: Vec<String>,
    },
    /// Remove one HNS network, if it is there.
    #[serde(rename_all = "camelCase")]
    RemoveNetwork {
        /// The network's name.
        name: String,
    },
    /// Remove the trusted roots that we imported, and what the state file records: files, then folders
    /// that are empty or wholly ours, then the state file. The running agent and its folder stay for the
    /// operator to remove.
    RemoveInstallation,
    /// Order a restart and return; the connection may drop at any moment after.
    Restart,
}

impl HostStep {
    /// Short stable name for logs, metrics and tests.
    pub const fn verb(&self) -> &'static str {
        match self {
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
            Self::RenameComputer { name } | Self::RemoveNetwork { name } => write!(f, " {name}"),
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
