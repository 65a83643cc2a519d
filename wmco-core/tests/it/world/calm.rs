//! How faults end.

use wmco_core::host_record::{HostRecord, KnownHosts};
use wmco_core::machines::key;
use wmco_core::names;

use super::World;
use super::events::Event;
use super::host::Host;
use super::machines::annotation;

impl World {
    /// No more faults: hosts are back, entries resolve, Nodes tell the truth, pins are back, pods leave
    /// when they are asked to.
    pub(crate) fn calm_down(&mut self) {
        self.faults = super::Faults::default();
        self.list_absent = false;
        self.excuse();
        for at in 0..self.ours() {
            self.happen(Event::Return(at));
            self.happen(Event::FixEntry(at));
            self.happen(Event::Unprotect(at));
            self.happen(Event::LetGo(at));
            self.hosts[at].moved = false;
            self.correct_entry(at);
            let host = &self.hosts[at];
            let entry = self.entry_of(host);
            if let Some(node) = self.api.nodes.get_mut(&host.name) {
                node.facts.addresses = host.true_addresses();
                if host.machine.is_some() {
                    node.facts.annotations.remove(names::INSTANCE_ANNOTATION);
                } else if let Some(origin) =
                    node.facts.annotations.get_mut(names::INSTANCE_ANNOTATION)
                {
                    origin.clone_from(entry.as_ref().unwrap_or(&String::new()));
                }
            }
            let known = KnownHosts::read(&self.api.host_keys);
            let is_its =
                |record: &HostRecord| record.ipv4.is_some_and(|ipv4| host.known.contains(&ipv4));
            for (name, _) in known.records().filter(|(_, record)| is_its(record)) {
                self.api.host_keys.insert(name.to_owned(), host.key().to_string());
            }
        }
        self.correct_list();
        self.calm_machines();
    }

    /// A person lists a host by the address that its Node shows, unless it is known at the other one:
    /// nothing else would tell which Node is its own.
    fn correct_entry(&mut self, at: usize) {
        let host = &self.hosts[at];
        let known = KnownHosts::read(&self.api.host_keys);
        let Some(key) = self.entry_of(host) else { return };
        let node = known.record(&key).and_then(|record| record.node.as_ref());
        let is_known = node.is_some_and(|node| self.api.nodes.contains_key(node));
        if self.listed[&key].ipv4 != host.address && !is_known {
            let entry = super::Entry { ipv4: host.address, ..self.listed[&key] };
            self.listed.insert(host.address.to_string(), entry);
            self.listed.remove(&key);
        }
    }

    /// While keys are exchanged, entries that hold that up are reported, and people remove those of strangers.
    fn correct_list(&mut self) {
        if self.secret.unmet().is_some() {
            self.listed.retain(|_, entry| !super::STRANGERS.contains(&entry.ipv4));
        }
    }

    /// No more faults: the Machine API and Nodes tell the truth, listed hosts let us in, pins are those of
    /// their hosts.
    fn calm_machines(&mut self) {
        let names: Vec<_> = self.api.made.machines.keys().cloned().collect();
        for name in names {
            self.tell_truth(&name);
        }
        // What is installed anew is listed, too.
        self.install_mistaken_anew();
        for at in 0..self.of_entries() {
            self.hosts[at].accepts.insert(self.secret.current());
        }
        let kept = &mut self.api.host_keys;
        for host in &self.hosts {
            if let Some(pin) = host.machine.as_ref().map(|name| key(name))
                && [&pin, &HostRecord::key_name(&pin)].iter().any(|it| kept.contains_key(*it))
            {
                kept.insert(pin, host.key().to_string());
            }
            let Some(node) = self.api.nodes.get_mut(&host.name) else { continue };
            match &host.machine {
                None if host.address != super::STRANGERS[1] => {
                    node.facts.annotations.remove(names::MACHINE_ANNOTATION);
                }
                None => {}
                Some(name) => {
                    node.facts.labels.remove(names::BYOH_LABEL);
                    node.annotate(names::MACHINE_ANNOTATION, &annotation(name));
                }
            }
        }
    }

    /// A host that became a node because a Machine was wrongly said to have its address is nobody's if people
    /// do not list it, and its Node has a name that its entry does not give it. Nothing that may be believed
    /// tells of it once the Machine API tells the truth, so people install it anew. They delete a Machine whose host was
    /// named after another one, which would find that Node in its way.
    fn install_mistaken_anew(&mut self) {
        let known = KnownHosts::read(&self.api.host_keys);
        for at in 0..self.of_entries() {
            let host = &self.hosts[at];
            let entry = self.entry_of(host);
            let is_on_record = |entry: &String| known.record(entry).is_some();
            if host.mistaken && !entry.as_ref().is_some_and(is_on_record) {
                self.api.nodes.remove(&host.name);
                self.hosts[at] = Host::fresh(host.address, "installed-anew", host.containers);
            }
        }
        let made = &mut self.api.made.machines;
        let is_node = |host: &&Host| host.mistaken && host.runs(names::host::KUBELET_SERVICE);
        for host in self.hosts.iter().filter(is_node) {
            let Some(own) = host.machine.as_ref().filter(|own| **own != host.name) else {
                continue;
            };
            if made.contains_key(&host.name)
                && let Some(machine) = made.get_mut(own)
            {
                machine.facts.is_deleted = true;
            }
        }
    }
}
