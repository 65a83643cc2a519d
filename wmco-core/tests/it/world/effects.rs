//! How the model operator carries out single actions.

use wmco_core::facts::{NodeFacts, PodFacts};
use wmco_core::fleet::{Assignment, DisruptionPermit, LoginResult};
use wmco_core::host_record::{HostRecord, RecordChange};
use wmco_core::machines::name_in;
use wmco_core::names;
use wmco_core::node::{
    Action, Grounds, HostSeen, HostWork, NodePatch, NodeSearch, Outcome, Refusal,
};
use wmco_core::protocol::HostStep;

use super::World;
use super::faults::Stop;
use super::host::{Host, Power};
use super::release::Release;

impl World {
    pub(super) fn effect(
        &mut self,
        action: &Action,
        key: &str,
        instance: &Assignment<'_>,
        index: Option<usize>,
    ) -> Result<Outcome, Stop> {
        self.faults.pass()?;
        let release = self.release;
        if !is_look(action) && *action != Action::ForgetHost {
            self.promise_leaving(instance, index);
        }
        self.promise_machine(instance, index, action);
        let outcome = match action {
            Action::Probe => {
                self.promise_ours(key, index);
                let host = self.connect(instance, index).ok_or(Stop::Fail)?;
                let agent = host.agent;
                let seen = agent.map_or(HostSeen::NoAgent, |agent| probed(host, agent));
                Outcome::Looked(seen)
            }
            Action::ProbeWithOurs(_) => {
                self.connect(instance, index).ok_or(Stop::Fail)?;
                let host = &mut self.hosts[index.unwrap()];
                host.bring(release, &mut self.faults)?;
                Outcome::Worked(probed(host, release))
            }
            Action::ProbeStaged(agent) => {
                self.promise_ours(key, index);
                let host = self.connect(instance, index).ok_or(Stop::Fail)?;
                let there = host.staged_agents.contains(agent);
                Outcome::Looked(if there { probed(host, release) } else { HostSeen::NoAgent })
            }
            Action::RecordRoot(root) => {
                let host = &self.hosts[index.ok_or(Stop::Fail)?];
                let (shown, name) = (host.key(), Some(host.name.clone()));
                let seen = RecordChange::Seen { key: shown, host_name: name, root: *root };
                self.change_record(key, &seen);
                Outcome::RootRecorded(*root)
            }
            Action::ProveKey(proven) => self.prove_key(*proven, instance, index)?,
            Action::ProveKeyRemoved(removed) => {
                self.prove_key_removed(*removed, instance, index)?
            }
            Action::Upload(contents) => {
                self.promise_ours(key, index);
                let host = self.connect(instance, index).ok_or(Stop::Fail)?;
                host.staged.extend(contents);
                Outcome::Uploaded
            }
            Action::PatchNode(patch) => {
                let name = self.node_of(instance).ok_or(Stop::Fail)?.name.clone();
                self.may_last(action, key, Some(&name))?;
                self.promise_room(action, self.now, |it| it.patch_node(&name, patch))?
            }
            Action::SeekNode(search) => self.seek_node(search),
            Action::ListPods => {
                let name = instance.node_name().ok_or(Stop::Fail)?;
                Outcome::Pods(self.api.nodes.get(name).ok_or(Stop::Fail)?.pods.clone())
            }
            Action::Evict { pods, permit } => {
                self.promise_permit(instance, permit);
                self.evict(instance, pods)?
            }
            Action::TellDrain { notice, .. } => {
                let name = instance.node_name().ok_or(Stop::Fail)?;
                let node = self.api.nodes.get_mut(name).ok_or(Stop::Fail)?;
                node.facts.drain_notice.clone_from(notice);
                Outcome::NodeChanged { resource_version: 0, is_ours: true }
            }
            Action::Apply { work, .. } => {
                self.promise_grounds(instance, work);
                self.promise_ours(key, index);
                self.connect(instance, index).ok_or(Stop::Fail)?;
                self.apply(work, index.unwrap())?;
                // The agent's last line is a probe, unless the host goes down meanwhile.
                let host = &mut self.hosts[index.unwrap()];
                let up = host.power == Power::On;
                Outcome::Worked(if up { probed(host, release) } else { HostSeen::Unknown })
            }
            Action::RemoveLeftovers(work) => {
                self.promise_grounds(instance, work);
                self.connect(instance, index).ok_or(Stop::Fail)?;
                self.hosts[index.unwrap()].remove_leftovers(&mut self.faults)?;
                Outcome::Worked(HostSeen::NoAgent)
            }
            Action::ForgetHost => {
                self.api.host_keys.remove(key);
                self.api.host_keys.remove(&HostRecord::key_name(key));
                // It is as it was before us, so its next key is a first one.
                self.hosts[index.ok_or(Stop::Fail)?].known.clear();
                Outcome::HostForgotten
            }
            Action::DeleteNode(permit) => {
                self.promise_permit(instance, permit);
                self.promise_delete(permit.node());
                self.api.nodes.remove(permit.node());
                Outcome::NodeDeleted
            }
            Action::ProveUserData => self.prove_user_data()?,
            Action::DeleteMachine(permit) => {
                self.promise_replace(permit);
                self.may_last(action, key, None)?;
                self.promise_room(action, self.now, |it| it.delete_machine(permit));
                Outcome::MachineDeleted
            }
        };
        self.faults.pass()?;
        Ok(outcome)
    }

