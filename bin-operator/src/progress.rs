//! Reports the progress of each instance to subscribers: the demo's screen, or none.

use std::sync::Arc;

use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::broadcast;
use wmco_core::node::{Awaited, InstanceInputs, Step};
use wmco_ssh::UploadProgress;

/// How many events a slow subscriber may lag behind before it loses some.
const BACKLOG: usize = 1024;

/// Progress of one instance.
#[derive(Clone, Debug)]
pub struct ProgressEvent {
    /// The instance.
    pub address: String,
    /// Its Node, if there is one.
    pub node: Option<String>,
    /// The progress.
    pub kind: ProgressKind,
}

/// A kind of progress.
#[derive(Clone, Debug)]
pub enum ProgressKind {
    /// A step begins.
    Step {
        /// The step, in words.
        action: String,
        /// Why.
        because: String,
    },
    /// The agent reports on a step of its own.
    HostStep(String),
    /// An upload continues.
    Upload(UploadProgress),
    /// Its worker rests.
    Stage(Stage),
    /// A step failed.
    Failed {
        /// Why.
        error: String,
        /// When it is tried again.
        retry_at: Timestamp,
    },
}

/// Where an instance rests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stage {
    /// It waits for something.
    Awaits(Awaited),
    /// Nothing is left to do.
    Settled,
    /// It was removed.
    Gone,
}

/// Asked before each step; the step is taken when the answer comes.
pub type Gate = dyn Fn(&ProgressEvent) -> BoxFuture<'static, ()> + Send + Sync;

/// Sends events to subscribers; cheap to clone.
#[derive(Clone)]
pub struct Progress {
    events: broadcast::Sender<ProgressEvent>,
    gate: Option<Arc<Gate>>,
}

impl Progress {
    /// Without subscribers until [`subscribe`](Self::subscribe).
    pub fn new() -> Self {
        Self { events: broadcast::channel(BACKLOG).0, gate: None }
    }

    /// Lets `gate` hold up steps, so that somebody can look, or end the process, between two.
    #[must_use]
    pub fn gated(self, gate: Arc<Gate>) -> Self {
        Self { gate: Some(gate), ..self }
    }

    /// All events from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<ProgressEvent> {
        self.events.subscribe()
    }

    pub(crate) async fn step(&self, instance: &InstanceInputs, step: &Step) {
        let (action, because) = (step.action.to_string(), step.because.to_string());
        let event = event(instance, ProgressKind::Step { action, because });
        if let Some(gate) = &self.gate {
            gate(&event).await;
        }
        // No subscriber is no error.
        let _ = self.events.send(event);
    }

    pub(crate) fn stage(&self, instance: &InstanceInputs, stage: Stage) {
        self.tell(instance, ProgressKind::Stage(stage));
    }

    pub(crate) fn failed(&self, instance: &InstanceInputs, error: String, retry_at: Timestamp) {
        self.tell(instance, ProgressKind::Failed { error, retry_at });
    }

    pub(crate) fn tell(&self, instance: &InstanceInputs, kind: ProgressKind) {
        let _ = self.events.send(event(instance, kind));
    }
}

fn event(instance: &InstanceInputs, kind: ProgressKind) -> ProgressEvent {
    let node = instance.node.as_ref().map(|node| node.name.clone());
    ProgressEvent { address: instance.address.clone(), node, kind }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}
