//! Hosts with another name than the one that registered their Nodes, from the record to the plan.

use super::*;
use crate::facts::{MachineAddress, MachineFacts, Reference};
use crate::host_record::{KnownHosts, RecordChange};
use crate::instances::Entries;
use crate::login_keys::LoginKeys;
use crate::machines::Machines;
use crate::names::platforms;
use crate::protocol::RootAccess;

const LEFT: &str = "await a host that is fit to become a node";
const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

fn fingerprint(key: &str) -> String {
    key.parse::<crate::host_key::HostKey>().unwrap().fingerprint()
}

/// What there is of one instance.
struct There {
    entries: Option<Entries>,
    machines: Machines,
    nodes: Vec<NodeFacts>,
    data: BTreeMap<String, String>,
    address: &'static str,
}

impl There {
    /// What the worker gets in the end, when the host has reported this name: all records that are due are written.
    fn work(&mut self, reported: &str) -> Box<InstanceInputs> {
        for _ in 0..5 {
            let hosts = KnownHosts::read(&self.data);
            let names =
                [(self.address.to_owned(), [reported.to_owned()].into())].into_iter().collect();
            let desired = fleet::Desired {
                machines: &self.machines,
                ..fleet::Desired::new(self.entries.as_ref(), "2.0.0")
            };
            let observed = fleet::Observed {
                hosts: &hosts,
                host_names: &names,
                ..fleet::Observed::new(&self.nodes)
            };
            let decided = fleet::reconcile(&desired, &observed);
            let of = decided.instances.iter().find(|it| it.address == self.address).unwrap();
            let keys = LoginKeys::one(Sha256::of(b"ours"));
            let login = Login {
                keys: &keys,
                rotation: None,
                username: Some("sealed"),
                decrypt: &|text| Some(text.to_owned()),
            };
            let release = Arc::new((*desired_release()).clone());
            match Order::of(of, &release, &hosts, login, Some(reported)) {
                Order::Record(change) => {
                    change.apply(self.address, &mut self.data).unwrap();
                }
                Order::Work(inputs) => {
                    return inputs;
                }
            }
        }
        panic!("its record is never right")
    }

    /// What is done on the host that reports this name.
    fn done(&mut self, reported: &str) -> String {
        let inputs = self.work(reported);
        let mut case = Case::new();
        case.desired = inputs.desired.clone();
        case.observed.node.clone_from(&inputs.node);
        case.probe().host_name = reported.to_owned();
        case.probe().addresses = inputs.desired.known_as.ipv4.into_iter().collect();
        case.verbs()
    }
}

fn desired_release() -> Arc<Release> {
    Case::new().desired.release
}

fn of_machine(platform: &str) -> There {
    let facts = MachineFacts {
        name: "mac-1".into(),
        uid: "uid-1".into(),
        is_windows: true,
        phase: Some("Running".into()),
        addresses: vec![MachineAddress { kind: "InternalIP".into(), address: "10.0.128.1".into() }],
        node: Some(Reference { name: "mac-1".into(), uid: "n-1".into() }),
        ..MachineFacts::default()
    };
    let mut node = Case::new().observed.node.unwrap();
    (node.name, node.uid, node.ready) = ("mac-1".into(), "n-1".into(), false);
    node.addresses = vec!["10.0.128.1".into()];
    let record = format!(
        r#"{{"ipv4": "10.0.128.1", "machine": "uid-1", "hostName": "MAC-1", "pinned": "{0}", "rootClosedWithHostKey": "{0}"}}"#,
        fingerprint(KEY)
    );
    There {
        entries: None,
        machines: Machines::read([facts], [], platform),
        nodes: vec![node],
        data: [
            ("mac-1_machine".to_owned(), KEY.to_owned()),
            ("mac-1_machine_host".to_owned(), record),
        ]
        .into(),
        address: "mac-1_machine",
    }
}

fn of_entry(fields: &str, node: NodeFacts) -> There {
    let record = format!(
        r#"{{"ipv4": "10.0.0.1", "username": "sealed", "hostName": "WIN-1", "pinned": "{0}", "rootClosedWithHostKey": "{0}"{fields}}}"#,
        fingerprint(KEY)
    );
    There {
        entries: Some(parse([("10.0.0.1", "username=core")], &Resolutions::default())),
        machines: Machines::default(),
        nodes: vec![node],
        data: [("10.0.0.1".to_owned(), KEY.to_owned()), ("10.0.0.1_host".to_owned(), record)]
            .into(),
        address: "10.0.0.1",
    }
}

fn win_1() -> NodeFacts {
    let mut node = Case::new().observed.node.unwrap();
    node.ready = false;
    node.addresses = vec!["10.0.0.1".into()];
    node
}

