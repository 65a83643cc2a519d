//! Nodes that somebody deletes while their kubelets run.

use jiff::SignedDuration;

use crate::world::{Event, ROUNDS, World};

fn configured() -> World {
    let mut world = World::fresh(1, 1, u8::MAX);
    world.run(ROUNDS).unwrap();
    world
}

/// How long it takes until all is well again.
#[track_caller]
fn takes(mut world: World) -> SignedDuration {
    world.happen(Event::DeleteNode(0));
    let begun = world.now();
    for _ in 0..ROUNDS {
        assert!(world.broken.is_empty(), "{:#?}", world.broken);
        if world.unmet().is_empty() {
            return world.now().duration_since(begun);
        }
        world.fair_round();
    }
    panic!("{:#?}", world.unmet());
}

const SECONDS: SignedDuration = SignedDuration::from_secs(30);

#[test]
fn a_deleted_node_is_back_in_seconds() {
    let took = takes(configured());
    assert!(took < SECONDS, "{took}");
}

#[test]
fn a_node_that_was_deleted_while_no_operator_ran_is_too() {
    let mut world = configured();
    world.crash();
    let took = takes(world);
    assert!(took < SECONDS, "{took}");
}

/// A Node that nobody saw before it was deleted takes as long as a Node that never came.
#[test]
fn a_node_that_is_deleted_during_the_first_configuration_disturbs_nothing() {
    for rounds in 0..30 {
        let mut world = World::fresh(1, 1, u8::MAX);
        for _ in 0..rounds {
            world.fair_round();
        }
        let took = takes(world);
        assert!(took < SignedDuration::from_mins(11), "after {rounds} rounds: {took}");
    }
}

/// Something deletes the Node whenever it appears: the kubelet is not started again and again.
#[test]
fn a_node_that_is_deleted_again_and_again_costs_few_starts() {
    let mut world = configured();
    let (begun, starts) = (world.now(), world.kubelet_starts());
    while world.now().duration_since(begun) < SignedDuration::from_hours(2) {
        world.happen(Event::DeleteNode(0));
        world.fair_round();
    }
    let starts = world.kubelet_starts() - starts;
    assert!((5..20).contains(&starts), "{starts} starts in two hours");
}
