//! Leader election by a Lease, with the rules of client-go: a holder renews, others wait until the
//! holder has not renewed for the lease's duration *as seen by their own clock*.

mod times;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ObjectMeta, PostParams};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wmco_core::names::objects::LEADER_LEASE;

pub use times::{Span, Times, TimesArgs, TimesError};

/// Whether this process leads, for everybody who writes.
#[derive(Clone, Debug)]
pub struct Leadership(watch::Receiver<bool>);

/// This process does not lead, so it must not write.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("this process does not lead any more, another one carries on")]
pub struct NotLeading;

impl Leadership {
    /// Leads for ever: for a process that is known to be the only one.
    pub fn unchallenged() -> Self {
        Self(watch::channel(true).1)
    }

    /// To be asked right before each write.
    ///
    /// # Errors
    /// [`NotLeading`] when another process may have taken over.
    pub fn check(&self) -> Result<(), NotLeading> {
        if *self.0.borrow() { Ok(()) } else { Err(NotLeading) }
    }

    /// Waits until this process leads.
    pub async fn gained(&mut self) {
        if self.0.wait_for(|leads| *leads).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until this process no longer leads.
    pub async fn lost(&mut self) {
        if self.0.wait_for(|leads| !*leads).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Starts the election. When `stop` is cancelled it ends and gives the Lease back: to be done after
/// the last write, since the next candidate begins at once.
pub fn elect(
    leases: Api<Lease>,
    identity: String,
    times: Times,
    stop: CancellationToken,
) -> (Leadership, tokio::task::JoinHandle<()>) {
    let (leads, seen) = watch::channel(false);
    let task = tokio::spawn(async move {
        let mut candidate = Candidate { leases, identity, times, seen: None, renewed: None };
        loop {
            let leading = tokio::select! {
                leading = candidate.attempt() => leading,
                () = stop.cancelled() => break,
            };
            leads.send_if_modified(|old| std::mem::replace(old, leading) != leading);
            tokio::select! {
                () = tokio::time::sleep(times.retry()) => {}
                () = stop.cancelled() => break,
            }
        }
        leads.send_replace(false);
        candidate.release().await;
    });
    (Leadership(seen), task)
}

struct Candidate {
    leases: Api<Lease>,
    identity: String,
    times: Times,
    /// The Lease's last holder and renewal, and when we first saw them.
    seen: Option<(Option<String>, Option<MicroTime>, Instant)>,
    /// When we asked for the last renewal of ours that was stored.
    renewed: Option<Instant>,
}

/// What a candidate does with the Lease that it found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Move {
    Create,
    Renew,
    TakeOver,
    Wait,
}

impl Candidate {
    /// One round; returns whether we lead afterwards. It takes no longer than we may lead without
    /// having renewed: an API server that does not answer must not keep us in office.
    async fn attempt(&mut self) -> bool {
        let asked = Instant::now();
        let until = self.renewed.unwrap_or(asked) + self.times.renew_deadline();
        let problem = match tokio::time::timeout_at(until, self.round(asked)).await {
            Ok(Ok(leading)) => {
                self.renewed = leading.then_some(asked);
                return leading;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the API server does not answer".to_owned(),
        };
        tracing::debug!(problem, "lease not renewed");
        // A hiccup of the API server does not end a lease that nobody else may take yet.
        self.renewed = self.renewed.filter(|at| at.elapsed() < self.times.renew_deadline());
        self.renewed.is_some()
    }

    async fn round(&mut self, now: Instant) -> kube::Result<bool> {
        let found = self.leases.get_opt(LEADER_LEASE).await?;
        let spec = found.as_ref().and_then(|lease| lease.spec.as_ref());
        let since = self.note(spec, now);
        let unchanged = now.duration_since(since);
        let next = choose(found.as_ref(), &self.identity, unchanged, self.times.lease());
        let lease = self.ours(spec, next);
        match (next, found) {
            (Move::Wait, _) => return Ok(false),
            (_, Some(found)) => {
                let lease = Lease { metadata: found.metadata, spec: Some(lease) };
                self.leases.replace(LEADER_LEASE, &PostParams::default(), &lease).await?;
            }
            (_, None) => {
                let metadata =
                    ObjectMeta { name: Some(LEADER_LEASE.into()), ..ObjectMeta::default() };
                let lease = Lease { metadata, spec: Some(lease) };
                self.leases.create(&PostParams::default(), &lease).await?;
            }
        }
        Ok(true)
    }

    /// Remembers when the Lease last changed under our eyes, and returns that.
    fn note(&mut self, spec: Option<&LeaseSpec>, now: Instant) -> Instant {
        let holder = spec.and_then(|s| s.holder_identity.clone());
        let renewal = spec.and_then(|s| s.renew_time.clone());
        match &self.seen {
            Some((h, r, since)) if *h == holder && *r == renewal => *since,
            _ => {
                self.seen = Some((holder, renewal, now));
                now
            }
        }
    }

    fn ours(&self, found: Option<&LeaseSpec>, next: Move) -> LeaseSpec {
        let now = MicroTime(Timestamp::now());
        let transitions = found.and_then(|s| s.lease_transitions).unwrap_or_default();
        let kept = found.and_then(|s| s.acquire_time.clone()).filter(|_| next == Move::Renew);
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(self.times.lease().as_secs()).ok(),
            acquire_time: Some(kept.unwrap_or_else(|| now.clone())),
            renew_time: Some(now),
            lease_transitions: Some(transitions + i32::from(next == Move::TakeOver)),
            ..LeaseSpec::default()
        }
    }

    /// Lets the next candidate in at once.
    async fn release(&mut self) {
        if self.renewed.is_none() {
            return;
        }
        let released = async {
            let Some(mut lease) = self.leases.get_opt(LEADER_LEASE).await? else { return Ok(()) };
            if let Some(spec) = &mut lease.spec
                && spec.holder_identity.as_ref() == Some(&self.identity)
            {
                spec.holder_identity = Some(String::new());
                self.leases.replace(LEADER_LEASE, &PostParams::default(), &lease).await?;
            }
            Ok::<(), kube::Error>(())
        };
        match tokio::time::timeout(self.times.renew_deadline(), released).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "lease not released, it will run out"),
            Err(_) => tracing::debug!("lease not released in time, it will run out"),
        }
    }
}

