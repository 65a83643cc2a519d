//! "Replace a Machine", cut at every single effect.

use crate::enumerated::{between, crashes, failures};
use crate::world::{Event, KeyEvent, MachineEvent, ROUNDS, World};

/// The key changes; the listed host gets it.
const STORY: [Event; 2] = [Event::Key(KeyEvent::Change), Event::Key(KeyEvent::Authorize(0))];

/// An entry beside a MachineSet, all nodes with pods on them, and a budget of one.
fn configured(replicas: usize) -> World {
    let mut world = World::fresh(1, 1, u8::MAX).with_machines(&[replicas]);
    world.run(ROUNDS).unwrap();
    for _ in 0..3 {
        world.fair_round();
    }
    world
}

fn one() -> World {
    configured(1)
}

fn three() -> World {
    configured(3)
}

#[test]
fn the_only_machine_of_its_machineset() {
    crashes(one, &STORY, &[]);
    failures(one, &STORY);
}

#[test]
fn three_machines_one_after_another_with_crashes() {
    crashes(three, &STORY, &[]);
}

#[test]
fn three_machines_one_after_another_with_failures() {
    failures(three, &STORY);
}

#[test]
fn a_machine_while_the_key_changes_again() {
    crashes(one, &STORY, &STORY);
}

#[test]
fn a_machine_while_a_new_operator_starts() {
    crashes(one, &STORY, &[Event::Bump]);
}

#[test]
fn machines_while_a_new_operator_starts() {
    between(three, &STORY, &[Event::Bump]);
}

#[test]
fn machines_while_the_key_changes_again() {
    between(three, &STORY, &STORY);
}

#[test]
fn machines_while_the_key_returns() {
    let returns = [KeyEvent::Return, KeyEvent::Authorize(0)].map(Event::Key);
    between(three, &STORY, &returns);
}

#[test]
fn machines_while_one_is_ignored() {
    between(three, &STORY, &[Event::Of(MachineEvent::Ignore(1))]);
}

#[test]
fn machines_while_people_ask_for_fewer() {
    between(three, &STORY, &[Event::Of(MachineEvent::Scale(0, 1))]);
}

#[test]
fn machines_while_a_node_is_deleted_by_hand() {
    between(three, &STORY, &[Event::DeleteNode(2)]);
}
