//! An authenticated connection to a host.

mod algorithms;
mod channels;
mod exec;
mod forced;
mod forward;
mod handler;
mod login;
mod sftp;
mod steps;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use russh::Disconnect;
use russh::client::{Config, Handle, connect_stream};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use wmco_core::limits;

use crate::dial::Dialer;
use crate::error::{ConnectError, Stage, is_cut};
use crate::host_key::{HostKeyPolicy, HostKeyVerdict, SeenHostKey};
use crate::key::PublicKey;
use crate::metrics::Open;
use crate::options::Options;
use crate::route::{Route, Target};
use crate::stream::Guarded;

use channels::Channels;
pub use exec::{ExecOutcome, Exited};
pub(crate) use forced::allows_sftp_only;
use handler::{Failure, Farewell, Handler};
pub(crate) use sftp::{Opening, Sftp};
use steps::Steps;

/// Unread messages of a channel at which the connection stops reading.
const CHANNEL_MESSAGES: usize = 32;

/// Most time for a clean disconnect.
const GOODBYE: Duration = Duration::from_secs(1);

/// An authenticated connection whose host key passed the policy.
///
/// Dropping it closes the socket and ends all its tasks; [`Session::close`] disconnects cleanly first.
pub struct Session {
    handle: Handle<Handler>,
    route: Route,
    via: Option<Box<Session>>,
    host_key: SeenHostKey,
    accepted: PublicKey,
    options: Options,
    channels: Channels,
    end: CancellationToken,
    ended: CancellationToken,
    _end_on_drop: DropGuard,
}

impl Session {
    /// Connects along `route`, jump hosts first, checks the host key and logs in.
    ///
    /// Dropping the future ends everything that it began.
    ///
    /// # Errors
    /// [`ConnectError`], which names the host that it concerns, possibly a jump host. [`retry`](ConnectError::retry)
    /// says whether a retry helps.
    pub async fn connect(
        route: &Route,
        dialer: &dyn Dialer,
        options: &Options,
    ) -> Result<Self, ConnectError> {
        let via = match &route.via {
            Some(jump) => Some(Box::new(Self::connect_jump(jump, dialer, options).await?)),
            None => None,
        };
        let target = &route.target;
        let end = CancellationToken::new();
        let end_on_drop = end.clone().drop_guard();
        let (handler, shown, farewell) = Handler::new(route.host_key.clone());
        let steps = Steps::default();
        let connecting = async {
            let name = || target.to_string();
            let socket = match &via {
                Some(jump) => jump.forward(target).await?,
                None => dialer
                    .dial(&target.address, target.port)
                    .await
                    .map_err(|error| ConnectError::from_io(name(), error))?,
            };
            steps.tcp_connected();
            let open = Open::new(&options.counters);
            let ended = open.ended();
            let stream = Guarded::new(socket, steps.heard.clone(), open, &end);
            let handle =
                connect_stream(Arc::new(config(&route.host_key, options)), stream, handler)
                    .await
                    .map_err(|failure| from_failure(name(), failure, &steps, &farewell))?;
            steps.keys_agreed();
            Ok((handle, ended))
        };
        let (mut handle, ended) = timeout(options.timeouts.connect, connecting)
            .await
            .unwrap_or_else(|_| Err(timed_out(target, Stage::Connect, &steps)))?;
        let login = login::log_in(&mut handle, &farewell, &steps, target, &route.credentials);
        let accepted = timeout(options.timeouts.authenticate, login)
            .await
            .unwrap_or_else(|_| Err(timed_out(target, Stage::Authenticate, &steps)))?;
        // Taken only now: before the login, the key could be anybody's.
        let host_key = shown.take().ok_or_else(|| ConnectError::Protocol {
            target: target.to_string(),
            source: "the handshake ended without a host key".into(),
        })?;
        tracing::debug!(%target, host_key = ?host_key.key, verdict = ?host_key.verdict, "connected");
        Ok(Self {
            handle,
            route: route.clone(),
            via,
            host_key,
            accepted,
            options: options.clone(),
            channels: Channels::default(),
            end,
            ended,
            _end_on_drop: end_on_drop,
        })
    }

