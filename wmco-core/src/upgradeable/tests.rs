//! Which work keeps an upgrade away, for how long, and what is written of it.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::facts::NodeFacts;
use crate::fleet::Replacement;
use crate::limits;
use crate::node::{Awaited, Next};

const VERSION: &str = "2.0.0";
const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// One instance as a pass leaves it.
#[derive(Clone, Debug)]
struct Case {
    intent: Intent,
    because: Because,
    node: Option<NodeFacts>,
    state: WorkState,
    workable: bool,
    pinned: bool,
}

impl Case {
    /// A node that is as it should be.
    fn settled() -> Self {
        let node = NodeFacts {
            name: "win-1".into(),
            annotations: [(names::VERSION_ANNOTATION.into(), VERSION.into())].into(),
            ..NodeFacts::default()
        };
        Self {
            intent: Intent::Configure(None),
            because: Because::Listed,
            node: Some(node),
            state: WorkState::Settled,
            workable: true,
            pinned: true,
        }
    }

    fn standing(&self) -> Standing {
        let assignment = Assignment {
            address: "10.0.0.1".into(),
            formerly: vec![],
            instance: None,
            node: self.node.as_ref(),
            confirmed: true,
            intent: self.intent.clone(),
            because: self.because.clone(),
        };
        let assignments = Assignments { instances: vec![assignment], ..Assignments::default() };
        let key = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
        let hosts = KnownHosts::read(self.pinned.then_some(("10.0.0.1", key)));
        Standing::of(&assignments, VERSION, &hosts, self.workable).remove(0)
    }

    fn set(&mut self, mark: &str, value: Option<&str>) {
        let node = self.node.as_mut().unwrap();
        match value {
            Some(value) => drop(node.annotations.insert(mark.into(), value.into())),
            None => drop(node.annotations.remove(mark)),
        }
    }

    fn hold_slot(&mut self) {
        let node = self.node.as_mut().unwrap();
        node.labels.insert(names::UPGRADING_LABEL.into(), names::TRUE.into());
    }
}

#[track_caller]
fn check(given: impl FnOnce(&mut Case), expected: Option<(Work, Option<Hold>)>) {
    let mut case = Case::settled();
    given(&mut case);
    assert_eq!(case.standing().work(case.state), expected);
}

#[test]
fn a_settled_node_keeps_nothing_away() {
    check(|_| {}, None);
    check(|case| case.state = WorkState::Looking, None);
}

#[test]
fn a_host_that_does_not_answer_and_has_nothing_in_hand_keeps_nothing_away() {
    check(|case| case.state = WorkState::Awaits(Awaited::HostReachable), None);
}

#[test]
fn an_outdated_node_is_upgraded_whoever_works_on_it() {
    let outdated = |case: &mut Case| case.set(names::VERSION_ANNOTATION, Some("1.0.0"));
    check(outdated, Some((Work::Upgrade, None)));
}

#[test]
fn an_upgrade_goes_on_while_its_node_shows_no_version() {
    let between = |case: &mut Case| {
        case.set(names::VERSION_ANNOTATION, None);
        case.hold_slot();
    };
    check(between, Some((Work::Upgrade, None)));
}

#[test]
fn a_slot_and_a_cordon_of_ours_are_work() {
    check(Case::hold_slot, Some((Work::Change, None)));
    let cordoned = |case: &mut Case| case.set(names::CORDONED_ANNOTATION, Some("by-operator"));
    check(cordoned, Some((Work::Change, None)));
}

#[test]
fn pods_that_leave_are_work() {
    check(|case| case.state = WorkState::Awaits(Awaited::PodsGone), Some((Work::Drain, None)));
}

#[test]
fn a_restart_that_was_asked_for_is_work() {
    check(|case| case.set(names::REBOOT_ANNOTATION, Some("")), Some((Work::Restart, None)));
}

#[test]
fn work_that_leaves_no_mark_is_work_and_so_is_its_failure() {
    check(|case| case.state = WorkState::AtWork, Some((Work::Change, None)));
    check(|case| case.state = WorkState::Failing, Some((Work::Change, None)));
}

