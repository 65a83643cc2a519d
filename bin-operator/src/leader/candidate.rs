//! One process in the election: what it does with the Lease that it finds.

use std::time::Duration;

use futures::{Stream, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use tokio::sync::watch;
use tokio::time;
use tokio_util::sync::CancellationToken;
use wmco_core::limits;
use wmco_core::names::objects::LEADER_LEASE;

use super::{Term, Times};
use crate::clock::Moment;

/// One process in the election.
pub(super) struct Candidate {
    leases: Api<Lease>,
    identity: String,
    times: Times,
    seen: Option<Seen>,
    /// Whether it has asked for the Lease, so that it may hold it.
    asked: bool,
}

/// The Lease of another process.
struct Seen {
    holder: String,
    renewed: Option<MicroTime>,
    /// After the answer that showed it first: the renewal was before that.
    since: Moment,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Attempt {
    /// The Lease is ours, and good until then.
    Holds(Moment),
    /// It is another's, which has for so long to renew it.
    Waits(Duration),
    /// Nobody knows.
    Failed,
}

/// What a candidate does with the Lease that it found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Move {
    Create,
    Renew,
    TakeOver,
    /// It may be taken over after this.
    Wait(Duration),
}

impl Candidate {
    pub(super) const fn new(leases: Api<Lease>, identity: String, times: Times) -> Self {
        Self { leases, identity, times, seen: None, asked: false }
    }

    /// Waits for the Lease, then renews it until its time is over or until `stop`; tells `term`.
    pub(super) async fn stand(&mut self, term: &watch::Sender<Term>, stop: &CancellationToken) {
        if let Some(end) = self.wait(stop).await {
            term.send_replace(Term::Until(end));
            self.hold(end, term, stop).await;
        }
    }

    /// Waits until the Lease is ours, and gives the end of our time; `None` when told to stop.
    ///
    /// A watch tells of a Lease that was given back, so that a rollout does not wait for an attempt. It
    /// decides nothing: who misses an event is as late as the next attempt.
    async fn wait(&mut self, stop: &CancellationToken) -> Option<Moment> {
        let mut freed = std::pin::pin!(freed(self.leases.clone()));
        loop {
            let pause = match self.attempt(self.times.attempt()).await {
                Attempt::Holds(end) => return Some(end),
                Attempt::Waits(left) => left.min(self.times.retry()),
                Attempt::Failed => self.times.retry(),
            };
            tokio::select! {
                () = time::sleep(pause) => {}
                Some(()) = freed.next() => {}
                () = stop.cancelled() => return None,
            }
        }
    }

    /// Renews the Lease, which is good until `end`, until that is over or until `stop`.
    async fn hold(
        &mut self,
        mut end: Moment,
        term: &watch::Sender<Term>,
        stop: &CancellationToken,
    ) {
        loop {
            let left = end.since(Moment::now());
            tokio::select! {
                () = time::sleep(self.times.retry().min(left)) => {}
                () = stop.cancelled() => return,
            }
            let left = end.since(Moment::now());
            if left.is_zero() {
                tracing::warn!("the lease was not renewed in time");
                return;
            }
            match self.attempt(self.times.attempt().min(left)).await {
                Attempt::Holds(later) => {
                    end = later;
                    term.send_replace(Term::Until(end));
                }
                Attempt::Waits(_) => return,
                // The API server may be away for a while.
                Attempt::Failed => {}
            }
        }
    }

    /// One look at the Lease, and what it makes necessary, within `limit`.
    async fn attempt(&mut self, limit: Duration) -> Attempt {
        let asked = Moment::now();
        let problem = match time::timeout(limit, self.round()).await {
            Ok(Ok(None)) => return Attempt::Holds(asked + self.times.renew_deadline()),
            Ok(Ok(Some(left))) => return Attempt::Waits(left),
            Ok(Err(error)) => crate::chain(&error),
            Err(_) => format!("the API server did not answer within {} s", limit.as_secs_f32()),
        };
        tracing::warn!(problem, "no answer about the lease, asking again");
        Attempt::Failed
    }

    /// Gets or renews the Lease, or says how long another process may still renew it.
    async fn round(&mut self) -> kube::Result<Option<Duration>> {
        let found = self.leases.get_opt(LEADER_LEASE).await?;
        let spec = found.as_ref().and_then(|lease| lease.spec.as_ref());
        let unchanged = self.unchanged(spec, Moment::now());
        let next = choose(found.as_ref(), &self.identity, unchanged, self.times.lease());
        let spec = self.ours(spec, next);
        match (next, found) {
            (Move::Wait(left), _) => return Ok(Some(left)),
            (Move::Create | Move::Renew | Move::TakeOver, Some(found)) => {
                let lease = Lease { metadata: found.metadata, spec: Some(spec) };
                self.asked = true;
                self.leases.replace(LEADER_LEASE, &PostParams::default(), &lease).await?;
            }
            (Move::Create | Move::Renew | Move::TakeOver, None) => {
                let metadata =
                    ObjectMeta { name: Some(LEADER_LEASE.into()), ..ObjectMeta::default() };
                let lease = Lease { metadata, spec: Some(spec) };
                self.asked = true;
                self.leases.create(&PostParams::default(), &lease).await?;
            }
        }
        Ok(None)
    }

    /// For how long nobody has changed the Lease, which was seen before `now`.
    fn unchanged(&mut self, spec: Option<&LeaseSpec>, now: Moment) -> Duration {
        let holder = holder(spec).to_owned();
        let renewed = spec.and_then(|spec| spec.renew_time.clone());
        if let Some(seen) = &self.seen
            && seen.holder == holder
        {
            if seen.renewed == renewed {
                return now.since(seen.since);
            }
        } else if !holder.is_empty() && holder != self.identity {
            tracing::info!(holder, "another process leads, waiting for its lease");
        }
        self.seen = Some(Seen { holder, renewed, since: now });
        Duration::ZERO
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
            lease_transitions: Some(transitions.saturating_add((next == Move::TakeOver).into())),
            ..LeaseSpec::default()
        }
    }

    /// Lets the next candidate in at once.
    pub(super) async fn release(&self) {
        if !self.asked {
            return;
        }
        let released = async {
            loop {
                match self.give_back().await {
                    // A renewal of ours was on its way.
                    Err(kube::Error::Api(status)) if status.code == 409 => {}
                    other => return other,
                }
            }
        };
        match time::timeout(limits::LEASE_RELEASE.unsigned_abs(), released).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "lease not released, it will run out"),
            Err(_) => tracing::warn!("lease not released in time, it will run out"),
        }
    }

    async fn give_back(&self) -> kube::Result<()> {
        let Some(mut lease) = self.leases.get_opt(LEADER_LEASE).await? else { return Ok(()) };
        if let Some(spec) = &mut lease.spec
            && spec.holder_identity.as_ref() == Some(&self.identity)
        {
            spec.holder_identity = Some(String::new());
            self.leases.replace(LEADER_LEASE, &PostParams::default(), &lease).await?;
        }
        Ok(())
    }
}

