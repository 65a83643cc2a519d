//! How long what was seen counts.

use super::drains::pod;
use super::*;
use crate::host_key::HostKey;
use crate::host_record::HostRecord;
use crate::limits;
use crate::reach::{Pin, Pinned, Reach};

const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

/// A memory whose host is as in `case`.
fn seen(case: &Case) -> Memory {
    let mut memory = Memory::default();
    memory.learn(Outcome::Looked(case.observed.host.clone()));
    memory
}

fn plan(memory: &mut Memory, case: &Case, now: Timestamp) -> Plan {
    memory.plan(&inputs(case), now)
}

/// What the cluster says of `case`, whose host is known to be closed.
pub(super) fn inputs(case: &Case) -> InstanceInputs {
    let key: HostKey = KEY.parse().unwrap();
    let root_closed_with_host_key = Some(key.fingerprint());
    let pinned = Pinned { key, by: Pin::Kept { name: "10.0.0.1".into() } };
    InstanceInputs {
        address: "10.0.0.1".into(),
        machine: None,
        desired: case.desired.clone(),
        node: case.observed.node.clone(),
        reach: Ok(Reach {
            address: [10, 0, 0, 1].into(),
            port: limits::SSH_PORT,
            username: "core".into(),
            host_key: Some(pinned),
            to_keep: false,
            via: None,
        }),
        keys: vec![Sha256::of(b"key")],
        record: Some(HostRecord { root_closed_with_host_key, ..HostRecord::default() }),
        on_record: false,
    }
}

/// Another one may be there, and be noted as closed by what was seen at the first.
#[test]
fn what_was_seen_does_not_count_at_another_address() {
    let case = Case::new();
    let mut memory = seen(&case);
    assert_eq!(plan(&mut memory, &case, NOW), Plan::settled());
    let mut moved = inputs(&case);
    moved.reach.as_mut().unwrap().address = [10, 0, 0, 2].into();
    assert_eq!(memory.plan(&moved, NOW).steps[0].action, Action::Probe);
}

#[test]
fn a_pass_begins_with_a_look() {
    let case = Case::new();
    let mut memory = seen(&case);
    let settled = plan(&mut memory, &case, NOW);
    assert_eq!(settled, Plan::settled());
    assert_eq!(memory.done(&settled, NOW).map(|rest| rest.until), Some(NOW + limits::RESYNC));
    memory.woken(Wake::Deadline, NOW);
    assert_eq!(plan(&mut memory, &case, NOW).steps[0].action, Action::Probe);
    memory.learn(Outcome::Looked(case.observed.host.clone()));
    memory.woken(Wake::AskedOtherwise, NOW);
    assert_eq!(plan(&mut memory, &case, NOW).steps[0].action, Action::Probe);
}

#[test]
fn a_settled_instance_is_looked_at_only_when_its_node_asks_for_work() {
    let case = Case::new();
    let mut memory = seen(&case);
    let settled = plan(&mut memory, &case, NOW);
    memory.done(&settled, NOW);
    memory.woken(Wake::NodeChanged, NOW);
    let labelled = Case::new().with(|c| c.annotate("example.com/heard", "yes"));
    assert_eq!(plan(&mut memory, &labelled, NOW), Plan::settled());
    // It is given back only after a fresh look.
    let held = Case::new().with(|c| {
        c.node().labels.insert(names::UPGRADING_LABEL.into(), names::TRUE.into());
    });
    assert_eq!(plan(&mut memory, &held, NOW).steps[0].action, Action::Probe);
}

#[test]
fn a_node_that_appears_costs_no_look() {
    let vacant = Case::vacant();
    let mut memory = seen(&vacant);
    let wait = plan(&mut memory, &vacant, NOW);
    assert_eq!(memory.done(&wait, NOW).map(|rest| rest.until), Some(NOW + limits::NODE_APPEARS));
    memory.woken(Wake::NodeChanged, NOW);
    let appeared = Case::new().with(|c| c.node().annotations.clear());
    let step = &plan(&mut memory, &appeared, NOW).steps[0];
    assert_eq!(step.action.verb(), "patch-node");
}

