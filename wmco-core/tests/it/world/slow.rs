//! Requests that take slots and last long: marks and deletions that are there only later.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use wmco_core::facts::NodeFacts;
use wmco_core::node::{Action, Outcome};

use super::World;
use super::faults::Stop;

/// A request on its way to the API server.
#[derive(Clone, Debug)]
pub(super) struct SlowRequest {
    instance: String,
    action: Action,
    /// Whose slot it takes.
    slot: String,
    /// The Node as it was when this was sent.
    node: Option<NodeFacts>,
    sent_at: Timestamp,
    lands_at: Timestamp,
}

impl World {
    /// What takes a slot is only on its way, if such requests last long now.
    pub(super) fn may_last(
        &mut self,
        action: &Action,
        instance: &str,
        node: Option<&str>,
    ) -> Result<(), Stop> {
        let slot = action.takes_slot_of(node.unwrap_or_default());
        let (Some(slot), Some(seconds)) = (slot, self.faults.slots_last) else { return Ok(()) };
        let node = node.and_then(|node| self.api.nodes.get(node)).map(|node| node.facts.clone());
        self.slow.push(SlowRequest {
            instance: instance.to_owned(),
            action: action.clone(),
            slot,
            node,
            sent_at: self.now,
            lands_at: self.now + SignedDuration::from_secs(seconds.into()),
        });
        Err(Stop::Pending)
    }

    /// Whether the worker of an instance waits for such an answer.
    pub(super) fn waits_for_answer(&self, instance: &str) -> bool {
        self.slow.iter().any(|request| request.instance == instance)
    }

    /// Whose slots are being taken.
    pub(super) fn taking(&self) -> BTreeSet<String> {
        self.slow.iter().map(|request| request.slot.clone()).collect()
    }

    /// The operator dies, so nobody waits for requests any more: they arrive before the next one looks.
    pub(super) fn forsake_requests(&mut self) {
        self.slow.iter_mut().for_each(|request| request.lands_at = self.now);
    }

    /// Requests arrive, also those of workers that are to end.
    pub(super) fn requests_land(&mut self) {
        let now = self.now;
        let is_on_its_way = |request: &SlowRequest| now < request.lands_at;
        let (slow, landing): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.slow).into_iter().partition(is_on_its_way);
        self.slow = slow;
        let landed: Vec<_> = landing.into_iter().map(|request| self.arrives(request)).collect();
        for action in &landed {
            self.check(action);
        }
    }

    fn arrives(&mut self, request: SlowRequest) -> Action {
        self.promise_room(&request.action, request.sent_at, |it| it.lands(&request));
        request.action
    }

    fn lands(&mut self, request: &SlowRequest) {
        let outcome = match (&request.action, &request.node) {
            (Action::PatchNode(patch), Some(then)) => {
                let now = self.api.nodes.get(&then.name).map(|node| &node.facts);
                // A cordon must not miss one that a person sets meanwhile.
                let is_same = now.is_some_and(|now| now.uid == then.uid)
                    && (patch.unschedulable.is_none() || now == Some(then));
                let patched = is_same.then(|| self.patch_node(&then.name, patch).ok()).flatten();
                let node = self.api.nodes.get_mut(&then.name).filter(|_| patched.is_some());
                if let Some(since) = node.and_then(|node| node.held_since.as_mut()) {
                    // The operator counts from when it asked for that.
                    *since = (*since).min(request.sent_at);
                }
                patched.unwrap_or(Outcome::NodeChanged { resource_version: 0, is_ours: false })
            }
            (Action::DeleteMachine(permit), _) => {
                self.delete_machine(permit);
                Outcome::MachineDeleted
            }
            (other, _) => panic!("{other} takes no slot"),
        };
        if let Some(worker) = self.operator.instances.get_mut(&request.instance) {
            worker.succeeded(outcome);
        }
    }
}
