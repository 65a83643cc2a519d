//! What connections have in common: how long they wait, how paths look, how much is on its way, what is
//! counted.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use wmco_core::limits;
use wmco_core::winpath::WindowsPath;

use crate::metrics::Counters;

/// Windows of blocks in files without a final name: while the last blocks of one are answered for, the
/// next one is sent.
const NAMELESS_WINDOWS: usize = 2;

/// How long each kind of wait may take. The defaults are those of [`wmco_core::limits`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Timeouts {
    /// TCP connect and SSH handshake together.
    pub connect: Duration,
    /// Public-key authentication.
    pub authenticate: Duration,
    /// Pause between keep-alives; [`limits::KEEP_ALIVES`] unanswered ones end the connection.
    pub keep_alive: Duration,
    /// `probe`, from the request to the exit status.
    pub probe: Duration,
    /// `apply`, from the request to the exit status.
    pub apply: Duration,
    /// Longest wait for the answer to a write while no other answer comes.
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

/// How a Windows path is written for the SFTP server.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum PathStyle {
    /// As OpenSSH on Windows wants it: `/C:/k/file`.
    #[default]
    Windows,
    /// Below a folder of a server that has no drives: `<folder>/C:/k/file`. For tests.
    Under(String),
}

impl PathStyle {
    /// `path` in the server's form.
    pub(crate) fn render(&self, path: &WindowsPath) -> String {
        match self {
            Self::Windows => path.sftp(),
            Self::Under(folder) => format!("{}{}", folder.trim_end_matches('/'), path.sftp()),
        }
    }
}

/// Everything else about a connection.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long to wait for what.
    pub timeouts: Timeouts,
    /// How the SFTP server writes paths.
    pub paths: PathStyle,
    /// Permits for SFTP writes to all hosts that wait for their answers at the same time; share one
    /// among all sessions.
    pub uploads: Arc<Semaphore>,
    /// SFTP writes that wait for their answers at the same time, per host. An upload that was cut
    /// goes on as much before its end, so it has to be the same in all attempts. At least 1.
    pub writes_in_flight: usize,
    /// Where the work is counted; share one among all sessions.
    pub counters: Arc<Counters>,
}

impl Options {
    /// Writes to one host that wait for their answers at the same time.
    pub(crate) fn blocks_in_flight(&self) -> usize {
        self.writes_in_flight.max(1)
    }

    /// Blocks in files without a final name at the same time.
    pub(crate) fn nameless_blocks(&self) -> usize {
        NAMELESS_WINDOWS * self.blocks_in_flight()
    }

    /// Bytes that wait for their answers at the same time.
    pub(crate) fn bytes_in_flight(&self) -> u64 {
        (limits::UPLOAD_BLOCK_BYTES * self.blocks_in_flight()) as u64
    }

    /// The most bytes that one cut of the connection costs an upload: those in flight, and what was
    /// written before them to files that have no final name yet. Of a long file as much as was in
    /// flight is written again, because a server may carry out the writes to a file in any order.
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