#[test]
fn an_entry_with_its_node_on_record_is_left() {
    let mut there = of_entry(r#", "node": "win-1""#, win_1());
    assert_ne!(there.done("WIN-1"), LEFT);
    assert_eq!(there.done("WIN-2"), LEFT);
    assert_ne!(there.done("WIN-1"), LEFT);
}

#[test]
fn the_host_of_another_machine_that_is_named_by_us_is_left() {
    let mut there = of_machine(platforms::VSPHERE);
    assert_ne!(there.done("MAC-1"), LEFT);
    assert_eq!(there.done("MAC-2"), LEFT);
}

#[test]
fn the_host_of_another_machine_is_left() {
    let mut there = of_machine(platforms::AWS);
    assert_ne!(there.done("MAC-1"), LEFT);
    assert_eq!(there.done("MAC-2"), LEFT);
}

/// The kubelet has registered the Node, which is not on record yet.
#[test]
fn a_swapped_host_is_left_before_the_node_is_on_record() {
    let mut fresh = win_1();
    fresh.labels.remove(names::BYOH_LABEL);
    fresh.annotations.clear();
    let mut there = of_entry("", fresh);
    assert_eq!(there.done("WIN-2"), LEFT);
}

/// The same with our marks on the Node.
#[test]
fn a_swapped_host_is_left_before_the_marked_node_is_on_record() {
    let mut there = of_entry("", win_1());
    assert_eq!(there.done("WIN-2"), LEFT);
}

/// The host was installed anew, with a new key, which a person has written into the ConfigMap, and a name of its own.
#[test]
fn a_reinstalled_host_with_a_new_key_is_not_left() {
    let mut there = of_entry(r#", "node": "win-1""#, win_1());
    let key = KEY.replace("HR4f", "HR4g");
    there.data.insert("10.0.0.1".into(), key.clone());
    assert_ne!(there.done("WIN-9"), LEFT, "before the login");
    let pinned = RecordChange::Pinned { key: key.parse().unwrap(), jump: None };
    pinned.apply("10.0.0.1", &mut there.data).unwrap();
    assert_ne!(there.done("WIN-9"), LEFT, "after the login");
    let seen = RecordChange::Seen {
        key: key.parse().unwrap(),
        host_name: Some("WIN-9".into()),
        root: RootAccess::Closed,
    };
    seen.apply("10.0.0.1", &mut there.data).unwrap();
    assert_ne!(there.done("WIN-9"), LEFT, "after the report");
}

/// A host whose Node has its full name joins a domain: its first label stays, and its identity with it.
#[test]
fn a_host_that_gets_another_suffix_is_not_left() {
    let mut node = win_1();
    node.name = "win-1.old.example".into();
    let mut there = of_entry(r#", "node": "win-1.old.example""#, node);
    let record = there.data.get_mut("10.0.0.1_host").unwrap();
    *record = record.replace("WIN-1", "WIN-1.old.example");
    assert_ne!(there.done("WIN-1.old.example"), LEFT);
    assert_ne!(there.done("WIN-1.new.example"), LEFT);
}

/// Its record is still under the former address of the entry.
#[test]
fn a_swapped_host_is_left_while_its_entry_is_renamed() {
    let renamed = || {
        let mut there = of_entry(r#", "node": "win-1""#, win_1());
        for end in ["", "_host"] {
            let kept = there.data.remove(&format!("10.0.0.1{end}")).unwrap();
            there.data.insert(format!("win.example{end}"), kept);
        }
        there
    };
    assert_ne!(renamed().done("WIN-1"), LEFT);
    assert_eq!(renamed().done("WIN-2"), LEFT);
}

/// Two hosts stay swapped, and both their Nodes are deleted. The kubelet of each host registers its own again.
#[test]
fn once_the_node_is_deleted_the_host_is_that_of_the_entry() {
    let mut there = of_entry(r#", "node": "win-1""#, win_1());
    assert_eq!(there.done("WIN-2"), LEFT);
    there.nodes.clear();
    assert_ne!(there.done("WIN-2"), LEFT);
    let [mut own, mut other] = [win_1(), win_1()];
    (own.name, other.addresses) = ("win-2".into(), vec!["10.0.0.2".into()]);
    there.nodes = vec![other, own];
    let inputs = there.work("WIN-2");
    assert_eq!(inputs.node_name(), "win-2");
    assert_ne!(there.done("WIN-2"), LEFT);
}

/// An earlier version has put the name of the other host on record while they were swapped; they still are.
#[test]
fn a_record_with_the_name_of_the_other_host_is_mended_once_they_swap_back() {
    let mut there = of_entry(r#", "node": "win-1""#, win_1());
    let record = there.data.get_mut("10.0.0.1_host").unwrap();
    *record = record.replace("WIN-1", "WIN-2");
    assert_ne!(there.done("WIN-1"), LEFT);
    assert_eq!(there.done("WIN-2"), LEFT);
}
