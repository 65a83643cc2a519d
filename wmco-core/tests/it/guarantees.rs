//! The five guarantees of the planners, each as a property of whole worlds.
//!
//! Every property states the goal itself ([`World::unmet`]) and looks at the promises that were
//! broken on the way ([`World::broken`]); none asks a planner whether it is content.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use crate::world::{EVERYBODY, Event, KeyEvent, MachineEvent, ROUNDS, World};

/// How a world begins.
#[derive(Clone, Copy, Debug)]
struct Start {
    hosts: usize,
    budget: usize,
    /// Which hosts have containers switched on, one bit each.
    features: u8,
    /// Whether the hosts are nodes already.
    configured: bool,
    /// Which MachineSets there are, of [`SETS`].
    sets: usize,
}

/// How many Machines the MachineSets of a world have.
const SETS: [&[usize]; 4] = [&[], &[1], &[2], &[2, 1]];

impl Start {
    fn world(self) -> World {
        if self.configured {
            return CONFIGURED[&(self.hosts, self.budget, self.sets)].clone();
        }
        let world = World::fresh(self.hosts, self.budget, self.features);
        if self.sets == 0 { world } else { world.with_machines(SETS[self.sets]) }
    }
}

/// Worlds at the goal, by hosts, budget and MachineSets.
static CONFIGURED: LazyLock<BTreeMap<(usize, usize, usize), World>> = LazyLock::new(|| {
    let sizes = (1..=3).flat_map(|hosts| (1..=2).map(move |budget| (hosts, budget)));
    let sizes = sizes.flat_map(|(hosts, budget)| (0..SETS.len()).map(move |s| (hosts, budget, s)));
    let world = |(hosts, budget, sets)| {
        let start = Start { hosts, budget, features: u8::MAX, configured: false, sets };
        let mut world = start.world();
        world.run(ROUNDS).unwrap();
        ((hosts, budget, sets), world)
    };
    sizes.map(world).collect()
});

fn any_start() -> impl Strategy<Value = Start> {
    // Half of the worlds have Machines, and those have fewer entries.
    let sets = prop_oneof![3 => Just(0), 1 => Just(1), 1 => Just(2), 1 => Just(3)];
    (1..=3_usize, 1..=2_usize, any::<u8>(), any::<bool>(), sets).prop_map(
        |(hosts, budget, features, configured, sets)| {
            let hosts = if sets == 0 { hosts } else { hosts.min(2) };
            Start { hosts, budget, features, configured, sets }
        },
    )
}

fn round() -> impl Strategy<Value = Event> {
    any::<u8>().prop_map(Event::Round)
}

/// Time, everybody's own business, and what people ask for.
fn ordinary() -> impl Strategy<Value = Event> {
    let at = 0..6_usize;
    prop_oneof![
        20 => round(),
        4 => any::<u8>().prop_map(Event::Others),
        2 => Just(Event::CacheCatchesUp),
        1 => Just(Event::TimePasses),
        1 => at.clone().prop_map(Event::Unlist),
        1 => at.clone().prop_map(Event::List),
        1 => Just(Event::Bump),
        1 => Just(Event::NewServices),
        1 => at.clone().prop_map(Event::AskRestart),
        1 => at.clone().prop_map(Event::Grace),
        1 => Just(Event::Wait),
        2 => Just(Event::Of(MachineEvent::CacheCatchesUp)),
        1 => (at.clone(), 0..4_usize).prop_map(|(at, n)| Event::Of(MachineEvent::Scale(at, n))),
        1 => at.clone().prop_map(|at| Event::Of(MachineEvent::Delete(at))),
        1 => at.clone().prop_map(|at| Event::Of(MachineEvent::Ignore(at))),
        1 => at.clone().prop_map(|at| Event::Of(MachineEvent::Heed(at))),
        1 => Just(Event::Key(KeyEvent::Change)),
        1 => at.prop_map(|at| Event::Key(KeyEvent::Authorize(at))),
        2 => Just(Event::Key(KeyEvent::AddNext)),
        1 => Just(Event::Key(KeyEvent::UseNext)),
    ]
}

