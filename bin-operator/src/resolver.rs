//! Names of instances, resolved beside the reconcile passes and kept for a while.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use tokio::sync::watch;
use wmco_core::instances::{Resolutions, Unresolved};
use wmco_core::limits;

/// Answers so far; cheap to clone.
#[derive(Clone)]
pub struct Resolver {
    state: Arc<Mutex<State>>,
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    answers: Resolutions,
    asked: BTreeSet<String>,
    asked_at: Option<Timestamp>,
}

impl Resolver {
    /// No answers yet.
    pub fn new() -> Self {
        Self { state: Arc::default(), changed: watch::channel(0).0 }
    }

    /// The answers so far. Names without one, or with an old one, are looked up meanwhile; a change
    /// is told through [`Self::changes`].
    pub fn answers(&self, names: BTreeSet<String>, now: Timestamp) -> Resolutions {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let old = |at: Timestamp| now.duration_since(at) > limits::NAME_LIFETIME;
        let due = names != state.asked || state.asked_at.is_some_and(old);
        if due && !names.is_empty() {
            state.asked.clone_from(&names);
            state.asked_at = Some(now);
            tokio::spawn(self.clone().look_up(names));
        }
        state.answers.clone()
    }

    /// Tells of new answers.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    async fn look_up(self, names: BTreeSet<String>) {
        let look_ups = names.into_iter().map(|name| async {
            let answer = ask(&name).await;
            (name, answer)
        });
        let found = futures::future::join_all(look_ups).await;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = state.answers.clone();
        for (name, answer) in found {
            state.answers.insert(&name, answer);
        }
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
    let found = tokio::net::lookup_host((name, 0)).await.map_err(|error| {
        // The system's resolver does not tell "no such name" from "no answer".
        Unresolved::Failed { reason: error.to_string() }
    })?;
    let ipv4 = found.filter_map(|address| match address.ip() {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    });
    ipv4.into_iter().next().ok_or(Unresolved::NoIpv4)
}