#[test]
fn a_wait_lasts_over_looks_and_ends_with_work() {
    let vacant = Case::vacant();
    let mut memory = seen(&vacant);
    let wait = plan(&mut memory, &vacant, NOW);
    memory.done(&wait, NOW);
    let later = NOW + limits::NODE_APPEARS;
    memory.woken(Wake::Deadline, NOW);
    let look = plan(&mut memory, &vacant, later);
    memory.learn(Outcome::Looked(vacant.observed.host.clone()));
    assert_eq!(memory.done(&look, later), None);
    let overdue = plan(&mut memory, &vacant, later);
    assert_eq!(overdue.steps[0].because, Because::NodeOverdue);
    memory.learn(Outcome::Worked(vacant.observed.host.clone()));
    assert_eq!(memory.done(&overdue, later), None);
    assert_eq!(plan(&mut memory, &vacant, later).next, wait_for_node(later));
}

fn wait_for_node(now: Timestamp) -> Next {
    Next::Await { what: Awaited::NodeAppears, deadline: now + limits::NODE_APPEARS }
}

#[test]
fn what_the_api_said_counts_for_one_pass() {
    let mut case = Case::vacant();
    let file = open_file(b"other");
    case.probe().files.insert(path(r"C:\k\kubelet.exe"), file);
    case.probe().services.clear();
    let mut memory = seen(&case);
    let seek = plan(&mut memory, &case, NOW);
    assert_eq!(seek.steps[0].action.verb(), "seek-node");
    memory.learn(Outcome::NoNode);
    memory.done(&seek, NOW);
    let work = plan(&mut memory, &case, NOW);
    let Action::Apply { work: apply, .. } = &work.steps[1].action else { panic!("{work}") };
    // The agent holds to it even later.
    assert_eq!(apply.plan().vacant_since.as_deref(), Some("boot 1"));
    memory.failed(None);
    memory.woken(Wake::NodeChanged, NOW);
    assert_eq!(plan(&mut memory, &case, NOW).steps[0].action, Action::Probe);
    memory.learn(Outcome::Looked(case.observed.host.clone()));
    let found = plan(&mut memory, &case, NOW);
    memory.learn(Outcome::FoundNode { name: "win-1".into() });
    memory.done(&found, NOW);
    assert_eq!(plan(&mut memory, &case, NOW).steps[0].action.verb(), "seek-node");
}

/// What was done may have brought a Node.
#[test]
fn what_the_api_said_before_the_work_does_not_count_after_it() {
    let mut case = Case::vacant();
    let file = open_file(b"other");
    case.probe().files.insert(path(r"C:\k\kubelet.exe"), file);
    case.probe().services.clear();
    let mut memory = seen(&case);
    memory.learn(Outcome::NoNode);
    assert_eq!(plan(&mut memory, &case, NOW).steps[0].action.verb(), "upload");
    memory.learn(Outcome::Worked(case.observed.host.clone()));
    assert_eq!(plan(&mut memory, &case, NOW).steps[0].action.verb(), "seek-node");
}

/// A boot that was noted from an old look would prove a restart that never came.
#[test]
fn a_restart_that_is_asked_for_is_counted_from_a_fresh_look() {
    let case = Case::new().emptied();
    let mut memory = seen(&case);
    memory.done(&Plan::settled(), NOW);
    memory.woken(Wake::NodeChanged, NOW);
    let asked = case.with(|c| c.annotate(names::REBOOT_ANNOTATION, ""));
    assert_eq!(plan(&mut memory, &asked, NOW).steps[0].action.verb(), "list-pods");
    memory.learn(Outcome::Pods(Vec::new()));
    assert_eq!(plan(&mut memory, &asked, NOW).steps[0].action, Action::Probe);
}

#[test]
fn pods_that_take_their_time_cost_a_look_a_minute() {
    let mut memory = seen(&Case::new());
    let wait = Plan::wait(Awaited::PodsGone, NOW + limits::DRAIN_RETRY);
    memory.done(&wait, NOW);
    let later = NOW + limits::DRAIN_RETRY;
    memory.woken(Wake::Deadline, later);
    assert_ne!(*memory.host(), HostSeen::Unknown);
    memory.done(&wait, later);
    memory.woken(Wake::Deadline, NOW + limits::RETRY_MOST);
    assert_eq!(*memory.host(), HostSeen::Unknown);
}

