#![doc = include_str!("../README.md")]
//!
//! # Overview
//! A [`Route`] names host, credentials, jump host and [`HostKeyPolicy`]. A [`Session`] is an authenticated connection
//! along a route. [`SshHost`] implements the trait [`HostAgent`] on a session: probe the host, upload contents, apply a
//! plan, remove left-overs. A [`Pool`] keeps at most one session per host.

#![forbid(unsafe_code)]

mod blob;
mod contact;
mod dial;
mod error;
mod greeting;
mod host;
mod host_key;
mod key;
mod metrics;
mod options;
mod pool;
mod route;
mod session;
mod stream;
mod upload;

pub use blob::{Blob, BlobError, Payload};
pub use dial::{ByteStream, Dialer, Duplex, TcpDialer};
pub use error::{ConnectError, HostError, Reached, Retry, Stage};
pub use host::{ApplyOutcome, HostAgent, NoReport, ProbeOutcome, SshHost};
pub use host_key::{HostKeyPolicy, HostKeyVerdict, SeenHostKey};
pub use key::{EncryptedForm, KeyError, PrivateKey, PublicKey};
pub use metrics::{Counters, Snapshot};
pub use options::{Options, PathStyle, Timeouts};
pub use pool::{Lease, Pool, PoolGauges, PoolLimits};
pub use route::{Credentials, Route, Target};
pub use session::{ExecOutcome, Exited, Session};
pub use upload::UploadProgress;