/// Tells each time that nobody holds the Lease. Nothing is watched while nobody listens.
fn freed(leases: Api<Lease>) -> impl Stream<Item = ()> {
    let ours = watcher::Config::default().fields(&format!("metadata.name={LEADER_LEASE}"));
    watcher(leases, ours).default_backoff().filter_map(|event| async {
        match event {
            Ok(watcher::Event::Apply(lease) | watcher::Event::InitApply(lease)) => {
                holder(lease.spec.as_ref()).is_empty().then_some(())
            }
            Ok(watcher::Event::Delete(_)) => Some(()),
            Ok(watcher::Event::Init | watcher::Event::InitDone) => None,
            Err(error) => {
                tracing::warn!(%error, "the lease cannot be watched, asking for it now and then");
                None
            }
        }
    })
}

fn holder(spec: Option<&LeaseSpec>) -> &str {
    spec.and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default()
}

/// The rule of the election. The Lease has been `unchanged` for so long, by our own clock; `default`
/// is how long it is good for when it does not say.
fn choose(found: Option<&Lease>, identity: &str, unchanged: Duration, default: Duration) -> Move {
    let Some(lease) = found else { return Move::Create };
    let spec = lease.spec.as_ref();
    let seconds = spec.and_then(|spec| spec.lease_duration_seconds);
    let good = seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
    let left = good.unwrap_or(default).saturating_sub(unchanged);
    match holder(spec) {
        holder if holder == identity => Move::Renew,
        "" => Move::TakeOver,
        _ if left.is_zero() => Move::TakeOver,
        _ => Move::Wait(left),
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
        check(Some("other"), 14, Move::Wait(Duration::from_secs(1)));
    }

    #[test]
    fn stale_lease_of_another_is_taken() {
        check(Some("other"), 15, Move::TakeOver);
    }
}
