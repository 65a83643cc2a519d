//! The channels of a connection: one for SFTP, and one for each command.
//!
//! A command's channel is opened while files are still sent. A server with `MaxSessions 1` refuses that: there, SFTP
//! ends before a command begins, and is opened again after it.
//!
//! Source: `docs/contract/ssh.md`, SSH53.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use russh::Channel;
use russh::client::Msg;
use tokio::sync::{Mutex, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};
use tokio::time::{sleep, timeout};

use super::{Session, Sftp};
use crate::error::HostError;

const OPENING: &str = "opening sftp";

/// Pauses until the server has given up a channel that was closed: it does so when the channel's process has ended.
const PAUSES_MS: [u64; 9] = [10, 20, 50, 100, 200, 500, 1000, 2000, 2000];

/// The channels, and who may use them.
#[derive(Default)]
pub(super) struct Channels {
    sftp: Mutex<Option<Arc<Sftp>>>,
    /// Whether the server has opened any.
    opened: AtomicBool,
    /// Whether the server refuses a second one.
    single: AtomicBool,
    /// Shared by users of SFTP. On a server that refuses a second channel, a command has it for itself.
    turns: Arc<RwLock<()>>,
}

/// The turn of a command.
pub(super) type Alone = OwnedRwLockWriteGuard<()>;

/// The use of the SFTP session. Nobody may wait for another one while holding it.
pub(crate) struct SftpUse {
    sftp: Arc<Sftp>,
    _turn: OwnedRwLockReadGuard<()>,
}

impl Deref for SftpUse {
    type Target = Sftp;

    fn deref(&self) -> &Sftp {
        &self.sftp
    }
}

impl Session {
    /// Returns this connection's only SFTP session; the first call opens it.
    pub(crate) async fn sftp(&self) -> Result<SftpUse, HostError> {
        let turn = Arc::clone(&self.channels.turns).read_owned().await;
        let mut slot = self.channels.sftp.lock().await;
        let sftp = if let Some(sftp) = &*slot {
            Arc::clone(sftp)
        } else {
            let channel = self.patient_channel(OPENING).await?;
            Arc::clone(slot.insert(Arc::new(Sftp::open(channel, &self.options).await?)))
        };
        Ok(SftpUse { sftp, _turn: turn })
    }

    /// Opens a channel beside others; `None` if the server refuses it now.
    pub(super) async fn channel_beside(
        &self,
        doing: &'static str,
    ) -> Result<Option<Channel<Msg>>, HostError> {
        if self.channels.single.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match self.handle.channel_open_session().await {
            Ok(channel) => {
                self.channels.opened.store(true, Ordering::Relaxed);
                Ok(Some(channel))
            }
            Err(russh::Error::ChannelOpenFailure(_)) => Ok(None),
            Err(error) => Err(HostError::from_channel(doing, error)),
        }
    }

    /// Opens a channel after the SFTP session has ended.
    pub(super) async fn channel_alone(
        &self,
        doing: &'static str,
    ) -> Result<(Channel<Msg>, Alone), HostError> {
        let turn = Arc::clone(&self.channels.turns).write_owned().await;
        if let Some(sftp) = self.channels.sftp.lock().await.take() {
            let ended = sftp.ended();
            drop(sftp);
            let _ = timeout(self.options.timeouts.request, ended.cancelled()).await;
        }
        Ok((self.patient_channel(doing).await?, turn))
    }

    /// Opens a channel, on a server with one at a time as soon as it has given up the last one.
    async fn patient_channel(&self, doing: &'static str) -> Result<Channel<Msg>, HostError> {
        let limit = self.options.timeouts.request;
        let opening = async {
            let mut pauses = PAUSES_MS.into_iter();
            loop {
                let error = match self.handle.channel_open_session().await {
                    Ok(channel) => {
                        self.channels.opened.store(true, Ordering::Relaxed);
                        return Ok(channel);
                    }
                    Err(error) => error,
                };
                let was_opened = self.channels.opened.load(Ordering::Relaxed);
                match (&error, pauses.next()) {
                    (russh::Error::ChannelOpenFailure(_), Some(pause)) if was_opened => {
                        self.channels.single.store(true, Ordering::Relaxed);
                        sleep(Duration::from_millis(pause)).await;
                    }
                    _ => return Err(HostError::from_channel(doing, error)),
                }
            }
        };
        timeout(limit, opening).await.unwrap_or(Err(HostError::TimedOut { doing, after: limit }))
    }
}
