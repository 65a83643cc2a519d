//! A plain SSH client.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use russh::client::{self, Handle};
use russh::keys::{
    Algorithm, EcdsaCurve, PrivateKey, PrivateKeyWithHashAlg, PublicKey, PublicKeyOrCertificate,
};
use russh::{ChannelMsg, Disconnect};
use russh_sftp::client::SftpSession;
use wmco_sim::host::{SimHost, SimHostBuilder};

/// Far longer than any operation here, so that a hanging test fails with its location.
const PATIENCE: Duration = Duration::from_secs(120);

/// Awaits the result of `work`; panics if it takes too long.
#[track_caller]
pub(crate) fn within<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let place = std::panic::Location::caller();
    async move {
        let done = tokio::time::timeout(PATIENCE, work).await;
        done.unwrap_or_else(|_| panic!("nothing came of {place}"))
    }
}

/// Waits until `condition` holds.
#[track_caller]
pub(crate) fn until(mut condition: impl FnMut() -> bool) -> impl Future<Output = ()> {
    within(async move {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
}

pub(crate) fn new_key() -> PrivateKey {
    let algorithm = Algorithm::Ecdsa { curve: EcdsaCurve::NistP256 };
    PrivateKey::random(&mut russh::keys::key::safe_rng(), algorithm).unwrap()
}

/// Starts a host; returns it with a key that it accepts.
pub(crate) async fn host() -> (SimHost, PrivateKey) {
    host_with(|builder| builder).await
}

pub(crate) async fn host_with(
    settings: impl FnOnce(SimHostBuilder) -> SimHostBuilder,
) -> (SimHost, PrivateKey) {
    let key = new_key();
    let builder = SimHost::builder().authorized_key(key.public_key().clone());
    (settings(builder).start().await.unwrap(), key)
}

/// An authenticated connection.
pub(crate) struct Client {
    pub(crate) handle: Handle<Seen>,
    pub(crate) host_key: PublicKey,
}

/// Accepts any host key and stores it.
pub(crate) struct Seen(Arc<Mutex<Option<PublicKey>>>);

impl client::Handler for Seen {
    type Error = russh::Error;

    async fn check_server_key(
        &mut self,
        key: &PublicKeyOrCertificate,
    ) -> Result<bool, russh::Error> {
        if let PublicKeyOrCertificate::PublicKey { key, .. } = key {
            *self.0.lock().unwrap() = Some(key.clone());
        }
        Ok(true)
    }
}

/// Why connecting failed.
#[derive(Debug)]
pub(crate) enum NoClient {
    Connection,
    Refused,
}

/// The output of a command. Without a code the connection ended first.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: Option<u32>,
}

impl Client {
    pub(crate) async fn connect(host: &SimHost, key: &PrivateKey) -> Self {
        Self::try_connect(host, host.user(), key).await.unwrap()
    }

    pub(crate) async fn try_connect(
        host: &SimHost,
        user: &str,
        key: &PrivateKey,
    ) -> Result<Self, NoClient> {
        let config = Arc::new(client::Config { nodelay: true, ..Default::default() });
        let seen = Arc::new(Mutex::new(None));
        let handler = Seen(Arc::clone(&seen));
        let mut handle = Box::pin(client::connect(config, host.ssh_address(), handler))
            .await
            .map_err(|_| NoClient::Connection)?;
        let host_key = seen.lock().unwrap().clone().unwrap();
        let key = PrivateKeyWithHashAlg::new(Arc::new(key.clone()), None);
        let answer =
            handle.authenticate_publickey(user, key).await.map_err(|_| NoClient::Connection)?;
        if answer.success() { Ok(Self { handle, host_key }) } else { Err(NoClient::Refused) }
    }

    pub(crate) async fn exec(&self, command: impl ToString) -> Result<Output, russh::Error> {
        let mut channel = self.handle.channel_open_session().await?;
        channel.exec(true, command.to_string()).await?;
        let mut output = Output::default();
        while let Some(message) = channel.wait().await {
            match message {
                ChannelMsg::Data { data } => output.stdout += str::from_utf8(&data).unwrap(),
                ChannelMsg::ExtendedData { data, ext: 1 } => {
                    output.stderr += str::from_utf8(&data).unwrap();
                }
                ChannelMsg::ExitStatus { exit_status } => output.code = Some(exit_status),
                _ => {}
            }
        }
        Ok(output)
    }

    pub(crate) async fn sftp(&self) -> SftpSession {
        let channel = self.handle.channel_open_session().await.unwrap();
        channel.request_subsystem(true, "sftp").await.unwrap();
        SftpSession::new(channel.into_stream()).await.unwrap()
    }

    pub(crate) async fn close(self) {
        self.handle.disconnect(Disconnect::ByApplication, "", "").await.unwrap();
    }
}
