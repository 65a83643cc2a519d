//! Two hosts of one image, thus with one key, swap their addresses while one of them is worked on.

use crate::world::{EVERYBODY, Event, ROUNDS, World};

fn rounds(world: &mut World, count: usize) {
    for _ in 0..count {
        world.happen(Event::Round(EVERYBODY));
    }
}

/// Swaps them after each number of rounds, with or without a crash of the operator, as `meanwhile` happens. Nothing is done on
/// the wrong host, and once they have swapped back, the work ends.
#[track_caller]
fn swapped_during(work: &[Event], meanwhile: &[Event]) {
    for (moment, crash) in (0..45).flat_map(|moment| [(moment, false), (moment, true)]) {
        let mut world = World::fresh(3, 1, 7);
        world.are_of_one_image([1, 2]);
        world.run(ROUNDS).unwrap();
        let act = |world: &mut World, events: &[Event], count| {
            for event in events {
                world.happen(*event);
            }
            rounds(world, count);
            if work.iter().any(|event| matches!(event, Event::Unlist(_))) {
                // A host is known to be closed by its key alone, which a cleaned one of the same image has, too. Nobody can
                // tell before our agent has run there.
                world.broken.retain(|promise| !promise.contains("below a root that is open"));
            }
            assert_eq!(world.broken, Vec::<String>::new(), "crash {crash}, after {moment} rounds");
        };
        act(&mut world, work, moment);
        world.swap_hosts(1, 2);
        if crash {
            world.happen(Event::Crash);
        }
        act(&mut world, meanwhile, 60);
        world.swap_hosts(1, 2);
        let outcome = world.run(ROUNDS);
        assert!(outcome.is_ok(), "crash {crash}, after {moment} rounds: {outcome:#?}");
    }
}

macro_rules! swapped_during {
    ($($name:ident: $work:expr, $meanwhile:expr;)*) => { $(
        #[test]
        fn $name() {
            swapped_during(&$work, &$meanwhile);
        }
    )* };
}

swapped_during! {
    an_upgrade: [Event::Bump], [];
    an_upgrade_while_the_first_one_leaves: [Event::Bump], [Event::Unlist(1)];
    an_upgrade_while_the_other_one_leaves: [Event::Bump], [Event::Unlist(2)];
    an_upgrade_with_an_outage: [Event::Bump], [Event::TimePasses];
    a_restart: [Event::AskRestart(1)], [];
    a_removal: [Event::Unlist(1)], [];
    a_removal_beside_an_upgrade: [Event::Unlist(1), Event::Bump], [];
}

/// What the finding about such a host tells people. A kubelet may register again before anybody has looked at the hosts.
#[test]
fn hosts_that_stay_swapped_become_nodes_again_when_theirs_are_deleted() {
    for moment in 0..45 {
        let mut world = World::fresh(3, 1, 7);
        world.are_of_one_image([1, 2]);
        world.run(ROUNDS).unwrap();
        world.happen(Event::Bump);
        rounds(&mut world, moment);
        world.swap_hosts(1, 2);
        rounds(&mut world, 20);
        let outcomes = [&[1][..], &[1, 2], &[1, 2]].map(|nodes| {
            for node in nodes {
                world.happen(Event::DeleteNode(*node));
            }
            world.run(ROUNDS)
        });
        assert!(outcomes[2].is_ok(), "after {moment} rounds: {outcomes:#?}");
        assert_eq!(world.broken, Vec::<String>::new(), "after {moment} rounds");
    }
}

/// People delete one Node, and give both hosts their addresses back.
#[test]
fn a_host_whose_node_is_deleted_while_it_is_swapped_becomes_a_node_again() {
    for (wait, crash) in
        [0, 1, 2, 3, 5, 20, 60].into_iter().flat_map(|it| [(it, false), (it, true)])
    {
        let mut world = World::fresh(3, 1, 7);
        world.are_of_one_image([1, 2]);
        world.run(ROUNDS).unwrap();
        world.happen(Event::Bump);
        world.swap_hosts(1, 2);
        rounds(&mut world, 20);
        world.happen(Event::DeleteNode(1));
        rounds(&mut world, wait);
        world.swap_hosts(1, 2);
        if crash {
            world.happen(Event::Crash);
        }
        let outcome = world.run(ROUNDS);
        assert!(outcome.is_ok(), "crash {crash}, after {wait} rounds: {outcome:#?}");
    }
}

/// It is no node yet.
#[test]
fn a_new_host_whose_address_another_one_had_for_a_while_becomes_a_node() {
    for (moment, crash) in (0..30).flat_map(|moment| [(moment, false), (moment, true)]) {
        let mut world = World::fresh(3, 1, 7);
        world.are_of_one_image([1, 2]);
        world.happen(Event::Unlist(1));
        world.run(ROUNDS).unwrap();
        world.happen(Event::List(1));
        rounds(&mut world, moment);
        world.swap_hosts(1, 2);
        rounds(&mut world, 30);
        world.swap_hosts(1, 2);
        if crash {
            world.happen(Event::Crash);
        }
        let outcome = world.run(ROUNDS);
        assert!(outcome.is_ok(), "crash {crash}, after {moment} rounds: {outcome:#?}");
    }
}
