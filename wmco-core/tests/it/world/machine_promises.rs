//! Safety and the goal of Machines, by what no planner can see.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use wmco_core::facts::NodeFacts;
use wmco_core::fleet::{Assignment, Intent, ReplacementPermit};
use wmco_core::machines::{Machine, Machines, Unfit, internal_ipv4, key};
use wmco_core::names;
use wmco_core::node::Action;

use super::World;
use super::api::Node;
use super::host::Host;
use super::operator::REFUSED_FOR;

impl World {
    /// How many nodes are out of service by our work: those that we hold, and those of Machines that we
    /// deleted and that nothing has taken the place of.
    pub(super) fn disrupted(&mut self) -> usize {
        let whole: Vec<_> =
            self.replaced.keys().filter(|set| self.was_seen_whole(set)).cloned().collect();
        for set in whole {
            self.replaced.remove(&set);
        }
        let held = self.api.nodes.values().filter(|node| {
            node.is_disrupted() && !node.idle && !self.is_others_business(&node.facts.name)
        });
        let mut by_set: BTreeMap<Option<String>, usize> = BTreeMap::new();
        for node in held {
            *by_set.entry(self.set_of(node)).or_default() += 1;
        }
        let mut all = by_set.values().sum();
        for (set, deleted) in &self.replaced {
            let held = by_set.get(&Some(set.clone())).copied().unwrap_or_default();
            let lacking = lacking(set, deleted.of, &self.api.made.read(), &self.api.facts());
            all += deleted.served.min(lacking.saturating_sub(held));
        }
        all
    }

    /// Whether the MachineSet is one, or was when the operator looked, whose Machines all work.
    fn was_seen_whole(&self, set: &str) -> bool {
        let of = self.replaced.get(set).map_or(usize::MAX, |deleted| deleted.of);
        let now = (self.api.made.read(), self.api.facts());
        let seen = self.operator.machines.clone().zip(self.operator.cache.clone());
        // It may not have seen yet what it has done.
        let deleted = self.replaced.get(set).map(|deleted| &deleted.uids);
        let is_there = |it: &Machine| deleted.is_some_and(|uids| uids.contains(&it.facts.uid));
        let seen =
            seen.filter(|(machines, _)| !machines.iter().any(|it| is_of(it, set) && is_there(it)));
        lacking(set, of, &now.0, &now.1) == 0
            || seen.is_some_and(|(machines, nodes)| lacking(set, of, &machines, &nodes) == 0)
    }

    /// Whether people asked to leave the Machine behind a Node alone, or it is counted as deleted.
    fn is_others_business(&self, node: &str) -> bool {
        let host = self.hosts.iter().find(|host| host.name == node);
        let machine = host.and_then(|host| self.machine_of(host));
        machine.is_some_and(|machine| machine.facts.is_ignored || machine.facts.is_deleted)
    }

    /// The MachineSet of the Machine behind a Node.
    fn set_of(&self, node: &Node) -> Option<String> {
        let host = self.hosts.iter().find(|host| host.name == node.facts.name)?;
        Some(self.machine_of(host)?.facts.machine_set.as_ref()?.name.clone())
    }

    /// Whether a Node is out of service by itself while its MachineSet gets a Machine anew: it never was in service, or
    /// the operator could know that it has not been ready for long.
    pub(super) fn is_idle(&self, node: &Node) -> bool {
        let replaced = self.set_of(node).is_some_and(|set| self.replaced.contains_key(&set));
        replaced && (!node.served || !self.was_ready_lately(&node.facts.uid))
    }

