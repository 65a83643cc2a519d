//! Counters for metrics and tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio_util::sync::CancellationToken;

/// Counters of all sessions that share them. Cheap to update from any task.
#[derive(Debug, Default)]
pub struct Counters {
    connects: AtomicU64,
    executions: AtomicU64,
    sftp_sessions: AtomicU64,
    uploaded_bytes: AtomicU64,
    wire_bytes: AtomicU64,
    open: AtomicU64,
    uploading: AtomicU64,
    blocks_in_flight: AtomicU64,
}

/// The values of [`Counters`] at a point in time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Snapshot {
    /// Connections made, including those to jump hosts and through them.
    pub connects: u64,
    /// Remote commands run.
    pub executions: u64,
    /// SFTP sessions opened.
    pub sftp_sessions: u64,
    /// Bytes of file content passed to SFTP, including repeated ones.
    pub uploaded_bytes: u64,
    /// Bytes written to sockets, including SSH overhead.
    pub wire_bytes: u64,
    /// Connections open now, counted as above. A connection counts until its last task has ended.
    pub open: u64,
    /// Hosts that are receiving files now.
    pub uploading: u64,
    /// File blocks whose write is not acknowledged yet.
    pub blocks_in_flight: u64,
}

impl Counters {
    /// Returns the current values.
    pub fn snapshot(&self) -> Snapshot {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Snapshot {
            connects: read(&self.connects),
            executions: read(&self.executions),
            sftp_sessions: read(&self.sftp_sessions),
            uploaded_bytes: read(&self.uploaded_bytes),
            wire_bytes: read(&self.wire_bytes),
            open: read(&self.open),
            uploading: read(&self.uploading),
            blocks_in_flight: read(&self.blocks_in_flight),
        }
    }

    pub(crate) fn executed(&self) {
        self.executions.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn sftp_opened(&self) {
        self.sftp_sessions.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a host that is receiving files, until the result is dropped.
    pub(crate) fn uploading(&self) -> Counted<'_> {
        Counted::new(&self.uploading)
    }

    /// Counts an unacknowledged block, until the result is dropped.
    pub(crate) fn block_sent(&self) -> Counted<'_> {
        Counted::new(&self.blocks_in_flight)
    }

    pub(crate) fn uploaded(&self, bytes: u64) {
        self.uploaded_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn written(&self, bytes: u64) {
        self.wire_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Increments a counter while it exists.
pub(crate) struct Counted<'a>(&'a AtomicU64);

impl<'a> Counted<'a> {
    fn new(count: &'a AtomicU64) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts an open socket while it exists. Its drop wakes the tasks that wait for the end of the socket.
#[derive(Debug)]
pub(crate) struct Open {
    counters: Arc<Counters>,
    ended: CancellationToken,
}

impl Open {
    pub(crate) fn new(counters: &Arc<Counters>) -> Self {
        counters.connects.fetch_add(1, Ordering::Relaxed);
        counters.open.fetch_add(1, Ordering::Relaxed);
        Self { counters: Arc::clone(counters), ended: CancellationToken::new() }
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns a token that is cancelled when the socket is closed.
    pub(crate) fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.counters.open.fetch_sub(1, Ordering::Relaxed);
        self.ended.cancel();
    }
}
