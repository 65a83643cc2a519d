//! Parts of a fake host that are neither files nor services.

use std::collections::BTreeSet;
use std::io::Read;
use std::net::Ipv4Addr;
use std::sync::Arc;

use jiff::SignedDuration;
use wmco_core::digest::Sha256;
use wmco_core::protocol::{FeatureState, RebootReason, ServiceRunState};
use wmco_core::winpath::WindowsPath;

use super::faults::Call;
use super::{FakeEvent, FakeWindows, State, lock};
use crate::windows::{
    DefaultRoute, Environment, HttpAnswer, HttpRequest, Inherited, Interface, Machine, PowerShell,
    RootStore, Route, ScriptOutput, Wait, Windows as _, WindowsError,
};

impl State {
    /// Returns the value of a variable that services inherit.
    fn inherited(&self, key: &str) -> Option<String> {
        if let Some(given) = self.environment_given.get(key) {
            return given.clone();
        }
        let at_boot = self.environment_at_boot.get(key).map(|(_, value)| value.clone());
        at_boot.filter(|value| !value.is_empty())
    }

    /// Records a variable's value before its first change since the host started.
    fn remember(&mut self, name: &str, inherits: bool) {
        let key = name.to_uppercase();
        let now = self.environment.get(&key).map(|(_, value)| value.clone());
        let before = if inherits { self.inherited(&key) } else { now };
        let before = before.filter(|value| !value.is_empty());
        self.environment_before.entry(key).or_insert(before);
    }

    pub(super) fn power_off(&mut self) {
        self.end_all_services();
        self.processes.clear();
        self.up = false;
    }

    pub(super) fn boot(&mut self) {
        self.up = true;
        self.boots += 1;
        self.host_routes.clear();
        self.environment_at_boot = self.environment.clone();
        self.environment_before.clear();
        self.roots_at_boot = self.roots.clone();
        if let Some(name) = self.next_host_name.take() {
            self.host_name = name;
        }
        if self.containers == FeatureState::Pending {
            self.containers = FeatureState::Enabled;
        }
        self.events.push(FakeEvent::Booted);
        self.start_automatic_services();
    }
}

impl Environment for FakeWindows {
    fn get(&self, name: &str) -> Result<Option<String>, WindowsError> {
        self.act(Call::EnvironmentGet, name, |host| {
            Ok(host.environment.get(&name.to_uppercase()).map(|(_, value)| value.clone()))
        })
    }

    fn set(&self, name: &str, value: &str) -> Result<(), WindowsError> {
        self.act(Call::EnvironmentSet, name, |host| {
            host.remember(name, self.is_service);
            host.environment.insert(name.to_uppercase(), (name.to_owned(), value.to_owned()));
            Ok(())
        })
    }

    fn remove(&self, name: &str) -> Result<bool, WindowsError> {
        self.act(Call::EnvironmentRemove, name, |host| {
            host.remember(name, self.is_service);
            Ok(host.environment.remove(&name.to_uppercase()).is_some())
        })
    }

    fn inherited(&self, name: &str) -> Result<Inherited, WindowsError> {
        self.act(Call::EnvironmentGet, name, |host| {
            Ok(match host.inherited(&name.to_uppercase()) {
                _ if !self.is_service => Inherited::Unknown,
                None => Inherited::Nothing,
                Some(value) => Inherited::Value(value),
            })
        })
    }

    fn changed_since_boot(&self) -> Result<BTreeSet<String>, WindowsError> {
        self.act(Call::EnvironmentGet, "", |host| {
            let changed = host.environment_before.iter().filter(|(key, before)| {
                let now = host.environment.get(*key).map(|(_, value)| value);
                now.filter(|value| !value.is_empty()) != before.as_ref()
            });
            Ok(changed.map(|(key, _)| key.clone()).collect())
        })
    }
}

impl RootStore for FakeWindows {
    fn list(&self) -> Result<BTreeSet<Sha256>, WindowsError> {
        self.act(Call::RootsList, "", |host| Ok(host.roots.clone()))
    }

