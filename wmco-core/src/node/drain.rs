//! A long drain: how long the operator waits, and what it reports.
//!
//! The record on the Node outlives the operator. It is a copy: [`Memory`](super::Memory) reads it when it first
//! sees a Node, and then knows only its own changes, because a host may write it, too.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::NodeCondition;
use schemars::JsonSchema;
use serde::Serialize;

use super::condition::condition;
use super::{NodePatch, Purpose};
use crate::facts::{DrainNotice, DrainStage, GivenUp, NodeFacts, PodFacts};
use crate::limits;
use crate::names;
use crate::text::{cut, printable};

/// Observed facts about a drain, besides its pods.
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
pub struct DrainSeen {
    /// The record on the Node.
    pub marks: DrainMarks,
    /// Evictions that were refused at the last attempt; `None` if that is unknown.
    pub refused: Option<Vec<Refusal>>,
    /// Whether pods that came after the cordon were asked to leave during this drain.
    pub late_pods_asked: bool,
    /// When the others were asked last.
    pub asked: Option<Timestamp>,
}

/// The record of a drain on a Node, as far as it is plausible.
#[derive(Clone, Copy, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
pub struct DrainMarks {
    /// Start of the drain.
    pub since: Option<Timestamp>,
    /// When the operator saw its cordon.
    pub cordoned: Option<Timestamp>,
    /// Earlier drains that were given up.
    pub given_up: Option<GivenUp>,
}

/// An eviction that the API server refused.
#[derive(Clone, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Refusal {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub name: String,
    /// UID of the pod.
    pub uid: String,
    /// Why: the PodDisruptionBudget, or what else the API server says, with its code.
    pub why: String,
}

impl DrainMarks {
    /// Reads the record on `node`. Ignores times that the operator never writes: a future start of the drain, or a
    /// pause longer than the maximum.
    ///
    /// ```
    /// use jiff::{SignedDuration, Timestamp};
    /// use wmco_core::names::DRAIN_GIVEN_UP_ANNOTATION;
    /// use wmco_core::node::{DrainMarks};
    /// use wmco_core::facts::{NodeFacts};
    ///
    /// let mut node = NodeFacts::default();
    /// let noted = |node: &NodeFacts| {
    ///     DrainMarks::of(node, SignedDuration::from_hours(1), Timestamp::UNIX_EPOCH).given_up
    /// };
    /// let name = DRAIN_GIVEN_UP_ANNOTATION.to_owned();
    /// node.annotations.insert(name.clone(), "2 1970-01-01T00:10:00Z".to_owned());
    /// assert_eq!(noted(&node).unwrap().times, 2);
    /// node.annotations.insert(name, "2 2970-01-01T00:00:00Z".to_owned());
    /// assert_eq!(noted(&node), None);
    /// ```
    pub fn of(node: &NodeFacts, timeout: SignedDuration, now: Timestamp) -> Self {
        let past = |name: &str| {
            let time = node.annotation(name).and_then(|text| text.parse::<Timestamp>().ok());
            time.filter(|time| *time <= now)
        };
        let given_up = node.given_up();
        Self {
            since: past(names::DRAIN_SINCE_ANNOTATION),
            cordoned: past(names::CORDONED_SINCE_ANNOTATION),
            given_up: given_up.filter(|given_up| given_up.retry_at <= now + longest_pause(timeout)),
        }
    }

    /// Applies our change of the Node.
    pub(super) fn change(&mut self, patch: &NodePatch, timeout: SignedDuration, now: Timestamp) {
        let set = patch.annotations.iter().filter_map(|(k, v)| Some((k.clone(), v.clone()?)));
        let written = NodeFacts { annotations: set.collect(), ..NodeFacts::default() };
        let written = Self::of(&written, timeout, now);
        let is_changed = |name: &str| patch.annotations.contains_key(name);
        if is_changed(names::DRAIN_SINCE_ANNOTATION) {
            self.since = written.since;
        }
        if is_changed(names::CORDONED_SINCE_ANNOTATION) {
            self.cordoned = written.cordoned;
        }
        if is_changed(names::DRAIN_GIVEN_UP_ANNOTATION) {
            self.given_up = written.given_up;
        }
        // The Node may have lost the notes of a drain, which end with it.
        let is_given_back =
            patch.labels.get(names::UPGRADING_LABEL) == Some(&None) || written.given_up.is_some();
        if is_given_back {
            self.end();
        }
    }

    /// Ends the drain.
    pub(super) fn end(&mut self) {
        (self.since, self.cordoned) = (None, None);
    }

