//! Crash safety and fault tolerance by enumeration: one story at a time, cut at every single effect,
//! also inside the agent's steps.

use crate::world::{Event, ROUNDS, World};

/// Two hosts that nobody configured: one needs a restart for containers and its name.
fn fresh() -> World {
    World::fresh(2, 1, 0b01)
}

/// The same two hosts as nodes, with pods on them.
fn configured() -> World {
    let mut world = fresh();
    world.run(ROUNDS).unwrap();
    for _ in 0..3 {
        world.fair_round();
    }
    world
}

/// The same of another release, whose successor has the same files but the agent.
fn configured_through_proxy() -> World {
    let mut world = configured();
    world.happen(Event::Bump);
    world.run(ROUNDS).unwrap();
    world
}

/// Runs the story once for every effect in it, with a fault at that effect.
///
/// Then `also` happens, and the world must reach what people ask for all the same.
#[track_caller]
fn cut(start: World, story: &[Event], fault: fn(u16) -> Event, also: &[Event]) {
    for effect in 0.. {
        let mut world = start.clone();
        for event in story {
            world.happen(*event);
        }
        world.happen(fault(effect));
        let mut rounds = 0;
        while world.has_faults_ahead() && rounds < ROUNDS {
            world.fair_round();
            rounds += 1;
        }
        if world.has_faults_ahead() {
            assert!(effect > 20, "only {effect} effects were cut");
            return;
        }
        for event in also {
            world.happen(*event);
        }
        if let Err(unmet) = world.run(ROUNDS) {
            panic!("cut at effect {effect}: {unmet:#?}");
        }
    }
}

/// After a crash at every effect, and after a failure of every effect.
#[track_caller]
fn cut_both_ways(start: fn() -> World, story: &[Event], also: &[Event]) {
    cut(start(), story, Event::CrashIn, also);
    cut(start(), story, Event::FailIn, also);
}

#[test]
fn join() {
    cut_both_ways(fresh, &[], &[]);
}

#[test]
fn join_while_a_new_operator_starts() {
    cut_both_ways(fresh, &[], &[Event::Bump]);
}

#[test]
fn join_that_is_called_off() {
    cut_both_ways(fresh, &[], &[Event::Unlist(0)]);
}

#[test]
fn upgrade_into_a_proxy() {
    cut_both_ways(configured, &[Event::Bump], &[]);
}

#[test]
fn upgrade_out_of_a_proxy() {
    cut_both_ways(configured_through_proxy, &[Event::Bump], &[]);
}

#[test]
fn upgrade_while_a_newer_operator_starts() {
    cut_both_ways(configured, &[Event::Bump], &[Event::Bump]);
}

#[test]
fn upgrade_while_the_host_restarts() {
    cut_both_ways(configured, &[Event::Bump], &[Event::HostRestarts(0), Event::HostRestarts(1)]);
}

#[test]
fn upgrade_while_a_person_deletes_the_node() {
    cut_both_ways(configured, &[Event::Bump], &[Event::DeleteNode(0), Event::DeleteNode(1)]);
}

#[test]
fn upgrade_that_becomes_a_removal() {
    cut_both_ways(configured, &[Event::Bump], &[Event::Unlist(0), Event::Unlist(1)]);
}

#[test]
fn removal() {
    cut_both_ways(configured_through_proxy, &[Event::Unlist(0)], &[]);
}

#[test]
fn removal_that_is_called_off() {
    cut_both_ways(configured_through_proxy, &[Event::Unlist(0)], &[Event::List(0)]);
}

#[test]
fn removal_while_a_new_operator_starts() {
    cut_both_ways(configured_through_proxy, &[Event::Unlist(0)], &[Event::Bump]);
}

#[test]
fn restart() {
    cut_both_ways(configured, &[Event::AskRestart(0)], &[]);
}

#[test]
fn restart_while_the_host_restarts_by_itself() {
    cut_both_ways(configured, &[Event::AskRestart(0)], &[Event::HostRestarts(0)]);
}

#[test]
fn repair() {
    cut_both_ways(configured, &[Event::Tamper(0)], &[Event::LoseLiveFile(1)]);
}

#[test]
fn node_deleted_by_a_person() {
    cut_both_ways(configured, &[Event::DeleteNode(0)], &[Event::Cordon(1)]);
}
