//! Handles the SSH library's host key check.

use std::sync::{Arc, Mutex, PoisonError};

use russh::client::{self, DisconnectReason, RemoteDisconnectInfo};
use russh::keys::PublicKeyOrCertificate;
use wmco_core::host_key::{BadHostKey, HostKey};

use crate::error::{ConnectError, Stage, printable};
use crate::host_key::{HostKeyPolicy, HostKeyVerdict, SeenHostKey};

/// Letters of a server's text that are kept.
pub(super) const SAID: usize = 200;

/// Why a handshake ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("host key {found} instead of {expected}")]
    Mismatch { expected: String, found: String },
    #[error("the host key cannot be used: {0}")]
    HostKey(#[from] BadHostKey),
    #[error(transparent)]
    Ssh(#[from] russh::Error),
}

/// Holds the key that the handler accepted.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown(Arc<Mutex<Option<SeenHostKey>>>);

impl Shown {
    pub(super) fn take(&self) -> Option<SeenHostKey> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, seen: SeenHostKey) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
    }
}

/// Holds what the server said when it ended the connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Farewell(Arc<Mutex<Option<RemoteDisconnectInfo>>>);

impl Farewell {
    pub(super) fn take(&self) -> Option<RemoteDisconnectInfo> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The end of the connection with the server's words, if it gave any.
    pub(super) fn dropped(&self, target: String, stage: Stage) -> Option<ConnectError> {
        self.take().map(|said| dropped(target, stage, &said.message))
    }
}

/// The end of the connection with the server's words.
pub(super) fn dropped(target: String, stage: Stage, words: &str) -> ConnectError {
    let said = printable(words, SAID);
    let source = match said.trim() {
        "" => "the server gave no reason".into(),
        said => format!("the server said: {said}").into(),
    };
    ConnectError::Dropped { target, stage, source }
}

#[derive(Debug)]
pub(super) struct Handler {
    policy: HostKeyPolicy,
    shown: Shown,
    farewell: Farewell,
}

impl Handler {
    pub(super) fn new(policy: HostKeyPolicy) -> (Self, Shown, Farewell) {
        let (shown, farewell) = (Shown::default(), Farewell::default());
        (Self { policy, shown: shown.clone(), farewell: farewell.clone() }, shown, farewell)
    }
}

impl client::Handler for Handler {
    type Error = Failure;

    async fn check_server_key(
        &mut self,
        shown: &PublicKeyOrCertificate,
    ) -> Result<bool, Self::Error> {
        let wire = shown.public_key().to_bytes().map_err(russh::Error::from)?;
        let key = HostKey::from_wire(&wire)?;
        let verdict = self.policy.judge(&key);
        if let (HostKeyVerdict::Mismatch, HostKeyPolicy::Pinned(pinned)) = (verdict, &self.policy) {
            return Err(Failure::Mismatch {
                expected: pinned.fingerprint(),
                found: key.fingerprint(),
            });
        }
        // The key must stay the same for the whole connection, including later key exchanges.
        self.policy = HostKeyPolicy::Pinned(key.clone());
        self.shown.put(SeenHostKey { key, verdict });
        Ok(true)
    }

    async fn disconnected(
        &mut self,
        reason: DisconnectReason<Self::Error>,
    ) -> Result<(), Self::Error> {
        tracing::debug!(?reason, "the connection ended");
        if let DisconnectReason::ReceivedDisconnect(said) = reason {
            *self.farewell.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(said);
        }
        Ok(())
    }
}
