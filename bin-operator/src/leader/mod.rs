//! Leader election by a Lease, with the rules of client-go: a holder renews, others wait until the
//! holder has not renewed for the lease's duration *as seen by their own clock*.
//!
//! # Guarantees
//! - [`Leadership::check`] compares clocks; nobody has to be awake to turn a flag. A process that was
//!   stopped, or whose machine slept, for longer than the renew deadline is refused at the first check.
//! - A renewal counts from before it was asked for, what others did counts from after it was seen.
//!   So a leader's time is over before anybody else's begins, however slow the answers are.
//! - A process leads once. When its time is over, it ends, so nothing that it knew from then is used.
//!
//! # Not here
//! A request that is on its way when the time ends is not called back. That is why the renew deadline
//! is shorter than the lease.

mod candidate;
mod guard;
mod times;

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time;
use tokio_util::sync::CancellationToken;
use wmco_core::limits;

use crate::clock::Moment;
use candidate::Candidate;
pub use guard::guarded;
pub use times::{Span, Times, TimesArgs, TimesError};

/// Whether this process leads, for everybody who writes.
#[derive(Clone, Debug)]
pub struct Leadership(watch::Receiver<Term>);

/// When this process leads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Term {
    /// Not yet.
    NotYet,
    /// Until this moment; a renewal makes it a later one.
    Until(Moment),
    /// For ever.
    Unchallenged,
    /// It has led, and never will again.
    Over,
}

/// This process does not lead, so it must not write.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("this process does not lead any more, another one carries on")]
pub struct NotLeading;

impl Leadership {
    /// Leads for ever: for a process that is known to be the only one.
    pub fn unchallenged() -> Self {
        Self(watch::channel(Term::Unchallenged).1)
    }

    /// To be asked right before each write.
    ///
    /// # Errors
    /// [`NotLeading`] when another process may have taken over.
    pub fn check(&self) -> Result<(), NotLeading> {
        let left = self.0.borrow().left(Moment::now());
        if left.is_zero() { Err(NotLeading) } else { Ok(()) }
    }

    /// Waits until this process leads.
    pub async fn gained(&mut self) {
        if self.0.wait_for(|term| *term != Term::NotYet).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until this process, which has led, no longer does.
    pub async fn lost(&mut self) {
        loop {
            let left = self.0.borrow_and_update().left(Moment::now());
            if left.is_zero() {
                return;
            }
            // Where nobody renews any more, only the time is left.
            if let Ok(Err(_)) = time::timeout(left, self.0.changed()).await {
                time::sleep(left).await;
            }
        }
    }
}

impl Term {
    /// For how long from `now` on the process leads.
    fn left(self, now: Moment) -> Duration {
        match self {
            Self::NotYet | Self::Over => Duration::ZERO,
            Self::Until(end) => end.since(now),
            Self::Unchallenged => Duration::MAX,
        }
    }
}

/// The name of one process among candidates: that of its pod, and a random number, for a container
/// that was started again, or a pod without a name, is another process.
pub fn identity(pod: &str, process: u64) -> String {
    format!("{pod}_{process:016x}")
}

/// Starts the election. When `stop` is cancelled it ends and gives the Lease back: to be done after
/// the last write, since the next candidate begins at once.
pub fn elect(
    leases: Api<Lease>,
    identity: String,
    times: Times,
    stop: CancellationToken,
) -> (Leadership, JoinHandle<()>) {
    let (term, seen) = watch::channel(Term::NotYet);
    let task = tokio::spawn(async move {
        let mut candidate = Candidate::new(leases, identity, times);
        // A renewal that is cut off could be stored after the Lease was given back.
        let patience = async {
            stop.cancelled().await;
            time::sleep(limits::LEASE_RELEASE.unsigned_abs()).await;
        };
        tokio::select! {
            () = candidate.stand(&term, &stop) => {}
            () = patience => {}
        }
        term.send_replace(Term::Over);
        stop.cancelled().await;
        candidate.release().await;
    });
    (Leadership(seen), task)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(term: Term, leads: bool) {
        let (_sender, receiver) = watch::channel(term);
        assert_eq!(Leadership(receiver).check().is_ok(), leads);
    }

    #[test]
    fn a_leader_leads_until_its_time_is_over() {
        let second = Duration::from_secs(1);
        check(Term::NotYet, false);
        check(Term::Until(Moment::now() + second), true);
        check(Term::Until(Moment::now()), false);
        check(Term::Over, false);
        check(Term::Unchallenged, true);
    }

    #[tokio::test]
    async fn a_leader_that_nobody_renews_hears_when_its_time_is_over() {
        let (sender, receiver) = watch::channel(Term::NotYet);
        let mut leadership = Leadership(receiver);
        sender.send_replace(Term::Until(Moment::now() + Duration::from_secs(3600)));
        leadership.gained().await;
        leadership.check().unwrap();
        sender.send_replace(Term::Until(Moment::now() + Duration::from_millis(50)));
        drop(sender);
        leadership.lost().await;
        leadership.check().unwrap_err();
    }

    #[test]
    fn two_processes_of_one_pod_have_two_names() {
        assert_eq!(identity("pod-1", 17), "pod-1_0000000000000011");
    }
}