/// What people do behind our back.
fn meddling() -> impl Strategy<Value = Event> {
    let at = 0..6_usize;
    prop_oneof![
        at.clone().prop_map(Event::Cordon),
        at.clone().prop_map(Event::Uncordon),
        at.clone().prop_map(Event::DeleteNode),
        at.clone().prop_map(Event::LeaveLabel),
        at.clone().prop_map(Event::BreakEntry),
        at.clone().prop_map(Event::FixEntry),
        at.clone().prop_map(Event::Tamper),
        at.clone().prop_map(Event::OpenUp),
        at.clone().prop_map(Event::Plant),
        Just(Event::LoseRecords),
        Just(Event::ListStrangers),
        at.clone().prop_map(Event::LoseLiveFile),
        at.clone().prop_map(Event::Protect),
        at.clone().prop_map(Event::Unprotect),
        at.clone().prop_map(Event::Cling),
        at.clone().prop_map(Event::LetGo),
        at.clone().prop_map(Event::LoseMarks),
        Just(Event::Key(KeyEvent::Return)),
        Just(Event::Key(KeyEvent::DropNext)),
        (at, any::<bool>()).prop_map(|(at, e)| Event::Of(MachineEvent::OtherHash(at, e))),
    ]
}

/// Nodes that lie about who they are, and people who change who they are.
fn lies() -> impl Strategy<Value = Event> {
    let at = 0..6_usize;
    let two = || (0..6_usize, 0..6_usize);
    prop_oneof![
        2 => two().prop_map(|(at, other)| Event::ForgeAddress(at, other)),
        2 => two().prop_map(|(at, other)| Event::ForgeOrigin(at, other)),
        1 => two().prop_map(|(at, other)| Event::SwapAddresses(at, other)),
        1 => at.clone().prop_map(Event::LoseAddresses),
        1 => at.clone().prop_map(Event::LosePin),
        1 => at.clone().prop_map(Event::RenameEntry),
        1 => at.clone().prop_map(Event::OtherCard),
        1 => at.clone().prop_map(Event::Move),
        1 => two().prop_map(|(at, other)| Event::Of(MachineEvent::Move(at, other))),
        1 => at.clone().prop_map(|at| Event::Of(MachineEvent::ReferInVain(at))),
        1 => at.clone().prop_map(|at| Event::Of(MachineEvent::ReferToNone(at))),
        1 => two().prop_map(|(at, other)| Event::Of(MachineEvent::ReferTo(at, other))),
        1 => at.clone().prop_map(|at| Event::Of(MachineEvent::TellTruth(at))),
        1 => at.prop_map(|at| Event::Of(MachineEvent::ClaimListed(at))),
        1 => two().prop_map(|(at, other)| Event::Of(MachineEvent::ClaimMachine(at, other))),
        1 => Just(Event::LoseList),
        1 => Just(Event::RestoreList),
    ]
}

fn crash() -> impl Strategy<Value = Event> {
    prop_oneof![Just(Event::Crash), (0..40_u16).prop_map(Event::CrashIn)]
}

fn fault() -> impl Strategy<Value = Event> {
    let at = 0..6_usize;
    prop_oneof![
        3 => (0..40_u16).prop_map(Event::FailIn),
        1 => at.clone().prop_map(Event::Vanish),
        1 => at.clone().prop_map(Event::Return),
        1 => at.clone().prop_map(Event::HostRestarts),
        1 => at.prop_map(Event::KubeletEnds),
    ]
}

fn after(start: Start, events: &[Event]) -> World {
    let mut world = start.world();
    for event in events {
        world.happen(*event);
    }
    world.calm_down();
    world
}

fn settles(world: &mut World) -> TestCaseResult {
    // Long grace periods and pauses after drains that were given up take their time.
    let outcome = world.run(3 * ROUNDS);
    prop_assert!(outcome.is_ok(), "{outcome:#?}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    /// 1. Whatever was asked for and done, plan and apply reach the goal in bounded rounds.
    #[test]
    fn convergence(
        start in any_start(),
        events in vec(prop_oneof![6 => ordinary(), 2 => meddling(), 1 => lies()], 0..30),
    ) {
        settles(&mut after(start, &events))?;
    }

    /// 2. At the goal one look costs one probe per instance, and nothing else is done.
    #[test]
    fn idempotence(
        start in any_start(),
        events in vec(prop_oneof![3 => ordinary(), 1 => meddling()], 0..20),
    ) {
        let mut world = after(start, &events);
        settles(&mut world)?;
        // What is left of a host that was given up may still change, such as its key, and pods that
        // were asked to leave make room for others.
        for _ in 0..8 {
            world.fair_round();
        }
        let wanted = world.wanted_count();
        world.crash();
        world.actions.clear();
        let before = world.visible();
        for _ in 0..5 {
            world.happen(Event::Round(EVERYBODY));
        }
        let probes: Vec<_> = world.actions.iter().map(|(verb, count)| (*verb, *count)).collect();
        let expected: Vec<_> = [("probe", wanted)].into_iter().filter(|(_, n)| *n > 0).collect();
        prop_assert_eq!(probes, expected);
        prop_assert_eq!(world.visible(), before);
    }

    /// 3. The operator may die anywhere, any number of times.
    #[test]
    fn crash_safety(
        start in any_start(),
        events in vec(prop_oneof![4 => ordinary(), 2 => crash()], 0..30),
    ) {
        settles(&mut after(start, &events))?;
    }

    /// 4. Actions may fail, hosts may vanish, restart and come back.
    #[test]
    fn fault_tolerance(
        start in any_start(),
        events in vec(prop_oneof![4 => ordinary(), 2 => fault()], 0..30),
    ) {
        settles(&mut after(start, &events))?;
    }

    /// 5. Nobody's pods, cordons, nodes or restarts suffer, whatever happens at any step.
    #[test]
    fn safety(
        start in any_start(),
        events in vec(
            prop_oneof![
                5 => ordinary(), 2 => meddling(), 2 => lies(), 1 => crash(), 2 => fault()
            ],
            0..40,
        ),
    ) {
        let mut world = start.world();
        for event in &events {
            world.happen(*event);
            prop_assert!(world.broken.is_empty(), "{:#?}", world.broken);
        }
        world.calm_down();
        settles(&mut world)?;
    }
}

/// 1,000, or what `PROPTEST_CASES` asks for.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000)
}

