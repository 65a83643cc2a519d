//! A model of a Windows machine, as far as a probe shows it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::LazyLock;

use wmco_core::digest::Sha256;
use wmco_core::host_key::HostKey;
use wmco_core::names::{self, host};
use wmco_core::node::DesiredFile;
use wmco_core::protocol::{
    Access, Agent, FeatureState, FileState, HostState, HostStep, PROTOCOL, Probe, RebootReason,
    RootAccess, ServiceFacts, ServiceRunState, staged_agent, staged_content,
};
use wmco_core::winpath::WindowsPath;

use super::faults::{Faults, Stop};
use super::release::{Release, SERVICES};

/// A file of the host's owner in a folder that we use too.
pub(crate) const FOREIGN_FILE: &str = r"C:\Temp\owner.txt";

static AGENT: LazyLock<WindowsPath> = LazyLock::new(|| host::AGENT.parse().unwrap());

/// The folders that a probe tells of.
static KNOWN: LazyLock<BTreeSet<WindowsPath>> =
    LazyLock::new(|| host::DIRECTORIES.iter().map(|text| text.parse().unwrap()).collect());

/// What is in a file that somebody changed.
pub(crate) fn tampered() -> Sha256 {
    Sha256::of(b"tampered")
}

/// Whether a folder that a probe tells of is for administrators only.
fn for_administrators(folder: &WindowsPath) -> bool {
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
    /// Ghost: how often its kubelet was started.
    pub(crate) kubelet_starts: u32,
    /// The Machine that it is the host of.
    pub(crate) machine: Option<String>,
    /// Which of our login keys it accepts.
    pub(crate) accepts: u8,
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
            kubelet_starts: 0,
            machine: None,
            accepts: 0,
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

    pub(crate) fn probe(&self, agent: Release) -> Probe {
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
            daemon_certificate_valid: self.certificate,
            state: self.state.clone(),
        }
    }

    /// Somebody was quicker than us: where nobody has closed the root, everybody may have made it.
    pub(crate) fn plant(&mut self, release: Release) {
        if !self.root_closed && !self.opened {
            self.planted = true;
            self.staged_agents.insert(release.agent());
        }
    }

    /// The agent of this release is brought in a folder of its own, run there, and closes the root.
    pub(crate) fn bring(&mut self, release: Release, faults: &mut Faults) -> Result<(), Stop> {
        // What an attempt that was cut left is cleared away by the next.
        self.fresh_folders = 1;
        faults.pass()?;
        if !self.root_closed {
            self.planted = false;
            self.staged_agents.clear();
            self.staged.clear();
            faults.pass()?;
            let root: WindowsPath = host::ROOT.parse().unwrap();
            let below = |path: &&WindowsPath| path.is_within(&root);
            self.closed.extend(self.directories.iter().filter(below).cloned());
            self.closed.extend(self.files.keys().filter(below).cloned());
            if !self.services.is_empty() {
                self.doubted.extend(self.files.keys().filter(below).cloned());
                self.doubted.insert(AGENT.clone());
            }
            faults.pass()?;
            self.root_closed = true;
            self.opened = false;
        }
        if self.agent != Some(release) {
            self.staged_agents.insert(release.agent());
        }
        faults.pass()?;
        self.fresh_folders = 0;
        Ok(())
    }

    /// Carries out one step of a plan as the agent of this release does.
    pub(crate) fn apply(
        &mut self,
        step: &HostStep,
        agent: Release,
        faults: &mut Faults,
    ) -> Result<(), Stop> {
        faults.pass()?;
        match step {
            HostStep::InstallAgent => {
                if let Some(daemon) = self.services.get_mut(names::objects::WICD) {
                    daemon.running = false;
                }
                faults.pass()?;
                self.agent = Some(agent);
                self.doubted.remove(&AGENT);
                self.state.get_or_insert_default();
            }
            HostStep::EnsureDirectory { path, access } => {
                let above = path.parent().unwrap();
                if above.parent().is_some() && !self.directories.contains(&above) {
                    return Err(Stop::Fail);
                }
                if self.directories.insert(path.clone()) {
                    self.state.get_or_insert_default().directories.insert(path.clone());
                }
                faults.pass()?;
                self.set_access(path, *access);
            }
            HostStep::PlaceFile { path, sha256, access } => {
                if !self.staged.contains(sha256)
                    || !self.directories.contains(&path.parent().unwrap())
                {
                    return Err(Stop::Fail);
                }
                self.state.get_or_insert_default().files.insert(path.clone());
                faults.pass()?;
                self.files.insert(path.clone(), *sha256);
                self.doubted.remove(path);
                self.set_access(path, *access);
            }
            HostStep::RemoveFile { path } => {
                self.doubted.remove(path);
                self.files.remove(path);
            }
            HostStep::RemoveDirectory { path } => {
                self.files.retain(|file, _| !file.is_within(path));
                self.directories.retain(|folder| !folder.is_within(path));
            }
            // Logins to these hosts need no key.
            HostStep::EnsureAuthorizedKeys { .. } => {}
            HostStep::EnableContainers => self.containers = FeatureState::Pending,
            HostStep::RenameComputer { name } => self.next_name.clone_from(name),
            HostStep::StopKubelet => {
                for name in [names::objects::WICD, host::KUBELET_SERVICE] {
                    if let Some(service) = self.services.get_mut(name) {
                        service.running = false;
                    }
                    faults.pass()?;
                }
            }
            HostStep::RemoveDaemon => {
                self.services.remove(names::objects::WICD);
            }
            HostStep::RemoveServices { .. } => {
                for name in SERVICES.iter().rev() {
                    self.services.remove(*name);
                    faults.pass()?;
                }
                self.proxy = false;
            }
            HostStep::Bootstrap { manifest } => self.bootstrap(Release::of_manifest(manifest))?,
            HostStep::EnsureDaemon { arguments } => {
                let release = self.agent.ok_or(Stop::Fail)?;
                let command = format!("{} {}", host::AGENT, arguments.join(" "));
                let daemon = Service { running: true, release, edition: 0, command };
                self.services.insert(names::objects::WICD.to_owned(), daemon);
            }
            HostStep::RemoveNetwork { name } => {
                self.networks.remove(name);
            }
            HostStep::RemoveInstallation => self.remove_installation(faults)?,
            HostStep::Restart => self.power = Power::Restarting,
        }
        faults.pass()
    }

    fn set_access(&mut self, path: &WindowsPath, access: Access) {
        match access {
            Access::Administrators => self.closed.insert(path.clone()),
            Access::Inherited => self.closed.remove(path),
        };
    }

    /// What others can exchange although the system runs it or it is secret, and it can be closed at
    /// any time.
    pub(crate) fn open(&self) -> impl Iterator<Item = &WindowsPath> {
        let files = self.files.keys().filter(|path| {
            let wanted = self.agent.and_then(|release| release.files().get(*path));
            wanted.is_some_and(|file| file.live && file.access == Access::Administrators)
        });
        let folders = KNOWN.intersection(&self.directories).filter(|path| for_administrators(path));
        files.chain(folders).filter(|path| !self.closed.contains(*path))
    }

    /// As the original operator leaves it, or somebody who is generous with rights: everybody may
    /// write to everything, and the scripts are where ours go.
    pub(crate) fn open_up(&mut self) {
        self.closed.clear();
        self.opened |= self.root_closed;
        self.root_closed = false;
        // What lies on a host that was cleaned is its owner's.
        let Some(release) = self.agent.filter(|_| self.state.is_some()) else { return };
        for (path, file) in release.files() {
            let scripts = path.parent().filter(|folder| folder.as_str() == host::SCRIPTS);
            if let Some(folder) = scripts {
                self.directories.insert(folder);
                self.files.insert(path.clone(), file.sha256);
            }
        }
    }

    fn bootstrap(&mut self, (release, edition): (Release, u8)) -> Result<(), Stop> {
        let placed = |(path, file): (_, &DesiredFile)| self.files.get(path) == Some(&file.sha256);
        if self.containers != FeatureState::Enabled
            || self.agent != Some(release)
            || !release.files().iter().all(placed)
        {
            return Err(Stop::Fail);
        }
        for name in &SERVICES[..2] {
            self.start(name, release, edition);
        }
        Ok(())
    }

    /// Starts a service, made anew if it is of another manifest.
    pub(crate) fn start(&mut self, name: &str, release: Release, edition: u8) {
        let service = Service { running: true, release, edition, command: name.to_owned() };
        if self.services.get(name) != Some(&service) {
            self.services.insert(name.to_owned(), service);
            if name == host::KUBELET_SERVICE {
                self.registered = false;
                self.kubelet_starts += 1;
            }
        }
    }

    fn remove_installation(&mut self, faults: &mut Faults) -> Result<(), Stop> {
        let root: WindowsPath = host::ROOT.parse().unwrap();
        self.roots = false;
        self.certificate = false;
        faults.pass()?;
        self.files.retain(|path, _| !path.is_within(&root));
        self.doubted.clear();
        faults.pass()?;
        let Some(state) = self.state.clone() else { return Ok(()) };
        self.files.retain(|path, _| !state.files.contains(path));
        self.directories.retain(|path| !state.directories.contains(path) || *path == root);
        faults.pass()?;
        self.state = None;
        Ok(())
    }

    /// Removes over SFTP what the agent leaves: itself and the folder around it.
    pub(crate) fn remove_leftovers(&mut self, faults: &mut Faults) -> Result<(), Stop> {
        faults.pass()?;
        self.agent = None;
        faults.pass()?;
        self.staged_agents.clear();
        self.staged.clear();
        self.closed.clear();
        self.directories.retain(|path| path.as_str() != host::ROOT);
        self.root_closed = false;
        self.fresh_folders = 0;
        faults.pass()
    }

    /// A restart that was ordered, or not: nothing is lost, but only the daemon starts by itself.
    pub(crate) fn come_up(&mut self) {
        self.power = Power::On;
        self.boot += 1;
        self.proxy_at_boot = self.proxy;
        self.roots_at_boot = self.roots;
        self.name = self.next_name.clone();
        if self.containers == FeatureState::Pending {
            self.containers = FeatureState::Enabled;
        }
        for (name, service) in &mut self.services {
            service.running = name == names::objects::WICD;
        }
        self.registered = false;
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
