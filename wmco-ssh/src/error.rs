//! Errors of connecting and of connections, and whether a retry helps.

use std::fmt;
use std::io;
use std::time::Duration;

use crate::blob::BlobError;

/// A cause of any type.
pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Whether a retry helps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Retry {
    /// A later retry may succeed.
    Helps,
    /// A retry may succeed only while a new machine may still run its first-boot script.
    WhileNew,
    /// A person has to change something first.
    NeedsPerson,
}

/// A stage of connecting.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stage {
    /// TCP connect and SSH handshake.
    Connect,
    /// Login.
    Authenticate,
    /// A jump host's connection to the next host.
    Forward,
}

impl Stage {
    /// The option of the operator that limits its time.
    const fn flag(self) -> &'static str {
        match self {
            Self::Connect | Self::Forward => "--connect-timeout",
            Self::Authenticate => "--login-timeout",
        }
    }
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

/// How far a connection had come when its time was over.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Reached {
    /// Nothing: not even TCP was connected.
    Nothing,
    /// TCP was connected.
    Tcp {
        /// The first line that came in place of the version of an SSH server.
        line: Option<String>,
    },
    /// The server's version came.
    Version {
        /// As the server wrote it.
        version: String,
    },
    /// The keys of the connection were agreed, and the host key was accepted.
    KeysAgreed,
    /// This key was offered for the login.
    Offered {
        /// Its algorithm and fingerprint.
        key: String,
    },
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("tcp was not connected"),
            Self::Tcp { line: None } => {
                f.write_str("tcp was connected, but no version of an ssh server came")
            }
            Self::Tcp { line: Some(line) } => write!(
                f,
                "tcp was connected, but no version of an ssh server came, only a text that begins with `{line}`"
            ),
            Self::Version { version } => {
                write!(f, "the server said `{version}`, but the keys were not agreed")
            }
            Self::KeysAgreed => f.write_str("the keys were agreed, but no key was offered yet"),
            Self::Offered { key } => {
                write!(f, "the keys were agreed and {key} was offered, but no answer came")
            }
        }
    }
}

/// Why connecting failed. `target` is address and port.
///
/// Exhaustive on purpose: who decides by it what becomes of a host has to look at a new kind.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The server refused all our keys for that user.
    #[error(
        "{target} refused the private key ({keys}) for user `{user}`, put its public key into the host's authorized keys, \
         correct the user name, or allow its kind in `PubkeyAcceptedAlgorithms`"
    )]
    AuthenticationRefused {
        /// The host.
        target: String,
        /// The user.
        user: String,
        /// Kind and length of each key that was offered, for example `RSA 4096`.
        keys: Box<str>,
    },
    /// The server turned the connection away before its version, so no login was tried.
    #[error(
        "{target} turned the connection away before a login (it said `{said}`), because it has too many at the moment or \
         refuses this client for some time; if that goes on, see its log, and `MaxStartups` and \
         `PerSourcePenalties` in its configuration"
    )]
    Busy {
        /// The host.
        target: String,
        /// The server's words.
        said: String,
    },
    /// The connection ended before it was ready.
    #[error(
        "{target} dropped the connection during {stage}, see the log of its ssh server and what stands between it and us"
    )]
    Dropped {
        /// The host.
        target: String,
        /// The stage.
        stage: Stage,
        /// The cause.
        source: Cause,
    },
    /// The host presents another key than the pinned one.
    #[error("{target} shows host key {found} but {expected} is pinned, find out who answers there")]
    HostKeyMismatch {
        /// The host.
        target: String,
        /// Fingerprint of the pinned key, `SHA256:...`.
        expected: String,
        /// Fingerprint of the key shown.
        found: String,
    },
    /// The server has announced that it takes no key of this kind, so its refusal says nothing of ours.
    #[error(
        "{target} takes no keys of this kind ({keys}) for logins, use an ed25519 or ecdsa key, or allow `rsa-sha2-256` and \
         `rsa-sha2-512` in its ssh server"
    )]
    NoAlgorithm {
        /// The host.
        target: String,
        /// Kind and length of each key that was offered.
        keys: Box<str>,
    },
    /// The server takes no public keys, so it has said nothing of ours.
    #[error(
        "{target} offers {methods} for a login but no public keys, allow `publickey` in its ssh server"
    )]
    NoPublicKey {
        /// The host.
        target: String,
        /// The methods that it offers.
        methods: String,
    },
    /// The jump host refuses to forward the connection.
    #[error(
        "jump host {via} cannot connect to {target}, check that it allows tcp forwarding and \
         reaches that address"
    )]
    NotForwarded {
        /// The host behind the jump host.
        target: String,
        /// The jump host.
        via: String,
        /// The jump host's error.
        source: Cause,
    },
    /// The peer is no SSH server, or shares no algorithm with us.
    #[error("{target} breaks the ssh protocol or shares no algorithm with us, check its server")]
    Protocol {
        /// The host.
        target: String,
        /// The cause.
        source: Cause,
    },
    /// Nothing listens at that address and port.
    #[error("{target} refuses connections, start its ssh service")]
    Refused {
        /// The host.
        target: String,
        /// The cause.
        source: io::Error,
    },
    /// A stage did not finish in time.
    #[error(
        "{target} did not finish {stage} in time ({reached}), check that it runs and the network to it, \
         or give slow hosts more time with `run {}` of the operator", .stage.flag()
    )]
    TimedOut {
        /// The host.
        target: String,
        /// The stage.
        stage: Stage,
        /// How far it came.
        reached: Reached,
    },
    /// The server ended the login before it had looked at every key.
    #[error(
        "{target} allows too few tries for a login ({said}), raise `MaxAuthTries` in its ssh server"
    )]
    TooManyTries {
        /// The host.
        target: String,
        /// The server's words.
        said: String,
    },
    /// There is no route to the host, or its name has no address.
    #[error("{target} cannot be reached, check its address and the network to it")]
    Unreachable {
        /// The host.
        target: String,
        /// The cause.
        source: io::Error,
    },
    /// The server accepts the key and wants another proof as well.
    #[error(
        "{target} takes the private key but wants {methods} as well, let \
         `AuthenticationMethods publickey` be enough for the user in its ssh server"
    )]
    WantsMore {
        /// The host.
        target: String,
        /// The methods that are still wanted.
        methods: String,
    },
}