    /// The time until which the node must not be drained again; `None` if it may be drained.
    pub(super) fn paused_until(&self, node: &NodeFacts, now: Timestamp) -> Option<Timestamp> {
        let retry_at = self.given_up.map(|given_up| given_up.retry_at);
        retry_at.filter(|retry_at| !node.holds_slot() && now < *retry_at)
    }

    /// Gives up the drain now. Pauses double.
    pub(super) fn give_up(&self, timeout: SignedDuration, now: Timestamp) -> GivenUp {
        let times = self.given_up.map_or(0, |given_up| given_up.times).saturating_add(1);
        let doubled = 2_i32.saturating_pow(times - 1);
        let pause = (timeout / limits::DRAIN_PAUSE_PART).max(limits::DRAIN_RETRY);
        let pause = pause.checked_mul(doubled).unwrap_or(SignedDuration::MAX);
        GivenUp { times, retry_at: now + pause.min(longest_pause(timeout)) }
    }
}

/// Returns the condition to write; `None` if the existing condition is right.
///
/// A Node whose drain was never blocked gets no condition.
pub fn drain_condition(
    node: &NodeFacts,
    notice: Option<&DrainNotice>,
    now: Timestamp,
) -> Option<NodeCondition> {
    let told = node.drain_notice.as_ref().map(|told| told.message.as_str());
    let problem = notice.map(|notice| (notice.stage.reason(), notice.message.as_str()));
    let fine = (names::DRAIN_NOT_BLOCKED, "no pod blocks a drain of the node");
    condition(names::DRAIN_CONDITION, told, problem, fine, now)
}

/// Until when grace periods of pods count in a drain that began at `since`.
///
/// Source: `docs/contract/lifecycle.md`, LIFE20.
pub(super) fn grace_most(since: Timestamp, timeout: SignedDuration) -> Timestamp {
    since + timeout.max(limits::DRAIN_GRACE_MOST)
}

fn longest_pause(timeout: SignedDuration) -> SignedDuration {
    timeout
        .checked_mul(limits::DRAIN_PAUSE_MOST)
        .unwrap_or(SignedDuration::MAX)
        .max(limits::DRAIN_RETRY)
}

/// A drain in progress, with its remaining pods.
pub(super) struct Drain<'a> {
    pub(super) since: Timestamp,
    purpose: Purpose,
    /// When the drain has taken too long.
    pub(super) deadline: Timestamp,
    pods: &'a [PodFacts],
    refused: Option<&'a [Refusal]>,
    asked: Option<Timestamp>,
    now: Timestamp,
}

impl<'a> Drain<'a> {
    /// Makes a drain. Terminating pods get their own grace period, up to a day.
    pub(super) fn new(
        (since, purpose): (Timestamp, Purpose),
        timeout: SignedDuration,
        seen: &'a DrainSeen,
        pods: &'a [PodFacts],
        now: Timestamp,
    ) -> Self {
        let grace = pods.iter().filter_map(|pod| pod.leaves_by).max();
        let grace = grace.map(|ends| (ends + limits::POD_END).min(grace_most(since, timeout)));
        let deadline = grace.into_iter().fold(since + timeout, Timestamp::max);
        let refused = seen.refused.as_deref();
        Self { since, purpose, deadline, pods, refused, asked: seen.asked, now }
    }

    /// Whether pods that stay are asked to leave now: a change of the Node by others is no reason to ask again.
    pub(super) fn asks_now(&self) -> bool {
        self.asked.is_none_or(|asked| asked > self.now || self.after(asked) <= self.now)
    }

    /// When to look at the pods again.
    pub(super) fn next_attempt(&self) -> Timestamp {
        let asked = self.asked.filter(|_| !self.asks_now()).unwrap_or(self.now);
        let next = self.after(asked);
        if self.now < self.deadline { next.min(self.deadline) } else { next }
    }

    /// The attempt after that at `asked`: soon at first, then after a part of the age of the drain.
    fn after(&self, asked: Timestamp) -> Timestamp {
        let age = asked.duration_since(self.since);
        asked
            + (age / limits::DRAIN_RETRY_PART).clamp(limits::DRAIN_RETRY, limits::DRAIN_RETRY_MOST)
    }

