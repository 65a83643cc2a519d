//! Counts connections, commands, bytes and restarts of a simulated host.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Counts since the host was started, or since they were reset.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct HostCounts {
    /// Accepted TCP connections.
    pub connections: u64,
    /// Successful authentications.
    pub authentications: u64,
    /// Authentications with a key that is not authorized.
    pub refusals: u64,
    /// Remote commands as sent, in order.
    pub executions: Vec<String>,
    /// SFTP sessions.
    pub sftp_sessions: u64,
    /// Bytes of SFTP writes.
    pub bytes_uploaded: u64,
    /// Bytes received on the wire.
    pub bytes_received: u64,
    /// Consecutive waits of the client for an answer, as [`RoundTrips`](crate::round_trips::RoundTrips) counts them; of
    /// all connections together.
    pub round_trips: u64,
    /// Restarts.
    pub restarts: u64,
}

/// Counts that several tasks update.
#[derive(Debug, Default)]
pub(super) struct Tally(Mutex<HostCounts>);

impl Tally {
    pub(super) fn counts(&self) -> HostCounts {
        self.lock().clone()
    }

    pub(super) fn reset(&self) {
        *self.lock() = HostCounts::default();
    }

    pub(super) fn connected(&self) {
        self.lock().connections += 1;
    }

    pub(super) fn authenticated(&self) {
        self.lock().authentications += 1;
    }

    pub(super) fn refused(&self) {
        self.lock().refusals += 1;
    }

    pub(super) fn executed(&self, command: &str) {
        self.lock().executions.push(command.to_owned());
    }

    pub(super) fn opened_sftp(&self) {
        self.lock().sftp_sessions += 1;
    }

    pub(super) fn uploaded(&self, bytes: u64) {
        self.lock().bytes_uploaded += bytes;
    }

    pub(super) fn received(&self, bytes: u64) {
        self.lock().bytes_received += bytes;
    }

    pub(super) fn went_round(&self) {
        self.lock().round_trips += 1;
    }

    pub(super) fn restarted(&self) {
        self.lock().restarts += 1;
    }

    fn lock(&self) -> MutexGuard<'_, HostCounts> {
        // Counting cannot leave a partial value, so a panic elsewhere does no harm.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
