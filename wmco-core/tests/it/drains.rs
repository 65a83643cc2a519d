//! Drains that something blocks: nobody else waits for them for long.

use jiff::SignedDuration;

use crate::world::{DRAIN_TIMEOUT, Event, ROUNDS, World};

/// Nodes with pods on them, one of which may be disrupted at a time.
fn configured(hosts: usize) -> World {
    let mut world = World::fresh(hosts, 1, u8::MAX);
    world.run(ROUNDS).unwrap();
    for _ in 0..3 {
        world.fair_round();
    }
    world
}

/// Runs until the nodes with these numbers are as people want them.
#[track_caller]
fn until_met(world: &mut World, numbers: &[usize]) {
    for _ in 0..10 * ROUNDS {
        assert!(world.broken.is_empty(), "{:#?}", world.broken);
        if numbers.iter().all(|number| world.unmet_of(*number).is_empty()) {
            return;
        }
        world.fair_round();
    }
    panic!("{:#?}", world.unmet());
}

/// While `block` holds, the others get their upgrade; then the node gets it, too.
#[track_caller]
fn lets_others_go(block: Event, end: Event) {
    let mut world = configured(3);
    world.happen(block);
    world.happen(Event::Bump);
    let begun = world.now();
    until_met(&mut world, &[0, 2]);
    let took = world.now().duration_since(begun);
    assert!(took < DRAIN_TIMEOUT + SignedDuration::from_mins(3), "{took}");
    assert!(!world.unmet_of(1).is_empty(), "nothing blocked it");
    world.happen(end);
    if let Err(unmet) = world.run(ROUNDS) {
        panic!("{unmet:#?}");
    }
}

#[test]
fn a_budget_that_never_yields_lets_others_go() {
    lets_others_go(Event::Protect(1), Event::Unprotect(1));
}

#[test]
fn pods_that_never_end_let_others_go() {
    lets_others_go(Event::Cling(1), Event::LetGo(1));
}

/// Pods that end within their own grace period are waited for, however long that is.
#[test]
fn a_long_grace_period_is_no_blockage() {
    let mut world = configured(2);
    world.happen(Event::Grace(1));
    world.happen(Event::Bump);
    if let Err(unmet) = world.run(2 * ROUNDS) {
        panic!("{unmet:#?}");
    }
    assert_eq!(world.actions.get("tell-drain"), None, "nothing was blocked");
}

/// A node that runs pods is taken out of service with a slot only.
#[test]
fn nodes_that_lose_their_marks_stay_in_service() {
    let lose: [fn(usize) -> Event; 2] = [Event::LoseMarks, Event::DeleteNode];
    for lose in lose {
        let mut world = configured(3);
        (0..3).for_each(|number| world.happen(lose(number)));
        if let Err(unmet) = world.run(ROUNDS) {
            panic!("{unmet:#?}");
        }
    }
}

/// What the operator must not forget about a drain is on the Node.
#[test]
fn a_blocked_drain_outlives_the_operator() {
    let mut world = configured(3);
    world.happen(Event::Protect(1));
    world.happen(Event::Bump);
    let begun = world.now();
    for _ in 0..20 * ROUNDS {
        if [0, 2].iter().all(|number| world.unmet_of(*number).is_empty()) {
            break;
        }
        assert!(world.broken.is_empty(), "{:#?}", world.broken);
        world.crash();
        for _ in 0..12 {
            world.fair_round();
        }
    }
    let took = world.now().duration_since(begun);
    assert!(took < DRAIN_TIMEOUT + SignedDuration::from_mins(3), "{took}");
}
