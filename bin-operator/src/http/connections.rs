//! The connections that are served at the same time.

use std::collections::VecDeque;

use tokio::task::{AbortHandle, JoinSet};
use wmco_core::limits;

/// The connections that are served; dropping it ends them.
#[derive(Default)]
pub(super) struct Connections {
    tasks: JoinSet<()>,
    /// Oldest first.
    open: VecDeque<AbortHandle>,
}

impl Connections {
    /// Serves one more. When there are too many, the oldest makes room: an answer takes milliseconds, so
    /// it is one that says nothing, and a probe that waits behind such ones would fail.
    pub(super) fn add(&mut self, serving: impl Future<Output = ()> + Send + 'static) {
        while self.tasks.try_join_next().is_some() {}
        self.open.retain(|connection| !connection.is_finished());
        if self.open.len() >= limits::HTTP_CONNECTIONS
            && let Some(oldest) = self.open.pop_front()
        {
            oldest.abort();
        }
        self.open.push_back(self.tasks.spawn(serving));
    }
}
