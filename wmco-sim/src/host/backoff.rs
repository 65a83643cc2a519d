//! Pauses between attempts of simulated programs.

use std::error::Error;
use std::time::Duration;

use wmco_core::text::chain;

/// First and longest pause. Much shorter than on a real host, to keep tests fast.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

/// A pause that doubles with each failure.
#[derive(Debug)]
pub(super) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(FIRST)
    }
}

impl Backoff {
    /// Logs that a program failed to do `what`, and waits before the next attempt.
    pub(super) async fn failed(&mut self, what: &str, error: &(dyn Error + Sync + 'static)) {
        tracing::debug!(error = chain(error), pause = ?self.0, "a program could not {what}");
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(LONGEST);
    }
}
