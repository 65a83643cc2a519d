//! Drains that take long: what is reported, when the node is given back, and when it is drained
//! again.

use jiff::SignedDuration;

use super::*;
use crate::facts::{DrainNotice, DrainStage, GivenUp};
use crate::limits;
use crate::text::steers_terminals;
use names::objects::WICD;

const TIMEOUT: SignedDuration = limits::DRAIN_TIMEOUT;

/// A node that runs another version and is out of service since `ago`, with pods on it.
fn draining(ago: SignedDuration, pods: Vec<PodFacts>) -> Case {
    Case::new().emptied().with(|c| {
        c.annotate(names::VERSION_ANNOTATION, "1.0.0");
        c.annotate(names::DRAIN_SINCE_ANNOTATION, &(NOW - ago).to_string());
        c.observed.drain.marks.since = Some(NOW - ago);
        c.observed.drain.marks.cordoned = Some(NOW - ago);
        c.observed.pods = Some(pods);
    })
}

pub(super) fn pod(name: &str, leaves_by: Option<Timestamp>) -> PodFacts {
    let uid = format!("uid-of-{name}");
    PodFacts { namespace: "default".into(), name: name.into(), uid, created: None, leaves_by }
}

/// Its eviction was refused last time.
fn refused(case: &mut Case) {
    let why = "The disruption budget db-budget needs 1 healthy pods and has 1 currently";
    case.observed.drain.refused = Some(vec![Refusal::of(&pod("db", None), why)]);
}

/// However much is said of each pod, the next step is in the Event, and all of it is one line.
#[test]
fn whatever_a_webhook_says_the_next_step_is_told() {
    let longest = |letter: &str| letter.repeat(limits::OBJECT_NAME_BYTES);
    let words = "admission webhook \"x\" denied it:\n\u{1b}[2J".repeat(2_000);
    let codes = format!("webhook{}", "\u{1b}\u{202e}".repeat(20_000));
    for (count, long) in [1, 2, 7].into_iter().flat_map(|count| [(count, &words), (count, &codes)])
    {
        let pods: Vec<PodFacts> = (0..count).map(|n| pod(&longest(&n.to_string()), None)).collect();
        let why = pods.iter().map(|pod| Refusal::of(pod, long)).collect();
        let case = draining(SignedDuration::from_mins(1), pods)
            .with(|c| c.observed.drain.refused = Some(why));
        let told = notice(&case).message;
        assert!(told.len() <= limits::EVENT_NOTE_BYTES, "{} bytes: {told}", told.len());
        assert!(told.contains("let them go or delete them, else the node is given back"), "{told}");
        assert!(!told.contains(steers_terminals), "{told}");
        assert!(told.contains("webhook") && told.contains("..."), "{told}");
        assert_eq!(told.contains(&format!("and {} more", count - 1)), count > 1, "{told}");
    }
}

fn protected(ago: SignedDuration) -> Case {
    draining(ago, vec![pod("db", None)]).with(refused)
}

/// The drain notice of the plan, and whether an Event reports it.
#[track_caller]
fn told(case: &Case) -> Option<(Option<DrainNotice>, bool)> {
    case.plan().steps.into_iter().find_map(|step| match step.action {
        Action::TellDrain { notice, event } => Some((notice, event)),
        _ => None,
    })
}

#[track_caller]
fn notice(case: &Case) -> DrainNotice {
    told(case).and_then(|(notice, _)| notice).unwrap_or_else(|| panic!("{}", case.plan()))
}

/// The condition says what the plan just wanted it to say.
fn heard(case: Case) -> Case {
    let notice = notice(&case);
    case.with(|c| c.node().drain_notice = Some(notice))
}