#[test]
fn a_host_that_restarts_is_asked_often() {
    let mut memory = Memory::default();
    let plan = Plan::settled().until(Awaited::HostBack, NOW + limits::HOST_BACK);
    assert_eq!(memory.done(&plan, NOW).map(|rest| rest.until), Some(NOW + limits::DRAIN_RETRY));
    memory.failed(Some(NOW));
    assert_eq!(*memory.host(), HostSeen::Unreachable { retry_at: NOW });
}

/// The same within one pass: the look must have come after the question.
#[test]
fn a_restart_is_not_counted_from_a_look_before_it_was_asked_for() {
    let case = Case::new().emptied();
    let mut memory = seen(&case);
    memory.learn(Outcome::Pods(Vec::new()));
    let asked = case.with(|c| c.annotate(names::REBOOT_ANNOTATION, ""));
    assert_eq!(plan(&mut memory, &asked, NOW).steps[0].action, Action::Probe);
    memory.learn(Outcome::Looked(asked.observed.host.clone()));
    memory.learn(Outcome::Pods(Vec::new()));
    assert_eq!(plan(&mut memory, &asked, NOW).steps[0].because, Because::RestartAsked);
}

/// A kubelet that was down when the host was seen last may be what made the node ready.
#[test]
fn a_slot_is_freed_as_soon_as_the_node_is_ready() {
    let mut case = Case::new().emptied();
    case.node().ready = false;
    let kubelet = names::host::KUBELET_SERVICE;
    let down = |c: &mut Case| {
        c.probe().services.get_mut(kubelet).unwrap().state = ServiceRunState::Stopped;
    };
    let mut case = case.with(down);
    let mut memory = seen(&case);
    let wait = plan(&mut memory, &case, NOW);
    assert_eq!(wait, Plan::wait(Awaited::NodeReady, NOW + limits::RETRY_MOST));
    memory.done(&wait, NOW);
    // It is not ready yet: nothing to look at.
    memory.woken(Wake::NodeChanged, NOW);
    assert_eq!(plan(&mut memory, &case, NOW).steps, []);
    case.node().ready = true;
    assert_eq!(plan(&mut memory, &case, NOW).steps[0].action, Action::Probe);
    memory.learn(Outcome::Looked(Case::new().observed.host));
    assert_eq!(plan(&mut memory, &case, NOW).steps[0].because, Because::Configured);
}

/// What is noted of a login is true: a host was seen with it.
#[test]
fn a_new_key_is_noted_after_a_login_with_it() {
    for name in [names::PUBLIC_KEY_HASH_ANNOTATION, names::USERNAME_ANNOTATION] {
        let mut case = Case::new();
        let mut memory = seen(&case);
        assert_eq!(plan(&mut memory, &case, NOW), Plan::settled());
        // In the middle of a pass people replace the key, or change the user.
        case.desired.annotations.insert(name.to_owned(), "new".to_owned());
        assert_eq!(plan(&mut memory, &case, NOW).steps[0].action, Action::Probe, "{name}");
        memory.failed(Some(NOW));
        assert_eq!(plan(&mut memory, &case, NOW).steps, [], "{name}");
        memory.learn(Outcome::Looked(case.observed.host.clone()));
        assert_eq!(plan(&mut memory, &case, NOW).steps[0].action.verb(), "patch-node", "{name}");
    }
}

/// Another Node of the name may have pods on services that the last look did not show.
#[test]
fn a_node_that_registered_again_costs_a_look() {
    let joining = Case::new().joining();
    let mut memory = seen(&joining);
    assert_eq!(plan(&mut memory, &joining, NOW).steps[0].action.verb(), "patch-node");
    let other = joining.with(|c| c.node().uid = "2".into());
    assert_eq!(plan(&mut memory, &other, NOW).steps[0].action, Action::Probe);
}