#[test]
fn a_new_host_counts_once_it_was_reached() {
    check(|case| case.node = None, Some((Work::Configure, None)));
    let never = |case: &mut Case| (case.node, case.pinned) = (None, false);
    check(never, Some((Work::Configure, Some(Hold::NeverReached))));
}

#[test]
fn removal_and_what_is_put_on_record_for_it_is_work() {
    check(|case| case.intent = Intent::Remove(None), Some((Work::Remove, None)));
    let due = |case: &mut Case| (case.intent, case.because) = (Intent::Leave, Because::RecordDue);
    check(due, Some((Work::Remove, None)));
}

#[test]
fn a_machine_that_waits_for_the_slot_is_replaced() {
    let held = |held| {
        move |case: &mut Case| {
            (case.intent, case.because) = (Intent::Leave, Because::ReplacementHeld(held));
        }
    };
    check(held(Held::Budget), Some((Work::Replace, None)));
    check(held(Held::NobodyMakesAnother), None);
}

#[test]
fn a_machine_whose_successor_is_not_there_is_being_replaced() {
    let assignments = Assignments {
        replacing: [("win-x".to_owned(), Replacement::default())].into(),
        ..Assignments::default()
    };
    let standings = Standing::of(&assignments, VERSION, &KnownHosts::default(), true);
    let pending = Spells::default().update(&standings, |_| WorkState::Looking, NOW);
    assert_eq!(
        Condition::of(&pending).message,
        "work on 1 instance is not finished: machine win-x (replace)"
    );
}

#[test]
fn what_only_a_person_can_go_on_with_keeps_nothing_away() {
    let no_key = |case: &mut Case| {
        case.set(names::VERSION_ANNOTATION, Some("1.0.0"));
        case.workable = false;
    };
    check(no_key, Some((Work::Upgrade, Some(Hold::NobodyCan))));
    let foreign = |case: &mut Case| {
        (case.node, case.state) = (None, WorkState::Awaits(Awaited::HostFit));
    };
    check(foreign, Some((Work::Configure, Some(Hold::UnfitHost))));
    let broken = |case: &mut Case| {
        (case.intent, case.because) = (Intent::Leave, Because::EntryBroken);
        case.hold_slot();
    };
    check(broken, Some((Work::Change, Some(Hold::BadInput))));
    check(|case| case.intent = Intent::Leave, None);
}

#[test]
fn keys_that_are_exchanged_are_work_until_they_are() {
    let with = |set: fn(&mut crate::fleet::Rotation) -> &mut BTreeSet<String>| {
        let case = Case::settled();
        let mut rotation = crate::fleet::Rotation::default();
        set(&mut rotation).insert("10.0.0.1".into());
        let assignment = Assignment {
            address: "10.0.0.1".into(),
            formerly: vec![],
            instance: None,
            node: case.node.as_ref(),
            confirmed: true,
            intent: case.intent.clone(),
            because: Because::Listed,
        };
        let assignments = Assignments {
            instances: vec![assignment],
            rotation: Some(rotation),
            ..Assignments::default()
        };
        let hosts = KnownHosts::default();
        Standing::of(&assignments, VERSION, &hosts, true)[0].work(WorkState::Settled)
    };
    assert_eq!(with(|rotation| &mut rotation.waits_for), Some((Work::ExchangeKeys, None)));
    assert_eq!(with(|rotation| &mut rotation.proven), Some((Work::ExchangeKeys, None)));
    assert_eq!(with(|rotation| &mut rotation.done), None);
}

#[test]
fn a_look_is_no_work_and_an_attempt_no_success() {
    let state = WorkState::Settled.begins(true).ends(true, false);
    assert_eq!(state, WorkState::Settled);
    let state = state.begins(false);
    assert_eq!(state, WorkState::AtWork);
    let state = state.ends(false, false);
    assert_eq!(state, WorkState::Failing);
    assert_eq!(state.begins(true).ends(true, true).begins(false), WorkState::Failing);
    assert_eq!(state.begins(false).ends(false, true), WorkState::AtWork);
    assert_eq!(state.rests(&Next::Settled), WorkState::Settled);
}

/// How often an hour of patience passes without progress.
fn after(spells: &mut Spells, case: &Case, minutes: i64) -> Option<Hold> {
    let now = NOW + SignedDuration::from_mins(minutes);
    spells.update(&[case.standing()], |_| case.state, now)[0].hold
}

