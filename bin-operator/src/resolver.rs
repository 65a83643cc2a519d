//! Names and addresses of instances, resolved beside the reconcile passes and kept for a while.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};

use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use tokio::sync::watch;
use wmco_core::instances::{self, Resolutions, Unresolved};
use wmco_core::limits;

/// Questions that are asked side by side; each holds a thread.
const SIDE_BY_SIDE: usize = 32;

/// Answers so far; cheap to clone.
#[derive(Clone)]
pub struct Resolver {
    state: Arc<Mutex<State>>,
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    answers: Resolutions,
    asked: Questions,
    asked_at: Option<Timestamp>,
}

#[derive(Clone, Default, Eq, PartialEq)]
struct Questions {
    names: BTreeSet<String>,
    addresses: BTreeSet<Ipv4Addr>,
}

impl Resolver {
    /// No answers yet.
    pub fn new() -> Self {
        Self { state: Arc::default(), changed: watch::channel(0).0 }
    }

    /// The answers so far about the hosts that are listed in `data`. Those without an answer, or
    /// with an old one, are looked up meanwhile; a change is told through [`Self::changes`].
    pub fn answers(&self, data: &BTreeMap<String, String>, now: Timestamp) -> Resolutions {
        let questions =
            Questions { names: instances::names(data), addresses: instances::addresses(data) };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let old = |at: Timestamp| now.duration_since(at) > limits::NAME_LIFETIME;
        let due = questions != state.asked || state.asked_at.is_some_and(old);
        if due && questions != Questions::default() {
            state.asked.clone_from(&questions);
            state.asked_at = Some(now);
            tokio::spawn(self.clone().look_up(questions));
        }
        state.answers.clone()
    }

    /// Tells of new answers.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    async fn look_up(self, questions: Questions) {
        let forward = stream::iter(questions.names)
            .map(|name| async { (ask(&name).await, name) })
            .buffer_unordered(SIDE_BY_SIDE)
            .collect::<Vec<_>>();
        let reverse = stream::iter(questions.addresses)
            .map(|address| async move { (address, name_of(address).await) })
            .buffer_unordered(SIDE_BY_SIDE)
            .collect::<Vec<_>>();
        let forward = forward.await;
        self.take(|answers| {
            for (answer, name) in forward {
                answers.insert(&name, answer);
            }
        });
        // What is asked for last: who listed names must not wait for it.
        let reverse = reverse.await;
        self.take(|answers| {
            for (address, name) in reverse {
                answers.insert_reverse(address.into(), name.into_iter().collect());
            }
        });
    }

    fn take(&self, answer: impl FnOnce(&mut Resolutions)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = state.answers.clone();
        answer(&mut state.answers);
        if state.answers != before {
            self.changed.send_modify(|count| *count += 1);
        }
    }
}

impl Default for Resolver {
    fn default() -> Self {
        Self::new()
    }
}

async fn ask(name: &str) -> Result<Ipv4Addr, Unresolved> {
    let all = addresses_of(name).await.map_err(|error| {
        // The system's resolver does not tell "no such name" from "no answer".
        Unresolved::Failed { reason: error.to_string() }
    })?;
    all.first().copied().ok_or(Unresolved::NoIpv4)
}

async fn addresses_of(name: &str) -> std::io::Result<Vec<Ipv4Addr>> {
    let found = tokio::net::lookup_host((name, 0)).await?;
    let ipv4 = found.filter_map(|address| match address.ip() {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    });
    Ok(ipv4.collect())
}

/// The name of `address`, if it has one that leads back to it: whoever runs reverse DNS could claim
/// any. Source: `spec/csr.md`, W-20.
async fn name_of(address: Ipv4Addr) -> Option<String> {
    let look_up = move || dns_lookup::lookup_addr(&IpAddr::V4(address)).ok();
    let name = tokio::task::spawn_blocking(look_up).await.ok()??;
    // Without a name, the system's resolver gives the address itself.
    let is_name = name.parse::<IpAddr>().is_err();
    let leads_back = is_name && addresses_of(&name).await.ok()?.contains(&address);
    leads_back.then_some(name)
}

#[cfg(test)]
mod tests {
    use wmco_core::instances::Resolve as _;

    use super::*;

    /// Every system knows these two, without a network.
    #[tokio::test]
    async fn names_and_addresses_are_looked_up_once() {
        let resolver = Resolver::new();
        let mut changes = resolver.changes();
        let hosts = ["127.0.0.1", "localhost"];
        let data = hosts.map(|host| (host.to_owned(), String::new())).into();
        let now = Timestamp::UNIX_EPOCH;
        let loopback = Ipv4Addr::LOCALHOST;
        let mut answers = resolver.answers(&data, now);
        assert_eq!(answers.resolve("localhost"), Err(Unresolved::Pending));
        while answers.reverse(loopback.into()).is_empty() {
            changes.changed().await.unwrap();
            answers = resolver.answers(&data, now);
        }
        assert_eq!(answers.resolve("localhost"), Ok(loopback));
        assert_eq!(answers.reverse(loopback.into()), ["localhost"]);
    }
}