/// Somebody takes our label off again as soon as it is there.
#[test]
fn what_somebody_changes_again_and_again_is_corrected_after_pauses() {
    let mut inputs = inputs(&Case::new());
    inputs.node.as_mut().unwrap().labels.remove(names::BYOH_LABEL);
    let mut memory = Memory::default();
    let (mut now, mut writes, mut rests, mut told) = (NOW, Vec::new(), 0, 0);
    while now < NOW + SignedDuration::from_hours(1) {
        let plan = memory.plan(&inputs, now);
        if let Some(Action::PatchNode(_)) = plan.steps.first().map(|step| &step.action) {
            writes.push(now.as_second());
            memory.learn(Outcome::NodeChanged { resource_version: 1, is_ours: true });
        } else if let Some(Action::Probe) = plan.steps.first().map(|step| &step.action) {
            memory.learn(Outcome::Looked(observed().host));
        }
        match memory.done(&plan, now) {
            None => now += SignedDuration::from_millis(20),
            Some(rest) => {
                assert!(
                    matches!(plan.next, Next::Await { what: Awaited::OtherWriter, .. }),
                    "{plan}"
                );
                rests += 1;
                told += usize::from(memory.meets_other_writer());
                memory.woken(Wake::Deadline, rest.until);
                now = rest.until;
            }
        }
    }
    assert!(writes.len() <= 14 && rests >= 10, "{writes:?}");
    assert_eq!(told, 1);
    // What else is due goes on meanwhile, and a change by somebody who was first is none of ours.
    inputs
        .node
        .as_mut()
        .unwrap()
        .annotations
        .insert(names::REBOOT_ANNOTATION.into(), String::new());
    let plan = memory.plan(&inputs, now);
    assert!(!matches!(plan.next, Next::Await { what: Awaited::OtherWriter, .. }), "{plan}");
    inputs.node.as_mut().unwrap().annotations.remove(names::REBOOT_ANNOTATION);
    // As people write it anew, it is no fight.
    inputs.node.as_mut().unwrap().labels.insert(names::BYOH_LABEL.into(), names::TRUE.into());
    let calm = memory.plan(&inputs, now + SignedDuration::from_hours(1));
    assert!(!matches!(calm.next, Next::Await { what: Awaited::OtherWriter, .. }), "{calm}");
    // After that it is news again.
    inputs.node.as_mut().unwrap().labels.remove(names::BYOH_LABEL);
    let mut now = now + SignedDuration::from_hours(2);
    for _ in 0..8 {
        let plan = memory.plan(&inputs, now);
        if let Some(Action::PatchNode(_)) = plan.steps.first().map(|step| &step.action) {
            memory.learn(Outcome::NodeChanged { resource_version: 1, is_ours: true });
        } else if let Some(Action::Probe) = plan.steps.first().map(|step| &step.action) {
            memory.learn(Outcome::Looked(observed().host));
        }
        memory.done(&plan, now);
        now += SignedDuration::from_millis(20);
        told += usize::from(memory.meets_other_writer());
    }
    assert_eq!(told, 2);
}

/// Others write the Node, and the API server says so each time.
#[test]
fn what_was_not_written_is_no_correction() {
    let mut inputs = inputs(&Case::new());
    inputs.node.as_mut().unwrap().labels.remove(names::BYOH_LABEL);
    let mut memory = Memory::default();
    for _ in 0..20 {
        let mut plan = memory.plan(&inputs, NOW);
        if let Some(Action::Probe) = plan.steps.first().map(|step| &step.action) {
            memory.learn(Outcome::Looked(observed().host));
            assert_eq!(memory.done(&plan, NOW), None);
            plan = memory.plan(&inputs, NOW);
        }
        assert!(matches!(plan.steps[0].action, Action::PatchNode(_)), "{plan}");
        memory.learn(Outcome::NodeChanged { resource_version: 1, is_ours: false });
        assert_eq!(memory.done(&plan, NOW), None);
    }
}

