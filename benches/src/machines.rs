//! Clusters of any size, in which all Windows nodes come from the Machines of a MachineSet.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use wmco_core::digest::Sha256;
use wmco_core::facts::{
    MachineAddress, MachineFacts, MachineSetFacts, NodeFacts, Reference, UserDataRef,
};
use wmco_core::fleet::{Desired, Observed, held_if_refusing};
use wmco_core::host_record::{HostRecord, KnownHosts};
use wmco_core::login_keys::LoginKeys;
use wmco_core::machines::{Machines, key};
use wmco_core::names::objects::USER_DATA_SECRET;
use wmco_core::names::{self, OS_ID_WINDOWS, platforms};

const VERSION: &str = "2.0.0";
const SET: &str = "win";

/// The input of a pass.
pub struct MachineFleet {
    machines: Machines,
    nodes: Vec<NodeFacts>,
    hosts: KnownHosts,
    host_names: BTreeMap<String, BTreeSet<String>>,
    everybody: BTreeSet<String>,
    keys: LoginKeys,
}

impl MachineFleet {
    /// Creates a cluster of `size` Machines, all of which are nodes.
    pub fn of(size: u32) -> Self {
        let records = (0..size).map(|n| {
            let record = HostRecord { machine: Some(format!("u-{n}")), ..HostRecord::default() };
            let json = serde_json::to_string(&record).unwrap_or_default();
            (HostRecord::key_name(&key(&format!("win-{n}"))), json)
        });
        let set = MachineSetFacts {
            name: SET.to_owned(),
            uid: SET.to_owned(),
            replicas: size.try_into().unwrap_or(usize::MAX),
            user_data: UserDataRef { name: USER_DATA_SECRET.to_owned(), ..UserDataRef::default() },
            os: Some(OS_ID_WINDOWS.to_owned()),
            ..MachineSetFacts::default()
        };
        Self {
            machines: Machines::read((0..size).map(machine), [set], platforms::AWS),
            nodes: (0..size).map(node).collect(),
            hosts: KnownHosts::read(records),
            host_names: BTreeMap::new(),
            everybody: (0..size).map(|n| key(&format!("win-{n}"))).collect(),
            keys: LoginKeys::one(Sha256::of(b"key")),
        }
    }

    /// Returns the desired state.
    pub fn desired(&self) -> Desired<'_> {
        let keys = Some(&self.keys);
        Desired { machines: &self.machines, keys, ..Desired::new(None, VERSION) }
    }

    /// Returns the observed state.
    pub fn observed(&self) -> Observed<'_> {
        Observed { hosts: &self.hosts, host_names: &self.host_names, ..Observed::new(&self.nodes) }
    }

    /// Decides while every host refuses our key.
    ///
    /// # Panics
    /// A replacement does not wait, so this measures something else.
    pub fn all_refuse(&self) -> usize {
        let held = held_if_refusing(&self.desired(), &self.observed(), &self.everybody).len();
        assert_eq!(held, self.everybody.len());
        held
    }
}

fn address(number: u32) -> String {
    Ipv4Addr::from(0x0a80_0000 + number).to_string()
}

fn machine(number: u32) -> MachineFacts {
    let reference = |name: String, uid: String| Some(Reference { name, uid });
    MachineFacts {
        name: format!("win-{number}"),
        uid: format!("u-{number}"),
        is_windows: true,
        phase: Some("Running".to_owned()),
        addresses: vec![MachineAddress { kind: "InternalIP".to_owned(), address: address(number) }],
        node: reference(format!("node-{number}"), format!("n-{number}")),
        machine_set: reference(SET.to_owned(), SET.to_owned()),
        ..MachineFacts::default()
    }
}

fn node(number: u32) -> NodeFacts {
    NodeFacts {
        name: format!("node-{number}"),
        uid: format!("n-{number}"),
        labels: [(names::OS_LABEL.to_owned(), names::OS_WINDOWS.to_owned())].into(),
        annotations: [(names::VERSION_ANNOTATION.to_owned(), VERSION.to_owned())].into(),
        addresses: vec![address(number)],
        ready: true,
        ..NodeFacts::default()
    }
}
