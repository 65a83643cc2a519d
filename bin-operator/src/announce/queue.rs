//! Sends Events beside all other work: nobody waits for the API server to take one.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, Recorder};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use wmco_core::event_limiter::{EventLimiter, EventSeries};
use wmco_core::limits;

use crate::metrics::{DropLabels, Metrics};

/// An Event on its way.
pub(super) struct Queued {
    /// What is to be published.
    pub event: Event,
    /// The object that it is recorded on.
    pub on: ObjectReference,
    /// What it is about, where that object stands for many.
    pub subject: String,
    /// Whether it is about an attempt that failed and is repeated.
    pub is_repeated: bool,
}

enum Order {
    Send(Box<Queued>),
    /// All before it have been sent.
    Mark(oneshot::Sender<()>),
}

/// The end of the queue where Events are put in; cheap to clone. The other one ends with the last clone.
#[derive(Clone)]
pub(super) struct Queue {
    orders: mpsc::Sender<Order>,
    metrics: Metrics,
}

impl Queue {
    /// An empty queue, and the task that sends.
    pub(super) fn new(recorder: Recorder, metrics: Metrics) -> Self {
        let (orders, mut incoming) = mpsc::channel(limits::EVENTS_WAITING);
        let dropped = metrics.clone();
        tokio::spawn(async move {
            let mut sender = Sender {
                recorder: Arc::new(recorder),
                limiter: EventLimiter::default(),
                begun: Instant::now(),
                metrics: dropped,
            };
            while let Some(order) = incoming.recv().await {
                match order {
                    Order::Send(queued) => sender.send(&queued).await,
                    Order::Mark(passed) => {
                        // Whoever does not wait any more needs no answer.
                        let _ = passed.send(());
                    }
                }
            }
        });
        Self { orders, metrics }
    }

    /// Puts an Event in; drops it if too many wait.
    pub(super) fn put(&self, queued: Queued) {
        if let Err(mpsc::error::TrySendError::Full(_)) =
            self.orders.try_send(Order::Send(Box::new(queued)))
        {
            count(&self.metrics, "queue-full");
        }
    }

    /// Waits until all that was put in has been sent, for so long at most.
    pub(super) async fn sent(&self, most: Duration) {
        let (passed, all_sent) = oneshot::channel();
        let marked = async {
            if self.orders.send(Order::Mark(passed)).await.is_ok() {
                // An error means that nobody sends any more.
                let _ = all_sent.await;
            }
        };
        if tokio::time::timeout(most, marked).await.is_err() {
            tracing::warn!("some events were not sent in time, the log has them");
        }
    }
}

struct Sender {
    recorder: Arc<Recorder>,
    limiter: EventLimiter,
    begun: Instant,
    metrics: Metrics,
}

impl Sender {
    async fn send(&mut self, Queued { event, on, subject, is_repeated }: &Queued) {
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        let object = [&on.kind, &on.namespace, &on.name].map(text).join("/");
        let failure = is_repeated.then(|| event.reason.clone());
        let series = EventSeries { object, subject: subject.clone(), failure };
        if !self.limiter.admits(&series, self.begun.elapsed()) {
            return count(&self.metrics, "rate");
        }
        if let Err(error) = self.recorder.publish(event, on).await {
            tracing::debug!(%error, reason = event.reason, "event not published");
        }
    }
}

/// Counts an Event that is not sent; the log has it.
fn count(metrics: &Metrics, cause: &'static str) {
    metrics.events_dropped.get_or_create(&DropLabels { cause }).inc();
}
