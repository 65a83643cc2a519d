//! Safety, checked at every single effect with what no planner can see.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use jiff::{SignedDuration, Timestamp};
use wmco_core::facts::PodFacts;
use wmco_core::fleet::Assignment;
use wmco_core::fleet::Intent;
use wmco_core::host_record::HostRecord;
use wmco_core::limits;
use wmco_core::machines::name_in;
use wmco_core::names::{self, host};
use wmco_core::node::{Action, InstanceInputs, NodePatch, Step};
use wmco_core::protocol::HostStep;
use wmco_core::winpath::WindowsPath;

use super::host::{Host, Power};
use super::release::{Release, SERVICES};
use super::{DRAIN_TIMEOUT, Entry, World};

/// How much longer a node may be held, for looks and retries.
const SLACK: SignedDuration = SignedDuration::from_mins(2);

impl World {
    /// After every action: the budget holds, and what is not ours is as it was.
    pub(crate) fn check(&mut self, action: &Action) {
        let disrupted = self.disrupted();
        let may_end = self.knew_budget(self.now) && disrupted + self.slow.len() <= self.budget;
        self.allowed = if may_end { self.budget } else { self.allowed.max(self.budget) };
        if disrupted > self.allowed {
            self.broken.push(format!("{disrupted} nodes are disrupted after {action}"));
        }
        self.check_holds(action);
        for name in super::NOT_OURS {
            if self.api.nodes.get(name) != Some(&super::not_ours(name)) {
                self.broken.push(format!("{action} touched {name}, which is not ours"));
            }
        }
        let strangers = &self.hosts[self.hosts.len() - 1];
        if *strangers != super::strangers_host() {
            self.broken.push(format!("{action} touched a host that is not ours"));
        }
    }

    /// Something is done that was sent then, and leaves no more nodes out of service than the budget, or than were before.
    pub(super) fn promise_room<T>(
        &mut self,
        action: &Action,
        sent_at: Timestamp,
        done: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let before = self.disrupted();
        let result = done(self);
        let after = self.disrupted();
        if after > before.max(self.budget) && self.knew_budget(sent_at) {
            self.broken.push(format!("{action} takes a slot, and {before} were taken before"));
        }
        result
    }

    /// Whether the operator knew the budget then, and had seen all that was permitted before. Of two permits it may take
    /// that back whose mark it does not see yet.
    fn knew_budget(&self, then: Timestamp) -> bool {
        then > self.budget_set_at + limits::CATCH_UP + limits::CATCH_UP
    }

    /// Nobody waits longer than a drain may take for a node that could be given back.
    fn check_holds(&mut self, action: &Action) {
        for number in 0..self.hosts.len() {
            let (on, name, addresses) = {
                let host = &self.hosts[number];
                (host.power == Power::On, host.name.clone(), host.true_addresses())
            };
            let host = &self.hosts[number];
            let its = |entry: &&Entry| host.owns(entry.ipv4);
            let broken = self.listed.values().filter(its).any(|entry| entry.broken);
            let now = self.now;
            let Some(node) = self.api.nodes.get(&name) else { continue };
            let Some(since) = node.held_since else { continue };
            // Without a version mark nobody knows whether its host is whole.
            let whole = !node.touched && node.facts.version().is_some();
            let blocked = node.facts.holds_slot() && whole && node.guarded_pods().next().is_some();
            // A Node that claims to be another is left alone, with all that it holds.
            let origin = node.facts.annotation(names::INSTANCE_ANNOTATION);
            let entry = |key: &str| self.listed.get(key).as_ref().is_some_and(its);
            // While the list is absent all of theirs stays as it is.
            let unknown = self.list_absent && !host.is_slot();
            let lies = node.facts.addresses != addresses || !origin.is_none_or(entry);
            if !blocked || !on || broken || unknown || lies || self.is_out_of_reach(host) {
                self.excused.insert(name, now);
                continue;
            }
            let grace = node.guarded_pods().filter_map(|pod| pod.leaves_by).max();
            let excused = self.excused.get(&name).copied().unwrap_or(since);
            let ends = (since.max(excused) + DRAIN_TIMEOUT).max(grace.unwrap_or(since));
            if now > ends + SLACK {
                self.broken.push(format!("{name} held a slot since {since} until {action}"));
            }
        }
    }