impl ConnectError {
    /// Returns whether a retry helps.
    pub const fn retry(&self) -> Retry {
        match self {
            Self::AuthenticationRefused { .. } => Retry::WhileNew,
            Self::HostKeyMismatch { .. }
            | Self::NoAlgorithm { .. }
            | Self::NoPublicKey { .. }
            | Self::Protocol { .. }
            | Self::TooManyTries { .. }
            | Self::WantsMore { .. } => Retry::NeedsPerson,
            Self::Busy { .. }
            | Self::Dropped { .. }
            | Self::NotForwarded { .. }
            | Self::Refused { .. }
            | Self::TimedOut { .. }
            | Self::Unreachable { .. } => Retry::Helps,
        }
    }

    /// Whether the host answered at all. A host that is slow, busy or cuts the connection is there.
    ///
    /// Source: `docs/contract/ssh.md`, SSH51.
    pub const fn host_answered(&self) -> bool {
        match self {
            Self::NotForwarded { .. }
            | Self::Refused { .. }
            | Self::TimedOut { reached: Reached::Nothing | Reached::Tcp { line: None }, .. }
            | Self::Unreachable { .. } => false,
            Self::AuthenticationRefused { .. }
            | Self::Busy { .. }
            | Self::Dropped { .. }
            | Self::HostKeyMismatch { .. }
            | Self::NoAlgorithm { .. }
            | Self::NoPublicKey { .. }
            | Self::Protocol { .. }
            | Self::TimedOut {
                reached:
                    Reached::Tcp { line: Some(_) }
                    | Reached::Version { .. }
                    | Reached::KeysAgreed
                    | Reached::Offered { .. },
                ..
            }
            | Self::TooManyTries { .. }
            | Self::WantsMore { .. } => true,
        }
    }

    /// Short stable name for logs, metrics and tests.
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::AuthenticationRefused { .. } => "authentication-refused",
            Self::Busy { .. } => "busy",
            Self::Dropped { .. } => "dropped",
            Self::HostKeyMismatch { .. } => "host-key-mismatch",
            Self::NoAlgorithm { .. } => "no-algorithm",
            Self::NoPublicKey { .. } => "no-public-key",
            Self::NotForwarded { .. } => "not-forwarded",
            Self::Protocol { .. } => "protocol",
            Self::Refused { .. } => "refused",
            Self::TimedOut { .. } => "timed-out",
            Self::TooManyTries { .. } => "too-many-tries",
            Self::Unreachable { .. } => "unreachable",
            Self::WantsMore { .. } => "wants-more",
        }
    }

    /// Converts an error of dialling.
    pub(crate) fn from_io(target: String, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused { target, source },
            io::ErrorKind::TimedOut => {
                Self::TimedOut { target, stage: Stage::Connect, reached: Reached::Nothing }
            }
            _ => Self::Unreachable { target, source },
        }
    }

    /// Converts an error of the SSH library.
    pub(crate) fn from_ssh(target: String, stage: Stage, source: russh::Error) -> Self {
        if is_cut(&source) {
            Self::Dropped { target, stage, source: source.into() }
        } else {
            Self::Protocol { target, source: source.into() }
        }
    }
}

