//! Whatever evictions are answered, and whichever pods come: a drain ends or is told within half a minute, and what is
//! asked of the API server grows with time alone.
//!
//! The model knows the pods and when it cordoned the node. It does not ask the planner whether a pod counts.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::memory::inputs;
use super::*;
use crate::limits;

/// Longest time in which a drain neither ends nor is told.
const SILENCE: SignedDuration = SignedDuration::from_secs(30);

/// How long a drain is looked at; shorter than one may take.
const LOOKED_AT: SignedDuration = SignedDuration::from_mins(20);

/// The answer to an eviction.
#[derive(Clone, Copy, Debug)]
enum Answer {
    /// The pod is gone at once.
    Gone,
    /// It ends after so many seconds, as it may.
    Ends(i64),
    /// It was to end after so many seconds, and does not.
    Clings(i64),
    /// It is refused.
    Refused,
}

/// A pod that comes so many seconds after the node was cordoned, or before.
#[derive(Clone, Debug)]
struct Comes {
    at: i64,
    /// Answers to its evictions, in turn.
    answers: Vec<Answer>,
    /// Whether another one takes its place.
    is_replaced: bool,
}

fn any_answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        2 => Just(Answer::Gone),
        1 => (0..120_i64).prop_map(Answer::Ends),
        1 => (0..120_i64).prop_map(Answer::Clings),
        3 => Just(Answer::Refused),
    ]
}

fn any_pod() -> impl Strategy<Value = Comes> {
    let at = prop_oneof![2 => Just(-60_i64), 1 => -10..20_i64, 1 => 0..600_i64];
    (at, vec(any_answer(), 1..4), any::<bool>()).prop_map(|(at, answers, is_replaced)| Comes {
        at,
        answers,
        is_replaced,
    })
}

/// A pod on the node.
#[derive(Clone, Debug)]
struct Pod {
    facts: PodFacts,
    of: Comes,
    asked: usize,
    /// When it is gone.
    ends: Option<Timestamp>,
    /// Whether its last eviction was refused.
    is_refused: bool,
}

/// A node whose upgrade is due, and its pods.
struct World {
    case: Case,
    memory: Memory,
    now: Timestamp,
    cordoned: Option<Timestamp>,
    to_come: Vec<Comes>,
    /// Seconds between changes of the Node by others.
    others: Vec<i64>,
    pods: Vec<Pod>,
    made: usize,
    /// Evictions by UID of the pod.
    evictions: BTreeMap<String, usize>,
    /// The last one, likewise.
    asked_at: BTreeMap<String, Timestamp>,
    /// Evictions that came sooner after the one before than they may.
    hurried: Vec<String>,
    /// When the pod with this UID was made.
    creations: BTreeMap<String, Timestamp>,
    came_back_told: bool,
}

impl World {
    fn new(pods: Vec<Comes>, others: Vec<i64>) -> Self {
        let case = Case::new().permitted().with(|c| c.annotate(names::VERSION_ANNOTATION, "1.0.0"));
        let mut world = Self {
            case,
            memory: Memory::default(),
            now: NOW,
            cordoned: None,
            to_come: pods,
            others,
            pods: Vec::new(),
            made: 0,
            evictions: BTreeMap::new(),
            asked_at: BTreeMap::new(),
            hurried: Vec::new(),
            creations: BTreeMap::new(),
            came_back_told: false,
        };
        world.meanwhile();
        world
    }

    fn make(&mut self, of: Comes, created: Timestamp) {
        let name = format!("pod-{}", self.made);
        self.made += 1;
        let created = Timestamp::from_second(created.as_second()).unwrap();
        let facts = PodFacts {
            namespace: "default".into(),
            uid: format!("uid-of-{name}"),
            name,
            created: Some(created),
            leaves_by: None,
        };
        self.creations.insert(facts.uid.clone(), created);
        self.pods.push(Pod { facts, of, asked: 0, ends: None, is_refused: false });
    }