    /// What takes a slot is permitted by what its plan goes by, and no more once the permit is taken back.
    pub(super) fn promise_permitted(&mut self, step: &Step, inputs: &InstanceInputs) {
        let node = inputs.node_name();
        let mut left = inputs.clone();
        left.desired.intent = inputs.desired.intent.without_permit().unwrap_or(Intent::Leave);
        let takes = step.action.takes_slot_of(node).is_some();
        let goes_uncounted = matches!(step.action, Action::DeleteMachine(_)) && !takes;
        let is_left = takes && step.is_permitted_in(node, &left);
        if goes_uncounted || is_left || !step.is_permitted_in(node, inputs) {
            self.broken.push(format!("{} without its permit", step.action));
        }
    }

    /// Before anything below the root is run or brought there: nothing lies there that was there before
    /// an agent of ours had closed the root, and nobody but administrators can have put it there.
    pub(crate) fn promise_ours(&mut self, key: &str, index: Option<usize>) {
        let host = index.and_then(|index| self.hosts.get(index));
        // The operator could not know of a Machine that has just got the address of another one.
        let is_meant = |host: &&Host| host.machine.as_deref() == name_in(key);
        let Some(host) = host.filter(|host| !host.is_slot() || is_meant(host)) else { return };
        if host.planted {
            self.broken.push(format!("{key}: what lay there before us was run"));
        } else if !host.root_closed && !host.opened {
            self.broken.push(format!("{key}: something was run below a root that is open"));
        }
    }

    /// Before a patch: an uncordon is due and undoes nothing that a person did.
    pub(crate) fn promise_patch(&mut self, name: &str, patch: &NodePatch) {
        let wanted = self.wanted_services();
        let now = self.now;
        let idle = self.api.nodes.get(name).is_some_and(|node| self.is_idle(node));
        let Some(node) = self.api.nodes.get_mut(name) else { return };
        let host = self.hosts.iter().find(|host| host.name == name);
        let mut broken = Vec::new();
        // A new version comes with a mark of its own, when its host has been made anew.
        let same_version = !patch.annotations.contains_key(names::DESIRED_VERSION_ANNOTATION);
        let before = node.facts.annotation(names::SERVICES_ANNOTATION);
        let then = patch.annotations.get(names::SERVICES_ANNOTATION);
        let releases = same_version && before.is_some() && then.is_some();
        let kubelet_runs = host.is_some_and(|host| host.runs(host::KUBELET_SERVICE));
        if releases
            && node.guarded_pods().any(|pod| !pod.is_leaving() || kubelet_runs)
            && !node.meddled
        {
            broken.push("released for other services under running pods");
        }
        let removes = |name| patch.annotations.get(name) == Some(&None);
        let held = node.facts.annotation(names::CORDONED_ANNOTATION).is_some();
        let holds = patch.annotations.get(names::CORDONED_ANNOTATION);
        if !held && holds.is_some_and(Option::is_some) && node.held_since.is_none() {
            node.held_since = Some(now);
            node.touched = false;
            node.idle = idle;
        }
        // With a permit it counts, whatever people took.
        node.taken &= !patch.labels.get(names::UPGRADING_LABEL).is_some_and(Option::is_some);
        node.touched |= removes(names::VERSION_ANNOTATION);
        if patch.unschedulable == Some(false) && node.persons_cordon {
            broken.push("a person's cordon was lifted");
        }
        let given_up = patch.annotations.get(names::DRAIN_GIVEN_UP_ANNOTATION);
        if given_up.is_some_and(Option::is_some) {
            if node.touched {
                broken.push("given back although its host was changed");
            }
            if node.held_since.is_none_or(|since| now < since + DRAIN_TIMEOUT) {
                broken.push("given up before its time");
            }
            let in_grace = |pod: &PodFacts| pod.leaves_by.is_some_and(|ends| now < ends);
            if node.guarded_pods().next().is_some() && node.guarded_pods().all(in_grace) {
                broken.push("given up while its pods had their grace period");
            }
        } else if patch.unschedulable == Some(false) {
            if node.facts.version() != Some(self.release.version().as_str()) {
                broken.push("uncordoned without the version mark");
            }
            if node.facts.wants_restart() || host.is_some_and(|h| !h.reboot().is_empty()) {
                broken.push("uncordoned with a restart pending");
            }
            if host.is_some_and(|host| !host.serves(wanted)) && !self.breakdown {
                broken.push("uncordoned while its services are down");
            }
            node.served = true;
            node.meddled = false;
        }
        let label_goes = patch.labels.get(names::UPGRADING_LABEL) == Some(&None);
        node.persons_mark &= !label_goes;
        if removes(names::CORDONED_ANNOTATION) || label_goes {
            node.held_since = None;
            (node.taken, node.idle) = (false, false);
        }
        if removes(names::REBOOT_ANNOTATION) && node.asked_at_boot.take().is_some() {
            broken.push("a restart that was asked for did not happen");
        }
        self.broken.extend(broken.iter().map(|text| format!("{name}: {text}")));
    }