#[track_caller]
#[test]
fn a_refused_eviction_is_told_with_pod_and_budget_once() {
    let case = protected(SignedDuration::from_mins(1));
    insta::assert_snapshot!(case.plan(), @r"
    evict 1 pod, because it is about to be disrupted for its upgrade
    tell-drain (pods block the drain for its upgrade, which began at 1969-12-31T23:59:00Z: pod default/db is not evicted (The disruption budget db-budget needs 1 healthy pods and has 1 currently); let them go or delete them, else the node is given back at 1970-01-01T00:59:00Z and drained again later), because pods block its drain
    then await its pods' departure, until 1970-01-01T00:00:15Z
    ");
    assert!(told(&case).unwrap().1, "an Event tells it");
    let again = heard(case);
    again.gives("evict await its pods' departure");
    // Another text about the same blockage is no other Event.
    let other = again.with(|c| c.observed.drain.refused.as_mut().unwrap()[0].why = "other".into());
    assert!(!told(&other).unwrap().1);
}

#[test]
fn a_pod_that_does_not_end_is_told() {
    let ended = NOW - limits::POD_END - SignedDuration::from_secs(1);
    let case = draining(SignedDuration::from_mins(1), vec![pod("web", Some(ended))]);
    let notice = notice(&case);
    assert!(notice.message.contains("pod default/web was to end by 1969-12-31T23:59:29Z"));
    assert_eq!(notice.stage, DrainStage::Blocked);
}

#[test]
fn pods_within_their_grace_period_are_no_blockage() {
    let ends = NOW + SignedDuration::from_hours(2);
    let case = draining(TIMEOUT * 2, vec![pod("web", Some(ends))]);
    case.gives("await its pods' departure");
    let later = draining(TIMEOUT * 2, vec![pod("web", Some(NOW - limits::POD_END))]);
    later.gives("patch-node tell-drain");
}

#[test]
fn a_grace_period_of_a_year_holds_no_slot_for_a_year() {
    let pods = || vec![pod("web", Some(NOW + SignedDuration::from_hours(24 * 365)))];
    draining(limits::DRAIN_GRACE_MOST - SignedDuration::from_secs(1), pods())
        .gives("await its pods' departure");
    draining(limits::DRAIN_GRACE_MOST, pods()).gives("patch-node tell-drain");
}

#[test]
fn nothing_is_told_before_pods_were_asked() {
    let case = draining(SignedDuration::ZERO, vec![pod("db", None)]);
    case.gives("evict await its pods' departure");
    // After a restart of the operator the condition stays until they were asked again.
    let told = heard(protected(SignedDuration::ZERO)).with(|c| c.observed.drain.refused = None);
    told.gives("evict await its pods' departure");
}

#[test]
fn the_end_of_a_blockage_is_told() {
    let leaving = || vec![pod("db", Some(NOW))];
    let case = heard(protected(SignedDuration::ZERO)).with(|c| {
        c.observed.pods = Some(leaving());
        c.observed.drain.refused = Some(Vec::new());
    });
    assert_eq!(told(&case), Some((None, false)));
    let gone = heard(protected(SignedDuration::ZERO)).with(|c| c.observed.pods = Some(Vec::new()));
    gone.gives("tell-drain");
    let settled = heard(protected(SignedDuration::ZERO)).node().drain_notice.clone();
    Case::new().with(|c| c.node().drain_notice = settled).gives("tell-drain");
}

#[test]
fn a_drain_that_takes_too_long_gives_its_node_back() {
    let told_before = Some(notice(&protected(SignedDuration::ZERO)));
    let case = protected(TIMEOUT).with(|c| c.node().drain_notice = told_before);
    insta::assert_snapshot!(case.plan(), @r"
    patch-node uncordon -upgrading -cordoned -cordoned-since +drain-given-up -drain-since, because its pods did not leave in time
    tell-drain (the drain for its upgrade, which began at 1969-12-31T23:00:00Z, was given up (1 in a row), the next one begins after 1970-01-01T00:05:00Z: pod default/db is not evicted (The disruption budget db-budget needs 1 healthy pods and has 1 currently); let them go or delete them), because pods block its drain
    then look again
    ");
    let note = case.patch().annotations[names::DRAIN_GIVEN_UP_ANNOTATION].clone();
    assert_eq!(note.as_deref(), Some("1 1970-01-01T00:05:00Z"));
    assert!(told(&case).unwrap().1, "each time it is told in an Event");
}

#[test]
fn a_removal_gives_its_node_back_too() {
    let case = protected(TIMEOUT).with(|c| c.desired.intent = Intent::Remove(Some(permit())));
    case.gives("patch-node tell-drain");
}

#[test]
fn a_persons_cordon_stays_when_the_node_is_given_back() {
    let case = protected(TIMEOUT)
        .with(|c| c.annotate(names::CORDONED_ANNOTATION, names::CORDONED_BY_OTHERS));
    assert_eq!(case.patch().unschedulable, None);
}

#[test]
fn a_changed_host_keeps_its_slot_and_says_so() {
    let changes: [fn(&mut Case); 3] = [
        |c| drop(c.node().annotations.remove(names::VERSION_ANNOTATION)),
        |c| drop(c.probe().services.remove(WICD)),
        |c| c.annotate(names::RESTART_FROM_ANNOTATION, "boot 0"),
    ];
    for change in changes {
        let case = protected(TIMEOUT).with(|c| c.annotate(names::REBOOT_ANNOTATION, ""));
        let case = case.with(change);
        case.gives("evict tell-drain await its pods' departure");
        let notice = notice(&case);
        assert_eq!(notice.stage, DrainStage::Overdue);
        assert!(notice.message.contains("the node keeps its disruption slot"), "{notice:?}");
        assert!(told(&case).unwrap().1);
        heard(case).gives("evict await its pods' departure");
    }
}

#[test]
fn a_drain_that_a_predecessor_began_gets_its_time() {
    let case = protected(TIMEOUT).with(|c| c.observed.drain.marks.since = None);
    let since = case.patch().annotations[names::DRAIN_SINCE_ANNOTATION].clone();
    assert_eq!(since.as_deref(), Some("1970-01-01T00:00:00Z"));
}

/// What `case` would be after it was given up: not held, and noted so.
fn given_up(times: u32, retry_at: Timestamp) -> Case {
    Case::new().permitted().with(|c| {
        c.annotate(names::VERSION_ANNOTATION, "1.0.0");
        c.observed.drain.marks =
            DrainMarks { given_up: Some(GivenUp { times, retry_at }), ..DrainMarks::default() };
    })
}

#[test]
fn a_drain_that_was_given_up_waits_before_it_is_tried_again() {
    let second = SignedDuration::from_secs(1);
    let case = given_up(1, NOW + second);
    assert_eq!(claims_slot(&case.desired, &case.observed, NOW), Some(false));
    assert_eq!(case.plan(), Plan::wait(Awaited::DisruptionSlot, NOW + second));
    let removal =
        given_up(1, NOW + second).with(|c| c.desired.intent = Intent::Remove(Some(permit())));
    assert_eq!(removal.plan(), case.plan());
    let due = given_up(1, NOW);
    assert_eq!(claims_slot(&due.desired, &due.observed, NOW), Some(true));
    due.gives("patch-node");
    // Who holds a slot claims it until it is given back.
    let held = protected(TIMEOUT).with(|c| {
        c.observed.drain.marks.given_up = Some(GivenUp { times: 1, retry_at: NOW + second });
    });
    assert_eq!(claims_slot(&held.desired, &held.observed, NOW), Some(true));
}

#[test]
fn pauses_double_up_to_four_time_outs() {
    let mut marks = DrainMarks::default();
    let mut minutes = Vec::new();
    for _ in 0..8 {
        let given_up = marks.give_up(TIMEOUT, NOW);
        minutes.push(given_up.retry_at.duration_since(NOW).as_secs() / 60);
        marks.given_up = Some(given_up);
    }
    assert_eq!(minutes, [5, 10, 20, 40, 80, 160, 240, 240]);
    let most = GivenUp { times: u32::MAX, retry_at: NOW };
    let again = DrainMarks { given_up: Some(most), ..marks }.give_up(TIMEOUT, NOW);
    assert_eq!(again.retry_at, NOW + TIMEOUT * limits::DRAIN_PAUSE_MOST);
}

#[test]
fn times_that_we_never_write_are_not_believed() {
    let marks = |name: &str, value: &str| {
        let mut node = node();
        node.annotations.insert(name.to_owned(), value.to_owned());
        DrainMarks::of(&node, TIMEOUT, NOW)
    };
    let since = |value| marks(names::DRAIN_SINCE_ANNOTATION, value).since;
    assert_eq!(since("1970-01-01T00:00:00Z"), Some(NOW));
    assert_eq!(since("1970-01-01T00:00:01Z"), None, "it has not begun yet");
    assert_eq!(since("yesterday"), None);
    let given_up = |value| marks(names::DRAIN_GIVEN_UP_ANNOTATION, value).given_up;
    assert!(given_up("3 1970-01-01T04:00:00Z").is_some());
    for wrong in ["3 1970-01-01T04:00:01Z", "-1 1970-01-01T00:00:00Z", "1", "", "a b c"] {
        assert_eq!(given_up(wrong), None, "{wrong}");
    }
}

/// A host may write its own Node, and must not keep a slot by that.
#[test]
fn a_host_that_rewrites_its_notes_gains_no_time() {
    let mut memory = Memory::default();
    let mut case = protected(SignedDuration::ZERO);
    let note = |c: &mut Case, since: Timestamp| {
        c.annotate(names::DRAIN_SINCE_ANNOTATION, &since.to_string());
        c.annotate(names::CORDONED_SINCE_ANNOTATION, &since.to_string());
    };
    note(&mut case, NOW);
    let plan = |memory: &mut Memory, case: &Case, now| {
        memory.learn(Outcome::Looked(case.observed.host.clone()));
        memory.learn(Outcome::Pods(case.observed.pods.clone().unwrap()));
        memory.plan(&memory::inputs(case), now)
    };
    assert_eq!(plan(&mut memory, &case, NOW).steps[0].action.verb(), "evict");
    note(&mut case, NOW + TIMEOUT - SignedDuration::from_secs(1));
    let over = plan(&mut memory, &case, NOW + TIMEOUT);
    assert_eq!(over.steps[0].because, Because::DrainOverdue, "{over}");
    memory.learn(Outcome::NodeChanged { resource_version: 1, is_ours: true });
    // Nor does it get the slot back at once by forgetting that it had its turn.
    let mut case = given_up(1, NOW);
    case.annotate(names::DRAIN_GIVEN_UP_ANNOTATION, "1 1970-01-01T01:05:00Z");
    let now = NOW + TIMEOUT;
    assert_eq!(plan(&mut memory, &case.with_pods(), now).steps, []);
    let mut case = given_up(1, NOW).with_pods();
    case.node().annotations.remove(names::DRAIN_GIVEN_UP_ANNOTATION);
    assert_eq!(plan(&mut memory, &case, now).steps, []);
    assert_eq!(memory.claims_slot(&memory::inputs(&case), now), Some(false));
}

/// The node was given back, though nobody said so: its next drain has a time of its own.
#[test]
fn what_a_lost_answer_changed_is_read_again() {
    let mut memory = Memory::default();
    let case = protected(SignedDuration::ZERO).with(|c| {
        c.annotate(names::DRAIN_SINCE_ANNOTATION, &NOW.to_string());
    });
    memory.learn(Outcome::Looked(case.observed.host.clone()));
    memory.learn(Outcome::Pods(case.observed.pods.clone().unwrap()));
    let over = memory.plan(&memory::inputs(&case), NOW + TIMEOUT);
    assert_eq!(over.steps[0].because, Because::DrainOverdue, "{over}");
    memory.failed(None);
    let case = given_up(1, NOW + TIMEOUT).permitted();
    memory.learn(Outcome::Looked(case.observed.host.clone()));
    let later = NOW + TIMEOUT + SignedDuration::from_hours(1);
    let again = memory.plan(&memory::inputs(&case), later);
    let begun = again.steps.iter().any(|step| match &step.action {
        Action::PatchNode(patch) => {
            patch.annotations[names::DRAIN_SINCE_ANNOTATION] == Some(format!("{later:.0}"))
        }
        _ => false,
    });
    assert!(begun, "{again}");
}

impl Case {
    fn with_pods(self) -> Self {
        self.with(|c| c.observed.pods = Some(Vec::new()))
    }
}

/// A pod that was created after the operator saw its cordon.
fn late(name: &str) -> PodFacts {
    PodFacts { created: Some(NOW - SignedDuration::from_secs(1)), ..pod(name, None) }
}

#[test]
fn pods_that_came_after_the_cordon_are_asked_once_and_hold_nothing() {
    let minute = SignedDuration::from_mins(1);
    let case = draining(minute, vec![late("log"), late("agent")]);
    insta::assert_snapshot!(case.plan(), @r"
    evict 2 pods, because pods that tolerate the cordon came back
    then look again
    ");
    let asked = case.with(|c| c.observed.drain.late_pods_asked = true);
    assert!(!asked.plan().to_string().contains("evict"), "{}", asked.plan());
    assert_ne!(asked.plan().next, Plan::wait(Awaited::PodsGone, NOW).next);
}

#[test]
fn pods_that_were_there_are_waited_for_whoever_comes_meanwhile() {
    let case = draining(SignedDuration::from_mins(1), vec![late("log"), pod("db", None)]);
    insta::assert_snapshot!(case.plan(), @r"
    evict 1 pod, because it is about to be disrupted for its upgrade
    then await its pods' departure, until 1970-01-01T00:00:15Z
    ");
}

#[test]
fn pods_of_the_first_seconds_after_the_cordon_count_as_there() {
    let early = limits::POD_CLOCK_SKEW;
    let case = draining(early, vec![late("log")]);
    assert_eq!(case.plan().steps[0].because, Because::DisruptionDue { purpose: Purpose::Upgrade });
}

#[test]
fn a_cordon_that_was_taken_off_begins_anew() {
    let minute = SignedDuration::from_mins(1);
    let case = draining(minute, vec![late("log")]).with(|c| {
        c.annotate(names::CORDONED_SINCE_ANNOTATION, &(NOW - minute).to_string());
        c.node().unschedulable = false;
    });
    assert_eq!(case.patch().annotations[names::CORDONED_SINCE_ANNOTATION], None);
}

#[test]
fn pauses_of_a_drain_grow_with_its_age() {
    let next = |age: i64| {
        let case = draining(SignedDuration::from_secs(age), vec![pod("db", None)]);
        match case.plan().next {
            Next::Await { deadline, .. } => deadline.duration_since(NOW).as_secs(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!([1, 20, 60, 100, 3_000].map(next), [5, 5, 15, 25, 30]);
}

/// The Node lost its marks, which only we may believe from before, and its cordon: pods may have come since.
#[test]
fn lost_marks_do_not_outlive_the_cordon() {
    let minute = SignedDuration::from_mins(1);
    let case = draining(minute, vec![late("log")]).with(|c| {
        c.node().unschedulable = false;
        for mark in [names::CORDONED_ANNOTATION, names::CORDONED_SINCE_ANNOTATION] {
            c.node().annotations.remove(mark);
        }
    });
    assert_eq!(case.patch().annotations[names::CORDONED_SINCE_ANNOTATION], None);
}