    /// Before anything is done for an instance: what people and the Machine API wrote, as far as the
    /// operator could see it, allows that.
    pub(super) fn promise_machine(
        &mut self,
        instance: &Assignment<'_>,
        index: Option<usize>,
        action: &Action,
    ) {
        let Some(seen) = self.operator.machines.clone() else { return };
        let mut broken = Vec::new();
        if let Some(machine) = seen.with_key(&instance.address) {
            match &machine.instance {
                Err(unfit) => broken.push(format!("though {unfit}")),
                Ok(made) => {
                    let others = seen.instances().filter(|other| other.ipv4 == made.ipv4);
                    let listed = self.listed.values().any(|it| !it.broken && it.ipv4 == made.ipv4);
                    if others.count() > 1 || listed && !self.list_absent {
                        broken.push("though its address is another's, too".into());
                    }
                }
            }
        }
        let writes = matches!(
            action,
            Action::PatchNode(_)
                | Action::Evict { .. }
                | Action::TellDrain { .. }
                | Action::DeleteNode(_)
        );
        let at_node = instance.node_name().filter(|_| writes);
        let at_node = at_node.and_then(|name| self.hosts.iter().find(|host| host.name == name));
        let own = seen.with_key(&instance.address);
        let shows = |ipv4| own.is_some_and(|own| internal_ipv4(&own.facts) == Some(ipv4));
        let at_host = index.filter(|_| action.is_on_host()).map(|index| &self.hosts[index]);
        let is_listed = |host: &&Host| self.operator.knew_as_listed.contains(&host.address);
        if let Some(host) = at_node.filter(is_listed).filter(|_| own.is_some()) {
            broken.push(format!("though {} is listed", host.name));
        }
        let both = at_node.map(|host| (host, true)).into_iter();
        for (host, by_node) in both.chain(at_host.map(|host| (host, false))) {
            let Some(machine) = host.machine.as_ref().and_then(|name| seen.get(name)) else {
                continue;
            };
            let name = &machine.facts.name;
            let node = self.api.nodes.get(&host.name).map(|node| node.facts.uid.as_str());
            let referred = machine.facts.node.as_ref().map(|node| node.uid.as_str());
            if by_node && referred != node && matches!(instance.intent, Intent::Configure(_)) {
                // Nobody but its Node says yet whose it is.
                continue;
            }
            let is_there = internal_ipv4(&machine.facts) == Some(host.address);
            let gave_up = machine.instance == Err(Unfit::Deleted)
                || machine.instance == Err(Unfit::Ignored) && !is_there;
            if gave_up && shows(host.address) {
                // Its address is another one's already, as the Machine API says, and nobody could tell since when.
            } else if matches!(machine.instance, Err(Unfit::Ignored | Unfit::Deleted)) {
                broken.push(format!("though {name} is ignored or deleted"));
            } else if is_there && instance.address != key(name) {
                broken.push(format!("though {name} is there"));
            } else if matches!(instance.intent, Intent::Remove(_)) {
                broken.push(format!("though {name} was not listed"));
            }
        }
        self.broken.extend(broken.iter().map(|why| format!("{instance}: {action}, {why}")));
    }

    /// Before a Machine is deleted: its host refuses the key, and all others of its MachineSet were there
    /// and right when the operator looked, but for those that refuse it, too.
    pub(super) fn promise_replace(&mut self, permit: &ReplacementPermit) {
        let (name, version) = (permit.machine(), self.release.version());
        let (Some(seen), Some(nodes)) = (&self.operator.machines, &self.operator.cache) else {
            return;
        };
        let machine = self.api.made.machines.get(name).map(|machine| &machine.facts);
        if machine.is_none_or(|facts| facts.uid != permit.uid()) {
            // It is gone already, and the API server says so.
            return;
        }
        let is_going = machine.is_some_and(|facts| facts.is_deleted);
        // The operator may not have seen it yet, and another one may have its address.
        let is_gone = |machine: &Machine| {
            let now = self.api.made.machines.get(&machine.facts.name);
            now.is_none_or(|it| it.facts.uid != machine.facts.uid || it.facts.is_deleted)
        };
        let mut broken = Vec::new();
        let refuses = |machine: &Machine| {
            let ipv4 = internal_ipv4(&machine.facts);
            let host = self.hosts.iter().find(|host| Some(host.address) == ipv4);
            host.is_none_or(|host| {
                host.is_vacant() || self.is_locked(host) || self.holds_up_rotation(host)
            })
        };
        match seen.get(name).filter(|machine| machine.facts.uid == permit.uid()) {
            None => broken.push("nobody has seen it".to_owned()),
            Some(machine) => {
                // Its address is another one's as soon as its host is gone.
                if !refuses(machine) && !is_going {
                    broken.push("its host lets us in".into());
                }
                if machine.facts.is_deleted {
                    broken.push("it is deleted already".into());
                }
                let set = machine.facts.machine_set.as_ref();
                let set = set.and_then(|set| seen.set(&set.name)).filter(|set| set.replicas > 0);
                let set_name = set.map_or("", |set| &set.name);
                let alive: Vec<_> = seen.iter().filter(|it| is_of(it, set_name)).collect();
                if set.is_none_or(|set| set.replicas != alive.len()) {
                    broken.push("its machineset has another number".into());
                }
                let node = node_of(machine, nodes);
                let works = node.is_some_and(|it| {
                    it.ready && it.version().is_some() && !it.is_cordoned_by_us()
                });
                let is_out = node.is_some_and(NodeFacts::holds_slot)
                    || !works && set.is_some_and(|set| self.holds_slot_for(&set.name, name));
                let right = |it: &&Machine| {
                    let node = node_of(it, nodes);
                    it.facts.name == name
                        // The others may wait for its slot, and it waits for a login.
                        || is_out
                        || it.facts.is_ignored
                        || refuses(it)
                        || is_gone(it)
                        || node.is_some_and(|n| n.ready && n.version() == Some(&version))
                };
                if let Some(other) = alive.iter().find(|it| !right(it)) {
                    broken.push(format!("{} is not right", other.facts.name));
                }
                if self.served_lately(machine, node) && !is_going {
                    let of_set = seen.iter().filter(|it| is_of(it, set_name));
                    let uids = of_set.map(|it| it.facts.uid.clone()).collect();
                    if self.awaiting.insert(set_name.to_owned(), uids).is_some() {
                        broken.push("no successor of another one works yet".into());
                    }
                }
            }
        }
        self.broken.extend(broken.iter().map(|why| format!("{name} was deleted, though {why}")));
    }