    /// Whether people list the host, by an entry that may be broken now. While the list is absent
    /// nobody knows, so then it is as it was.
    pub(crate) fn is_listed(&self, host: &Host) -> bool {
        self.entry_of(host).is_some()
    }

    /// The hosts that the operator can know to be listed: by an address at which it was seen
    /// or that nobody has tried. A host that did not answer at a new address may be anybody's.
    pub(crate) fn known_as_listed(&self) -> BTreeSet<Ipv4Addr> {
        let known = self.hosts.iter().filter(|host| self.is_known_as_listed(host));
        known.map(|host| host.address).collect()
    }

    fn is_known_as_listed(&self, host: &Host) -> bool {
        let mut entries = self.listed.iter().filter(|(_, entry)| host.owns(entry.ipv4));
        entries.any(|(key, entry)| {
            host.known.contains(&entry.ipv4) || !entry.broken && !self.has_tried(key)
        })
    }

    /// Before anything is done to a Node or host that is to leave: it is not that of a listed host,
    /// whatever Nodes say of their addresses and origin.
    pub(crate) fn promise_leaving(&mut self, instance: &Assignment<'_>, index: Option<usize>) {
        if !matches!(instance.intent, Intent::Remove(_)) {
            return;
        }
        let of_node = instance.node_name().and_then(|n| self.hosts.iter().find(|h| h.name == n));
        let at_work = index.map(|index| &self.hosts[index]);
        let mut there = of_node.into_iter().chain(at_work);
        let listed = there.find(|host| self.operator.knew_as_listed.contains(&host.address));
        if let Some(host) = listed.map(|host| host.name.clone()) {
            self.broken.push(format!("{host} is listed, and {instance} is carried out"));
        }
        if self.list_absent {
            self.broken.push(format!("nobody knows what is listed, and {instance} is carried out"));
        }
    }

    /// Before a Node is deleted: nobody lists it, and its host is clean.
    pub(crate) fn promise_delete(&mut self, name: &str) {
        let Some(node) = self.api.nodes.get(name) else { return };
        if node.guarded_pods().any(|pod| !pod.is_leaving()) {
            self.broken.push(format!("{name} was deleted under its pods"));
        }
        if self.hosts.iter().any(|host| host.name == name && !host.is_clean()) {
            self.broken.push(format!("{name} was deleted before its host was clean"));
        }
    }

    /// Before a step on a host: no pod runs there that would notice it, and no scheduler may send
    /// one.
    pub(crate) fn promise_host_step(&mut self, index: usize, step: &HostStep) {
        let host = &self.hosts[index];
        let (address, release) = (host.address, self.release);
        if !is_noticed(step, release) {
            return;
        }
        let Some(node) = self.api.nodes.get(&self.hosts[index].name) else { return };
        // Only a kubelet ends pods. One that started a moment ago has pods to end whose grace period is over.
        let still_ends =
            |ends| host.runs(host::KUBELET_SERVICE) && (host.kubelet_was_seen || self.now < ends);
        let staying = node.guarded_pods().any(|pod| pod.leaves_by.is_none_or(still_ends));
        if staying {
            self.broken.push(format!("{step} on {address} under running pods"));
        } else if !node.facts.unschedulable && node.served {
            self.broken.push(format!("{step} on {address}, which is schedulable"));
        }
    }

    /// How the world differs from what people asked for.
    pub(crate) fn unmet(&self) -> Vec<String> {
        let mut unmet: Vec<_> =
            (0..self.hosts.len() - 1).flat_map(|number| self.unmet_of(number)).collect();
        // The key of a host that has a Node which is not ours is the business of its owner.
        let of = |key: &str| HostRecord::address_in(key).unwrap_or(key).to_owned();
        let machines = &self.api.made.machines;
        let is_made = |key: &str| name_in(key).is_some_and(|name| machines.contains_key(name));
        let listed = |key: &&String| self.listed.contains_key(&of(key)) || is_made(&of(key));
        let keys: Vec<_> = self.api.host_keys.keys().filter(|key| !listed(key)).collect();
        if !keys.is_empty() {
            unmet.push(format!("keys or records of hosts are left: {keys:?}"));
        }
        unmet.extend(self.unmet_of_machines());
        unmet.extend(self.secret.unmet());
        unmet
    }

