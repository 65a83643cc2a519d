//! Crash safety and fault tolerance by enumeration: one story at a time, cut at every single effect,
//! also inside the agent's steps.

use crate::world::{Event, ROUNDS, World};

/// A host that nobody configured; it needs a restart for containers and for its name.
fn fresh() -> World {
    World::fresh(1, 1, 0)
}

/// The same as a node, with pods on it.
fn configured() -> World {
    let mut world = fresh();
    world.run(ROUNDS).unwrap();
    for _ in 0..3 {
        world.fair_round();
    }
    world
}

/// The same of a release that goes through a proxy, and whose successor only has another agent.
fn configured_through_proxy() -> World {
    let mut world = configured();
    world.happen(Event::Bump);
    world.run(ROUNDS).unwrap();
    world
}

/// The same of the release after that, which only trusts roots.
fn configured_with_roots() -> World {
    let mut world = configured_through_proxy();
    world.happen(Event::Bump);
    world.run(ROUNDS).unwrap();
    world
}

/// The cuts of a story that one test looks at: every `of`th, beginning with number `first`.
///
/// A long story is divided among several tests, so that none takes more than a minute.
#[derive(Clone, Copy)]
pub(crate) struct Share {
    pub(crate) first: usize,
    pub(crate) of: usize,
}

impl Share {
    const ALL: Self = Self { first: 0, of: 1 };

    fn has(self, number: usize) -> bool {
        number % self.of == self.first
    }
}

/// Tells the story again for every effect in it, with a fault at that effect.
///
/// Then `also` happens, and the world must reach what people ask for all the same.
#[track_caller]
fn cut(mut world: World, story: &[Event], fault: fn(u16) -> Event, also: &[Event], share: Share) {
    let mut cuts = 0;
    for event in story {
        world.happen(*event);
    }
    for _ in 0..ROUNDS {
        for effect in 0.. {
            let mut cut = world.clone();
            cut.happen(fault(effect));
            cut.fair_round();
            if cut.has_faults_ahead() {
                break;
            }
            cuts += 1;
            if !share.has(cuts) {
                continue;
            }
            for event in also {
                cut.happen(*event);
            }
            if let Err(unmet) = cut.run(ROUNDS) {
                panic!("cut {cuts}: {unmet:#?}");
            }
        }
        world.fair_round();
    }
    assert!(cuts > 20 && world.unmet().is_empty(), "{cuts} cuts, {:?}", world.unmet());
}

/// Tells the story again for every round in it; before that round `meanwhile` happens, while the
/// operator remembers all.
#[track_caller]
pub(crate) fn between(start: fn() -> World, story: &[Event], meanwhile: &[Event]) {
    let mut world = start();
    for event in story {
        world.happen(*event);
    }
    for round in 0..ROUNDS / 2 {
        let mut other = world.clone();
        for event in meanwhile {
            other.happen(*event);
        }
        if let Err(unmet) = other.run(ROUNDS) {
            panic!("before round {round}: {unmet:#?}");
        }
        world.fair_round();
    }
    assert!(world.unmet().is_empty(), "{:?}", world.unmet());
}

/// After a crash at every effect.
#[track_caller]
pub(crate) fn crashes(start: fn() -> World, story: &[Event], also: &[Event]) {
    crashes_of(Share::ALL, start, story, also);
}

/// After a crash at every effect of a share.
#[track_caller]
pub(crate) fn crashes_of(share: Share, start: fn() -> World, story: &[Event], also: &[Event]) {
    cut(start(), story, Event::CrashIn, also, share);
}

/// After a failure of every effect.
#[track_caller]
pub(crate) fn failures(start: fn() -> World, story: &[Event]) {
    cut(start(), story, Event::FailIn, &[], Share::ALL);
}

#[test]
fn join() {
    crashes(fresh, &[], &[]);
    failures(fresh, &[]);
}

#[test]
fn join_while_a_new_operator_starts() {
    crashes(fresh, &[], &[Event::Bump]);
}

#[test]
fn join_that_is_called_off() {
    crashes(fresh, &[], &[Event::Unlist(0)]);
}

#[test]
fn upgrade_into_a_proxy() {
    crashes(configured, &[Event::Bump], &[]);
    failures(configured, &[Event::Bump]);
}

#[test]
fn upgrade_out_of_a_proxy() {
    crashes(configured_through_proxy, &[Event::Bump], &[]);
    failures(configured_through_proxy, &[Event::Bump]);
}

/// The slot does not wait for pods that tolerate the cordon, and each is asked to leave once.
#[test]
fn upgrade_of_a_node_whose_pods_come_back() {
    let story = [Event::Tolerate(0), Event::Bump];
    crashes(configured, &story, &[]);
    failures(configured, &story);
}

#[test]
fn other_services() {
    crashes(configured, &[Event::NewServices], &[]);
    failures(configured, &[Event::NewServices]);
}