#[test]
fn work_that_comes_no_further_keeps_nothing_away_after_an_hour() {
    let (mut spells, mut case) = (Spells::default(), Case::settled());
    case.set(names::VERSION_ANNOTATION, Some("1.0.0"));
    case.state = WorkState::AtWork;
    assert_eq!(after(&mut spells, &case, 0), None);
    case.hold_slot();
    assert_eq!(after(&mut spells, &case, 30), None, "it got further");
    // Over and over again.
    for minutes in (31..90).step_by(3) {
        case.state = if minutes % 2 == 0 { WorkState::AtWork } else { WorkState::Failing };
        assert_eq!(after(&mut spells, &case, minutes), None, "{minutes}");
    }
    assert_eq!(after(&mut spells, &case, 90), Some(Hold::Stuck));
    case.set(names::VERSION_ANNOTATION, None);
    case.state = WorkState::AtWork;
    assert_eq!(after(&mut spells, &case, 91), None, "it got further");
}

#[test]
fn the_next_end_of_patience_is_known() {
    let (mut spells, mut case) = (Spells::default(), Case::settled());
    case.hold_slot();
    assert_eq!(after(&mut spells, &case, 5), None);
    let end = NOW + SignedDuration::from_mins(65);
    assert_eq!(spells.next_end(NOW), Some(end));
    assert_eq!(spells.next_end(end), None);
}

#[test]
fn work_that_begins_is_told_at_once_and_its_end_when_it_lasts() {
    let at = Duration::from_secs;
    let (busy, free) = (busy("win-1"), Condition::of(&[]));
    let mut damper = Damper::default();
    assert_eq!(damper.due(&busy, at(1)), Some(at(1)));
    damper.written(busy.clone(), at(1));
    assert_eq!(damper.due(&busy, at(2)), None);
    assert_eq!(damper.due(&free, at(20)), Some(at(25)));
    assert_eq!(damper.due(&free, at(24)), Some(at(25)));
    assert_eq!(damper.due(&busy, at(24)), None, "more work came");
    assert_eq!(damper.due(&free, at(26)), Some(at(31)), "it rests anew");
}

#[test]
fn another_message_waits_a_moment() {
    let at = Duration::from_secs;
    let mut damper = Damper::default();
    damper.written(busy("win-1"), at(10));
    assert_eq!(damper.due(&busy("win-2"), at(11)), Some(at(15)));
}

fn pending(name: &str) -> Pending {
    Pending { address: name.into(), name: name.into(), work: Work::Upgrade, since: NOW, hold: None }
}

fn busy(name: &str) -> Condition {
    Condition::of(&[pending(name)])
}

#[test]
fn the_message_tells_who_works_and_who_waits() {
    let held = Pending { hold: Some(Hold::NeverReached), ..pending("10.0.0.9") };
    let condition = Condition::of(&[held, pending("win-1"), pending("win-2")]);
    insta::assert_snapshot!(condition.message, @"work on 2 instances is not finished: win-1 (upgrade), win-2 (upgrade); 1 instance keeps no upgrade away: 10.0.0.9 (its host was never reached)");
    assert!(!condition.upgradeable);
}

#[test]
fn the_time_changes_with_the_status_alone_and_others_stay() {
    let later = NOW + SignedDuration::from_secs(60);
    let other = json!({"type": "Healthy", "status": "True", "reason": "x", "message": "", "lastTransitionTime": "t"});
    let first = merged(std::slice::from_ref(&other), &busy("win-1"), NOW).unwrap();
    let second = merged(&first, &busy("win-2"), later).unwrap();
    assert_eq!(second[1]["lastTransitionTime"], "1970-01-01T00:00:00Z");
    assert_eq!(second[1]["reason"], "upgradeIsNotSafe");
    let third = merged(&second, &Condition::of(&[]), later).unwrap();
    assert_eq!(third[1]["lastTransitionTime"], "1970-01-01T00:01:00Z");
    assert_eq!(third[0], other);
    assert_eq!(third.len(), 2);
}

