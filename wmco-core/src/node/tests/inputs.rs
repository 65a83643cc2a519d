//! What a worker goes by: which change ends a rest, and when a write of ours has come back.

use super::memory::inputs;
use super::*;
use crate::host_record::HostRecord;
use crate::login_keys::KeyExchange;
use crate::login_keys::tests::rotation;
use crate::reach::{Unreachable, Via};

/// What ends a rest of a configured node when `change` comes: a rest that awaits the host, and a rest that
/// heeds the Node, too.
#[track_caller]
fn ends(change: impl FnOnce(&mut InstanceInputs), expected: [Option<Wake>; 2]) {
    let old = inputs(&Case::new());
    let mut new = old.clone();
    change(&mut new);
    let rests = [Rest::after_failure(NOW), Rest::settled(NOW)];
    assert_eq!(rests.map(|rest| rest.ended_by(&new, &old)), expected);
}

const ASKED: [Option<Wake>; 2] = [Some(Wake::AskedOtherwise); 2];
const NODE_ONLY: [Option<Wake>; 2] = [None, Some(Wake::NodeChanged)];

fn way(inputs: &mut InstanceInputs) -> &mut crate::reach::Reach {
    inputs.reach.as_mut().unwrap()
}

#[test]
fn what_people_and_the_cluster_ask_for_ends_any_rest() {
    ends(|new| new.desired.intent = Intent::Remove(None), ASKED);
    let release = |new: &mut InstanceInputs, change: fn(&mut Release)| {
        change(Arc::make_mut(&mut new.desired.release));
    };
    ends(|new| release(new, |release| release.version = "3.0.0".into()), ASKED);
    ends(|new| release(new, |release| release.agent = Sha256::of(b"other")), ASKED);
    ends(|new| release(new, |release| drop(release.files.pop_first())), ASKED);
    ends(|new| way(new).address = [10, 0, 0, 2].into(), ASKED);
    ends(|new| way(new).username = "other".into(), ASKED);
    ends(|new| way(new).host_key = None, ASKED);
    ends(|new| new.keys = vec![Sha256::of(b"new key")], ASKED);
    let exchange = || KeyExchange { add: rotation().to, remove: None };
    ends(|new| new.desired.exchange = Some(exchange()), ASKED);
    ends(|new| new.reach = Err(Unreachable::NoAddress { host: "win-1".into() }), ASKED);
}

#[test]
fn a_permit_ends_a_rest_that_heeds_the_node() {
    let granted = |new: &mut InstanceInputs| new.desired.intent = Intent::Configure(Some(permit()));
    ends(granted, [None, Some(Wake::PermitChanged)]);
}

#[test]
fn what_others_write_on_the_node_ends_no_pause() {
    ends(|new| new.node.as_mut().unwrap().ready = false, NODE_ONLY);
    ends(|new| new.node = None, NODE_ONLY);
    ends(|new| new.record = Some(HostRecord::default()), NODE_ONLY);
}

/// The same of the jump host.
#[test]
fn a_key_that_becomes_the_pinned_one_ends_no_pause() {
    let mut pinned = inputs(&Case::new());
    let key = way(&mut pinned).host_key.take();
    let via = Via {
        address: "jump.example".into(),
        port: 22,
        username: "core".into(),
        host_key: None,
        key_name: "jump.example_22".into(),
        to_keep: true,
    };
    way(&mut pinned).via = Some(via);
    let old = pinned.clone();
    way(&mut pinned).host_key.clone_from(&key);
    way(&mut pinned).via.as_mut().unwrap().host_key = key;
    assert_eq!(Rest::after_failure(NOW).ended_by(&pinned, &old), None);
    assert_eq!(Rest::settled(NOW).ended_by(&pinned, &old), Some(Wake::NodeChanged));
}

