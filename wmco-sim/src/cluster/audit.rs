//! What was asked of the server, and faults it answers with on purpose.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::error::ApiError;

/// How many requests the log keeps.
const KEPT: usize = 10_000;

/// One request as it was answered (or, for a watch, begun).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Request {
    /// Name of the authenticated user; empty when authentication failed.
    pub user: String,
    /// Lower-case verb, for example `get`, `list`, `watch`, `patch`.
    pub verb: String,
    /// Group, empty for core and for paths that are no resource.
    pub group: String,
    /// Plural resource, with `/` and the sub-resource if any; empty for other paths.
    pub resource: String,
    /// Namespace, empty for cluster scope.
    pub namespace: String,
    /// Object name, empty for collections.
    pub name: String,
    /// Path and query.
    pub uri: String,
    /// HTTP status of the answer.
    pub code: u16,
}

/// What to do with a request instead of answering it.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Answer with this error.
    Answer(ApiError),
    /// Close the connection without an answer.
    Hangup,
    /// Wait, then answer as usual.
    Delay(Duration),
}

/// Decides about a request before it is handled; its `code` is 0.
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
    counts: BTreeMap<(String, String), u64>,
}

impl Audit {
    /// Takes a request into the log.
    pub(crate) fn record(&self, request: Request) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        *log.counts.entry((request.verb.clone(), request.resource.clone())).or_default() += 1;
        log.requests.push_back(request);
        if log.requests.len() > KEPT {
            log.requests.pop_front();
        }
    }

    /// The last requests, oldest first (at most 10,000).
    pub(crate) fn requests(&self) -> Vec<Request> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.requests.iter().cloned().collect()
    }

    /// How often `verb` was asked of `resource` (`pods`, `pods/eviction`).
    pub(crate) fn count(&self, verb: &str, resource: &str) -> u64 {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.counts.get(&(verb.to_owned(), resource.to_owned())).copied().unwrap_or(0)
    }

    /// Replaces the hook.
    pub(crate) fn set_hook(&self, hook: Option<Arc<FaultHook>>) {
        *self.hook.lock().unwrap_or_else(PoisonError::into_inner) = hook;
    }

    /// Asks the hook.
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
