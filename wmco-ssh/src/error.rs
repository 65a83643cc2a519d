//! What can go wrong with a connection and on it, and whether trying again helps.

use std::fmt;
use std::io;
use std::time::Duration;

use crate::blob::BlobError;

/// A cause of any type.
pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Whether to try the same thing again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Retry {
    /// Later it may well work.
    Helps,
    /// Only while a new machine may still be running its first-boot script.
    WhileNew,
    /// Not before a person changed something.
    NeedsPerson,
}

/// Where in the life of a connection something happened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stage {
    /// TCP connect and SSH handshake.
    Connect,
    /// Login.
    Authenticate,
    /// A jump host's connection to the next host.
    Forward,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "the ssh handshake",
            Self::Authenticate => "the login",
            Self::Forward => "connecting on",
        })
    }
}

/// Why there is no session. `target` is address and port.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The server refused every key of ours for that user.
    #[error(
        "{target} refused the private key for user `{user}`, \
         put its public key into the host's authorized keys or correct the user name"
    )]
    AuthenticationRefused {
        /// The host.
        target: String,
        /// The user.
        user: String,
    },
    /// The connection ended before it was ready.
    #[error("{target} dropped the connection during {stage}, try again")]
    Dropped {
        /// The host.
        target: String,
        /// How far it came.
        stage: Stage,
        /// What ended it.
        source: Cause,
    },
    /// The host shows another key than the pinned one.
    #[error("{target} shows host key {found} but {expected} is pinned, find out who answers there")]
    HostKeyMismatch {
        /// The host.
        target: String,
        /// Fingerprint of the pinned key, `SHA256:...`.
        expected: String,
        /// Fingerprint of the key shown.
        found: String,
    },
    /// The jump host does not connect on.
    #[error(
        "jump host {via} cannot connect to {target}, check that it allows tcp forwarding and \
         reaches that address"
    )]
    NotForwarded {
        /// The host behind it.
        target: String,
        /// The jump host.
        via: String,
        /// What it said.
        source: Cause,
    },
    /// What answers is no SSH server that we can talk to.
    #[error("{target} breaks the ssh protocol or shares no algorithm with us, check its server")]
    Protocol {
        /// The host.
        target: String,
        /// What was wrong.
        source: Cause,
    },
    /// Nothing listens there.
    #[error("{target} refuses connections, start its ssh service")]
    Refused {
        /// The host.
        target: String,
        /// What the system says.
        source: io::Error,
    },
    /// No answer in time.
    #[error("{target} did not finish {stage} in time, check that it runs and the network to it")]
    TimedOut {
        /// The host.
        target: String,
        /// What was not finished.
        stage: Stage,
    },
    /// There is no way to the host.
    #[error("{target} cannot be reached, check its address and the network to it")]
    Unreachable {
        /// The host.
        target: String,
        /// What the system says.
        source: io::Error,
    },
}

impl ConnectError {
    /// Whether to try again.
    pub const fn retry(&self) -> Retry {
        match self {
            Self::AuthenticationRefused { .. } => Retry::WhileNew,
            Self::HostKeyMismatch { .. } | Self::Protocol { .. } => Retry::NeedsPerson,
            Self::Dropped { .. }
            | Self::NotForwarded { .. }
            | Self::Refused { .. }
            | Self::TimedOut { .. }
            | Self::Unreachable { .. } => Retry::Helps,
        }
    }

    /// Short stable name for logs, metrics and tests.
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::AuthenticationRefused { .. } => "authentication-refused",
            Self::Dropped { .. } => "dropped",
            Self::HostKeyMismatch { .. } => "host-key-mismatch",
            Self::NotForwarded { .. } => "not-forwarded",
            Self::Protocol { .. } => "protocol",
            Self::Refused { .. } => "refused",
            Self::TimedOut { .. } => "timed-out",
            Self::Unreachable { .. } => "unreachable",
        }
    }

    /// The right variant for what connecting a socket said.
    pub(crate) fn from_io(target: String, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused { target, source },
            io::ErrorKind::TimedOut => Self::TimedOut { target, stage: Stage::Connect },
            _ => Self::Unreachable { target, source },
        }
    }

    /// The right variant for what the SSH library said.
    pub(crate) fn from_ssh(target: String, stage: Stage, source: russh::Error) -> Self {
        if is_cut(&source) {
            Self::Dropped { target, stage, source: source.into() }
        } else {
            Self::Protocol { target, source: source.into() }
        }
    }
}

/// Whether the error says no more than that the connection ended.
pub(crate) fn is_cut(error: &russh::Error) -> bool {
    use russh::Error as E;
    matches!(
        error,
        E::ConnectionTimeout
            | E::Disconnect
            | E::Elapsed(_)
            | E::HUP
            | E::IO(_)
            | E::InactivityTimeout
            | E::Join(_)
            | E::KeepaliveTimeout
            | E::RecvError
            | E::SendError
    )
}

/// The first `letters` of a host's text, without control characters but line feeds.
pub(crate) fn printable(text: &str, letters: usize) -> String {
    text.chars().filter(|c| *c == '\n' || !c.is_control()).take(letters).collect()
}

/// Why something on a host did not work. `doing` says what was done, in a few words.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// Content to send cannot be had on our side.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The server does not let us open another channel or start SFTP.
    #[error("the ssh server refused {doing}, check its limits and that its sftp subsystem is on")]
    ChannelRefused {
        /// What it refused.
        doing: &'static str,
        /// What it said, if anything.
        source: Option<Cause>,
    },
    /// The connection ended.
    #[error("the connection ended while {doing}, connect again")]
    Dropped {
        /// What was under way.
        doing: &'static str,
        /// What ended it, if known.
        source: Option<Cause>,
    },
    /// The plan has no JSON form.
    #[error("the plan cannot be written as json, this is a mistake in the operator")]
    Plan {
        /// Why not.
        source: serde_json::Error,
    },
    /// The SFTP server refused a request.
    #[error("{doing} `{path}` failed on the host, check the disk and who may write there")]
    Sftp {
        /// What was done.
        doing: &'static str,
        /// To which path, as the server knows it.
        path: String,
        /// What the server said.
        source: Cause,
    },
    /// No end, or no progress, in time.
    #[error("{doing} made no progress for {after:?}, check the host's load and network")]
    TimedOut {
        /// What was under way.
        doing: &'static str,
        /// The limit.
        after: Duration,
    },
    /// The command wrote more than we take.
    #[error("the agent wrote more than {limit} bytes, check that it is ours")]
    TooMuchOutput {
        /// The limit.
        limit: usize,
    },
}

impl HostError {
    /// Whether to try again, on a new connection.
    pub const fn retry(&self) -> Retry {
        match self {
            Self::Blob(_) | Self::Plan { .. } => Retry::NeedsPerson,
            Self::ChannelRefused { .. }
            | Self::Dropped { .. }
            | Self::Sftp { .. }
            | Self::TimedOut { .. }
            | Self::TooMuchOutput { .. } => Retry::Helps,
        }
    }

    /// Short stable name for logs, metrics and tests.
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::Blob(_) => "content",
            Self::ChannelRefused { .. } => "channel-refused",
            Self::Dropped { .. } => "dropped",
            Self::Plan { .. } => "plan",
            Self::Sftp { .. } => "sftp",
            Self::TimedOut { .. } => "timed-out",
            Self::TooMuchOutput { .. } => "too-much-output",
        }
    }
}
