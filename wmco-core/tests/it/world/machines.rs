//! A model of the Machine API: MachineSets make Machines, and Machines get hosts and Nodes.

use std::collections::BTreeMap;
use std::mem;
use std::net::Ipv4Addr;

use jiff::Timestamp;
use wmco_core::facts::{MachineAddress, MachineFacts, MachineSetFacts, Reference, UserDataRef};
use wmco_core::machines::Machines;
use wmco_core::names::objects::USER_DATA_SECRET;
use wmco_core::names::{self, platforms};
use wmco_core::protocol::FeatureState;

use super::World;
use super::host::Host;

/// Most Machines that have a host at the same time.
pub(crate) const SLOTS: u8 = 5;

/// Every third Machine has a host key of its own; the others have that of their image.
const OWN_KEYS: u32 = 3;

const PROVISIONING: &str = "Provisioning";
const PROVISIONED: &str = "Provisioned";
const RUNNING: &str = "Running";

/// MachineSets and Machines.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct MachineApi {
    /// By name.
    pub(crate) sets: BTreeMap<String, MachineSetFacts>,
    /// By name.
    pub(crate) machines: BTreeMap<String, Machine>,
    /// What new Machines start with.
    pub(super) user_data: UserDataSecret,
    /// How many Machines were made.
    made: u32,
}

/// The Secret with the user data of new Machines.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct UserDataSecret {
    version: u32,
    /// Somebody else has written it last.
    is_wrong: bool,
    /// Ghost: when somebody else wrote it last.
    pub(super) edited: Option<Timestamp>,
}

impl UserDataSecret {
    /// Somebody else writes it; it may be put right before anybody looks.
    pub(super) fn edit(&mut self, is_seen: bool, now: Timestamp) {
        self.version += 1;
        (self.is_wrong, self.edited) = (true, Some(now));
        if !is_seen {
            self.put_right();
        }
    }

    fn put_right(&mut self) {
        if mem::take(&mut self.is_wrong) {
            self.version += 1;
        }
    }

    /// Whether a Machine that is made now lets us in.
    pub(super) fn is_right(&self) -> bool {
        !self.is_wrong
    }

