//! Differences between a host and its desired version.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::{Desired, DesiredFile};
use crate::digest::Sha256;
use crate::facts::NodeFacts;
use crate::names::{self, host};
use crate::protocol::{Access, FeatureState, HostStep, Probe, RebootReason, ServiceRunState};
use crate::winpath::WindowsPath;

/// The folders that every configured host has.
static KNOWN: LazyLock<Vec<WindowsPath>> =
    LazyLock::new(|| host::DIRECTORIES.iter().filter_map(|text| text.parse().ok()).collect());

/// Folders in which every file is ours.
static OURS: LazyLock<[Option<WindowsPath>; 2]> =
    LazyLock::new(|| [host::REGISTRIES, host::TLS_CERTIFICATES].map(|text| text.parse().ok()));

/// The differences, sorted by the effect of their correction on running workloads.
#[derive(Debug, Default)]
pub(super) struct Drift {
    /// Steps that do not interrupt running workloads.
    pub(super) live: Vec<HostStep>,
    /// Steps that need stopped services, or a restart afterwards.
    pub(super) disruptive: Vec<HostStep>,
    /// Steps that start the services that a host needs to become a node.
    pub(super) start: Vec<HostStep>,
    /// Contents that the steps need and that are not staged yet.
    pub(super) contents: BTreeSet<Sha256>,
}

impl Drift {
    pub(super) fn between(desired: &Desired, probe: &Probe, node: Option<&NodeFacts>) -> Self {
        let mut drift = Self::default();
        drift.cluster(desired, probe);
        if probe.agent.installed != Some(desired.release.agent) {
            drift.live.push(HostStep::InstallAgent);
        }
        drift.directories(desired, probe);
        drift.files(desired, probe);
        drift.stale_files(desired, probe);
        drift.features(desired, probe);
        drift.services(desired, probe, node);
        drift
    }

    /// Whether the correction would disturb a running node.
    pub(super) fn disturbs(&self) -> bool {
        !self.disruptive.is_empty()
            || self.start.iter().any(|step| matches!(step, HostStep::Bootstrap { .. }))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.live.is_empty() && self.disruptive.is_empty() && self.start.is_empty()
    }

    /// Whose host it is, before anything is placed there.
    fn cluster(&mut self, desired: &Desired, probe: &Probe) {
        let recorded = probe.state.as_ref().and_then(|state| state.cluster.as_ref());
        let ours = &desired.release.cluster.id;
        if recorded != Some(ours) {
            self.live.push(HostStep::JoinCluster { id: ours.clone() });
        }
    }

    /// Missing folders with all their parents, which a probe does not report.
    fn directories(&mut self, desired: &Desired, probe: &Probe) {
        let missing = KNOWN.iter().filter(|path| !probe.directories.contains(path)).cloned();
        // Placed files can have parent folders beyond the known ones, such as a registry's.
        let placed =
            desired.release.files.iter().filter(|(path, file)| !is_placed(probe, path, file));
        let lowest = missing.chain(placed.filter_map(|(path, _)| path.parent()));
        let wanted: BTreeSet<WindowsPath> = lowest
            .flat_map(|path| std::iter::successors(Some(path), WindowsPath::parent))
            .collect();
        // Sorted, so that parents come first; a drive always exists.
        let steps = wanted
            .into_iter()
            .filter(|path| path.parent().is_some() && !probe.directories.contains(path))
            .map(|path| HostStep::EnsureDirectory { access: Access::of_directory(&path), path });
        self.live.extend(steps);
    }

    fn files(&mut self, desired: &Desired, probe: &Probe) {
        for (path, file) in &desired.release.files {
            if is_placed(probe, path, file) {
                continue;
            }
            if !probe.staged.contains(&file.sha256) {
                self.contents.insert(file.sha256);
            }
            let steps = if file.live { &mut self.live } else { &mut self.disruptive };
            steps.push(HostStep::PlaceFile {
                path: path.clone(),
                sha256: file.sha256,
                access: file.access,
            });
        }
    }

    /// Files that we placed, or in a folder that is wholly ours, and that are no longer needed.
    fn stale_files(&mut self, desired: &Desired, probe: &Probe) {
        let recorded = |path| probe.state.as_ref().is_some_and(|state| state.files.contains(path));
        let kept = |path: &WindowsPath| {
            [host::AGENT, host::STATE_FILE].iter().any(|k| path.as_str().eq_ignore_ascii_case(k))
        };
        let stale = probe.files.keys().filter(|path| {
            (OURS.iter().flatten().any(|folder| path.is_within(folder)) || recorded(path))
                && !kept(path)
                && !desired.release.files.contains_key(path)
        });
        self.live.extend(stale.map(|path| HostStep::RemoveFile { path: path.clone() }));
    }

    fn features(&mut self, desired: &Desired, probe: &Probe) {
        if probe.containers == FeatureState::Disabled {
            self.disruptive.push(HostStep::EnableContainers);
        }
        if let Some(name) = &desired.host_name {
            let label = probe.host_name.split('.').next().unwrap_or_default();
            // A new name shows only after the restart; until then it is unknown.
            let pending = probe.reboot.contains(&RebootReason::Rename);
            if !pending && !label.eq_ignore_ascii_case(name) {
                self.disruptive.push(HostStep::RenameComputer { name: name.clone() });
            }
        }
    }

    fn services(&mut self, desired: &Desired, probe: &Probe, node: Option<&NodeFacts>) {
        let follows = node.and_then(NodeFacts::desired_version);
        let ours = |version| version == desired.release.version;
        let command = desired.release.daemon_command();
        let daemon = probe.services.get(names::objects::WICD);
        let right =
            daemon.is_some_and(|d| d.command == command && d.state == ServiceRunState::Running);
        // The daemon of our version manages the services. After a restart it takes a while to start them; tearing
        // them down meanwhile would never end.
        let configured = node.and_then(NodeFacts::version).is_some_and(ours);
        let tended = configured || (right && follows.is_some_and(ours));
        if !tended && !desired.release.bootstrap_services.iter().all(|name| runs(probe, name)) {
            self.start.push(HostStep::Bootstrap { manifest: desired.release.manifest.clone() });
        }
        // The daemon follows the Node's desired version, so it must not run while that is another version.
        if follows.is_none_or(ours) && !right {
            self.start.push(HostStep::EnsureDaemon {
                arguments: desired.release.daemon_arguments.clone(),
            });
        }
    }
}

/// Whether a service is running or starting.
pub(super) fn runs(probe: &Probe, name: &str) -> bool {
    probe.services.get(name).is_some_and(|service| {
        matches!(service.state, ServiceRunState::Running | ServiceRunState::Starting)
    })
}

/// Whether the file is in place and, if it is for administrators only, protected against other users.
///
/// A file that existed while the root was open is written again: another process may still hold it open.
///
/// A file that services read only once is checked less closely: its content may change between probe and work, so
/// it is only placed on an empty node, and its folder protects it as well.
fn is_placed(probe: &Probe, path: &WindowsPath, wanted: &DesiredFile) -> bool {
    probe.files.get(path).is_some_and(|seen| {
        let open = wanted.live && wanted.access == Access::Administrators && !seen.protected;
        seen.sha256 == wanted.sha256 && !open && !seen.doubted
    })
}
