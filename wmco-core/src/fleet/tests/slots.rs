//! Who waits for a slot of the disruption budget, and who holds it.

use super::*;
use crate::fleet::{SlotWaits, Topic};

/// The notice about who waits for the only slot.
fn awaited(case: &Case) -> Notice {
    case.look(|out| {
        let mut told = out.notices.iter().filter(|it| matches!(it, Notice::SlotAwaited { .. }));
        let notice = told.next().expect("somebody waits").clone();
        assert_eq!(told.next(), None);
        assert_eq!(notice.patience(), limits::SLOT_PATIENCE);
        notice
    })
}

/// A Node whose host is gone and that nobody lists holds the slot.
fn ghost() -> Case {
    Case::three().with(|c| {
        let mut ghost = node(9);
        labelled(&mut ghost);
        ghost.annotations.clear();
        ghost.addresses.clear();
        c.nodes.push(ghost);
        c.claims = vec!["win-1", "win-3"];
    })
}

/// The same with an entry that is broken, so that nothing is done with it.
fn left() -> Case {
    ghost().with(|c| {
        c.listed.push(broken("win-9.example"));
        let origin = (names::INSTANCE_ANNOTATION.to_owned(), "win-9.example".to_owned());
        c.nodes[3].annotations.extend([origin]);
    })
}

fn words(holder: &str) -> String {
    format!(
        "node win-1 and 1 more wait for a slot of the disruption budget for more than 2 minutes; node {holder}"
    )
}

#[test]
fn each_node_that_waits_is_told_since_when_and_what_frees_a_slot() {
    let case = ghost();
    let mut waits = SlotWaits::default();
    let begun: jiff::Timestamp = "2026-03-02T10:00:00Z".parse().unwrap();
    let later = begun + limits::SLOT_PATIENCE;
    case.look(|out| {
        assert_eq!(waits.update(&out, begun).len(), 2);
        let told = waits.update(&out, later);
        let nodes: Vec<_> = told.iter().map(|wait| (wait.node.as_str(), wait.since)).collect();
        assert_eq!(nodes, [("win-1", begun), ("win-3", begun)]);
        assert_eq!(
            told[1].to_string(),
            format!(
                "waits since 2026-03-02T10:00:00Z for a slot of the disruption budget; node win-9 holds one by its label \
                 {} until its host is done: see what is told of it, and if the host is gone delete the node, or \
                 take the label off",
                names::UPGRADING_LABEL
            )
        );
    });
    // A node that had its turn waits anew.
    let free = case.clone().with(|c| drop(c.nodes.pop()));
    free.look(|out| assert_eq!(waits.update(&out, later).len(), 1));
    case.look(|out| {
        let since: Vec<_> = waits.update(&out, later).iter().map(|wait| wait.since).collect();
        assert_eq!(since, [later, begun]);
    });
}

#[test]
fn who_waits_for_a_slot_and_who_holds_it_is_told() {
    let case = ghost();
    case.look(|out| assert_eq!(out.waiting, ["win-1", "win-3"].into()));
    assert_eq!(
        awaited(&case).to_string(),
        words(&format!(
            "win-9 holds one by its label {} until its host is done: see what is told of it, and if the host is \
             gone delete the node, or take the label off",
            names::UPGRADING_LABEL
        ))
    );
    let free = case.with(|c| drop(c.nodes.pop()));
    free.look(|out| assert_eq!(out.waiting, ["win-3"].into()));
}

#[test]
fn words_about_a_holder_of_a_slot_are_true() {
    assert_eq!(
        awaited(&left()).to_string(),
        words(&format!(
            "win-9 holds one by its label {}, and nothing is done there now: see what is told of it, and if the host \
             is gone delete the node, or take the label off",
            names::UPGRADING_LABEL
        ))
    );
    // There is no label to take off.
    let granted = Case::three().with(|c| c.granted = vec!["win-2"]);
    assert_eq!(
        awaited(&granted).to_string(),
        words("win-2 holds one and is about to go out of service: see what is told of it")
    );
}

/// On a patch day one holder follows the other. That a holder is left alone is news.
#[test]
fn a_wait_for_a_slot_is_one_situation_whoever_holds_it() {
    let holds = |at: usize| Case::three().with(|c| held(&mut c.nodes[at]));
    let topics = [0, 1, 2].map(|at| awaited(&holds(at)).topic());
    let granted = Case::three().with(|c| c.granted = vec!["win-2"]);
    assert!(topics.iter().all(|topic| *topic == awaited(&granted).topic()), "{topics:?}");
    assert!(matches!(&topics[0], Some(Topic::Once(_))), "{topics:?}");
    assert_eq!(topics[0], awaited(&ghost()).topic());
    let is_left = awaited(&left()).topic();
    assert_ne!(topics[0], is_left);
    assert_eq!(is_left, awaited(&left().with(|c| c.claims = vec!["win-3"])).topic());
}

#[test]
fn who_gets_the_slot_in_the_same_pass_is_told() {
    let told = awaited(&Case::three().with(|c| c.claims = vec!["win-1", "win-2"])).to_string();
    let expected = "node win-2 waits for a slot of the disruption budget for more than 2 minutes; node win-1 holds one and is \
                    about to go out of service: see what is told of it";
    assert_eq!(told, expected);
}