    pub(super) fn patch_node(&mut self, name: &str, patch: &NodePatch) -> Result<Outcome, Stop> {
        self.promise_patch(name, patch);
        self.api.nodes.get_mut(name).ok_or(Stop::Fail)?.patch(patch);
        Ok(Outcome::NodeChanged { resource_version: 0, is_ours: true })
    }

    fn prove_user_data(&self) -> Result<Outcome, Stop> {
        self.api.made.user_data.is_right().then_some(Outcome::UserDataProven).ok_or(Stop::Fail)
    }

    fn seek_node(&self, search: &NodeSearch) -> Outcome {
        let is_meant =
            |node: &NodeFacts| search.names.contains(&node.name) || search.is_at(&node.addresses);
        let found = self.api.nodes.values().find(|node| is_meant(&node.facts));
        found.map_or(Outcome::NoNode, |node| Outcome::FoundNode { name: node.facts.name.clone() })
    }

    /// The host, if it answers and shows the pinned key. A key that is pinned nowhere goes into the
    /// ConfigMap, with its fingerprint on record.
    pub(super) fn connect(
        &mut self,
        instance: &Assignment<'_>,
        index: Option<usize>,
    ) -> Option<&mut Host> {
        self.operator.tried.insert(instance.address.clone());
        let index = index?;
        let way = self.reach(instance).ok()?;
        self.hosts[index].silent = self.hosts[index].power != Power::On;
        if self.hosts[index].silent {
            self.note_login(instance, way.address, LoginResult::Unanswered);
            return None;
        }
        let host = &self.hosts[index];
        let (shown, address) = (host.key(), host.address);
        if way.host_key.as_ref().is_some_and(|pinned| pinned.key != shown) {
            return None;
        }
        if !self.log_in(instance, index, way.address) {
            return None;
        }
        let host = &self.hosts[index];
        // As the host of a Machine that it is not of it may be logged in to anew: nobody could tell.
        let is_meant = host.machine.as_deref() == name_in(&instance.address);
        if is_meant && way.host_key.is_none() && host.known.contains(&way.address) {
            self.broken.push(format!("{address} was trusted on first use a second time"));
        }
        if !host.answers_at(way.address) {
            self.broken.push(format!("{instance} dials {} for the host at {address}", way.address));
        }
        if way.host_key.is_none() || way.to_keep {
            let pinned = RecordChange::Pinned { key: shown, jump: None };
            self.change_record(&instance.address, &pinned);
        }
        let host = &mut self.hosts[index];
        host.mistaken |= !is_meant && name_in(&instance.address).is_some();
        if is_meant {
            host.known.insert(way.address);
        }
        self.operator.host_names.insert(instance.address.clone(), host.name.clone());
        Some(host)
    }

    pub(super) fn evict(
        &mut self,
        instance: &Assignment<'_>,
        pods: &[PodFacts],
    ) -> Result<Outcome, Stop> {
        let name = instance.node_name().ok_or(Stop::Fail)?;
        let number = self.number(name);
        let protected = number.is_some_and(|number| self.protected.contains(&number));
        let leaves_by = self.now + self.grace_on(number);
        let node = self.api.nodes.get_mut(name).ok_or(Stop::Fail)?;
        let mut refused = Vec::new();
        for pod in node.pods.iter_mut().filter(|pod| pods.contains(pod)) {
            self.faults.pass()?;
            if protected {
                refused.push(Refusal::of(pod, "budget"));
            } else {
                pod.leaves_by = Some(leaves_by);
            }
        }
        Ok(Outcome::Evicted(refused))
    }

    pub(super) fn apply(&mut self, work: &HostWork, index: usize) -> Result<(), Stop> {
        let host = &self.hosts[index];
        let stays_vacant =
            |boot| host.boot_id() == boot && !host.runs(names::host::KUBELET_SERVICE);
        if !work.plan().vacant_since.as_deref().is_none_or(stays_vacant) {
            return Err(Stop::Fail);
        }
        let permitted = matches!(work.grounds(), Grounds::Permitted(_));
        for step in &work.plan().steps {
            self.promise_host_step(index, step);
            if let Some(node) = self.api.nodes.get_mut(&self.hosts[index].name) {
                // A restart alone leaves the host as it was.
                node.touched |= permitted && *step != HostStep::Restart;
            }
            let host = &mut self.hosts[index];
            if !host.staged_agents.contains(&self.release.agent())
                && host.agent != Some(self.release)
            {
                return Err(Stop::Fail);
            }
            host.apply(step, self.release, &mut self.faults)?;
            if let HostStep::EnsureAuthorizedKeys { add, remove } = step {
                self.exchange_keys(index, add.iter(), remove.iter());
            }
        }
        Ok(())
    }

    pub(super) fn promise_grounds(&mut self, instance: &Assignment<'_>, work: &HostWork) {
        match work.grounds() {
            Grounds::Harmless | Grounds::Vacant(_) => {}
            Grounds::Permitted(permit) => self.promise_permit(instance, permit),
        }
    }

    pub(super) fn promise_permit(&mut self, instance: &Assignment<'_>, permit: &DisruptionPermit) {
        if instance.node_name() != Some(permit.node()) {
            self.broken.push(format!("{instance} used the {permit}"));
        }
    }
}

fn probed(host: &mut Host, agent: Release) -> HostSeen {
    HostSeen::Probed(Box::new(host.probe(agent)))
}

/// Whether nothing is changed but that an agent is brought.
const fn is_look(action: &Action) -> bool {
    matches!(action, Action::Probe | Action::ProbeWithOurs(_) | Action::ProbeStaged(_))
}