    /// Boxes the recursive future.
    fn connect_jump<'a>(
        jump: &'a Route,
        dialer: &'a dyn Dialer,
        options: &'a Options,
    ) -> BoxFuture<'a, Result<Self, ConnectError>> {
        Box::pin(Self::connect(jump, dialer, options))
    }

    /// Returns the key that the host proved to hold.
    pub const fn host_key(&self) -> &SeenHostKey {
        &self.host_key
    }

    /// Returns the key that the host accepted: the first acceptable one of those offered.
    pub const fn accepted_key(&self) -> &PublicKey {
        &self.accepted
    }

    /// Returns the address of the host.
    pub const fn target(&self) -> &Target {
        &self.route.target
    }

    /// Returns the connection to the jump host, if there is one.
    pub fn via(&self) -> Option<&Self> {
        self.via.as_deref()
    }

    /// Whether the session is equivalent to a new connection along `route`.
    pub(crate) fn fits(&self, route: &Route) -> bool {
        !self.is_closed() && self.route.same_login(route) && self.accepts_host_keys(route)
    }

    /// Whether the policies of `route` accept the host keys of this session and its jump hosts.
    fn accepts_host_keys(&self, route: &Route) -> bool {
        route.host_key.judge(&self.host_key.key) != HostKeyVerdict::Mismatch
            && match (&self.via, &route.via) {
                (Some(session), Some(route)) => session.accepts_host_keys(route),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            }
    }

    /// Whether the connection has ended, from either side.
    pub fn is_closed(&self) -> bool {
        self.end.is_cancelled() || self.handle.is_closed()
    }

    /// Disconnects cleanly and waits until the socket is closed.
    pub async fn close(&self) {
        if !self.is_closed() {
            let goodbye = async {
                let _ = self.handle.disconnect(Disconnect::ByApplication, "", "").await;
                self.ended.cancelled().await;
            };
            let _ = timeout(GOODBYE, goodbye).await;
        }
        self.end_now();
        let _ = timeout(GOODBYE, self.ended.cancelled()).await;
        if let Some(jump) = &self.via {
            Box::pin(jump.close()).await;
        }
    }

    /// Closes the connection without a disconnect message; for unknown states.
    pub(crate) fn end_now(&self) {
        self.end.cancel();
    }

    pub(crate) const fn options(&self) -> &Options {
        &self.options
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("target", &self.route.target)
            .field("host_key", &self.host_key)
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

fn config(policy: &HostKeyPolicy, options: &Options) -> Config {
    Config {
        preferred: algorithms::offered(policy),
        keepalive_interval: Some(options.timeouts.keep_alive),
        keepalive_max: limits::KEEP_ALIVES,
        channel_buffer_size: CHANNEL_MESSAGES,
        ..Config::default()
    }
}

fn timed_out(target: &Target, stage: Stage, steps: &Steps) -> ConnectError {
    ConnectError::TimedOut { target: target.to_string(), stage, reached: steps.reached() }
}

fn from_failure(
    target: String,
    failure: Failure,
    steps: &Steps,
    farewell: &Farewell,
) -> ConnectError {
    match failure {
        Failure::Mismatch { expected, found } => {
            ConnectError::HostKeyMismatch { target, expected, found }
        }
        Failure::HostKey(source) => ConnectError::Protocol { target, source: source.into() },
        Failure::Ssh(error) => {
            let said = steps.heard.said();
            let line = said.line.as_deref().unwrap_or_default();
            match (said.given_up, &error) {
                (Some(why), _) => {
                    let source = format!("{why}; it said `{line}`").into();
                    ConnectError::Protocol { target, source }
                }
                (None, _) if said.is_busy() => ConnectError::Busy { target, said: line.to_owned() },
                // However the connection ended, the line says more than that.
                (None, error) if said.is_text_only() && is_cut(error) => {
                    let source = format!("it said `{line}`, which is no version of ssh").into();
                    ConnectError::Protocol { target, source }
                }
                (None, _) => farewell
                    .dropped(target.clone(), Stage::Connect)
                    .unwrap_or_else(|| ConnectError::from_ssh(target, Stage::Connect, error)),
            }
        }
    }
}