    /// Notes which Nodes the operator sees ready, and which MachineSets have what takes a deleted Machine's place.
    pub(super) fn see_ready(&mut self, nodes: &[NodeFacts], machines: &Machines) {
        let ready = nodes.iter().filter(|node| node.ready);
        self.seen_ready.extend(ready.map(|node| (node.uid.clone(), self.now)));
        // People answer for one that they ask to leave alone (MACH20).
        let works = |machine: &Machine| {
            let node = node_of(machine, nodes);
            machine.facts.is_ignored
                || node.is_some_and(|node| node.ready && !node.is_cordoned_by_us())
        };
        self.awaiting.retain(|set, others| {
            let mut of_set = machines.iter().filter(|machine| is_of(machine, set));
            let came = of_set.any(|it| !others.contains(&it.facts.uid) && works(it));
            !came && lacking(set, usize::MAX, machines, nodes) > 0
        });
    }

    /// Whether the operator could know that a Machine served a moment ago. What had got a slot of others since it did not
    /// work counts as theirs.
    fn served_lately(&self, machine: &Machine, node: Option<&NodeFacts>) -> bool {
        let lately = machine.facts.node.as_ref().is_some_and(|it| self.was_ready_lately(&it.uid));
        let idle = node.and_then(|node| self.api.nodes.get(&node.name)).is_some_and(|it| it.idle);
        lately && !idle && !node.is_some_and(NodeFacts::is_cordoned_by_us)
    }

    /// Whether the operator saw the Node with this UID ready a moment ago.
    fn was_ready_lately(&self, uid: &str) -> bool {
        let patience = SignedDuration::try_from(REFUSED_FOR).unwrap();
        self.seen_ready.get(uid).is_some_and(|seen| self.now < *seen + patience)
    }

    /// Whether it is on record that a Machine of a MachineSet but this one is made anew.
    fn holds_slot_for(&self, set: &str, but: &str) -> bool {
        let known = self.known_hosts();
        let mut others = known.records().filter(|(address, _)| *address != key(but));
        others.any(|(_, record)| record.replacement_machine_set.as_deref() == Some(set))
    }

    /// What the API does when we delete a Machine. Nobody misses one that was of no use, as one that has its version and was
    /// never made schedulable.
    pub(super) fn delete_machine(&mut self, permit: &ReplacementPermit) {
        let host = self.hosts.iter().find(|it| it.machine.as_deref() == Some(permit.machine()));
        let node = host.and_then(|host| self.api.nodes.get(&host.name));
        let served = node.is_some_and(|node| {
            !node.taken
                && (node.is_disrupted()
                    || node.facts.ready
                        && node.facts.version().is_some()
                        && !node.facts.is_cordoned_by_us())
        });
        let machine = self.api.made.machines.get(permit.machine());
        let machine = machine.filter(|it| it.facts.uid == permit.uid() && !it.facts.is_deleted);
        let Some(machine) = machine else { return };
        let set = machine.facts.machine_set.as_ref().map(|set| set.name.clone());
        let of = set.as_ref().map_or(0, |set| self.api.made.alive(set).count());
        if let Some(machine) = self.api.made.machines.get_mut(permit.machine()) {
            machine.facts.is_deleted = true;
        }
        if let Some(set) = set {
            let deleted = self.replaced.entry(set).or_default();
            (deleted.served, deleted.of) = (deleted.served + usize::from(served), of);
            deleted.uids.insert(permit.uid().to_owned());
        }
    }