    fn takes(&self, der: &[u8]) -> Result<bool, WindowsError> {
        let sha256 = Sha256::of(der);
        self.act(Call::RootsList, &sha256.to_string(), |host| {
            Ok(!host.refused_roots.contains(&sha256))
        })
    }

    fn add(&self, der: &[u8]) -> Result<(), WindowsError> {
        let sha256 = Sha256::of(der);
        self.act(Call::RootsAdd, &sha256.to_string(), |host| {
            if host.refused_roots.contains(&sha256) {
                return Err(WindowsError::other("add a trusted root", "it is not understood"));
            }
            host.roots.insert(sha256);
            Ok(())
        })
    }

    fn changed_since_boot(&self) -> Result<bool, WindowsError> {
        self.act(Call::RootsList, "", |host| Ok(host.roots != host.roots_at_boot))
    }

    fn remove(&self, sha256: Sha256) -> Result<bool, WindowsError> {
        self.act(Call::RootsRemove, &sha256.to_string(), |host| Ok(host.roots.remove(&sha256)))
    }
}

impl PowerShell for FakeWindows {
    fn run(&self, script: &str, wait: Wait<'_>) -> Result<ScriptOutput, WindowsError> {
        self.act(Call::PowerShellRun, script, |_| Ok(()))?;
        // Called without the lock, since a script may call the host.
        let answer = Arc::clone(&lock(&self.shared.powershell));
        let output = answer(script);
        wait.check(|| "a script".to_owned())?;
        Ok(output)
    }
}

impl Machine for FakeWindows {
    fn host_name(&self) -> Result<String, WindowsError> {
        self.act(Call::MachineFacts, "host name", |host| Ok(host.host_name.clone()))
    }

    fn os_build(&self) -> Result<String, WindowsError> {
        self.act(Call::MachineFacts, "build", |host| Ok(host.os_build.clone()))
    }

    fn interfaces(&self) -> Result<Vec<Interface>, WindowsError> {
        self.act(Call::MachineFacts, "addresses", |host| {
            let first = Interface {
                name: "Ethernet".to_owned(),
                description: "Microsoft Hyper-V Network Adapter".to_owned(),
                addresses: host.addresses.clone(),
                ipv6: host.ipv6.clone(),
                leads_out: true,
            };
            Ok([first].into_iter().chain(host.more_interfaces.iter().cloned()).collect())
        })
    }

    fn firmware(&self) -> Result<String, WindowsError> {
        self.act(Call::MachineFacts, "firmware", |host| Ok(host.firmware.clone()))
    }

    fn free_bytes(&self, _: &WindowsPath) -> Result<u64, WindowsError> {
        self.act(Call::MachineFacts, "free disk", |host| Ok(host.free_bytes))
    }

    fn installation(&self) -> Result<String, WindowsError> {
        self.act(Call::MachineFacts, "installation", |_| Ok("Server Core".to_owned()))
    }

    fn is_administrator(&self) -> Result<bool, WindowsError> {
        self.act(Call::MachineFacts, "rights", |host| Ok(host.is_administrator))
    }

    fn is_listening(&self, port: u16) -> Result<bool, WindowsError> {
        self.act(Call::MachineFacts, "ports", |host| Ok(host.listening.contains(&port)))
    }

    fn default_routes(&self) -> Result<Vec<DefaultRoute>, WindowsError> {
        self.act(Call::MachineFacts, "routes", |host| {
            let only = || vec![DefaultRoute { metric: 1, addresses: host.addresses.clone() }];
            Ok(host.routes.clone().unwrap_or_else(only))
        })
    }

    fn routes(&self) -> Result<Vec<Route>, WindowsError> {
        let gateway = Ipv4Addr::new(10, 0, 0, 1);
        let out = self.default_routes()?.into_iter().zip(1..).map(|(route, interface)| Route {
            destination: Ipv4Addr::UNSPECIFIED,
            prefix: 0,
            gateway,
            interface,
            metric: route.metric,
        });
        let out: Vec<Route> = out.collect();
        self.act(Call::MachineFacts, "routes", |host| {
            let single = host.host_routes.iter().map(|to| Route {
                destination: *to,
                prefix: 32,
                gateway,
                interface: 1,
                metric: 1,
            });
            Ok(out.into_iter().chain(single).collect())
        })
    }

