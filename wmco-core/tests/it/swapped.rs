//! Two hosts of one image, thus with one key, swap their addresses while one of them is worked on.

use crate::world::{EVERYBODY, Event, ROUNDS, World};

/// Swaps them after each number of rounds, with or without a crash of the operator, as `meanwhile` happens. Nothing is done on
/// the wrong host, and once they have swapped back, the work ends.
#[track_caller]
fn swapped_during(work: &[Event], meanwhile: &[Event]) {
    for (rounds, crash) in (0..45).flat_map(|rounds| [(rounds, false), (rounds, true)]) {
        let mut world = World::fresh(3, 1, 7);
        world.are_of_one_image([1, 2]);
        world.run(ROUNDS).unwrap();
        let act = |world: &mut World, events: &[Event], rounds| {
            for event in events {
                world.happen(*event);
            }
            (0..rounds).for_each(|_| world.happen(Event::Round(EVERYBODY)));
            if work.iter().any(|event| matches!(event, Event::Unlist(_))) {
                // A host is known to be closed by its key alone, which a cleaned one of the same image has, too. Nobody can
                // tell before our agent has run there.
                world.broken.retain(|promise| !promise.contains("below a root that is open"));
            }
            assert_eq!(world.broken, Vec::<String>::new(), "crash {crash}, after {rounds} rounds");
        };
        act(&mut world, work, rounds);
        world.swap_hosts(1, 2);
        if crash {
            world.happen(Event::Crash);
        }
        act(&mut world, meanwhile, 60);
        world.swap_hosts(1, 2);
        let outcome = world.run(ROUNDS);
        assert!(outcome.is_ok(), "crash {crash}, after {rounds} rounds: {outcome:#?}");
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
    for rounds in 0..45 {
        let mut world = World::fresh(3, 1, 7);
        world.are_of_one_image([1, 2]);
        world.run(ROUNDS).unwrap();
        world.happen(Event::Bump);
        (0..rounds).for_each(|_| world.happen(Event::Round(EVERYBODY)));
        world.swap_hosts(1, 2);
        (0..20).for_each(|_| world.happen(Event::Round(EVERYBODY)));
        let outcomes = [&[1][..], &[1, 2], &[1, 2]].map(|nodes| {
            for node in nodes {
                world.happen(Event::DeleteNode(*node));
            }
            world.run(ROUNDS)
        });
        assert!(outcomes[2].is_ok(), "after {rounds} rounds: {outcomes:#?}");
        assert_eq!(world.broken, Vec::<String>::new(), "after {rounds} rounds");
    }
}