/// A broken promise that a run of [`safety`] found: the host was looked at while no Node stood for
/// it, and its Node came back, with pods, before the work began.
#[test]
fn a_node_that_comes_back_between_look_and_work() {
    let start = Start { hosts: 2, budget: 1, features: 0, configured: true, sets: 0 };
    let events = [
        Event::KubeletEnds(1),
        Event::Tamper(1),
        Event::Round(66),
        Event::DeleteNode(1),
        Event::Round(48),
    ];
    let outcome = after(start, &events).run(ROUNDS);
    assert!(outcome.is_ok(), "{outcome:#?}");
}

/// A broken promise that a run of [`convergence`] found while closing a file counted as harmless: what
/// is in it changed after the look, so that closing it meant placing other content under pods.
#[test]
fn a_file_that_changes_between_look_and_work() {
    let start = Start { hosts: 2, budget: 1, features: 0, configured: true, sets: 0 };
    let events =
        [Event::OpenUp(0), Event::TimePasses, Event::Round(0), Event::Tamper(2), Event::Round(0)];
    let outcome = after(start, &events).run(ROUNDS);
    assert!(outcome.is_ok(), "{outcome:#?}");
}

/// A broken promise that a run of [`safety`] found: a host that was listed under another name, and then no
/// more, had two records, and was looked at by the second after it had been cleaned by the first.
#[test]
fn a_host_that_is_renamed_just_before_it_leaves() {
    let start = Start { hosts: 1, budget: 1, features: 0, configured: true, sets: 0 };
    let events = [Event::RenameEntry(0), Event::Round(0), Event::Unlist(0)];
    let outcome = after(start, &events).run(ROUNDS);
    assert!(outcome.is_ok(), "{outcome:#?}");
}

/// A broken promise that a run of [`convergence`] found: the Node of one host showed the address of
/// another that had no Node yet, and was told a version by the state of that other host.
#[test]
fn a_node_with_a_stale_address_is_not_marked_for_another_host() {
    let start = Start { hosts: 2, budget: 1, features: 82, configured: false, sets: 0 };
    let mut events = vec![
        Event::Round(0),
        Event::Round(44),
        Event::SwapAddresses(2, 1),
        Event::Bump,
        Event::Round(187),
    ];
    events.extend([Event::Round(0); 6]);
    let outcome = after(start, &events).run(ROUNDS);
    assert!(outcome.is_ok(), "{outcome:#?}");
}

/// A broken promise that a run of [`convergence`] found: a host left just when its Node had been made
/// anew and had no mark of ours yet, so the slot that it held was not counted.
#[test]
fn a_new_node_of_a_host_that_leaves_counts_when_it_holds_a_slot() {
    let start = Start { hosts: 2, budget: 1, features: 0, configured: true, sets: 0 };
    let mut events = vec![Event::DeleteNode(0)];
    events.extend([Event::Round(0); 5]);
    events.extend([Event::Unlist(0), Event::Round(68), Event::Round(0), Event::NewServices]);
    let outcome = after(start, &events).run(ROUNDS);
    assert!(outcome.is_ok(), "{outcome:#?}");
}