#[test]
fn only_what_no_node_tells_of_keeps_to_what_is_asked() {
    use Awaited::*;
    let heeds = |what| {
        let old = inputs(&Case::new());
        let new = InstanceInputs { node: None, ..old.clone() };
        Rest::awaiting(what, NOW).ended_by(&new, &old) == Some(Wake::NodeChanged)
    };
    let all =
        [HostReachable, HostBack, NodeAppears, PodsGone, VersionMark, NodeReady, DisruptionSlot];
    assert_eq!(all.map(heeds), [false, false, true, true, true, true, true]);
}

#[test]
fn a_write_is_visible_when_the_inputs_show_it() {
    let mut seen = inputs(&Case::new());
    seen.node.as_mut().unwrap().resource_version = 7;
    let of = |version| Outcome::NodeChanged { resource_version: version, is_ours: true };
    let shows = |inputs: &InstanceInputs, outcome: Outcome| outcome.is_visible_in(inputs).unwrap();
    assert!(shows(&seen, of(7)) && shows(&seen, of(6)));
    assert!(!shows(&seen, of(8)));
    let found = || Outcome::FoundNode { name: "win-1".into() };
    assert!(shows(&seen, found()));
    assert!(shows(&seen, Outcome::HostForgotten));
    let recorded = Outcome::RootRecorded;
    assert!(shows(&seen, recorded(RootAccess::Closed)));
    assert!(!shows(&seen, recorded(RootAccess::Open)));
    // Nobody asks any more to have a Machine replaced.
    assert!(shows(&seen, Outcome::MachineKept { uid: "u-1".into() }));
    // There is nothing to wait for.
    assert_eq!(Outcome::Pods(Vec::new()).is_visible_in(&seen), None);
    let other = InstanceInputs { node: None, on_record: true, record: None, ..seen };
    // A Node that is gone will not get any newer.
    assert!(shows(&other, of(8)));
    assert!(!shows(&other, found()));
    assert!(!shows(&other, Outcome::HostForgotten));
    assert!(!shows(&other, recorded(RootAccess::Closed)));
    assert!(shows(&other, recorded(RootAccess::Open)));
}

/// The content that is uploaded before may take a while.
#[test]
fn what_takes_a_slot_needs_its_permit_when_it_is_taken() {
    let mut case = Case::new().permitted();
    case.node().annotations.insert(names::VERSION_ANNOTATION.into(), "former".into());
    case.probe().files.insert(path(r"C:\k\kubelet.exe"), open_file(b"former"));
    let given = inputs(&case);
    let steps = case.plan().steps;
    let taken_back = InstanceInputs { desired: Case::new().desired, ..given.clone() };
    let verbs: Vec<_> = steps.iter().map(|it| it.action.verb()).collect();
    assert_eq!(verbs, ["upload", "patch-node"]);
    let are_permitted = |node: &str, inputs: &InstanceInputs| -> Vec<bool> {
        steps.iter().map(|step| step.is_permitted_in(node, inputs)).collect()
    };
    assert_eq!(are_permitted("win-1", &given), [true, true]);
    assert_eq!(are_permitted("win-1", &taken_back), [true, false]);
    // The host has another Node by now, and the permit is that one's.
    assert_eq!(are_permitted("win-9", &given), [true, false]);
    let slots: Vec<_> = steps.iter().map(|step| step.action.takes_slot_of("win-1")).collect();
    assert_eq!(slots, [None, Some("win-1".to_owned())]);
}

/// A label that was left over, or that a predecessor wrote, is not the beginning of a disruption.
#[test]
fn the_first_cordon_takes_the_slot_though_the_label_is_there() {
    let mut case = Case::new().permitted();
    case.node().annotations.insert(names::VERSION_ANNOTATION.into(), "former".into());
    case.node().labels.insert(names::UPGRADING_LABEL.into(), names::TRUE.into());
    let steps = case.plan().steps;
    let slots = steps.iter().filter(|step| step.action.takes_slot_of("win-1").is_some());
    assert_eq!(slots.count(), 1, "{steps:?}");
    let emptied = case.emptied().plan().steps;
    assert!(!emptied.iter().any(|it| it.action.takes_slot_of("win-1").is_some()), "{emptied:?}");
}
