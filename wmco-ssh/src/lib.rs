//! SSH and SFTP transport to Windows hosts: sessions, host-key pinning, uploads, remote commands.
//!
//! A [`Session`] is one authenticated connection whose host key passed a [`HostKeyPolicy`]. On it,
//! [`SshHost`] offers what the operator does with a host as the trait [`HostAgent`]: probe it, bring
//! contents, apply a plan, take left-overs away. A [`Pool`] keeps at most one session per host.
//!
//! # Guarantees
//! - The only commands that reach a shell are [`AgentCommand`](wmco_core::protocol::AgentCommand)s.
//! - A host key is handed out only after the login; another key than the pinned one ends the
//!   connection before anything secret is sent.
//! - Every wait has an end ([`Timeouts`]), every buffer a bound, and dropping a future or a session
//!   ends its channels, its tasks and its socket.
//! - A file gets its final staged name only when all of it is there. Nothing is taken for there by its
//!   name and length.
//! - An agent is brought whole, into a folder and a file that were not there before.
//! - No name that a server sent is used as a path without the checks of
//!   [`WindowsPath`](wmco_core::winpath::WindowsPath).
//!
//! # Not here
//! What to do on a host (`wmco-core`), and doing it there (`wmco-services`).
//!
//! ```no_run
//! use std::sync::Arc;
//! use wmco_core::protocol::AgentLocation;
//! use wmco_core::secret::Secret;
//! use wmco_ssh::{Credentials, HostAgent, Options, PrivateKey, Route, Session, SshHost};
//! use wmco_ssh::{Target, TcpDialer};
//!
//! # async fn example(pem: Secret) -> Result<(), Box<dyn std::error::Error>> {
//! let credentials = Credentials::new("Administrator", PrivateKey::parse(&pem)?);
//! // Trusts whichever key it is shown; a caller keeps that and pins it from then on.
//! let route = Route::new(Target::new("10.0.0.7"), credentials);
//! let session = Session::connect(&route, &TcpDialer, &Options::default()).await?;
//! println!("{:?}", session.host_key());
//! let host = SshHost::new(session);
//! println!("{:?}", host.probe(AgentLocation::Installed).await?);
//! host.close().await;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod blob;
mod contact;
mod dial;
mod error;
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
pub mod username;

pub use blob::{Blob, BlobError, Payload};
pub use dial::{ByteStream, Dialer, Duplex, TcpDialer};
pub use error::{ConnectError, HostError, Retry, Stage};
pub use host::{ApplyOutcome, HostAgent, NoReport, ProbeOutcome, SshHost};
pub use host_key::{HostKeyPolicy, HostKeyVerdict, SeenHostKey};
pub use key::{KeyError, PrivateKey, PublicKey};
pub use metrics::{Counters, Snapshot};
pub use options::{Options, PathStyle, Timeouts};
pub use pool::{Lease, Pool, PoolGauges, PoolLimits};
pub use route::{Credentials, Route, Target};
pub use session::{ExecOutcome, Exited, Session};
pub use upload::UploadProgress;