/// The rule of the election. The Lease has been `unchanged` for so long, by our own clock; `default`
/// is how long it is good for when it does not say.
fn choose(found: Option<&Lease>, identity: &str, unchanged: Duration, default: Duration) -> Move {
    let Some(spec) = found.map(|lease| lease.spec.clone().unwrap_or_default()) else {
        return Move::Create;
    };
    let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    match spec.holder_identity.as_deref().unwrap_or_default() {
        holder if holder == identity => Move::Renew,
        "" => Move::TakeOver,
        _ if unchanged > seconds.map_or(default, Duration::from_secs) => Move::TakeOver,
        _ => Move::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(holder: Option<&str>, seconds: u64, expected: Move) {
        let lease = holder.map(|holder| Lease {
            spec: Some(LeaseSpec {
                holder_identity: Some(holder.into()),
                lease_duration_seconds: Some(15),
                ..LeaseSpec::default()
            }),
            ..Lease::default()
        });
        let unchanged = Duration::from_secs(seconds);
        assert_eq!(choose(lease.as_ref(), "me", unchanged, Duration::from_secs(1)), expected);
    }

    #[test]
    fn absent_lease_is_created() {
        check(None, 0, Move::Create);
    }

    #[test]
    fn own_lease_is_renewed() {
        check(Some("me"), 100, Move::Renew);
    }

    #[test]
    fn released_lease_is_taken_at_once() {
        check(Some(""), 0, Move::TakeOver);
    }

    #[test]
    fn fresh_lease_of_another_is_respected() {
        check(Some("other"), 15, Move::Wait);
    }

    #[test]
    fn stale_lease_of_another_is_taken() {
        check(Some("other"), 16, Move::TakeOver);
    }
}
