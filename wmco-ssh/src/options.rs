//! Options of connections: time-outs, path style, limits of concurrent writes, counters.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use wmco_core::limits;
use wmco_core::winpath::WindowsPath;

use crate::metrics::Counters;

/// Windows of blocks in files without a final name: while the last blocks of a file await their responses, those of the
/// next file are sent.
const NAMELESS_WINDOWS: usize = 2;

/// Time-outs of connections. The defaults are those of [`wmco_core::limits`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Timeouts {
    /// TCP connect and SSH handshake together.
    pub connect: Duration,
    /// Public-key authentication.
    pub authenticate: Duration,
    /// Interval of keep-alives; [`limits::KEEP_ALIVES`] unanswered ones end the connection.
    pub keep_alive: Duration,
    /// `probe`, from the request to the exit status.
    pub probe: Duration,
    /// `apply`, from the request to the exit status.
    pub apply: Duration,
    /// Longest wait for the response to a write while no other response arrives.
    pub upload_stall: Duration,
    /// The same for any other SFTP request, and the opening of a channel.
    pub request: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: limits::CONNECT.unsigned_abs(),
            authenticate: limits::AUTHENTICATE.unsigned_abs(),
            keep_alive: limits::KEEP_ALIVE.unsigned_abs(),
            probe: limits::PROBE.unsigned_abs(),
            apply: limits::APPLY.unsigned_abs(),
            upload_stall: limits::UPLOAD_STALL.unsigned_abs(),
            request: limits::UPLOAD_STALL.unsigned_abs(),
        }
    }
}

/// The form of Windows paths for the SFTP server.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum PathStyle {
    /// The form of OpenSSH on Windows: `/C:/k/file`.
    #[default]
    Windows,
    /// Below a folder of a server that has no drives: `<folder>/C:/k/file`. For tests.
    Under(String),
}

impl PathStyle {
    /// Renders `path` in the server's form.
    pub(crate) fn render(&self, path: &WindowsPath) -> String {
        match self {
            Self::Windows => path.sftp(),
            Self::Under(folder) => format!("{}{}", folder.trim_end_matches('/'), path.sftp()),
        }
    }
}

/// Options of a connection besides its route.
#[derive(Clone, Debug)]
pub struct Options {
    /// Time-outs.
    pub timeouts: Timeouts,
    /// Form of paths for the SFTP server.
    pub paths: PathStyle,
    /// Permits for unacknowledged SFTP writes to all hosts; share one semaphore among all sessions.
    pub uploads: Arc<Semaphore>,
    /// Unacknowledged SFTP writes per host. An interrupted upload resumes that many blocks before its end, so all
    /// attempts need the same value. At least 1.
    pub writes_in_flight: usize,
    /// Counters; share them among all sessions.
    pub counters: Arc<Counters>,
}

impl Options {
    /// Returns the most unacknowledged writes to a host.
    pub(crate) fn blocks_in_flight(&self) -> usize {
        self.writes_in_flight.max(1)
    }

    /// Returns the most blocks in files without a final name.
    pub(crate) fn nameless_blocks(&self) -> usize {
        NAMELESS_WINDOWS * self.blocks_in_flight()
    }

    /// Returns the most unacknowledged bytes.
    pub(crate) fn bytes_in_flight(&self) -> u64 {
        (limits::UPLOAD_BLOCK_BYTES * self.blocks_in_flight()) as u64
    }

    /// Returns the most bytes that an upload sends again after a disconnect: unacknowledged ones, and those written
    /// before them to files without a final name. For a long file, the last unacknowledged window is written again,
    /// because a server may carry out the writes to a file in any order.
    ///
    /// Source: draft-ietf-secsh-filexfer-02, section 6.1.
    pub fn upload_window_bytes(&self) -> u64 {
        (1 + NAMELESS_WINDOWS as u64) * self.bytes_in_flight()
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            timeouts: Timeouts::default(),
            paths: PathStyle::default(),
            uploads: Arc::new(Semaphore::new(limits::UPLOAD_BLOCKS_IN_FLIGHT_IN_ALL)),
            writes_in_flight: limits::UPLOAD_BLOCKS_IN_FLIGHT,
            counters: Arc::default(),
        }
    }
}
