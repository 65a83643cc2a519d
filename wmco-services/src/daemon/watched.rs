//! Decides whether a change in services warrants another pass.

use std::collections::{BTreeMap, BTreeSet};

use wmco_core::protocol::ServiceRunState;

use crate::manifest::Manifest;
use crate::windows::{Service, ServiceName, ServiceStatus};

/// The names of all services of a host, and the states of those in a manifest. While two of these are equal, no service
/// of ours has stopped, restarted or been deleted, and none was created.
///
/// Changes of a configuration alone are found by the next regular pass. Source: `docs/contract/wicd.md`, WICD50.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct WatchedServices {
    names: BTreeSet<ServiceName>,
    ours: BTreeMap<ServiceName, (ServiceRunState, Option<u32>)>,
}

impl WatchedServices {
    /// The services that a pass with this manifest observed.
    pub(super) fn of(services: &[Service], manifest: &Manifest) -> Self {
        let ours = services.iter().filter(|service| manifest.service(&service.name).is_some());
        Self {
            names: services.iter().map(|service| service.name.clone()).collect(),
            ours: ours.map(|s| (s.name.clone(), (s.state, s.process))).collect(),
        }
    }

    /// Returns the same services with their current statuses.
    #[must_use]
    pub fn with(&self, services: &[ServiceStatus]) -> Self {
        let ours = services.iter().filter(|service| self.ours.contains_key(&service.name));
        Self {
            names: services.iter().map(|service| service.name.clone()).collect(),
            ours: ours.map(|s| (s.name.clone(), (s.state, s.process))).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeWindows;
    use crate::manifest::{Parts, Service as Wanted};
    use crate::windows::{ServiceConfig, ServiceManager as _, StartType};

    fn name(text: &str) -> ServiceName {
        text.parse().unwrap()
    }

    fn add(host: &FakeWindows, service: &str) {
        let config = ServiceConfig {
            command: "x".to_owned(),
            description: String::new(),
            dependencies: Vec::new(),
            start: StartType::Manual,
            recovery: None,
        };
        host.add_service(&name(service), &config, ServiceRunState::Running);
    }

    /// Whether `change` warrants another pass.
    fn changes(change: impl Fn(&FakeWindows)) -> bool {
        let host = FakeWindows::new("winhost");
        let ours = Wanted {
            name: name("kubelet"),
            command: "x".to_owned(),
            node_variables_in_command: Vec::new(),
            powershell_pre_scripts: Vec::new(),
            dependencies: Vec::new(),
            bootstrap: true,
            priority: 0,
        };
        let manifest = Manifest::new(Parts { services: vec![ours], ..Parts::default() }).unwrap();
        add(&host, "kubelet");
        let seen = WatchedServices::of(&host.list().unwrap(), &manifest);
        change(&host);
        seen.with(&host.statuses().unwrap()) != seen
    }

    #[test]
    fn nothing_new_is_nothing_new() {
        assert!(!changes(|_| ()));
    }

    #[test]
    fn a_service_of_ours_that_stops_goes_or_starts_anew_is_seen() {
        let stop = |host: &FakeWindows| {
            host.set_service_state(&name("kubelet"), ServiceRunState::Stopped);
        };
        assert!(changes(stop));
        assert!(changes(|host| {
            stop(host);
            host.delete(
                &name("kubelet"),
                crate::windows::Wait::at_most(jiff::SignedDuration::ZERO),
            )
            .unwrap();
        }));
        assert!(changes(|host| {
            stop(host);
            host.set_service_state(&name("kubelet"), ServiceRunState::Running);
        }));
    }

    #[test]
    fn a_service_that_comes_is_seen_since_it_may_carry_our_tag() {
        assert!(changes(|host| add(host, "other")));
    }

    #[test]
    fn what_other_services_do_is_not_our_concern() {
        let sshd = name("sshd");
        assert!(!changes(|host| host.set_service_state(&sshd, ServiceRunState::Stopped)));
    }
}
