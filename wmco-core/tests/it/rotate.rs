//! "Exchange the key", cut at every single effect.

use crate::enumerated::{Share, between, crashes, crashes_of, failures};
use crate::world::{Event, KeyEvent, MachineEvent, ROUNDS, World};

/// The next key is put beside the current one. People use it when the operator reports that they may.
const STORY: [Event; 1] = [Event::Key(KeyEvent::AddNext)];

/// Two entries beside a MachineSet, all nodes, and a budget of one.
fn configured() -> World {
    let mut world = World::fresh(2, 1, u8::MAX).with_machines(&[2]);
    world.run(ROUNDS).unwrap();
    for _ in 0..3 {
        world.fair_round();
    }
    world
}

#[test]
fn nothing_is_lost_wherever_it_is_cut() {
    crashes(configured, &STORY, &[]);
    failures(configured, &STORY);
}

/// The longest story of all, so that several tests share its cuts.
mod while_a_new_operator_starts {
    use super::*;

    #[test]
    fn between_rounds() {
        between(configured, &STORY, &[Event::Bump]);
    }

    /// Crashes at every sixth effect, from number `first` on.
    fn crashes_from(first: usize) {
        crashes_of(Share { first, of: 6 }, configured, &STORY, &[Event::Bump]);
    }

    #[test]
    fn crashes_at_every_sixth_effect_from_0() {
        crashes_from(0);
    }

    #[test]
    fn crashes_at_every_sixth_effect_from_1() {
        crashes_from(1);
    }

    #[test]
    fn crashes_at_every_sixth_effect_from_2() {
        crashes_from(2);
    }

    #[test]
    fn crashes_at_every_sixth_effect_from_3() {
        crashes_from(3);
    }

    #[test]
    fn crashes_at_every_sixth_effect_from_4() {
        crashes_from(4);
    }

    #[test]
    fn crashes_at_every_sixth_effect_from_5() {
        crashes_from(5);
    }
}

#[test]
fn while_the_key_changes_at_once() {
    let changes = [KeyEvent::Change, KeyEvent::Authorize(0), KeyEvent::Authorize(1)];
    between(configured, &STORY, &changes.map(Event::Key));
}

/// It can be taken back as long as no host has lost the current key.
#[test]
fn until_it_is_taken_back() {
    between(configured, &STORY, &[Event::Key(KeyEvent::DropNext)]);
}

#[test]
fn while_a_machine_is_added_and_a_host_is_listed() {
    between(configured, &STORY, &[Event::Of(MachineEvent::Scale(0, 3))]);
    // A person who lists a host puts the key on it that is in use by then.
    let authorize = Event::Key(KeyEvent::Authorize(1));
    let relisted = [Event::Unlist(1), Event::Wait, Event::List(1), authorize];
    between(configured, &STORY, &relisted);
}

#[test]
fn while_a_host_is_away_and_comes_back() {
    between(configured, &STORY, &[Event::Vanish(0), Event::Wait, Event::Return(0)]);
}

/// It can only be replaced.
mod while_a_machine_is_away_for_good {
    use super::*;

    const STORY: [Event; 2] = [Event::Vanish(2), super::STORY[0]];

    #[test]
    fn with_crashes() {
        crashes(configured, &STORY, &[]);
    }

    #[test]
    fn with_failures() {
        failures(configured, &STORY);
    }
}

#[test]
fn while_records_are_lost() {
    between(configured, &STORY, &[Event::LoseRecords, Event::RestoreList]);
}