    /// Whether a host is that of a Machine that is to be a node.
    pub(super) fn is_wanted_machine(&self, host: &Host) -> bool {
        let machine = self.machine_of(host).map(|machine| &machine.facts);
        machine.is_some_and(|facts| !facts.is_ignored && !facts.is_deleted)
    }

    /// Whether nobody can give the Node of a host back now: it does not let us in, or its Machine is odd.
    pub(super) fn is_out_of_reach(&self, host: &Host) -> bool {
        let odd = |machine: &super::machines::Machine| {
            let ipv4 = internal_ipv4(&machine.facts);
            let mut others = self.api.made.machines.values();
            let same = |it: &super::machines::Machine| internal_ipv4(&it.facts) == ipv4;
            machine.confused || others.any(|it| it.facts.name != machine.facts.name && same(it))
        };
        let node = self.api.nodes.get(&host.name).map(|node| node.facts.uid.as_str());
        // A Node that several claim is left to people.
        let claims = |it: &super::machines::Machine| {
            let refers = it.facts.node.as_ref().map(|node| node.uid.as_str());
            node.is_some() && refers == node && host.machine.as_ref() != Some(&it.facts.name)
        };
        let mut machines = self.api.made.machines.values();
        let at_entry = !host.is_slot()
            && machines.any(|it| internal_ipv4(&it.facts).is_some_and(|ipv4| host.owns(ipv4)));
        let made = host.is_slot()
            && (!self.is_wanted_machine(host) || self.machine_of(host).is_some_and(odd));
        let claimed = self.api.made.machines.values().any(claims);
        made || at_entry || claimed || self.is_locked(host)
    }

    /// How MachineSets and Machines differ from what people asked for.
    pub(super) fn unmet_of_machines(&self) -> Vec<String> {
        let api = &self.api.made;
        let lacks =
            |set: &&wmco_core::facts::MachineSetFacts| api.alive(&set.name).count() != set.replicas;
        let sets = api.sets.values().filter(lacks);
        let mut unmet: Vec<_> =
            sets.map(|set| format!("{} has another number of machines", set.name)).collect();
        for machine in api.machines.values() {
            let facts = &machine.facts;
            let host = machine.host.map(|number| &self.hosts[number]);
            let node = host.and_then(|host| self.api.nodes.get(&host.name));
            let hash = self.secret.current().to_string();
            let mark = node.and_then(|it| it.facts.annotation(names::PUBLIC_KEY_HASH_ANNOTATION));
            if facts.is_deleted {
                unmet.push(format!("{} is still there", facts.name));
            } else if !facts.is_ignored && (facts.node.is_none() || mark != Some(&hash)) {
                unmet.push(format!("{} is no node of ours", facts.name));
            }
        }
        unmet
    }
}

/// How many Machines a MachineSet lacks of so many that it had once, or is to have if that is fewer, that work: are ready
/// and have become nodes, of whatever version. Those that are ignored are people's own.
fn lacking(set: &str, of: usize, machines: &Machines, nodes: &[NodeFacts]) -> usize {
    let Some(facts) = machines.set(set) else { return 0 };
    let work = machines.iter().filter(|machine| is_of(machine, set));
    let work = work.filter(|machine| {
        machine.facts.is_ignored
            || node_of(machine, nodes)
                .is_some_and(|it| it.ready && it.version().is_some() && !it.is_cordoned_by_us())
    });
    facts.replicas.min(of).saturating_sub(work.count())
}

/// Whether a MachineSet has the Machine and keeps it.
fn is_of(machine: &Machine, set: &str) -> bool {
    let owner = machine.facts.machine_set.as_ref();
    !machine.facts.is_deleted && owner.is_some_and(|owner| owner.name == set)
}

/// The Node that a Machine refers to.
fn node_of<'a>(machine: &Machine, nodes: &'a [NodeFacts]) -> Option<&'a NodeFacts> {
    let uid = &machine.facts.node.as_ref()?.uid;
    nodes.iter().find(|node| node.uid == *uid)
}
