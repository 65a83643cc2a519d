//! Requests whose answers take long: a mark that is put on a Node and is there only later.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use wmco_core::facts::NodeFacts;
use wmco_core::node::{Action, NodePatch, Outcome};

use super::World;
use super::faults::Stop;

/// A mark on its way to the API server.
#[derive(Clone, Debug)]
pub(super) struct SlowWrite {
    instance: String,
    /// As it was when the mark was sent.
    node: NodeFacts,
    patch: NodePatch,
    sent_at: Timestamp,
    lands_at: Timestamp,
}

impl World {
    /// A patch that takes a slot is only on its way, if such requests take long now.
    pub(super) fn marks_last(
        &mut self,
        action: &Action,
        patch: &NodePatch,
        instance: &str,
        node: &str,
    ) -> Result<(), Stop> {
        let Some(seconds) = self.faults.marks_last.filter(|_| action.takes_slot()) else {
            return Ok(());
        };
        self.slow.push(SlowWrite {
            instance: instance.to_owned(),
            node: self.api.nodes.get(node).ok_or(Stop::Fail)?.facts.clone(),
            patch: patch.clone(),
            sent_at: self.now,
            lands_at: self.now + SignedDuration::from_secs(seconds.into()),
        });
        Err(Stop::Pending)
    }

    /// Whether the worker of an instance waits for such an answer.
    pub(super) fn waits_for_answer(&self, instance: &str) -> bool {
        self.slow.iter().any(|write| write.instance == instance)
    }

    /// Nodes whose slots are being taken.
    pub(super) fn taking(&self) -> BTreeSet<String> {
        self.slow.iter().map(|write| write.node.name.clone()).collect()
    }

    /// Marks arrive, those of an operator that died at once: nobody waits for them any more.
    pub(super) fn land_marks(&mut self) {
        let (all, now) = (std::mem::take(&mut self.slow), self.now);
        for write in all {
            let is_awaited = self.operator.instances.contains_key(&write.instance);
            if is_awaited && now < write.lands_at {
                self.slow.push(write);
                continue;
            }
            let Some(node) = self.api.nodes.get(&write.node.name) else { continue };
            // A cordon must not miss one that a person sets meanwhile.
            let is_newer = write.patch.unschedulable.is_some() && node.facts != write.node;
            if node.facts.uid != write.node.uid || is_newer {
                let outcome = Outcome::NodeChanged { resource_version: 0, is_ours: false };
                self.answer(&write.instance, outcome);
                continue;
            }
            let Ok(outcome) = self.patch_node(&write.node.name, &write.patch) else { continue };
            let node = self.api.nodes.get_mut(&write.node.name);
            if let Some(since) = node.and_then(|node| node.held_since.as_mut()) {
                // The operator counts from when it asked for that.
                *since = (*since).min(write.sent_at);
            }
            self.answer(&write.instance, outcome);
            self.check(&Action::PatchNode(write.patch));
        }
    }

    fn answer(&mut self, instance: &str, outcome: Outcome) {
        if let Some(worker) = self.operator.instances.get_mut(instance) {
            worker.succeeded(outcome);
        }
    }
}
