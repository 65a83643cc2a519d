//! Two hosts of one image, thus with one key, swap their addresses while one of them is worked on.

use crate::world::{EVERYBODY, Event, ROUNDS, World};

/// Swaps them after each number of rounds. Nothing is done on the wrong host, and once they have swapped back, the work ends.
#[track_caller]
fn swapped_during(work: Event, crash: bool) {
    for rounds in 0..45 {
        let mut world = World::fresh(3, 1, 7);
        world.are_of_one_image([1, 2]);
        world.run(ROUNDS).unwrap();
        world.happen(work);
        let act = |world: &mut World, count| {
            (0..count).for_each(|_| world.happen(Event::Round(EVERYBODY)));
            // A host is known to be closed by its key alone, which a cleaned one of the same image has, too. Nobody can tell
            // before our agent has run there.
            world.broken.retain(|promise| !promise.contains("below a root that is open"));
            let at = format!("{work:?}, crash {crash}, after {rounds} rounds");
            assert_eq!(world.broken, Vec::<String>::new(), "{at}");
        };
        act(&mut world, rounds);
        world.swap_hosts(1, 2);
        if crash {
            world.happen(Event::Crash);
        }
        act(&mut world, 60);
        world.swap_hosts(1, 2);
        let outcome = world.run(ROUNDS);
        assert!(outcome.is_ok(), "{work:?}, crash {crash}, {rounds}: {outcome:#?}");
    }
}

macro_rules! swapped_during {
    ($($name:ident: $work:expr;)*) => { $(
        #[test]
        fn $name() {
            swapped_during($work, false);
            swapped_during($work, true);
        }
    )* };
}

swapped_during! {
    an_upgrade: Event::Bump;
    a_change_of_services: Event::NewServices;
    a_restart: Event::AskRestart(1);
    a_removal: Event::Unlist(1);
}
