//! What may happen to a world.

use wmco_core::host_record::{HostRecord, KnownHosts};
use wmco_core::limits;
use wmco_core::names::{self, host};

use super::World;
use super::host::{Power, tampered};
use super::keys::KeyEvent;
use super::machine_events::MachineEvent;
use super::release::Release;

/// Rounds of a while.
const WHILE: usize = 15;

/// Something that happens; the numbers choose a host.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// The operator works; the others in these bits act before each of its actions.
    Round(u8),
    /// The others act.
    Others(u8),
    /// The operator's view of all Nodes becomes current.
    CacheCatchesUp,
    /// A while passes in which everybody does what is due.
    Wait,
    /// Half an hour passes.
    TimePasses,
    /// The operator dies now.
    Crash,
    /// The operator dies after so many more effects.
    CrashIn(u16),
    /// The action around the effect after so many more fails.
    FailIn(u16),
    /// A host no longer answers.
    Vanish(usize),
    /// It answers again.
    Return(usize),
    /// A host restarts by itself.
    HostRestarts(usize),
    /// A kubelet ends; what it started runs on.
    KubeletEnds(usize),
    /// Somebody asks for a restart.
    AskRestart(usize),
    /// A file that services read once is changed.
    Tamper(usize),
    /// A file that its readers follow is lost.
    LoseLiveFile(usize),
    /// Others may write to everything, and did.
    OpenUp(usize),
    /// Somebody makes our root before us, if he can, with an agent in it.
    Plant(usize),
    /// Somebody deletes the records of all hosts.
    LoseRecords,
    /// A person makes a node unschedulable.
    Cordon(usize),
    /// A person uncordons a node, regardless of who had cordoned it.
    Uncordon(usize),
    /// A person deletes a Node.
    DeleteNode(usize),
    /// A budget that never yields protects the pods of a node.
    Protect(usize),
    /// That budget is gone.
    Unprotect(usize),
    /// Pods of a node do not end when they are evicted.
    Cling(usize),
    /// They end now.
    LetGo(usize),
    /// Pods of a node have a long grace period.
    Grace(usize),
    /// Pods of a node tolerate a cordon.
    Tolerate(usize),
    /// A Node loses all annotations.
    LoseMarks(usize),
    /// A slot label was left on a node.
    LeaveLabel(usize),
    /// A person removes an entry.
    Unlist(usize),
    /// A person adds an entry.
    List(usize),
    /// A person lists a Linux node and the host of a Machine.
    ListStrangers,
    /// An entry no longer resolves.
    BreakEntry(usize),
    /// It resolves again.
    FixEntry(usize),
    /// An entry is written under another name of the same host.
    RenameEntry(usize),
    /// An entry is written with the address of its host's other network card, or back. The host is a
    /// node already: by an address that its Node never shows it could not become one.
    OtherCard(usize),
    /// A listed host has only its other address from now on, and its entry follows.
    Move(usize),
    /// People set the budget.
    Budget(usize),
    /// The ConfigMap of instances is deleted.
    LoseList,
    /// It is there again.
    RestoreList,
    /// A Node shows the address of another host beside its own.
    ForgeAddress(usize, usize),
    /// A Node says that it was made from the entry of another host.
    ForgeOrigin(usize, usize),
    /// Two Nodes show each other's addresses.
    SwapAddresses(usize, usize),
    /// A Node shows no address any more.
    LoseAddresses(usize),
    /// Somebody removes the pinned key of a host.
    LosePin(usize),
    /// A new operator starts.
    Bump,
    /// The services ConfigMap gets other content under the same version.
    NewServices,
    /// No kubelet reaches the API any more, so all Nodes of ours are told to be not ready.
    CutKubelets,
    /// They reach it again.
    RejoinKubelets,
    /// Requests that take slots last so many seconds from now on; without a number, none.
    SlotsLast(Option<u8>),
    /// Something happens to Machines.
    Of(MachineEvent),
    /// Something happens to the keys that let the operator in.
    Key(KeyEvent),
}