    /// Returns the notice to report while pods remain; `Err` if the blocking pods are not known yet.
    ///
    /// `untouched` says whether the node could still be put back.
    pub(super) fn notice(
        &self,
        told: Option<&DrainNotice>,
        untouched: bool,
    ) -> Result<Option<DrainNotice>, Unknown> {
        let blockers = self.blockers();
        if blockers.is_empty() {
            let asked = self.refused.is_some() || self.pods.iter().all(PodFacts::is_leaving);
            // An earlier notice about giving up stays true until the pods are gone.
            let over = told.is_none_or(|told| told.stage != DrainStage::GivenUp);
            return if asked && over { Ok(None) } else { Err(Unknown) };
        }
        let stage =
            if self.now < self.deadline { DrainStage::Blocked } else { DrainStage::Overdue };
        let next = if untouched {
            format!("else the node is given back at {:.0} and drained again later", self.deadline)
        } else {
            "its host is already changed, so the node keeps its disruption slot until then"
                .to_owned()
        };
        let message = format!(
            "pods block the drain for {}, which began at {:.0}: {}; let them go or delete them, {next}",
            self.purpose,
            self.since,
            in_short(&blockers)
        );
        Ok(Some(DrainNotice { stage, message }))
    }

    /// The notice after the drain was given up.
    pub(super) fn farewell(&self, given_up: &GivenUp) -> DrainNotice {
        let blockers = self.blockers();
        let pods_left = || self.pods.iter().map(|pod| format!("pod {pod} is there")).collect();
        let pods: Vec<String> = if blockers.is_empty() { pods_left() } else { blockers };
        let why = if pods.is_empty() {
            "somebody takes the cordon off each time; leave it on until the node is given back"
                .to_owned()
        } else {
            format!("{}; let them go or delete them", in_short(&pods))
        };
        let message = format!(
            "the drain for {}, which began at {:.0}, was given up ({} in a row), the next one begins after \
             {:.0}: {why}",
            self.purpose, self.since, given_up.times, given_up.retry_at,
        );
        DrainNotice { stage: DrainStage::GivenUp, message }
    }

    /// Pods that block the drain, with the reason for each.
    fn blockers(&self) -> Vec<String> {
        let blocker = |pod: &PodFacts| match pod.leaves_by {
            Some(ends) if ends + limits::POD_END < self.now => {
                // Deleting it again changes nothing.
                Some(format!(
                    "pod {pod} was to end by {ends:.0} and is still there (see its kubelet and finalizers)"
                ))
            }
            Some(ends) if self.deadline <= self.now => {
                Some(format!("pod {pod} has until {ends:.0} to end, longer than a drain waits"))
            }
            Some(_) => None,
            None => {
                let refusal = self.refused?.iter().find(|refusal| refusal.is_of(pod))?;
                Some(format!("pod {pod} is not evicted ({})", refusal.why))
            }
        };
        self.pods.iter().filter_map(blocker).collect()
    }
}

/// The blocking pods are not known yet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Unknown;

impl Refusal {
    /// The refusal to evict `pod`, with the beginning of what was said.
    pub fn of(pod: &PodFacts, why: &str) -> Self {
        // Codes are longer than the letters in whose place they stand.
        let said = printable(cut(why.trim_end_matches('.'), limits::REFUSAL_BYTES + 1));
        let shown = cut(&said, limits::REFUSAL_BYTES);
        let more = if shown.len() < said.len() { " ..." } else { "" };
        let why = format!("{shown}{more}");
        let (namespace, name) = (pod.namespace.clone(), pod.name.clone());
        Self { namespace, name, uid: pod.uid.clone(), why }
    }

    fn is_of(&self, pod: &PodFacts) -> bool {
        self.uid == pod.uid && (&self.namespace, &self.name) == (&pod.namespace, &pod.name)
    }
}

/// Whether `notice` warrants an Event: when a drain is first blocked, and whenever it is given up or overdue.
pub(super) fn is_news(told: Option<&DrainNotice>, notice: &DrainNotice) -> bool {
    match (notice.stage, told.map(|told| told.stage)) {
        (DrainStage::GivenUp, _) | (DrainStage::Blocked, None) => true,
        (DrainStage::Blocked, Some(_)) => false,
        (DrainStage::Overdue, stage) => stage != Some(DrainStage::Overdue),
    }
}

/// Text about pods that came back to a node that is being drained.
pub fn pods_came_back(pods: &[PodFacts]) -> String {
    let names: Vec<String> = pods.iter().map(ToString::to_string).collect();
    format!(
        "{} of the pods on the node came after its cordon, which they tolerate: {}; they are asked to leave once and \
         not waited for; to keep them away take the toleration off, scale them to 0 or delete their owner",
        pods.len(),
        in_short(&names)
    )
}

/// The first texts, as many as fit into an Event beside the rest, and the number of the others.
fn in_short(texts: &[String]) -> String {
    let mut left = limits::DRAIN_PODS_TOLD_BYTES;
    let fits = |text: &&String| match left.checked_sub(text.len()) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    let count = texts.iter().take(limits::DRAIN_PODS_TOLD).take_while(fits).count().max(1);
    let (shown, more) = texts.split_at(count.min(texts.len()));
    let shown = shown.join(", ");
    match more.len() {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
