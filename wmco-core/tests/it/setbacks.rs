//! A step that fails each time is tried seldom, whatever succeeds before it: each kind of step, in whole worlds.
//!
//! Source: `docs/contract/lifecycle.md`, LIFE40.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use proptest::prelude::*;

use crate::guarantees::{Start, after, any_start, ordinary};
use crate::world::{Event, KeyEvent, ROUNDS, World};

/// Verbs of all actions.
const VERBS: [&str; 18] = [
    "probe",
    "probe-with-ours",
    "probe-staged",
    "record-root",
    "prove-key",
    "prove-key-removed",
    "upload",
    "patch-node",
    "seek-node",
    "list-pods",
    "evict",
    "tell-drain",
    "apply",
    "remove-leftovers",
    "delete-node",
    "prove-user-data",
    "delete-machine",
    "forget-host",
];

/// Most attempts in ten minutes, LIFE40.
const MOST: usize = 17;

const WINDOW: SignedDuration = SignedDuration::from_mins(10);

/// Most things that are asked of an instance meanwhile: an exchange of keys is some of them.
const MOST_REQUESTS: usize = 6;

/// Lets all steps with `verb` fail for twice the window; the largest number of attempts of one instance in one window, at
/// what it is asked for.
fn most_attempts(world: &mut World, verb: &'static str) -> usize {
    world.jam(verb);
    let end = world.now() + WINDOW * 2;
    for _ in 0..10 * ROUNDS {
        if world.now() >= end {
            break;
        }
        world.fair_round();
    }
    let in_window = |tried: &[jiff::Timestamp]| {
        let from = |(at, begin): (usize, &jiff::Timestamp)| {
            tried[at..].iter().filter(|it| **it < *begin + WINDOW).count()
        };
        tried.iter().enumerate().map(from).max()
    };
    let mut requests: BTreeMap<&str, usize> = BTreeMap::new();
    for (instance, _) in world.tried() {
        *requests.entry(instance).or_default() += 1;
    }
    assert!(requests.values().all(|count| *count <= MOST_REQUESTS), "{verb}: {requests:?}");
    world.tried().filter_map(|(_, tried)| in_window(tried)).max().unwrap_or_default()
}

/// Worlds in which there is something to do, by what it is.
fn busy_worlds() -> [(&'static str, Start, Vec<Event>); 7] {
    let start = Start { hosts: 2, budget: 1, features: 1, configured: true, sets: 0 };
    let fresh = Start { configured: false, ..start };
    let made = Start { sets: 1, ..start };
    let key = [KeyEvent::Change, KeyEvent::Authorize(0), KeyEvent::Authorize(1)].map(Event::Key);
    [
        ("hosts are new", fresh, vec![]),
        ("an upgrade", start, vec![Event::Bump]),
        ("an upgrade that a budget blocks", start, vec![Event::Protect(0), Event::Bump]),
        (
            "an upgrade that was staged",
            start,
            vec![Event::Bump, Event::CrashIn(12), Event::Round(0)],
        ),
        ("an entry is removed", start, vec![Event::Unlist(0)]),
        ("the key is exchanged", start, vec![Event::Key(KeyEvent::AddNext)]),
        ("a machine has to be made anew", made, key.to_vec()),
    ]
}

/// Each verb fails each time, in each of these worlds.
#[test]
fn attempts_at_each_kind_of_step_that_fails() {
    let mut table = BTreeMap::new();
    for (name, start, events) in busy_worlds() {
        for verb in VERBS {
            let mut world = start.world();
            for event in &events {
                world.happen(*event);
            }
            let attempts = most_attempts(&mut world, verb);
            let most: &mut (usize, &str) = table.entry(verb).or_default();
            *most = (*most).max((attempts, name));
        }
    }
    let is_wrong = |(attempts, _): &(usize, &str)| !(6..=MOST).contains(attempts);
    let wrong: Vec<_> = table.iter().filter(|(_, most)| is_wrong(most)).collect();
    assert!(wrong.is_empty(), "too often, or in no world: {wrong:#?}");
}

/// What takes a few seconds, or what `PROPTEST_CASES` asks for.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(24)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    /// The same after whatever happened before.
    #[test]
    fn attempts_at_what_keeps_failing_are_few(
        start in any_start(),
        events in prop::collection::vec(ordinary(), 0..20),
        verb in prop::sample::select(VERBS.as_slice()),
    ) {
        let attempts = most_attempts(&mut after(start, &events), verb);
        prop_assert!(attempts <= MOST, "{verb} was tried {attempts} times");
    }
}
