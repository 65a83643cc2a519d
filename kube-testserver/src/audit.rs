//! The log of requests, and injected faults.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::error::ApiError;

/// Number of requests in the log.
const KEPT: usize = 10_000;

/// A request. It is listed before its changes are visible.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Request {
    /// Name of the authenticated user; empty when authentication failed.
    pub user: String,
    /// Lower-case verb, for example `get`, `list`, `watch`, `patch`.
    pub verb: String,
    /// Group, empty for core and for paths outside of resources.
    pub group: String,
    /// Plural resource, with `/` and the sub-resource if any; empty for other paths.
    pub resource: String,
    /// Namespace, empty for cluster scope.
    pub namespace: String,
    /// Object name, empty for collections.
    pub name: String,
    /// Path and query.
    pub uri: String,
    /// HTTP status of the answer (for a watch: of its start); 0 before the answer, and after an injected
    /// [`Fault::Hangup`].
    pub code: u16,
}

/// An injected fault, in place of the usual answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// Answer with this error.
    Answer(ApiError),
    /// Close the connection without an answer.
    Hangup,
    /// Wait, then answer as usual.
    Delay(Duration),
}

/// Chooses a fault for a request before it is handled.
pub(crate) type FaultHook = dyn Fn(&Request) -> Option<Fault> + Send + Sync;

/// The log and the hook.
#[derive(Default)]
pub(crate) struct Audit {
    log: Mutex<Log>,
    hook: Mutex<Option<Arc<FaultHook>>>,
}

#[derive(Default)]
struct Log {
    requests: VecDeque<Request>,
    /// Number of requests that were dropped from the log.
    forgotten: usize,
    counts: BTreeMap<(String, String), u64>,
}

impl Audit {
    /// Adds an arriving request to the log; returns its number.
    pub(crate) fn arrived(&self, request: Request) -> usize {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        *log.counts.entry((request.verb.clone(), request.resource.clone())).or_default() += 1;
        log.requests.push_back(request);
        if log.requests.len() > KEPT {
            log.requests.pop_front();
            log.forgotten += 1;
        }
        log.forgotten + log.requests.len() - 1
    }

    /// Records the answer to the request of this number.
    pub(crate) fn answered(&self, number: usize, code: u16) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let index = number.checked_sub(log.forgotten);
        if let Some(request) = index.and_then(|index| log.requests.get_mut(index)) {
            request.code = code;
        }
    }

    /// The last requests, oldest first (at most 10,000).
    pub(crate) fn requests(&self) -> Vec<Request> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.requests.iter().cloned().collect()
    }

    /// Number of requests with `verb` for `resource` (`pods`, `pods/eviction`).
    pub(crate) fn count(&self, verb: &str, resource: &str) -> u64 {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.counts.get(&(verb.to_owned(), resource.to_owned())).copied().unwrap_or(0)
    }

    /// Replaces the hook.
    pub(crate) fn set_hook(&self, hook: Option<Arc<FaultHook>>) {
        *self.hook.lock().unwrap_or_else(PoisonError::into_inner) = hook;
    }

    /// Calls the hook.
    pub(crate) fn fault(&self, request: &Request) -> Option<Fault> {
        let hook = self.hook.lock().unwrap_or_else(PoisonError::into_inner).clone();
        hook.and_then(|hook| hook(request))
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit").finish_non_exhaustive()
    }
}
