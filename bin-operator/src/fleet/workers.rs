//! The workers: a host has one at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use wmco_core::pass::Work;
use wmco_ssh::PrivateKey;

use crate::claims::Claims;
use crate::instance::{Executor, Worker, WorkerInputs};
use crate::release::PreparedRelease;

/// All workers by the address that their host is listed under.
pub(super) struct Workers {
    executor: Executor,
    claims: Claims,
    at_work: BTreeMap<String, AtWork>,
    /// Workers that nobody wants any more, until they are through with their step.
    ending: BTreeMap<String, JoinHandle<()>>,
    /// Told whenever a worker has ended.
    ended: Arc<Notify>,
}

/// The keys that are to let us in, shared by all workers.
type LoginKeys = Arc<[Arc<PrivateKey>]>;

struct AtWork {
    inputs: watch::Sender<Arc<WorkerInputs>>,
    task: JoinHandle<()>,
}

impl Workers {
    pub(super) fn new(executor: Executor, claims: Claims) -> Self {
        Self {
            executor,
            claims,
            at_work: BTreeMap::new(),
            ending: BTreeMap::new(),
            ended: Arc::default(),
        }
    }

    /// Told whenever a worker has ended, so that the next may begin.
    pub(super) fn ended(&self) -> Arc<Notify> {
        Arc::clone(&self.ended)
    }

    /// Gives its inputs to the worker of an instance, which begins unless it has to wait for others;
    /// the next pass follows when they have ended.
    pub(super) fn hand_over(&mut self, work: Work, keys: &LoginKeys, release: &PreparedRelease) {
        let address = work.inputs.address.clone();
        let at_work = self.at_work.get(&address).filter(|worker| !worker.task.is_finished());
        if at_work.is_none() {
            let ending: BTreeSet<&str> = self.ending.keys().map(String::as_str).collect();
            if work.has_to_wait_for(&ending) {
                return;
            }
        }
        let (keys, contents) = (Arc::clone(keys), Arc::clone(&release.contents));
        let inputs = Arc::new(WorkerInputs { instance: work.inputs, keys, contents });
        if let Some(worker) = at_work {
            worker.inputs.send_if_modified(|old| {
                let changed = **old != *inputs;
                if changed {
                    *old = inputs;
                }
                changed
            });
            return;
        }
        let (sender, receiver) = watch::channel(inputs);
        let worker = Worker::new(receiver, self.executor.clone(), self.claims.of(&address));
        let ended = Arc::clone(&self.ended);
        let task = tokio::spawn(async move {
            worker.run().await;
            ended.notify_one();
        });
        self.at_work.insert(address, AtWork { inputs: sender, task });
    }

    /// Lets the workers of these instances go on without the permits that they have.
    pub(super) fn withdraw_permits(&self, instances: &BTreeSet<String>) {
        for worker in instances.iter().filter_map(|address| self.at_work.get(address)) {
            worker.inputs.send_if_modified(|old| {
                let left = old.instance.desired.intent.without_permit();
                let is_changed = left.is_some();
                if let Some(intent) = left {
                    let mut inputs = WorkerInputs::clone(old);
                    inputs.instance.desired.intent = intent;
                    *old = Arc::new(inputs);
                }
                is_changed
            });
        }
    }

    /// Ends the workers at all other addresses after their step, and remembers them until then.
    pub(super) fn keep_only(&mut self, wanted: &BTreeSet<String>) {
        self.ending.retain(|_, task| !task.is_finished());
        let all = std::mem::take(&mut self.at_work).into_iter();
        let (kept, dismissed): (BTreeMap<_, _>, BTreeMap<_, _>) =
            all.partition(|(address, _)| wanted.contains(address));
        self.at_work = kept;
        // What they listen to ends with its sender.
        self.ending.extend(dismissed.into_iter().map(|(address, worker)| (address, worker.task)));
    }

    /// Ends all, in the middle of a step or not.
    pub(super) async fn end(self) {
        let at_work = self.at_work.into_values().map(|worker| worker.task);
        for task in at_work.chain(self.ending.into_values()) {
            // A worker between two steps is as good as a killed one: the next process continues.
            task.abort();
            let _ = task.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use wmco_core::fleet::Intent;

    use super::*;
    use crate::instance::tests::{executor, inputs, permitted};

    #[tokio::test]
    async fn a_permit_that_is_taken_back_is_gone_from_what_a_worker_goes_by() {
        let mut workers = Workers::new(executor(), Claims::new());
        for address in ["10.0.0.1", "10.0.0.2"] {
            let (inputs, task) = (watch::channel(inputs(permitted())).0, tokio::spawn(async {}));
            workers.at_work.insert(address.to_owned(), AtWork { inputs, task });
        }
        let heard = workers.at_work["10.0.0.1"].inputs.subscribe();
        workers.withdraw_permits(&["10.0.0.1".to_owned()].into());
        let intent = |address: &str| {
            workers.at_work[address].inputs.borrow().instance.desired.intent.clone()
        };
        assert_eq!(intent("10.0.0.1"), Intent::Configure(None));
        assert_eq!(intent("10.0.0.2"), permitted());
        assert!(heard.has_changed().unwrap());
    }
}
