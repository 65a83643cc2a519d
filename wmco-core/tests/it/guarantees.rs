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
pub(crate) struct Start {
    pub(crate) hosts: usize,
    pub(crate) budget: usize,
    /// Which hosts have containers switched on, one bit each.
    pub(crate) features: u8,
    /// Whether the hosts are nodes already.
    pub(crate) configured: bool,
    /// Which MachineSets there are, of [`SETS`].
    pub(crate) sets: usize,
}

/// How many Machines the MachineSets of a world have.
const SETS: [&[usize]; 4] = [&[], &[1], &[2], &[2, 1]];

impl Start {
    pub(crate) fn world(self) -> World {
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

pub(crate) fn any_start() -> impl Strategy<Value = Start> {
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
pub(crate) fn ordinary() -> impl Strategy<Value = Event> {
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
        1 => (1..=2_usize).prop_map(Event::Budget),
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
        at.clone().prop_map(Event::Tolerate),
        at.clone().prop_map(Event::Unprotect),
        at.clone().prop_map(Event::Cling),
        at.clone().prop_map(Event::LetGo),
        at.clone().prop_map(Event::LoseMarks),
        Just(Event::Key(KeyEvent::Return)),
        Just(Event::Key(KeyEvent::DropNext)),
        any::<bool>().prop_map(|is_seen| Event::Of(MachineEvent::EditUserData { is_seen })),
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
        1 => Just(Event::CutKubelets),
        2 => Just(Event::RejoinKubelets),
        2 => prop::option::weighted(0.8, 1..30_u8).prop_map(Event::SlotsLast),
    ]
}

pub(crate) fn after(start: Start, events: &[Event]) -> World {
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
        // What is left of a host that was given up may still change, such as its key, and pods that
        // were asked to leave make room for others. The next look at a host may tell that the Secret lost its
        // key, and a Machine that was made meanwhile does not have the one that people put back then.
        for _ in 0..2 {
            settles(&mut world)?;
            for _ in 0..8 {
                world.fair_round();
            }
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

/// Two Machines of one set hold slots of their own when the key changes: the successor of the first one works in the
/// slot that its MachineSet holds, before the second one goes.
#[test]
fn a_successor_does_not_wait_for_a_slot_that_its_sibling_holds() {
    let start = Start { hosts: 1, budget: 2, features: 0, configured: true, sets: 2 };
    let rounds = [Event::Round(0); 6];
    let events = [[Event::Bump].as_slice(), &rounds, &[Event::Key(KeyEvent::Change)]].concat();
    settles(&mut after(start, &events)).unwrap();
}

/// Nobody can know of a Machine that people ignore where it is, once the Machine API says of another one that it is there.
#[test]
fn an_ignored_machine_is_where_the_machine_api_says() {
    let start = Start { hosts: 2, budget: 1, features: 0, configured: false, sets: 1 };
    let events = [
        Event::Of(MachineEvent::Scale(0, 2)),
        Event::Round(0),
        Event::Round(32),
        Event::Of(MachineEvent::Move(5, 2)),
        Event::Of(MachineEvent::Ignore(2)),
        Event::TimePasses,
        Event::Of(MachineEvent::Move(0, 3)),
        Event::Round(0),
    ];
    settles(&mut after(start, &events)).unwrap();
}

/// The key changes twice while the nodes wait for an upgrade: a successor that refuses the second key, and a sibling that
/// lost its marks, do not wait for each other.
#[test]
fn a_successor_that_refuses_the_next_key_is_made_anew() {
    let start = Start { hosts: 1, budget: 2, features: 0, configured: true, sets: 2 };
    let change = Event::Key(KeyEvent::Change);
    let events = [Event::Bump, Event::LoseMarks(2), change, Event::Wait, change];
    settles(&mut after(start, &events)).unwrap();
}

/// A person makes a node schedulable while it waits for its version mark: who comes then does not tolerate the cordon.
#[test]
fn pods_that_came_while_the_cordon_was_lifted_are_waited_for() {
    let start = Start { hosts: 1, budget: 1, features: 0, configured: false, sets: 0 };
    let rounds = [Event::Round(0), Event::Round(0), Event::Bump, Event::Round(19), Event::Round(0)];
    let then =
        [Event::Grace(0), Event::Wait, Event::Round(0), Event::Uncordon(0), Event::Tamper(0)];
    settles(&mut after(start, &[rounds, then].concat())).unwrap();
}

/// A Node to which another Machine refers as well is left to people, with the slot that it holds.
#[test]
fn a_node_that_two_machines_claim_is_not_given_back() {
    let start = Start { hosts: 1, budget: 1, features: 0, configured: true, sets: 2 };
    let round = Event::Round(0);
    let claim = Event::Of(MachineEvent::ReferTo(5, 1));
    let events = [Event::NewServices, round, round, round, claim, Event::Wait];
    settles(&mut after(start, &events)).unwrap();
}

/// A node loses all notes of a drain, and its next drain has a time of its own.
#[test]
fn a_drain_whose_notes_are_lost_ends_with_its_slot() {
    let start = Start { hosts: 1, budget: 1, features: 0, configured: true, sets: 3 };
    let round = Event::Round(0);
    let first = [Event::AskRestart(3), Event::Of(MachineEvent::Delete(2)), round, round, round];
    let lost = [Event::LoseMarks(3), Event::Round(122), Event::Grace(1), round, Event::NewServices];
    settles(&mut after(start, &[first, lost].concat())).unwrap();
}

/// An answer is lost when a node is put back: its next drain has a time of its own.
#[test]
fn a_drain_whose_end_is_not_answered_is_over() {
    let start = Start { hosts: 1, budget: 1, features: 0, configured: true, sets: 0 };
    let rounds = [[Event::NewServices].as_slice(), &[Event::Round(0); 4]].concat();
    let events = [rounds, vec![Event::FailIn(1), Event::TimePasses, Event::Round(0)]].concat();
    settles(&mut after(start, &events)).unwrap();
}

/// What takes less than half a minute, or what `PROPTEST_CASES` asks for.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(400)
}

/// A successor refuses the key after it got its version, and before it was uncordoned: it goes in the slot that its
/// MachineSet holds.
#[test]
fn a_successor_that_refuses_us_before_it_is_in_service_is_made_anew() {
    let start = Start { hosts: 1, budget: 1, features: 0, configured: true, sets: 3 };
    let events = [
        Event::Round(0),
        Event::Of(MachineEvent::Scale(0, 3)),
        Event::Key(KeyEvent::AddNext),
        Event::Round(160),
        Event::Key(KeyEvent::Change),
        Event::Wait,
        Event::Key(KeyEvent::Return),
    ];
    settles(&mut after(start, &events)).unwrap();
}

/// It is to be upgraded then: its MachineSet's slot is its own.
#[test]
fn a_successor_is_upgraded_before_it_is_in_service() {
    let start = Start { hosts: 1, budget: 1, features: 0, configured: true, sets: 3 };
    let events = [Event::Key(KeyEvent::Change), Event::CrashIn(27), Event::Wait, Event::Bump];
    settles(&mut after(start, &events)).unwrap();
}

/// A host restarts by itself between the end of a restart that was asked for and the next request.
#[test]
fn a_restart_that_is_asked_for_right_after_another_one_happens() {
    let start = Start { hosts: 1, budget: 1, features: 0, configured: false, sets: 0 };
    let [round, bump] = [Event::Round(0), Event::Bump];
    let restarted = [Event::HostRestarts(0), Event::Round(67), Event::AskRestart(0), round, bump];
    let events = [[bump, round, Event::Wait, round].as_slice(), &restarted].concat();
    settles(&mut after(start, &events)).unwrap();
}

/// The Machine API refers to the Node of another Machine, which people ignore.
#[test]
fn a_machine_that_refers_to_the_node_of_an_ignored_one() {
    let start = Start { hosts: 1, budget: 2, features: 0, configured: true, sets: 2 };
    let events = [
        Event::LoseAddresses(1),
        Event::Of(MachineEvent::ReferTo(1, 1)),
        Event::Of(MachineEvent::Ignore(0)),
        Event::LoseList,
        Event::CutKubelets,
        Event::Of(MachineEvent::ReferInVain(0)),
        Event::Bump,
        Event::Wait,
    ];
    settles(&mut after(start, &events)).unwrap();
}

/// Pods have a grace period when a person makes their node schedulable.
#[test]
fn a_node_that_is_made_schedulable_while_its_pods_end() {
    let start = Start { hosts: 1, budget: 1, features: 0, configured: true, sets: 0 };
    let round = Event::Round(0);
    let events = [
        Event::NewServices,
        round,
        round,
        round,
        round,
        Event::Grace(0),
        round,
        Event::Wait,
        Event::Uncordon(0),
    ];
    let mut world = after(start, &events);
    for _ in 0..2 {
        settles(&mut world).unwrap();
        for _ in 0..8 {
            world.fair_round();
        }
    }
    let before = world.visible();
    world.crash();
    for _ in 0..5 {
        world.happen(Event::Round(EVERYBODY));
    }
    assert_eq!(world.visible(), before);
}

/// A Machine that people ignore while it is drained, and heed again when another one has its slot, goes on beside that.
#[test]
fn a_machine_that_is_ignored_for_a_while_goes_on() {
    let start = Start { hosts: 1, budget: 1, features: 0, configured: true, sets: 2 };
    let round = Event::Round(0);
    let events = [
        Event::Of(MachineEvent::Ignore(1)),
        Event::AskRestart(2),
        round,
        round,
        Event::Unlist(0),
        round,
        Event::Key(KeyEvent::Change),
        round,
        round,
        Event::Of(MachineEvent::Heed(1)),
    ];
    settles(&mut after(start, &events)).unwrap();
}

/// A MachineSet grows while its only Machine holds a slot and is to be replaced.
#[test]
fn a_machineset_that_grows_while_its_machine_is_replaced_keeps_to_the_budget() {
    let start = Start { hosts: 2, budget: 2, features: 0, configured: true, sets: 1 };
    let rounds = [Event::Round(0); 3];
    let events = [
        [Event::FailIn(4), Event::NewServices].as_slice(),
        &rounds,
        &[Event::Key(KeyEvent::Change)],
        &rounds,
        &[Event::Of(MachineEvent::Scale(0, 2))],
        &rounds,
    ];
    settles(&mut after(start, &events.concat())).unwrap();
}

/// A Node that says that its Machine refers to another one claims to be made from a listed host whose record is lost.
#[test]
fn a_host_at_another_address_is_looked_at_though_a_node_of_a_machine_claims_it() {
    let start = Start { hosts: 2, budget: 1, features: 0, configured: false, sets: 1 };
    let events = [
        Event::Wait,
        Event::OtherCard(2),
        Event::ForgeOrigin(2, 0),
        Event::LoseRecords,
        Event::Of(MachineEvent::ReferInVain(0)),
        Event::Round(0),
    ];
    settles(&mut after(start, &events)).unwrap();
}

/// One Machine refuses the key at the work, and one let us in once and never was a node.
#[test]
fn two_machines_that_refuse_do_not_wait_for_each_other() {
    let start = Start { hosts: 1, budget: 1, features: 0, configured: false, sets: 1 };
    let round = Event::Round(0);
    let events = [
        Event::FailIn(6),
        Event::Of(MachineEvent::Scale(0, 3)),
        round,
        round,
        Event::Wait,
        Event::TimePasses,
        Event::Of(MachineEvent::Delete(3)),
        Event::Round(32),
        Event::Bump,
        round,
        Event::Key(KeyEvent::Change),
    ];
    settles(&mut after(start, &events)).unwrap();
}

/// The slot of a Node whose Machine refers to another one is its own, though its marks are lost.
#[test]
fn the_slot_of_a_node_without_its_marks_and_machine_is_kept() {
    let start = Start { hosts: 2, budget: 1, features: 0, configured: true, sets: 2 };
    let round = Event::Round(0);
    let events = [
        Event::Bump,
        round,
        round,
        Event::Of(MachineEvent::ReferInVain(0)),
        Event::LoseMarks(2),
        Event::RenameEntry(1),
        round,
        round,
        Event::Wait,
    ];
    settles(&mut after(start, &events)).unwrap();
}

/// A person deletes a Machine while another one of its MachineSet is made anew and no kubelet reaches the API server.
#[test]
fn a_machine_that_a_person_deletes_while_another_one_is_made_anew() {
    let start = Start { hosts: 1, budget: 2, features: 0, configured: true, sets: 2 };
    let round = Event::Round(0);
    let events = [
        Event::Key(KeyEvent::Change),
        round,
        round,
        round,
        round,
        Event::CutKubelets,
        round,
        Event::Of(MachineEvent::Delete(1)),
        Event::Round(32),
    ];
    settles(&mut after(start, &events)).unwrap();
}

/// Two Machines join when the key changes, and a third one is made anew.
#[test]
fn two_machines_that_join_when_the_key_changes_do_not_wait_for_each_other() {
    let start = Start { hosts: 1, budget: 1, features: 0, configured: false, sets: 1 };
    let (round, change) = (Event::Round(0), Event::Key(KeyEvent::Change));
    let scale = Event::Of(MachineEvent::Scale(0, 3));
    let one = [round, Event::Others(0), round, scale, round, Event::Wait, change];
    settles(&mut after(start, &one)).unwrap();
    // The second one has its version, and was not looked at since.
    let has_version =
        [round, Event::Others(0), Event::Round(32), scale, round, Event::Wait, change];
    settles(&mut after(start, &has_version)).unwrap();
    let start = Start { sets: 2, ..start };
    let other = [Event::Wait, round, scale, Event::TimePasses, Event::Round(32), change];
    settles(&mut after(start, &other)).unwrap();
}

/// A Machine is ignored in mid-work and heeded again while another one has its slot. Both give their drains up at the same
/// time, and both ask anew.
#[test]
fn two_that_gave_up_a_slot_each_do_not_both_get_one_back() {
    let start = Start { hosts: 2, budget: 1, features: 0, configured: true, sets: 2 };
    let round = Event::Round(0);
    let events = [
        Event::Vanish(2),
        Event::AskRestart(3),
        Event::Key(KeyEvent::AddNext),
        Event::Of(MachineEvent::Ignore(1)),
        round,
        round,
        round,
        round,
        Event::NewServices,
        round,
        Event::Of(MachineEvent::Heed(5)),
        round,
        round,
        Event::TimePasses,
        Event::Bump,
    ];
    settles(&mut after(start, &events)).unwrap();
}