impl World {
    pub(crate) fn happen(&mut self, event: Event) {
        match event {
            Event::Round(others) => {
                self.round(others);
                self.now += limits::RETRY_FIRST;
            }
            Event::Others(who) => self.others_act(who),
            Event::CacheCatchesUp => self.cache_catches_up(),
            Event::TimePasses => {
                self.now += limits::RESYNC;
                self.excuse();
            }
            Event::Wait => {
                for _ in 0..WHILE {
                    self.fair_round();
                }
            }
            Event::Crash => self.crash(),
            Event::CrashIn(effects) => self.faults.crash_in = Some(effects.into()),
            Event::FailIn(effects) => self.faults.fail_in = Some(effects.into()),
            Event::ListStrangers => {
                for ipv4 in super::STRANGERS {
                    self.listed.insert(ipv4.to_string(), super::Entry { ipv4, broken: false });
                }
            }
            Event::Bump => {
                self.release = Release(self.release.0 + 1);
                self.crash();
            }
            Event::LoseRecords => self.lose_records(),
            Event::NewServices => {
                let edition = self.edition(self.release).wrapping_add(1);
                self.editions.insert(self.release, edition);
            }
            Event::Protect(at) => drop(self.protected.insert(at % self.ours())),
            Event::Tolerate(at) => drop(self.tolerant.insert(at % self.ours())),
            Event::Unprotect(at) => drop(self.protected.remove(&(at % self.ours()))),
            Event::Cling(at) => drop(self.clinging.insert(at % self.ours())),
            Event::Grace(at) => drop(self.graceful.insert(at % self.ours())),
            Event::LetGo(at) => drop(self.clinging.remove(&(at % self.ours()))),
            Event::Vanish(at)
            | Event::Return(at)
            | Event::HostRestarts(at)
            | Event::KubeletEnds(at)
            | Event::Tamper(at)
            | Event::LoseLiveFile(at)
            | Event::OpenUp(at)
            | Event::Plant(at) => self.happen_to_host(event, at % self.ours()),
            Event::AskRestart(at)
            | Event::Cordon(at)
            | Event::Uncordon(at)
            | Event::DeleteNode(at)
            | Event::LoseMarks(at)
            | Event::LeaveLabel(at) => self.happen_to_node(event, at % self.ours()),
            Event::Unlist(at)
            | Event::List(at)
            | Event::BreakEntry(at)
            | Event::FixEntry(at)
            | Event::RenameEntry(at)
            | Event::OtherCard(at)
            | Event::Move(at) => self.happen_to_entry(event, at % self.of_entries()),
            Event::Of(event) => self.happen_to_machines(event),
            Event::Key(event) => self.happen_to_keys(event),
            Event::CutKubelets => {
                self.faults.kubelets_cut = true;
                for host in &self.hosts[..self.hosts.len() - 1] {
                    if let Some(node) = self.api.nodes.get_mut(&host.name) {
                        node.facts.ready = false;
                    }
                }
            }
            Event::RejoinKubelets => self.faults.kubelets_cut = false,
            Event::SlotsLast(seconds) => self.faults.slots_last = seconds,
            Event::Budget(nodes) => {
                (self.budget, self.budget_set_at) = (nodes, self.now);
            }
            Event::LoseList => self.list_absent = true,
            Event::RestoreList => {
                self.list_absent = false;
                self.excuse();
            }
            Event::ForgeAddress(at, other)
            | Event::ForgeOrigin(at, other)
            | Event::SwapAddresses(at, other) => {
                self.lie(event, at % self.ours(), other % self.ours());
            }
            Event::LoseAddresses(at) => self.lie(event, at % self.ours(), 0),
            Event::LosePin(at) => {
                let host = &self.hosts[at % self.ours()];
                let of_machine = host.machine.as_deref().map(wmco_core::machines::key);
                if let Some(key) = self.entry_of(host).or(of_machine) {
                    self.api.host_keys.remove(&key);
                }
            }
        }
    }

    /// Nobody knows any more which hosts are closed.
    fn lose_records(&mut self) {
        let known = KnownHosts::read(&self.api.host_keys);
        for (address, record) in known.records() {
            let record = HostRecord { root_closed_with_host_key: None, ..record.clone() };
            let json = serde_json::to_string(&record).unwrap();
            self.api.host_keys.insert(HostRecord::key_name(address), json);
        }
    }

    /// What a Node says that is not so. It is its own to say.
    fn lie(&mut self, event: Event, at: usize, other: usize) {
        let address = |index: usize| self.hosts[index].address;
        let (mine, others) = (address(at).to_string(), address(other).to_string());
        let origin = self.entry_of(&self.hosts[other]);
        let [at, other] = [at, other].map(|index| self.hosts[index].name.clone());
        let nodes = &mut self.api.nodes;
        match (event, origin) {
            (Event::ForgeAddress(..), _) => {
                nodes.entry(at).and_modify(|node| node.facts.addresses.push(others));
            }
            (Event::ForgeOrigin(..), Some(origin)) => {
                nodes.entry(at).and_modify(|n| n.annotate(names::INSTANCE_ANNOTATION, &origin));
            }
            (Event::SwapAddresses(..), _) => {
                nodes.entry(at).and_modify(|node| node.facts.addresses = vec![others]);
                nodes.entry(other).and_modify(|node| node.facts.addresses = vec![mine]);
            }
            (Event::LoseAddresses(_), _) => {
                nodes.entry(at).and_modify(|node| node.facts.addresses.clear());
            }
            _ => {}
        }
    }

    /// No node could have been given back until now.
    pub(super) fn excuse(&mut self) {
        let names = self.api.nodes.keys().cloned();
        self.excused.extend(names.map(|name| (name, self.now)));
    }