    /// The same of one host and its Node.
    pub(crate) fn unmet_of(&self, number: usize) -> Vec<String> {
        let mut unmet = Vec::new();
        let host = &self.hosts[number];
        if host.is_slot() && !self.is_wanted_machine(host) {
            return unmet;
        }
        let listed = self.is_listed(host) || host.is_slot();
        let node = self.api.nodes.get(&host.name);
        let mut say = |text: &str| unmet.push(format!("{}: {text}", host.name));
        let Some(node) = node.filter(|_| listed) else {
            if listed {
                say("has no node");
            } else if node.is_some() {
                say("is not listed but has a node");
            } else if host.state.is_some() {
                say("is not listed but not clean");
            }
            return unmet;
        };
        let version = self.release.version();
        let facts = &node.facts;
        if facts.version() != Some(&version) || facts.desired_version() != Some(&version) {
            say("has another version");
        }
        let (release, edition) = self.wanted_services();
        let digest = release.manifest(edition).digest().to_string();
        if facts.annotation(names::SERVICES_ANNOTATION) != Some(&digest) {
            say("is not released for what services are now");
        }
        if facts.annotation(names::ROOTS_ANNOTATION) != Some(&release.roots().to_string()) {
            say("is not released for the roots of now");
        }
        if !host.is_slot()
            && !super::release::labels().iter().all(|(k, v)| facts.labels.get(k) == Some(v))
        {
            say("lacks labels");
        }
        if facts.unschedulable != node.persons_cordon {
            say("is not schedulable as people want it");
        }
        let ours = [
            names::DRAIN_SINCE_ANNOTATION,
            names::CORDONED_SINCE_ANNOTATION,
            names::DRAIN_GIVEN_UP_ANNOTATION,
            names::CORDONED_ANNOTATION,
            names::RESTART_FROM_ANNOTATION,
            names::REBOOT_ANNOTATION,
        ];
        if facts.holds_slot() || ours.iter().any(|name| facts.annotation(name).is_some()) {
            say("still has marks of work");
        }
        if facts.drain_notice.is_some() {
            say("tells of pods that are gone");
        }
        if !facts.ready || !host.serves(self.wanted_services()) || !host.reboot().is_empty() {
            say("does not work");
        }
        let daemon = host.services.get(names::objects::WICD);
        if daemon.is_none_or(|d| !d.running || d.release != self.release) {
            say("has no daemon, or another");
        }
        let wanted = self.release.files();
        let extra = |path: &WindowsPath| path.as_str() != super::host::FOREIGN_FILE;
        if !wanted.iter().all(|(path, file)| host.files.get(path) == Some(&file.sha256))
            || host.files.keys().filter(|path| extra(path)).count() != wanted.len()
            || host.agent != Some(self.release)
        {
            say("has other files");
        }
        if host.planted || !host.root_closed {
            say("has a root that others may write to, or did before us");
        }
        if !host.doubted.is_empty() {
            say("has files that somebody may still hold open");
        }
        if host.open().next().is_some() {
            say("lets others exchange what is for administrators only");
        }
        if SERVICES.len() + 1 != host.services.len() {
            say("has other services");
        }
        unmet
    }
}

/// Whether a pod on the host would notice the step.
fn is_noticed(step: &HostStep, release: Release) -> bool {
    let lasting = |path: &WindowsPath| !release.files().get(path).is_some_and(|f| f.live);
    match step {
        HostStep::JoinCluster { .. }
        | HostStep::InstallAgent
        | HostStep::StopKubelet
        | HostStep::RemoveDaemon
        | HostStep::EnsureAuthorizedKeys { .. }
        | HostStep::EnsureDaemon { .. }
        | HostStep::EnsureDirectory { .. } => false,
        HostStep::PlaceFile { path, .. } => lasting(path),
        HostStep::RemoveFile { path } => !path.as_str().contains(host::REGISTRIES),
        HostStep::RemoveDirectory { .. }
        | HostStep::EnableContainers
        | HostStep::RenameComputer { .. }
        | HostStep::RemoveServices { .. }
        | HostStep::Bootstrap { .. }
        | HostStep::RemoveNetwork { .. }
        | HostStep::RemoveInstallation
        | HostStep::Restart => true,
    }
}