/// A broken promise that a run of [`safety`] found: of several records of a host the first had no Node, so
/// the Node on another one of them was nobody's.
#[test]
fn a_host_that_is_renamed_at_its_other_address_keeps_its_node() {
    let start = Start { hosts: 1, budget: 1, features: 0, configured: true, sets: 0 };
    let [round, renamed] = [Event::Round(0), Event::RenameEntry(0)];
    let events = [Event::OtherCard(0), round, round, renamed, round, round];
    let outcome = after(start, &events).run(ROUNDS);
    assert!(outcome.is_ok(), "{outcome:#?}");
}

/// A broken promise that a run of [`convergence`] found: by its other address, which nobody knew to be its
/// own yet, a host got the daemon of a version that its Node had not been told.
#[test]
fn a_host_at_an_unknown_address_is_left_until_its_node_is_known() {
    let start = Start { hosts: 2, budget: 2, features: 8, configured: false, sets: 0 };
    let [round, bump] = [Event::Round(0), Event::Bump];
    let events =
        [bump, Event::Wait, round, round, Event::OtherCard(2), bump, Event::Round(14), round];
    let outcome = after(start, &events).run(ROUNDS);
    assert!(outcome.is_ok(), "{outcome:#?}");
}

/// A broken promise that a run of [`safety`] found: what was known of a host was forgotten when its new
/// record had lost the pin.
#[test]
fn a_record_is_not_forgotten_for_one_whose_pin_is_lost() {
    let start = Start { hosts: 1, budget: 1, features: 0, configured: true, sets: 0 };
    let lose_pin = Event::LosePin(0);
    let events = [
        lose_pin,
        Event::OtherCard(0),
        Event::DeleteNode(0),
        Event::Round(0),
        lose_pin,
        Event::Round(0),
        Event::Wait,
    ];
    let outcome = after(start, &events).run(ROUNDS);
    assert!(outcome.is_ok(), "{outcome:#?}");
}

/// A broken promise that a run of [`convergence`] found: an entry was known by nothing but a key that a
/// former record of its host had, and was not asked for its name before that host was taken for another.
#[test]
fn a_host_that_is_renamed_before_it_told_its_name_keeps_its_node() {
    let start = Start { hosts: 2, budget: 1, features: 0, configured: true, sets: 0 };
    let [round, renamed] = [Event::Round(0), Event::RenameEntry(1)];
    let events = [renamed, round, Event::OtherCard(1), Event::LoseRecords, round, renamed, round];
    let outcome = after(start, &events).run(ROUNDS);
    assert!(outcome.is_ok(), "{outcome:#?}");
}

/// A broken promise that a run of [`safety`] found: the Node of a host that joins showed no address yet,
/// and called itself listed before it stood on record.
#[test]
fn a_new_node_without_addresses_is_not_removed() {
    let start = Start { hosts: 2, budget: 1, features: 2, configured: false, sets: 0 };
    let events = [
        Event::Round(0),
        Event::Round(4),
        Event::LoseAddresses(1),
        Event::Of(MachineEvent::ClaimListed(1)),
        Event::CacheCatchesUp,
        Event::Round(0),
    ];
    let outcome = after(start, &events).run(ROUNDS);
    assert!(outcome.is_ok(), "{outcome:#?}");
}

/// A record that a run of [`safety`] found left over: the Node of a Machine called itself listed at an address
/// of nobody, while its Machine referred to a Node that was gone.
#[test]
fn a_machine_whose_node_calls_itself_listed_at_no_address_of_its_own() {
    let start = Start { hosts: 2, budget: 1, features: 0, configured: true, sets: 1 };
    let events = [
        Event::Of(MachineEvent::ClaimListed(2)),
        Event::SwapAddresses(2, 3),
        Event::Of(MachineEvent::ReferInVain(0)),
        Event::Crash,
        Event::Round(0),
    ];
    let outcome = after(start, &events).run(ROUNDS);
    assert!(outcome.is_ok(), "{outcome:#?}");
}

/// A host that a run of [`convergence`] found not to be removed: the permit of a Machine that people asked to
/// leave alone meanwhile was never given back.
#[test]
fn the_permit_of_a_machine_that_is_ignored_is_given_back() {
    let start = Start { hosts: 2, budget: 1, features: 0, configured: true, sets: 2 };
    let round = Event::Round(0);
    let mut events = vec![Event::Wait, Event::OpenUp(3)];
    events.extend([round; 3]);
    events.extend([Event::Of(MachineEvent::Ignore(1)), round, round, Event::Unlist(0)]);
    let outcome = after(start, &events).run(ROUNDS);
    assert!(outcome.is_ok(), "{outcome:#?}");
}
