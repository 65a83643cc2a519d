//! Pauses of programs that try again.

use std::error::Error;
use std::time::Duration;

use wmco_core::text::chain;

/// First and longest pause. Much shorter than on a real host, where nobody watches.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

/// Pauses that double.
#[derive(Debug)]
pub(super) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(FIRST)
    }
}

impl Backoff {
    /// Logs that a program could not do `what`, and waits before the next attempt.
    pub(super) async fn failed(&mut self, what: &str, error: &(dyn Error + Sync + 'static)) {
        tracing::debug!(error = chain(error), pause = ?self.0, "a program could not {what}");
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(LONGEST);
    }
}
