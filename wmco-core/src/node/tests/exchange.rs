//! Exchanging the key that lets us in.

use super::memory::inputs;
use super::*;
use crate::host_record::{HostRecord, RecordChange};
use crate::login_keys::tests::rotation;
use crate::login_keys::{KeyExchange, KeyRotation};
use crate::protocol::HostStep;

const ADD: &str = "apply +ensure-authorized-keys prove-key";
const REMOVE: &str = "prove-key apply +ensure-authorized-keys prove-key-removed";

fn add(case: &mut Case) {
    case.desired.exchange = Some(KeyExchange { add: rotation().to, remove: None });
}

fn remove(case: &mut Case) {
    let KeyRotation { from, to } = rotation();
    case.desired.exchange = Some(KeyExchange { add: to, remove: Some(from) });
}

/// The key before goes only after another login with the one that stays.
#[test]
fn a_key_is_proven_before_it_counts_and_before_the_other_goes() {
    Case::new().with(add).gives(ADD);
    Case::new().with(remove).gives(REMOVE);
    let steps = Case::new().with(remove).plan().steps;
    let Action::Apply { work, .. } = &steps[1].action else { panic!("{steps:?}") };
    let KeyRotation { from, to } = rotation();
    let step = HostStep::EnsureAuthorizedKeys { add: [to.clone()].into(), remove: [from].into() };
    assert_eq!(work.plan().steps, [step]);
    assert_eq!(work.grounds(), &Grounds::Harmless);
    assert_eq!(steps[0].action, Action::ProveKey(to.hash()));
}

#[test]
fn it_waits_for_nothing_but_work_that_can_be_done_now() {
    let outdated = |c: &mut Case| c.annotate(names::VERSION_ANNOTATION, "1.0.0");
    Case::new().with(outdated).gives("await a disruption slot");
    Case::new().with(outdated).with(add).gives(ADD);
    let work = Case::new().with(outdated).emptied().verbs();
    assert_eq!(Case::new().with(outdated).emptied().with(add).verbs(), work);
    Case::vacant().with(|c| c.observed.node_sought = true).with(add).gives(ADD);
}

/// What is not known to be our agent's, or is to be given back, gets no key.
#[test]
fn only_a_host_that_is_ours_gets_it() {
    let same = |case: fn() -> Case| assert_eq!(case().with(add).verbs(), case().verbs());
    same(|| Case::new().with(|c| c.observed.host = HostSeen::Unknown));
    same(|| Case::new().with(|c| c.observed.host = HostSeen::NoAgent));
    same(|| Case::new().with(|c| c.observed.host = HostSeen::Unreachable { retry_at: NOW }));
    same(|| Case::new().with(|c| c.observed.known_closed = false));
    same(|| Case::new().with(|c| c.probe().root = RootAccess::Open));
    same(Case::unlisted);
    same(|| Case::new().with(|c| c.desired.intent = Intent::Leave));
}

/// A host that takes the line and not the login would be asked again and again without a pause.
#[test]
fn nothing_in_it_but_its_end_counts_as_a_recovery() {
    for change in [add, remove] {
        let plan = Case::new().with(change).plan();
        assert!(plan.steps.iter().all(|step| step.action.looks()), "{plan}");
    }
    let work = HostWork::new(vec![HostStep::StopKubelet], Grounds::Harmless).unwrap();
    assert!(!Action::Apply { agent: AgentLocation::Installed, work }.looks());
}

#[test]
fn a_host_that_lets_in_what_it_did_before_disproves_its_record() {
    let KeyRotation { from, to } = rotation();
    let [from, to] = [from.hash(), to.hash()];
    let mut known = inputs(&Case::new());
    let wrong = Some(RecordChange::LetsIn(None));
    assert_eq!(known.disproved_by(&[to, from], Some(from)), None);
    known.record = Some(HostRecord { accepted_key: Some(to), ..HostRecord::default() });
    assert_eq!(known.disproved_by(&[to, from], Some(from)), wrong);
    assert_eq!(known.disproved_by(&[to], None), wrong);
    assert_eq!(known.disproved_by(&[to, from], Some(to)), None);
    // It was not tried, so nobody knows.
    assert_eq!(known.disproved_by(&[from], Some(from)), None);
    assert_eq!(known.disproved_by(&[from], None), None);
}
