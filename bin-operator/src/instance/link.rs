//! The one connection of a worker to its host.

use std::sync::Arc;

use wmco_ssh::{ConnectError, Dialer, HostAgent, Options, Session, SshHost};

use super::inputs::Route;

/// How connections are made; shared by all workers, so that limits and counters are shared too.
#[derive(Clone)]
pub struct Connector {
    dialer: Arc<dyn Dialer>,
    options: Options,
}

/// A connection that is made when it is first needed.
#[derive(Default)]
pub struct Link {
    host: Option<Arc<dyn HostAgent>>,
}

impl Connector {
    /// Dials with `dialer`.
    pub fn new(dialer: Arc<dyn Dialer>, options: Options) -> Self {
        Self { dialer, options }
    }

    /// Limits and counters of all connections.
    pub const fn options(&self) -> &Options {
        &self.options
    }

    pub(super) async fn connect(&self, route: &Route) -> Result<Arc<dyn HostAgent>, ConnectError> {
        let session = Session::connect(
            &route.target,
            &route.credentials,
            &route.host_key,
            &*self.dialer,
            &self.options,
        );
        // Boxed: the future of a handshake is large, and it is rare.
        Ok(Arc::new(SshHost::new(Box::pin(session).await?)))
    }
}

impl Link {
    /// The connection, if it is still there.
    pub(super) fn current(&self) -> Option<Arc<dyn HostAgent>> {
        self.host.as_ref().filter(|host| !host.is_closed()).map(Arc::clone)
    }

    pub(super) fn keep(&mut self, host: Arc<dyn HostAgent>) {
        self.host = Some(host);
    }

    pub(super) fn is_open(&self) -> bool {
        self.host.is_some()
    }

    /// Ends the connection, if there is one.
    pub(super) async fn close(&mut self) {
        if let Some(host) = self.host.take() {
            host.close().await;
        }
    }
}