    /// Its version if it is right; if not, it is right by the next look.
    pub(super) fn look(&mut self) -> Option<String> {
        let right = self.is_right().then(|| self.version.to_string());
        self.put_right();
        right
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Machine {
    pub(crate) facts: MachineFacts,
    /// The number of its host.
    pub(crate) host: Option<usize>,
    /// Ghost: the Machine API tells another Node or address than its own.
    pub(crate) confused: bool,
}

impl MachineApi {
    /// What a look at all of them shows.
    pub(crate) fn read(&self) -> Machines {
        let machines = self.machines.values().map(|machine| machine.facts.clone());
        Machines::read(machines, self.sets.values().cloned(), platforms::VSPHERE)
    }

    /// Names of the Machines that a MachineSet has and keeps.
    pub(crate) fn alive(&self, set: &str) -> impl Iterator<Item = &String> {
        let alive = self.machines.values().filter(move |machine| {
            let owner = machine.facts.machine_set.as_ref();
            !machine.facts.is_deleted && owner.is_some_and(|owner| owner.name == set)
        });
        alive.map(|machine| &machine.facts.name)
    }

    fn make(&mut self, set: &MachineSetFacts) {
        self.made += 1;
        let (name, uid) = (format!("{}-{:04}", set.name, self.made), format!("m-{}", self.made));
        let owner = Reference { name: set.name.clone(), uid: set.uid.clone() };
        let facts = MachineFacts {
            name: name.clone(),
            uid,
            created: Timestamp::from_second(self.made.into()).ok(),
            is_windows: true,
            machine_set: Some(owner),
            ..MachineFacts::default()
        };
        self.machines.insert(name, Machine { facts, host: None, confused: false });
    }
}

impl World {
    /// Adds one MachineSet for each number of replicas.
    pub(crate) fn with_machines(mut self, replicas: &[usize]) -> Self {
        let strangers = self.hosts.pop().unwrap();
        self.hosts.extend((0..SLOTS).map(|slot| Host::vacant(slot_address(slot))));
        self.hosts.push(strangers);
        for (number, replicas) in replicas.iter().enumerate() {
            let (name, uid) = (format!("set-{number}"), format!("s-{number}"));
            let user_data = UserDataRef { name: USER_DATA_SECRET.into(), ..UserDataRef::default() };
            let replicas = *replicas;
            let os = Some(names::OS_ID_WINDOWS.to_owned());
            let set = MachineSetFacts {
                name,
                uid,
                replicas,
                os,
                user_data,
                ..MachineSetFacts::default()
            };
            self.api.made.sets.insert(set.name.clone(), set);
        }
        self
    }

    /// The Machine API does at most one thing for each MachineSet and each Machine.
    pub(super) fn machine_api_acts(&mut self) {
        let api = &mut self.api.made;
        for set in api.sets.clone().into_values() {
            let alive: Vec<_> = api.alive(&set.name).cloned().collect();
            if alive.len() < set.replicas {
                api.make(&set);
            } else if alive.len() > set.replicas {
                let last = api.machines.get_mut(alive.last().unwrap()).unwrap();
                last.facts.is_deleted = true;
            }
        }
        let names: Vec<_> = api.machines.keys().cloned().collect();
        for name in names {
            self.machine_acts(&name);
        }
    }

    fn machine_acts(&mut self, name: &str) {
        let vacant = self.hosts.iter().position(Host::is_vacant);
        let machine = self.api.made.machines.get_mut(name).unwrap();
        if machine.facts.is_deleted {
            match machine.host.take() {
                Some(number) => self.vacate(number),
                None => drop(self.api.made.machines.remove(name)),
            }
            return;
        }
        match (machine.facts.phase.as_deref(), vacant) {
            (None, _) => machine.facts.phase = Some(PROVISIONING.into()),
            (Some(PROVISIONING), Some(vacant)) => {
                let address = self.hosts[vacant].address;
                machine.facts.phase = Some(PROVISIONED.into());
                machine.facts.addresses = vec![internal(address)];
                machine.host = Some(vacant);
                let number = machine.facts.uid["m-".len()..].parse().unwrap();
                self.hosts[vacant] = self.boots(address, name, number);
            }
            _ => self.link(name),
        }
    }

    /// A host with the user data as they are now.
    fn boots(&self, address: Ipv4Addr, name: &str, number: u32) -> Host {
        let on = number.is_multiple_of(2);
        let containers = if on { FeatureState::Enabled } else { FeatureState::Disabled };
        let own_key = number.is_multiple_of(OWN_KEYS);
        Host {
            machine: Some(name.to_owned()),
            accepts: self.secret.all().collect(),
            image: if own_key { number } else { 1 },
            ..Host::fresh(address, &format!("ec-{number}"), containers)
        }
    }

    /// Takes the host away, and its Node with it.
    fn vacate(&mut self, number: usize) {
        self.api.nodes.remove(&self.hosts[number].name);
        self.hosts[number] = Host::vacant(self.hosts[number].address);
        for pods in
            [&mut self.protected, &mut self.clinging, &mut self.graceful, &mut self.tolerant]
        {
            pods.remove(&number);
        }
    }

    /// The Machine gets to know its Node, and the Node its Machine.
    fn link(&mut self, name: &str) {
        let machine = self.api.made.machines.get_mut(name).unwrap();
        let Some(host) = machine.host.filter(|_| !machine.confused) else { return };
        let Some(node) = self.api.nodes.get_mut(&self.hosts[host].name) else {
            if machine.facts.node.is_none() {
                machine.facts.phase = Some(PROVISIONED.into());
            }
            return;
        };
        let (name, uid) = (node.facts.name.clone(), node.facts.uid.clone());
        machine.facts.node = Some(Reference { name, uid });
        machine.facts.phase = Some(RUNNING.into());
        if node.facts.annotation(names::MACHINE_ANNOTATION).is_none() {
            node.annotate(names::MACHINE_ANNOTATION, &annotation(&machine.facts.name));
        }
    }

    /// What its Machine says truly, if the host has one.
    pub(super) fn machine_of(&self, host: &Host) -> Option<&Machine> {
        self.api.made.machines.get(host.machine.as_ref()?)
    }
}

/// What a Node says of the Machine behind it.
pub(super) fn annotation(machine: &str) -> String {
    format!("openshift-machine-api/{machine}")
}

/// The address of a Machine's host.
pub(super) fn internal(address: Ipv4Addr) -> MachineAddress {
    MachineAddress { kind: "InternalIP".into(), address: address.to_string() }
}

fn slot_address(slot: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 128, 100 + slot)
}
