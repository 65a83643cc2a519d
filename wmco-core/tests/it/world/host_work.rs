//! What is done on a model host: by the agent, by its services and by users who may write there.

use wmco_core::names::{self, host};
use wmco_core::node::DesiredFile;
use wmco_core::protocol::{Access, FeatureState, HostStep};
use wmco_core::winpath::WindowsPath;

use super::faults::{Faults, Stop};
use super::host::{AGENT, Host, KNOWN, Power, Service, for_administrators};
use super::release::{Release, SERVICES};

impl Host {
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
            HostStep::JoinCluster { id } => self.state.get_or_insert_default().join(id),
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
            // What is on the host is of no matter for it.
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
}
