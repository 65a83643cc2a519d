//! What goes on with each instance, for whoever watches: the demo's screen, or nobody.

use std::sync::Arc;

use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::broadcast;
use wmco_core::node::{Awaited, InstanceInputs, Step};
use wmco_ssh::UploadProgress;

/// How many happenings a slow watcher may lag behind before it loses some.
const BACKLOG: usize = 1024;

/// Something that happened with one instance.
#[derive(Clone, Debug)]
pub struct Happening {
    /// The instance.
    pub address: String,
    /// Its Node, if there is one.
    pub node: Option<String>,
    /// What happened.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum What {
    /// A step begins.
    Step {
        /// The step, in words.
        action: String,
        /// Why.
        because: String,
    },
    /// The agent came so far with a step of its own.
    HostStep(String),
    /// An upload came so far.
    Upload(UploadProgress),
    /// It came to rest.
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
pub type Gate = dyn Fn(&Happening) -> BoxFuture<'static, ()> + Send + Sync;

/// Tells of happenings; cheap to clone.
#[derive(Clone)]
pub struct Progress {
    happenings: broadcast::Sender<Happening>,
    gate: Option<Arc<Gate>>,
}

impl Progress {
    /// Tells nobody until somebody watches.
    pub fn new() -> Self {
        Self { happenings: broadcast::channel(BACKLOG).0, gate: None }
    }

    /// Lets `gate` hold up steps, so that somebody can look, or end the process, between two.
    #[must_use]
    pub fn gated(self, gate: Arc<Gate>) -> Self {
        Self { gate: Some(gate), ..self }
    }

    /// Everything that happens from now on.
    pub fn watch(&self) -> broadcast::Receiver<Happening> {
        self.happenings.subscribe()
    }

    pub(crate) async fn step(&self, instance: &InstanceInputs, step: &Step) {
        let (action, because) = (step.action.to_string(), step.because.to_string());
        let happening = happening(instance, What::Step { action, because });
        if let Some(gate) = &self.gate {
            gate(&happening).await;
        }
        // Nobody watching is fine.
        let _ = self.happenings.send(happening);
    }

    pub(crate) fn stage(&self, instance: &InstanceInputs, stage: Stage) {
        self.tell(instance, What::Stage(stage));
    }

    pub(crate) fn failed(&self, instance: &InstanceInputs, error: String, retry_at: Timestamp) {
        self.tell(instance, What::Failed { error, retry_at });
    }

    pub(crate) fn tell(&self, instance: &InstanceInputs, what: What) {
        let _ = self.happenings.send(happening(instance, what));
    }
}

fn happening(instance: &InstanceInputs, what: What) -> Happening {
    let node = instance.node.as_ref().map(|node| node.name.clone());
    Happening { address: instance.address.clone(), node, what }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}