/// Whether the error only means that the connection ended.
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

/// Returns the first `letters` characters of a host's text, without control characters except line feeds.
pub(crate) fn printable(text: &str, letters: usize) -> String {
    text.chars().filter(|c| *c == '\n' || !c.is_control()).take(letters).collect()
}

/// Why an operation on a host failed. `doing` names the operation in a few words.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// Content for upload is not available on our side.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The server refuses another channel or its SFTP subsystem.
    #[error("the ssh server refused {doing}, check its limits and that its sftp subsystem is on")]
    ChannelRefused {
        /// The refused operation.
        doing: &'static str,
        /// The server's error, if any.
        source: Option<Cause>,
    },
    /// The connection ended.
    #[error(
        "the connection ended while {doing}, see whether the host restarted, and the network to it"
    )]
    Dropped {
        /// The operation in progress.
        doing: &'static str,
        /// The cause, if known.
        source: Option<Cause>,
    },
    /// The server runs another program in place of our commands.
    #[error(
        "the ssh server runs another program in place of our commands (it says {}{}), take `ForceCommand` off the user \
         in its configuration or `command=` off the line of our key, or give the user `cmd` or PowerShell as shell",
        Quoted(.said.as_deref()), if *.ends { "" } else { ", and does not end" }
    )]
    ForcedCommand {
        /// The first line that the program wrote, if any.
        said: Option<String>,
        /// Whether it came to its end.
        ends: bool,
    },
    /// The plan cannot be serialized as JSON.
    #[error("the plan cannot be written as json, this is a mistake in the operator")]
    Plan {
        /// The cause.
        source: serde_json::Error,
    },
    /// The SFTP server refused a request.
    #[error("{doing} `{path}` failed on the host, check the disk and who may write there")]
    Sftp {
        /// The operation.
        doing: &'static str,
        /// Its path, as the server knows it.
        path: String,
        /// The server's error.
        source: Cause,
    },
    /// The account is for SFTP alone, so no command runs.
    #[error(
        "the ssh server allows this user sftp but no commands, take `ForceCommand internal-sftp` or the like \
         off the user in its configuration"
    )]
    SftpOnly,
    /// An operation did not finish, or made no progress, in time.
    #[error("{doing} made no progress for {after:?}, check the host's load and network")]
    TimedOut {
        /// The operation.
        doing: &'static str,
        /// The limit.
        after: Duration,
    },
    /// The command wrote more output than we accept.
    #[error("the agent wrote more than {limit} bytes, check that it is ours")]
    TooMuchOutput {
        /// The limit.
        limit: usize,
    },
}

/// A program's words, if there are any.
struct Quoted<'a>(Option<&'a str>);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(said) => write!(f, "`{said}`"),
            None => f.write_str("nothing"),
        }
    }
}

impl HostError {
    /// Converts the SSH library's error of a request for a channel.
    pub(crate) fn from_channel(doing: &'static str, error: russh::Error) -> Self {
        if is_cut(&error) {
            Self::Dropped { doing, source: Some(error.into()) }
        } else {
            Self::ChannelRefused { doing, source: Some(error.into()) }
        }
    }

    /// Returns whether a retry on a new connection helps.
    pub const fn retry(&self) -> Retry {
        match self {
            Self::Blob(_) | Self::ForcedCommand { .. } | Self::Plan { .. } | Self::SftpOnly => {
                Retry::NeedsPerson
            }
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
            Self::ForcedCommand { .. } => "forced-command",
            Self::Plan { .. } => "plan",
            Self::Sftp { .. } => "sftp",
            Self::SftpOnly => "sftp-only",
            Self::TimedOut { .. } => "timed-out",
            Self::TooMuchOutput { .. } => "too-much-output",
        }
    }
}