    fn add_host_route(&self, to: Ipv4Addr, via: &Route) -> Result<(), WindowsError> {
        self.act(Call::MachineAddRoute, &format!("{to} by {}", via.gateway), |host| {
            host.host_routes.insert(to);
            Ok(())
        })
    }

    fn containers(&self) -> Result<FeatureState, WindowsError> {
        self.act(Call::MachineFacts, "containers feature", |host| Ok(host.containers))
    }

    fn enable_containers(&self) -> Result<(), WindowsError> {
        self.act(Call::MachineEnableContainers, "containers feature", |host| {
            if host.containers == FeatureState::Disabled {
                host.containers = FeatureState::Pending;
            }
            Ok(())
        })
    }

    fn rename(&self, name: &str) -> Result<(), WindowsError> {
        self.act(Call::MachineRename, name, |host| {
            let domain = host.host_name.split_once('.').map(|(_, domain)| domain);
            let full = domain.map_or_else(|| name.to_owned(), |domain| format!("{name}.{domain}"));
            host.next_host_name = (full != host.host_name).then_some(full);
            Ok(())
        })
    }

    fn restart(&self) -> Result<(), WindowsError> {
        self.act(Call::MachineRestart, "host", |host| {
            host.events.push(FakeEvent::RestartOrdered);
            if !host.restart_by_hand {
                host.power_off();
                host.boot();
            }
            Ok(())
        })
    }

    fn boot_id(&self) -> Result<String, WindowsError> {
        self.act(Call::MachineFacts, "boot identity", |host| Ok(format!("boot-{}", host.boots)))
    }

    fn pending_reboot(&self) -> Result<BTreeSet<RebootReason>, WindowsError> {
        self.act(Call::MachineFacts, "pending restart", |host| {
            let feature =
                (host.containers == FeatureState::Pending).then_some(RebootReason::Feature);
            let rename = host.next_host_name.as_ref().map(|_| RebootReason::Rename);
            Ok(feature.into_iter().chain(rename).collect())
        })
    }

    fn networks(&self) -> Result<BTreeSet<String>, WindowsError> {
        self.act(Call::MachineFacts, "networks", |host| Ok(host.networks.clone()))
    }

    fn remove_network(&self, name: &str) -> Result<bool, WindowsError> {
        self.act(Call::MachineRemoveNetwork, name, |host| Ok(host.networks.remove(name)))
    }

    fn end_processes(&self, programs: &BTreeSet<WindowsPath>) -> Result<usize, WindowsError> {
        let names: Vec<&str> = programs.iter().map(WindowsPath::as_str).collect();
        self.act(Call::MachineEndProcesses, &names.join(", "), |host| {
            let before = host.processes.len();
            host.processes.retain(|process| !programs.contains(process));
            let ended = before - host.processes.len();
            let services: Vec<_> = host
                .scm
                .services
                .values()
                .filter(|service| service.state != ServiceRunState::Stopped)
                .filter(|service| {
                    // A wrapper ends with its child.
                    super::scm::images(&service.config.command).any(|it| programs.contains(&it))
                })
                .map(|service| service.name.clone())
                .collect();
            for name in &services {
                host.set_service(name, ServiceRunState::Stopped, 1);
            }
            Ok(ended + services.len())
        })
    }

    fn http(
        &self,
        request: &HttpRequest<'_>,
        _limit: SignedDuration,
    ) -> Result<Option<HttpAnswer>, WindowsError> {
        self.act(Call::MachineFacts, "http", |_| Ok(()))?;
        let answer = Arc::clone(&lock(&self.shared.http));
        Ok(answer(request))
    }

    fn executable(&self) -> Result<Option<WindowsPath>, WindowsError> {
        Ok(self.has_usable_path.then(|| self.executable.clone()))
    }

    fn open_executable(&self) -> Result<Box<dyn Read + Send>, WindowsError> {
        self.files().open(&self.executable)
    }
}