    /// Pods come and go until now.
    fn meanwhile(&mut self) {
        let since = self.cordoned.unwrap_or(self.now);
        let is_due = |comes: &Comes| since + SignedDuration::from_secs(comes.at) <= self.now;
        let (due, later) = std::mem::take(&mut self.to_come).into_iter().partition(is_due);
        self.to_come = later;
        let due: Vec<Comes> = due;
        for comes in due {
            let at = since + SignedDuration::from_secs(comes.at);
            self.make(comes, at);
        }
        let gone = |pod: &Pod| pod.ends.is_some_and(|ends| ends <= self.now);
        let (gone, there) = std::mem::take(&mut self.pods).into_iter().partition(gone);
        self.pods = there;
        let gone: Vec<Pod> = gone;
        for pod in gone.into_iter().filter(|pod| pod.of.is_replaced) {
            self.make(pod.of, self.now);
        }
    }

    /// Whether the pod was there when the node was cordoned, as far as clocks that differ tell.
    fn was_there(&self, uid: &str) -> bool {
        let last = self.cordoned.map(|cordoned| cordoned + limits::POD_CLOCK_SKEW);
        last.is_none_or(|last| self.creations[uid] <= last)
    }

    fn evict(&mut self, asked: &[PodFacts]) -> Vec<Refusal> {
        let mut refused = Vec::new();
        for asked in asked {
            *self.evictions.entry(asked.uid.clone()).or_default() += 1;
            let before = self.asked_at.insert(asked.uid.clone(), self.now);
            if before.is_some_and(|before| self.now < before + limits::DRAIN_RETRY) {
                self.hurried.push(format!("{asked} at {}", self.now));
            }
            let Some(pod) = self.pods.iter_mut().find(|pod| pod.facts.uid == asked.uid) else {
                continue;
            };
            let answer = pod.of.answers[pod.asked % pod.of.answers.len()];
            pod.asked += 1;
            pod.is_refused = matches!(answer, Answer::Refused);
            let after = |seconds: i64| self.now + SignedDuration::from_secs(seconds);
            match answer {
                Answer::Gone => pod.ends = Some(self.now),
                Answer::Ends(seconds) => {
                    (pod.ends, pod.facts.leaves_by) = (Some(after(seconds)), Some(after(seconds)));
                }
                Answer::Clings(seconds) => pod.facts.leaves_by = Some(after(seconds)),
                Answer::Refused => {
                    refused.push(Refusal::of(asked, "no"));
                }
            }
        }
        self.meanwhile();
        refused
    }

    /// Carries out a step; `None` once it is none of a drain.
    fn take(&mut self, step: &Step) -> Option<Outcome> {
        self.came_back_told |= step.because == Because::PodsCameBack;
        let node = self.case.node();
        Some(match &step.action {
            Action::Probe => Outcome::Looked(self.case.observed.host.clone()),
            Action::ListPods => {
                Outcome::Pods(self.pods.iter().map(|pod| pod.facts.clone()).collect())
            }
            Action::PatchNode(patch) => {
                for (facts, changes) in
                    [(&mut node.labels, &patch.labels), (&mut node.annotations, &patch.annotations)]
                {
                    for (key, value) in changes {
                        match value {
                            Some(value) => drop(facts.insert(key.clone(), value.clone())),
                            None => drop(facts.remove(key)),
                        }
                    }
                }
                node.unschedulable = patch.unschedulable.unwrap_or(node.unschedulable);
                node.resource_version += 1;
                if node.unschedulable {
                    self.cordoned.get_or_insert(self.now);
                }
                let resource_version = node.resource_version;
                Outcome::NodeChanged { resource_version, is_ours: true }
            }
            Action::Evict { pods, .. } => Outcome::Evicted(self.evict(pods)),
            Action::TellDrain { notice, .. } => {
                node.drain_notice.clone_from(notice);
                node.resource_version += 1;
                Outcome::NodeChanged { resource_version: node.resource_version, is_ours: true }
            }
            _ => return None,
        })
    }