#[test]
fn other_services_that_change_again() {
    crashes(configured, &[Event::NewServices], &[Event::NewServices]);
}

#[test]
fn other_services_while_a_new_operator_starts() {
    crashes(configured, &[Event::NewServices], &[Event::Bump]);
}

#[test]
fn other_services_while_the_host_restarts() {
    crashes(configured, &[Event::NewServices], &[Event::HostRestarts(0)]);
}

#[test]
fn upgrade_while_a_newer_operator_starts() {
    crashes(configured, &[Event::Bump], &[Event::Bump]);
}

#[test]
fn upgrade_while_the_host_restarts() {
    crashes(configured, &[Event::Bump], &[Event::HostRestarts(0)]);
}

#[test]
fn upgrade_while_a_person_deletes_the_node() {
    crashes(configured, &[Event::Bump], &[Event::DeleteNode(0)]);
}

#[test]
fn upgrade_that_becomes_a_removal() {
    crashes(configured, &[Event::Bump], &[Event::Unlist(0)]);
}

#[test]
fn removal() {
    crashes(configured_through_proxy, &[Event::Unlist(0)], &[]);
    failures(configured_through_proxy, &[Event::Unlist(0)]);
}

#[test]
fn removal_of_a_host_that_trusts_roots() {
    crashes(configured_with_roots, &[Event::Unlist(0)], &[]);
    failures(configured_with_roots, &[Event::Unlist(0)]);
}

#[test]
fn removal_that_is_called_off() {
    crashes(configured_through_proxy, &[Event::Unlist(0)], &[Event::List(0)]);
}

#[test]
fn removal_while_a_new_operator_starts() {
    crashes(configured_through_proxy, &[Event::Unlist(0)], &[Event::Bump]);
}

#[test]
fn restart() {
    crashes(configured, &[Event::AskRestart(0)], &[]);
}

#[test]
fn restart_while_the_host_restarts_by_itself() {
    crashes(configured, &[Event::AskRestart(0)], &[Event::HostRestarts(0)]);
}

#[test]
fn repair() {
    crashes(configured, &[Event::Tamper(0)], &[Event::LoseLiveFile(0)]);
}

#[test]
fn closing_what_others_may_write_to() {
    crashes(configured, &[Event::OpenUp(0)], &[Event::OpenUp(0)]);
    failures(configured, &[Event::OpenUp(0)]);
}

/// A host on which somebody made our folder before us, with an agent in it.
#[test]
fn join_of_a_host_with_a_planted_agent() {
    crashes(fresh, &[Event::Plant(0)], &[]);
    crashes(fresh, &[Event::Plant(0)], &[Event::Plant(0)]);
    failures(fresh, &[Event::Plant(0)]);
}

/// As soon as the folder of a host that leaves is gone, anybody may make it again.
#[test]
fn removal_and_return_of_a_host_with_a_planted_agent() {
    crashes(configured_through_proxy, &[Event::Unlist(0)], &[Event::Plant(0), Event::List(0)]);
}

#[test]
fn upgrade_while_the_records_of_hosts_are_lost() {
    crashes(configured, &[Event::Bump], &[Event::LoseRecords, Event::Plant(0)]);
}

#[test]
fn node_deleted_by_a_person() {
    crashes(configured, &[Event::DeleteNode(0)], &[Event::Cordon(0)]);
}

/// Before every round of an upgrade, which is the longest story.
mod meanwhile {
    use super::*;
    use crate::world::EVERYBODY;

    #[track_caller]
    fn upgrade(meanwhile: &[Event]) {
        between(configured, &[Event::Bump], meanwhile);
    }

    #[test]
    fn person_uncordons_and_pods_come() {
        upgrade(&[Event::Uncordon(0), Event::Others(EVERYBODY), Event::Others(EVERYBODY)]);
    }

    #[test]
    fn person_cordons() {
        upgrade(&[Event::Cordon(0)]);
    }

    #[test]
    fn person_deletes_the_node() {
        upgrade(&[Event::DeleteNode(0)]);
    }

    #[test]
    fn entry_goes() {
        upgrade(&[Event::Unlist(0)]);
    }

    #[test]
    fn entry_breaks_for_a_while() {
        upgrade(&[Event::BreakEntry(0), Event::Round(EVERYBODY), Event::FixEntry(0)]);
    }

    #[test]
    fn kubelet_ends() {
        upgrade(&[Event::KubeletEnds(0)]);
    }

    #[test]
    fn host_restarts() {
        upgrade(&[Event::HostRestarts(0)]);
    }

    #[test]
    fn host_is_gone_for_a_while() {
        upgrade(&[Event::Vanish(0), Event::Round(EVERYBODY), Event::Return(0)]);
    }

    #[test]
    fn restart_is_asked_for() {
        upgrade(&[Event::AskRestart(0)]);
    }

    #[test]
    fn file_changes() {
        upgrade(&[Event::Tamper(0)]);
    }
}
