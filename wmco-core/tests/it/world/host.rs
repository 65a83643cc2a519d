//! A model of a Windows machine, as far as a probe shows it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::LazyLock;

use wmco_core::digest::Sha256;
use wmco_core::host_key::HostKey;
use wmco_core::names::host;
use wmco_core::protocol::{
    Access, Agent, FeatureState, FileState, HostFitness, HostState, PROTOCOL, Probe, RebootReason,
    RootAccess, ServiceFacts, ServiceRunState, staged_agent, staged_content,
};
use wmco_core::winpath::WindowsPath;

use super::keys::Secret;
use super::release::{Release, SERVICES};

/// A file of the host's owner in a folder that we use too.
pub(crate) const FOREIGN_FILE: &str = r"C:\Temp\owner.txt";

pub(super) static AGENT: LazyLock<WindowsPath> = LazyLock::new(|| host::AGENT.parse().unwrap());

/// The folders that a probe tells of.
pub(super) static KNOWN: LazyLock<BTreeSet<WindowsPath>> =
    LazyLock::new(|| host::DIRECTORIES.iter().map(|text| text.parse().unwrap()).collect());

/// What is in a file that somebody changed.
pub(crate) fn tampered() -> Sha256 {
    Sha256::of(b"tampered")
}

/// Whether a folder that a probe tells of is for administrators only.
pub(super) fn for_administrators(folder: &WindowsPath) -> bool {
    Access::of_directory(folder) == Access::Administrators
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Power {
    On,
    Restarting,
    /// Cut off, or switched off; it runs on when it is back.
    Gone,
    /// There is no host.
    Vacant,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Service {
    pub(crate) running: bool,
    /// Release of the manifest that it was made from; for the daemon, of its executable.
    pub(crate) release: Release,
    /// Edition of that manifest.
    pub(crate) edition: u8,
    pub(crate) command: String,
}

#[expect(clippy::struct_excessive_bools, reason = "facts that are independent of each other")]
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Host {
    /// The address that its Node shows.
    pub(crate) address: Ipv4Addr,
    /// That of its other network card.
    pub(crate) other_address: Ipv4Addr,
    /// Whether it has only the other address now.
    pub(crate) moved: bool,
    pub(crate) name: String,
    /// The name after the next restart.
    pub(crate) next_name: String,
    pub(crate) power: Power,
    pub(crate) boot: u32,
    pub(crate) agent: Option<Release>,
    pub(crate) staged_agents: BTreeSet<Sha256>,
    pub(crate) staged: BTreeSet<Sha256>,
    pub(crate) files: BTreeMap<WindowsPath, Sha256>,
    pub(crate) directories: BTreeSet<WindowsPath>,
    /// Files and folders that only administrators can exchange.
    pub(crate) closed: BTreeSet<WindowsPath>,
    /// Whether only administrators may write below the root, which an agent of ours saw to.
    pub(crate) root_closed: bool,
    /// Whether an administrator has let others write there since.
    pub(crate) opened: bool,
    /// Ghost: what somebody put below the root before us lies there, an agent among it.
    pub(crate) planted: bool,
    /// Files that were there while the root was open and services ran from there.
    pub(crate) doubted: BTreeSet<WindowsPath>,
    /// Folders that agents were brought to and that are still there.
    pub(crate) fresh_folders: u32,
    pub(crate) state: Option<HostState>,
    pub(crate) services: BTreeMap<String, Service>,
    pub(crate) proxy: bool,
    pub(crate) proxy_at_boot: bool,
    /// Whether roots of the cluster are trusted.
    pub(crate) roots: bool,
    pub(crate) roots_at_boot: bool,
    pub(crate) containers: FeatureState,
    pub(crate) networks: BTreeSet<String>,
    /// Whether the running kubelet has registered its Node; it does that once per start.
    pub(crate) registered: bool,
    /// Ghost: where its key was pinned, so nobody may log in without a pin there any more.
    pub(crate) known: BTreeSet<Ipv4Addr>,
    /// Whether the daemon has a certificate for its Node.
    pub(crate) certificate: bool,
    /// Ghost: whether its kubelet ran when the operator looked last.
    pub(crate) kubelet_was_seen: bool,
    /// Ghost: how often its kubelet was started.
    pub(crate) kubelet_starts: u32,
    /// The Machine that it is the host of.
    pub(crate) machine: Option<String>,
    /// Ghost: it was logged in to as the host of a Machine that it is not of.
    pub(crate) mistaken: bool,
    /// Hashes of our login keys that it accepts.
    pub(crate) accepts: BTreeSet<Sha256>,
    /// Ghost: it did not answer when the operator tried last.
    pub(crate) silent: bool,
    /// What it was installed from; hosts of one image have one host key. 0: nobody else has it.
    pub(crate) image: u32,
}

impl Host {
    pub(crate) fn fresh(address: Ipv4Addr, name: &str, containers: FeatureState) -> Self {
        let owners: WindowsPath = FOREIGN_FILE.parse().unwrap();
        Self {
            address,
            other_address: Ipv4Addr::new(10, 0, 1, address.octets()[3]),
            moved: false,
            name: name.to_owned(),
            next_name: name.to_owned(),
            power: Power::On,
            boot: 1,
            agent: None,
            staged_agents: BTreeSet::new(),
            staged: BTreeSet::new(),
            directories: owners.parent().into_iter().collect(),
            closed: BTreeSet::new(),
            root_closed: false,
            opened: false,
            planted: false,
            doubted: BTreeSet::new(),
            fresh_folders: 0,
            files: [(owners, Sha256::of(b"owner"))].into(),
            state: None,
            services: BTreeMap::new(),
            proxy: false,
            proxy_at_boot: false,
            roots: false,
            roots_at_boot: false,
            containers,
            networks: BTreeSet::new(),
            registered: false,
            known: BTreeSet::new(),
            certificate: false,
            kubelet_was_seen: false,
            kubelet_starts: 0,
            machine: None,
            mistaken: false,
            accepts: Secret::default().all().collect(),
            silent: false,
            image: 0,
        }
    }

    /// No host; a Machine may get one at this address.
    pub(crate) fn vacant(address: Ipv4Addr) -> Self {
        let power = Power::Vacant;
        Self { power, ..Self::fresh(address, &format!("vacant {address}"), FeatureState::Disabled) }
    }

    /// Whether it is, or may become, the host of a Machine.
    pub(crate) fn is_slot(&self) -> bool {
        self.machine.is_some() || self.is_vacant()
    }

    /// Whether there is none.
    pub(crate) fn is_vacant(&self) -> bool {
        self.power == Power::Vacant
    }

    /// What its kubelet reports when it tells the truth.
    pub(crate) fn true_addresses(&self) -> Vec<String> {
        let shown = if self.moved { self.other_address } else { self.address };
        vec![shown.to_string(), self.name.clone()]
    }

    /// Whether the address is, or was, one of its own.
    pub(crate) fn owns(&self, address: Ipv4Addr) -> bool {
        address == self.address || address == self.other_address
    }

    /// Whether it answers there.
    pub(crate) fn answers_at(&self, address: Ipv4Addr) -> bool {
        address == self.other_address || (address == self.address && !self.moved)
    }

    /// The key that it shows.
    pub(crate) fn key(&self) -> HostKey {
        let (algorithm, mut public) = (b"ssh-ed25519", [0; 32]);
        if self.image == 0 {
            public[..4].copy_from_slice(&self.address.octets());
        } else {
            public[4..8].copy_from_slice(&self.image.to_be_bytes());
        }
        let field = |bytes: &[u8]| {
            let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
            [&length[..], bytes].concat()
        };
        HostKey::from_wire(&[field(algorithm), field(&public)].concat()).unwrap()
    }

    pub(crate) fn runs(&self, service: &str) -> bool {
        self.power == Power::On && self.services.get(service).is_some_and(|s| s.running)
    }

    /// Whether all services of a manifest run, and no other.
    pub(crate) fn serves(&self, (release, edition): (Release, u8)) -> bool {
        let is = |s: &Service| s.release == release && s.edition == edition;
        SERVICES.iter().all(|name| self.runs(name) && self.services.get(*name).is_some_and(is))
    }

    pub(crate) fn reboot(&self) -> BTreeSet<RebootReason> {
        let reasons = [
            (self.containers == FeatureState::Pending, RebootReason::Feature),
            (self.name != self.next_name, RebootReason::Rename),
            (self.proxy != self.proxy_at_boot, RebootReason::Environment),
            (self.roots != self.roots_at_boot, RebootReason::Roots),
        ];
        reasons.iter().filter(|(due, _)| *due).map(|(_, reason)| *reason).collect()
    }

    pub(crate) fn boot_id(&self) -> String {
        format!("boot {}", self.boot)
    }

    pub(crate) fn probe(&mut self, agent: Release) -> Probe {
        self.kubelet_was_seen = self.runs(host::KUBELET_SERVICE);
        let agents = self.agent.iter().map(|release| (AGENT.clone(), release.agent()));
        let staged = self.staged.iter().map(|sha| (staged_content(*sha), *sha));
        let staged_agents = self.staged_agents.iter().map(|sha| (staged_agent(*sha), *sha));
        let files = self.files.iter().map(|(path, sha)| (path.clone(), *sha));
        let closed = |path: &WindowsPath| self.closed.contains(path);
        let right = |path: &&WindowsPath| !for_administrators(path) || closed(path);
        let all = files.chain(agents).chain(staged).chain(staged_agents);
        let facts = |service: &Service| ServiceFacts {
            state: if service.running {
                ServiceRunState::Running
            } else {
                ServiceRunState::Stopped
            },
            command: service.command.clone(),
            description: host::SERVICE_TAG.to_owned(),
            dependencies: Vec::new(),
        };
        Probe {
            protocol: PROTOCOL,
            agent: Agent {
                version: agent.version(),
                sha256: agent.agent(),
                installed: self
                    .agent
                    .filter(|_| !self.doubted.contains(&AGENT))
                    .map(Release::agent),
            },
            host_name: self.name.clone(),
            os_build: "10.0.20348".to_owned(),
            addresses: if self.moved {
                vec![self.other_address]
            } else {
                vec![self.address, self.other_address]
            },
            ipv6: Vec::new(),
            metadata_name: None,
            containers: self.containers,
            reboot: self.reboot(),
            boot_id: self.boot_id(),
            files: all
                .map(|(path, sha256)| {
                    let protected = closed(&path);
                    let doubted = self.doubted.contains(&path);
                    (path, FileState { sha256, protected, doubted })
                })
                .collect(),
            services: self.services.iter().map(|(n, s)| (n.clone(), facts(s))).collect(),
            environment: self
                .proxy
                .then(|| ("HTTP_PROXY".to_owned(), Sha256::of(b"proxy")))
                .into_iter()
                .collect(),
            networks: self.networks.clone(),
            directories: KNOWN.intersection(&self.directories).filter(right).cloned().collect(),
            root: if self.root_closed { RootAccess::Closed } else { RootAccess::Open },
            staged: if self.root_closed {
                self.staged.union(&self.staged_agents).copied().collect()
            } else {
                BTreeSet::new()
            },
            foreign_containerd: None,
            fitness: HostFitness::default(),
            daemon_certificate_valid: self.certificate,
            state: self.state.clone(),
        }
    }

    /// Whether nothing of ours is left.
    pub(crate) fn is_clean(&self) -> bool {
        self.agent.is_none()
            && self.services.is_empty()
            && self.networks.is_empty()
            && self.state.is_none()
            && self.reboot().is_empty()
            && !self.proxy
            && !self.roots
            && self.fresh_folders == 0
            && self.files.keys().all(|path| path.as_str() == FOREIGN_FILE)
    }
}