    /// One pass; tells when to look again, or nothing once the drain is over.
    fn pass(&mut self) -> Option<Timestamp> {
        const PLANS: usize = 30;
        for _ in 0..PLANS {
            self.meanwhile();
            let plan = self.memory.plan(&inputs(&self.case), self.now);
            for step in &plan.steps {
                let outcome = self.take(step)?;
                self.memory.learn(outcome);
            }
            if let Some(rest) = self.memory.done(&plan, self.now) {
                return Some(rest.until);
            }
        }
        panic!("no rest after {PLANS} plans: {}", self.memory.plan(&inputs(&self.case), self.now));
    }

    /// Whether the Node says that pods block the drain.
    fn is_told(&mut self) -> bool {
        self.case.node().drain_notice.is_some()
    }

    /// Whether a pod has its own time to end.
    fn ends_soon(&self) -> bool {
        let mut grace = self.pods.iter().filter_map(|pod| pod.facts.leaves_by);
        grace.any(|ends| self.now <= ends + limits::POD_END)
    }

    /// Rests until then, or until somebody else changes the Node.
    fn rest(&mut self, until: Timestamp) {
        let changed = self.others.last().map(|pause| self.now + SignedDuration::from_secs(*pause));
        let wake = if let Some(changed) = changed.filter(|changed| *changed < until) {
            self.others.pop();
            self.now = changed;
            self.case.node().resource_version += 1;
            Wake::NodeChanged
        } else {
            self.now = until;
            Wake::Deadline
        };
        self.memory.woken(wake, self.now);
    }

    /// Drains; checks the goal all the time.
    fn run(&mut self) -> Result<(), TestCaseError> {
        let begun = self.now;
        let mut quiet_since = self.now;
        while self.now < begun + LOOKED_AT {
            let Some(until) = self.pass() else {
                let left = self.pods.iter().filter(|pod| self.was_there(&pod.facts.uid)).count();
                prop_assert_eq!(left, 0, "the drain is over, and pods are there");
                break;
            };
            prop_assert!(until > self.now, "a rest without a length");
            if self.is_told() || self.ends_soon() {
                quiet_since = self.now;
            }
            self.rest(until);
            let silence = self.now.duration_since(quiet_since);
            let told = self.is_told();
            prop_assert!(silence <= SILENCE || told, "{silence}: {:#?}", self.pods);
        }
        self.asks_in_proportion(begun)
    }

    /// Each pod that was there is asked once in five seconds at most, each other one once.
    fn asks_in_proportion(&self, begun: Timestamp) -> Result<(), TestCaseError> {
        prop_assert!(self.hurried.is_empty(), "{:?}", self.hurried);
        let seconds = self.now.duration_since(begun).as_secs();
        let often = usize::try_from(seconds / limits::DRAIN_RETRY.as_secs() + 1).unwrap();
        for (uid, times) in &self.evictions {
            let most = if self.was_there(uid) { often } else { 1 };
            prop_assert!(*times <= most, "{uid} was asked {times} times in {seconds} s");
        }
        let late = |uid: &&String| !self.was_there(uid);
        let asked = self.evictions.keys().filter(late).count();
        prop_assert!(asked == 0 || self.came_back_told, "nobody heard of {asked} pods");
        Ok(())
    }
}

proptest! {
    #[test]
    fn a_drain_ends_or_is_told_and_asks_in_proportion_to_time(
        pods in vec(any_pod(), 0..6),
        others in vec(1..30_i64, 0..60),
    ) {
        World::new(pods, others).run()?;
    }
}

/// One that comes back each time is asked once, and the drain ends at its first look.
#[test]
fn a_pod_that_always_comes_back_is_asked_once() {
    let back = Comes { at: 60, answers: vec![Answer::Gone], is_replaced: true };
    let first = Comes { at: -60, answers: vec![Answer::Ends(90)], is_replaced: false };
    let mut world = World::new(vec![back, first], Vec::new());
    world.run().unwrap();
    assert_eq!(world.evictions.values().copied().collect::<Vec<_>>(), [1, 1]);
    assert!(world.came_back_told);
}