#[test]
fn one_that_stands_there_twice_or_without_a_time_is_put_right() {
    let wanted = Condition::of(&[]);
    let mut ours = merged(&[], &wanted, NOW).unwrap();
    ours.push(ours[0].clone());
    assert_eq!(merged(&ours, &wanted, NOW).unwrap().len(), 1);
    ours.truncate(1);
    ours[0].as_object_mut().unwrap().remove("lastTransitionTime");
    assert!(merged(&ours, &wanted, NOW).is_some());
}

fn any_state() -> impl Strategy<Value = WorkState> {
    prop_oneof![
        Just(WorkState::Looking),
        Just(WorkState::AtWork),
        Just(WorkState::Failing),
        Just(WorkState::Settled),
        Just(WorkState::Awaits(Awaited::PodsGone)),
        Just(WorkState::Awaits(Awaited::HostBack)),
        Just(WorkState::Awaits(Awaited::VersionMark)),
        Just(WorkState::Awaits(Awaited::DisruptionSlot)),
    ]
}

prop_compose! {
    fn any_case()(
        intent in prop_oneof![
            3 => Just(Intent::Configure(None)),
            1 => Just(Intent::Remove(None)),
            1 => Just(Intent::Leave),
        ],
        has_node in any::<bool>(),
        version in prop_oneof![3 => Just(Some(VERSION)), 1 => Just(Some("1.0.0")), 1 => Just(None)],
        marks in vec(any::<bool>(), 3),
        state in any_state(),
        (workable, pinned) in (prop::bool::weighted(0.9), any::<bool>()),
    ) -> Case {
        let mut case = Case { intent, state, workable, pinned, ..Case::settled() };
        case.set(names::VERSION_ANNOTATION, version);
        if marks[0] { case.hold_slot(); }
        if marks[1] { case.set(names::CORDONED_ANNOTATION, Some("by-operator")); }
        if marks[2] { case.set(names::REBOOT_ANNOTATION, Some("")); }
        if !has_node { case.node = None; }
        case
    }
}

/// Whether work on it was begun, or has to be, and somebody can go on with it.
fn is_mid_work(case: &Case) -> bool {
    let reached = case.pinned || case.node.is_some();
    let marked = case.node.as_ref().is_none_or(|node| {
        node.version() != Some(VERSION)
            || node.holds_slot()
            || node.wants_restart()
            || node.annotations.contains_key(names::CORDONED_ANNOTATION)
    });
    let told = !matches!(case.state, WorkState::Looking | WorkState::Settled);
    let wanted = match case.intent {
        Intent::Configure(_) => marked || told,
        Intent::Remove(_) | Intent::Replace(_) => true,
        Intent::Look | Intent::Leave => false,
    };
    wanted && case.workable && reached
}

proptest! {
    /// An upgrade is safe exactly while no node of ours is in the middle of work that continues, and every such
    /// node has its name in the message, up to the bound, and is counted.
    #[test]
    fn an_upgrade_is_safe_when_nothing_is_under_way(cases in vec(any_case(), 0..16)) {
        let named = |number: usize, mut standing: Standing| {
            standing.address = format!("10.0.0.{number}");
            standing.name = format!("win-{number:02}.");
            standing
        };
        let standings: Vec<_> =
            cases.iter().enumerate().map(|(number, case)| named(number, case.standing())).collect();
        let state = |address: &str| {
            let number: usize = address.rsplit('.').next().unwrap().parse().unwrap();
            cases[number].state
        };
        let condition = Condition::of(&Spells::default().update(&standings, state, NOW));
        let at_work: Vec<String> = cases.iter().zip(&standings)
            .filter(|(case, _)| is_mid_work(case))
            .map(|(_, standing)| standing.name.clone())
            .collect();
        prop_assert_eq!(condition.upgradeable, at_work.is_empty());
        let told = condition.message.split(';').next().unwrap();
        for name in at_work.iter().take(limits::CONDITION_NAMES) {
            prop_assert!(told.contains(name.as_str()), "{} is missing: {}", name, told);
        }
        if let Some(others) = at_work.len().checked_sub(limits::CONDITION_NAMES).filter(|n| *n > 0) {
            prop_assert!(told.ends_with(&format!("and {others} more")), "{}", told);
        }
        prop_assert!(condition.message.len() < 2048);
    }
}