    fn happen_to_host(&mut self, event: Event, at: usize) {
        let release = self.release;
        let host = &mut self.hosts[at];
        match event {
            Event::Vanish(_) if host.power == Power::On => {
                host.power = Power::Gone;
                self.breakdown = true;
            }
            Event::Return(_) if host.power == Power::Gone => host.power = Power::On,
            Event::HostRestarts(_) if host.power == Power::On => {
                host.power = Power::Restarting;
                self.breakdown = true;
            }
            Event::KubeletEnds(_) => {
                if let Some(kubelet) = host.services.get_mut(host::KUBELET_SERVICE) {
                    kubelet.running = false;
                    self.breakdown = true;
                }
            }
            Event::Tamper(_) => {
                for (path, sha) in &mut host.files {
                    if release.files().get(path).is_some_and(|file| !file.live) {
                        *sha = tampered();
                        self.breakdown = true;
                    }
                }
            }
            Event::LoseLiveFile(_) => {
                host.files.retain(|path, _| path.as_str() != host::KUBELET_CA);
            }
            Event::OpenUp(_) => host.open_up(),
            Event::Plant(_) => host.plant(release),
            _ => {}
        }
    }

    fn happen_to_node(&mut self, event: Event, at: usize) {
        let boot = self.hosts[at].boot;
        let Some(node) = self.api.nodes.get_mut(&self.hosts[at].name) else { return };
        match event {
            Event::AskRestart(_) if !node.facts.wants_restart() => {
                node.annotate(names::REBOOT_ANNOTATION, "");
                node.asked_at_boot = Some(boot);
            }
            Event::Cordon(_) if !node.facts.unschedulable => {
                // While ours is noted on the node, nobody could tell theirs from ours.
                let noted = node.facts.annotation(names::CORDONED_ANNOTATION);
                node.persons_cordon = noted != Some(names::CORDONED_BY_US);
                // Without a slot it is not we who take it out of service.
                node.taken |= !node.persons_cordon && !node.facts.holds_slot();
                node.facts.unschedulable = true;
            }
            Event::Uncordon(_) => {
                node.meddled |= node.facts.unschedulable && node.facts.holds_slot();
                node.facts.unschedulable = false;
                node.persons_cordon = false;
            }
            Event::DeleteNode(_) => {
                let name = node.facts.name.clone();
                self.api.nodes.remove(&name);
            }
            Event::LoseMarks(_) => {
                let cordoned = node.facts.annotation(names::CORDONED_ANNOTATION).is_some();
                // Nobody can tell any more that it was ours.
                node.persons_cordon |= cordoned && node.facts.unschedulable;
                node.facts.annotations.clear();
                // Its daemon follows the ConfigMap until it is marked again.
                node.served = false;
                // It looks like one that has just registered, and those are cordoned without a slot.
                node.taken = true;
                node.asked_at_boot = None;
            }
            Event::LeaveLabel(_) => {
                node.persons_mark |= !node.facts.holds_slot();
                node.facts.labels.insert(names::UPGRADING_LABEL.into(), names::TRUE.into());
            }
            _ => {}
        }
    }

    fn happen_to_entry(&mut self, event: Event, at: usize) {
        let key = self.entry_of(&self.hosts[at]);
        let known = KnownHosts::read(&self.api.host_keys);
        let record = key.as_ref().and_then(|key| known.record(key));
        let is_node = record.is_some_and(|record| record.node.is_some());
        let entry = key.as_ref().and_then(|key| self.listed.get_mut(key));
        self.excused.extend(self.hosts.iter().map(|host| (host.name.clone(), self.now)));
        match (event, entry) {
            (Event::List(_), None) => self.list(at),
            (Event::BreakEntry(_), Some(entry)) => entry.broken = true,
            (Event::FixEntry(_), Some(entry)) => entry.broken = false,
            (Event::Unlist(_), Some(_)) => drop(self.listed.remove(&key.unwrap())),
            (Event::RenameEntry(_), Some(entry)) => {
                let entry = *entry;
                self.listed.remove(&key.unwrap());
                self.listed.insert(format!("other-{at}.example"), entry);
            }
            (Event::OtherCard(_), Some(entry)) if is_node => {
                let host = &self.hosts[at];
                let to_first = entry.ipv4 != host.address && !host.moved;
                let ipv4 = if to_first { host.address } else { host.other_address };
                let entry = super::Entry { ipv4, ..*entry };
                self.listed.remove(&key.unwrap());
                self.listed.insert(ipv4.to_string(), entry);
            }
            (Event::Move(_), Some(entry)) if is_node => {
                self.hosts[at].moved = true;
                let ipv4 = self.hosts[at].other_address;
                let entry = super::Entry { ipv4, ..*entry };
                self.listed.remove(&key.unwrap());
                self.listed.insert(ipv4.to_string(), entry);
            }
            _ => {}
        }
    }

    /// How many hosts there are that may be ours.
    pub(super) fn ours(&self) -> usize {
        self.hosts.len() - 1
    }

    /// How many of them may be listed.
    pub(super) fn of_entries(&self) -> usize {
        let slots = self.hosts.iter().filter(|host| host.is_slot()).count();
        self.ours() - slots
    }
}