/// Somebody changes the Node back each time, as a controller does that keeps its own view of it.
fn fought(mut inputs: InstanceInputs, host: &Probe, undo: impl Fn(&mut NodeFacts)) -> Fight {
    let mut memory = Memory::default();
    let (mut now, mut fight) = (NOW, Fight::default());
    while now < NOW + SignedDuration::from_hours(3) {
        let plan = memory.plan(&inputs, now);
        for step in &plan.steps {
            match &step.action {
                Action::PatchNode(patch) => {
                    fight.writes += 1;
                    if step.because == Because::DrainOverdue {
                        fight.ended = Some(now);
                    }
                    let node = inputs.node.as_mut().unwrap();
                    apply(node, patch);
                    undo(node);
                    memory.learn(Outcome::NodeChanged { resource_version: 1, is_ours: true });
                }
                Action::Probe => {
                    memory.learn(Outcome::Looked(HostSeen::Probed(Box::new(host.clone()))));
                }
                Action::ListPods => memory.learn(Outcome::Pods(vec![pod("db", None)])),
                Action::Evict { .. } => memory.learn(Outcome::Evicted(Vec::new())),
                Action::TellDrain { .. } => {}
                other => panic!("{other} on a node that runs pods"),
            }
        }
        fight.told += usize::from(memory.meets_other_writer());
        match memory.done(&plan, now) {
            _ if fight.ended.is_some() => break,
            None => now += SignedDuration::from_millis(20),
            Some(rest) => {
                // Its change wakes the worker at once.
                let is_calm = matches!(plan.next, Next::Await { what: Awaited::OtherWriter, .. });
                now = if is_calm { rest.until } else { now + SignedDuration::from_millis(20) };
                memory.woken(if is_calm { Wake::Deadline } else { Wake::NodeChanged }, now);
            }
        }
    }
    fight
}

/// What somebody changes back.
type Undo<'a> = &'a dyn Fn(&mut NodeFacts);

#[derive(Default)]
struct Fight {
    writes: usize,
    told: usize,
    /// When the drain was given up.
    ended: Option<Timestamp>,
}

fn apply(node: &mut NodeFacts, patch: &NodePatch) {
    let set = |values: &mut BTreeMap<String, String>, key: &String, value: &Option<String>| {
        match value {
            Some(value) => values.insert(key.clone(), value.clone()),
            None => values.remove(key),
        };
    };
    patch.labels.iter().for_each(|(key, value)| set(&mut node.labels, key, value));
    patch.annotations.iter().for_each(|(key, value)| set(&mut node.annotations, key, value));
    node.unschedulable = patch.unschedulable.unwrap_or(node.unschedulable);
}

/// What keeps pods away is taken off each time: nothing is changed, few writes, one word, and the slot is free in time.
#[test]
fn a_drain_that_somebody_undoes_ends_in_time() {
    let case = Case::new().with(|c| c.annotate(names::VERSION_ANNOTATION, "1.0.0")).permitted();
    let HostSeen::Probed(host) = &case.observed.host else { panic!("it answers") };
    let marks = [
        names::CORDONED_ANNOTATION,
        names::CORDONED_SINCE_ANNOTATION,
        names::DRAIN_SINCE_ANNOTATION,
    ];
    let uncordon = |node: &mut NodeFacts| node.unschedulable = false;
    let unmark = |node: &mut NodeFacts| {
        node.annotations.retain(|name, _| !marks.contains(&name.as_str()));
    };
    let unlabel = |node: &mut NodeFacts| {
        node.labels.remove(names::UPGRADING_LABEL);
    };
    let all = |node: &mut NodeFacts| {
        uncordon(node);
        unmark(node);
        unlabel(node);
    };
    let timeout = case.desired.release.drain_timeout;
    let kinds: [(&str, Undo<'_>); 4] =
        [("cordon", &uncordon), ("marks", &unmark), ("label", &unlabel), ("all", &all)];
    for (what, undo) in kinds {
        let fight = fought(inputs(&case), host, undo);
        let ended = fight.ended.unwrap_or_else(|| panic!("{what}: never"));
        let late = ended.duration_since(NOW + timeout);
        assert!(late <= SignedDuration::from_secs(1), "{what}: {late} late");
        assert!(fight.writes <= 60, "{what}: {} writes in an hour", fight.writes);
        assert_eq!(fight.told, 1, "{what}");
    }
}
