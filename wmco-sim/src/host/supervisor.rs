//! Follows events of the machine: performs restarts, starts and ends programs.

use std::sync::Arc;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;
use wmco_services::fake::FakeEvent;

use super::power;
use super::programs::Programs;
use super::shared::Shared;

/// Runs until the host is stopped.
pub(super) async fn supervise(host: Arc<Shared>, mut events: UnboundedReceiver<FakeEvent>) {
    let mut restart: Option<JoinHandle<_>> = None;
    let mut programs = Programs::new(Arc::clone(&host));
    programs.follow();
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            () = host.stop.cancelled() => None,
        };
        match event {
            Some(FakeEvent::RestartOrdered) => {
                // A second order has no effect during a restart.
                if restart.as_ref().is_none_or(JoinHandle::is_finished) {
                    let run = power::restart(Arc::clone(&host));
                    let run = host.stop.clone().run_until_cancelled_owned(run);
                    restart = Some(host.tasks.spawn(run));
                }
            }
            Some(FakeEvent::ServiceChanged { .. } | FakeEvent::Booted) => {
                programs.follow();
                host.changes.send_modify(|count| *count += 1);
            }
            None => break,
        }
    }
}
