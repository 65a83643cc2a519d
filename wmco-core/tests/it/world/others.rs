//! What everybody else does: hosts that come up, kubelets, daemons, the scheduler, people.

use wmco_core::facts::PodFacts;
use wmco_core::names::{self, host, objects};
use wmco_core::node::DesiredFile;

use super::World;
use super::api::Node;
use super::host::{Power, Service, tampered};
use super::release::{Release, SERVICES};

/// Who gets to act, one bit each.
pub(crate) const EVERYBODY: u8 = 0b11_1111;

/// How many moments pods take to leave.
const GRACE: u32 = 6;

/// Most pods that the scheduler puts on one node.
const PODS: usize = 2;

impl World {
    /// Each of those in `who` does at most one thing.
    pub(crate) fn others_act(&mut self, who: u8) {
        for index in 0..self.hosts.len() {
            if who & 1 != 0 && self.hosts[index].power == Power::Restarting {
                self.hosts[index].come_up();
                let boot = self.hosts[index].boot;
                if let Some(node) = self.api.nodes.get_mut(&self.hosts[index].name) {
                    node.asked_at_boot = node.asked_at_boot.filter(|asked| *asked >= boot);
                }
            }
            // The daemon first, so that there is a moment when a node is ready but not marked.
            if who & 2 != 0 {
                self.daemon_acts(index);
            }
            if who & 4 != 0 {
                self.kubelet_acts(index);
            }
        }
        if who & 8 != 0 {
            self.pods_leave();
        }
        if who & 16 != 0 {
            self.scheduler_acts();
        }
        if who & 32 != 0 {
            self.machine_api_acts();
        }
    }

    /// The kubelet registers its Node once per start and reports how it is; nobody's kubelet is
    /// reported as not ready.
    fn kubelet_acts(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        let cut = self.faults.kubelets_cut;
        let runs = !cut && host.runs(host::KUBELET_SERVICE) && host.runs(host::CONTAINERD_SERVICE);
        let ready = SERVICES.iter().all(|name| host.runs(name));
        let name = host.name.clone();
        let registers = runs && !host.registered;
        host.registered |= registers;
        if registers && !self.api.nodes.contains_key(&name) {
            let uid = self.api.next_uid();
            let addresses = host.true_addresses();
            let node = Node::registered(&name, uid, addresses, names::OS_WINDOWS);
            self.api.nodes.insert(name.clone(), node);
        }
        if let Some(node) = self.api.nodes.get_mut(&name) {
            node.facts.ready = runs && ready;
        }
    }

    /// The daemon follows its Node's desired version; it pauses while a restart is asked for.
    fn daemon_acts(&mut self, index: usize) {
        let editions = self.editions.clone();
        let host = &mut self.hosts[index];
        if !host.runs(objects::WICD) {
            return;
        }
        let daemon = host.services[objects::WICD].release;
        let Some(node) = self.api.nodes.get_mut(&host.name) else { return };
        host.certificate = true;
        let Some(version) = node.facts.desired_version().map(str::to_owned) else { return };
        if node.facts.wants_restart() {
            return;
        }
        let release = Release::of_version(&version);
        let files = release.files();
        let placed = |(path, file): (_, &DesiredFile)| {
            let there = host.files.get(path);
            file.live || there == Some(&file.sha256) || there == Some(&tampered())
        };
        if daemon != release || !files.iter().all(placed) {
            self.broken.push(format!("{}: a daemon of {daemon:?} follows {version}", host.name));
            return;
        }
        let edition = editions.get(&release).copied().unwrap_or_default();
        let released = node.facts.annotation(names::SERVICES_ANNOTATION);
        if released.is_some_and(|r| r != release.manifest(edition).digest().to_string()) {
            return;
        }
        let roots = node.facts.annotation(names::ROOTS_ANNOTATION);
        if roots.is_some_and(|released| released != release.roots().to_string()) {
            return;
        }
        host.proxy = release.has_proxy();
        host.roots = release.has_roots();
        if host.proxy != host.proxy_at_boot || host.roots != host.roots_at_boot {
            node.annotate(names::REBOOT_ANNOTATION, "");
            node.asked_at_boot = Some(host.boot);
            return;
        }
        let wrong = |name: &&&str| {
            let right = |s: &Service| s.release == release && s.edition == edition && s.running;
            !host.services.get(**name).is_some_and(right)
        };
        if let Some(name) = SERVICES.iter().find(wrong) {
            let other = host.services.get(*name).is_some_and(|s| s.release != release);
            // Nobody ends a pod whose grace period is over where no kubelet runs.
            let kubelet_runs = host.runs(host::KUBELET_SERVICE);
            let is_there =
                |pod: &PodFacts| kubelet_runs || pod.leaves_by.is_none_or(|ends| self.now < ends);
            if other && node.guarded_pods().any(is_there) {
                self.broken.push(format!("{}: {name} changed under running pods", host.name));
            }
            let newer = host.services.get(*name).is_some_and(|s| s.edition != edition);
            let empty = node.facts.unschedulable && node.guarded_pods().all(PodFacts::is_leaving);
            if newer && node.served && !node.meddled && !(node.facts.holds_slot() && empty) {
                self.broken.push(format!("{}: {name} changed on a node in service", host.name));
            }
            host.start(name, release, edition);
            host.networks.extend(host::HNS_NETWORKS.map(str::to_owned));
        } else if node.facts.ready && node.facts.version() != Some(version.as_str()) {
            node.annotate(names::VERSION_ANNOTATION, &version);
            // The host is whole again.
            node.touched = false;
        }
    }

    /// Pods that were asked to leave do so after a while, if their kubelet runs.
    fn pods_leave(&mut self) {
        self.moments += 1;
        if !self.moments.is_multiple_of(GRACE) {
            return;
        }
        let Self { hosts, api, clinging, now, .. } = self;
        let now = *now;
        for node in api.nodes.values_mut() {
            let number = hosts.iter().position(|host| host.name == node.facts.name);
            if number.is_some_and(|number| clinging.contains(&number)) {
                continue;
            }
            let host = hosts.iter().find(|host| host.name == node.facts.name);
            if host.is_none_or(|host| host.runs(host::KUBELET_SERVICE)) {
                node.pods.retain(|pod| pod.leaves_by.is_none_or(|ends| now < ends));
            }
        }
    }

    /// Pods come to nodes that are schedulable and, as far as the API knows, ready.
    fn scheduler_acts(&mut self) {
        for node in self.api.nodes.values_mut() {
            let number = self.hosts.iter().position(|host| host.name == node.facts.name);
            let tolerated = number.is_some_and(|number| self.tolerant.contains(&number));
            let cordoned = node.facts.unschedulable;
            if node.facts.ready && (!cordoned || tolerated) && node.pods.len() < PODS {
                self.pods += 1;
                let (namespace, name) = ("default".into(), format!("pod-{}", self.pods));
                let (uid, created) = (name.clone(), Some(self.now));
                if cordoned {
                    // Such a pod goes anywhere: the node is not in service by that.
                    node.tolerating.insert(uid.clone());
                } else {
                    node.ran = true;
                }
                node.pods.push(PodFacts { namespace, name, uid, created, leaves_by: None });
            }
        }
    }
}
