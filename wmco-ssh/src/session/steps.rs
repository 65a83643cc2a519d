//! How far a connection has come, for the errors of one whose time is over.

use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Reached;
use crate::greeting::Heard;
use crate::key::PublicKey;

/// Shared by those who make the connection and those who limit its time.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    /// What the server said before the handshake.
    pub(super) heard: Heard,
    last: Arc<Mutex<Last>>,
}

/// The last step that was done.
#[derive(Clone, Debug, Default)]
enum Last {
    #[default]
    Nothing,
    Tcp,
    KeysAgreed,
    Offered(String),
}

impl Steps {
    pub(super) fn tcp_connected(&self) {
        self.done(Last::Tcp);
    }

    pub(super) fn keys_agreed(&self) {
        self.done(Last::KeysAgreed);
    }

    pub(super) fn offers(&self, key: &PublicKey) {
        self.done(Last::Offered(key.named()));
    }

    fn done(&self, step: Last) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = step;
    }

    pub(super) fn reached(&self) -> Reached {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match last {
            Last::Nothing => Reached::Nothing,
            Last::Tcp => {
                let said = self.heard.said();
                match said.version {
                    Some(version) => Reached::Version { version },
                    None => Reached::Tcp { line: said.line },
                }
            }
            Last::KeysAgreed => Reached::KeysAgreed,
            Last::Offered(key) => Reached::Offered { key },
        }
    }
}
