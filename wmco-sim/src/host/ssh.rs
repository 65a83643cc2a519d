//! The SSH server of a simulated host: logins, channels and forwarding.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use russh::keys::{PrivateKey, PublicKey};
use russh::server::{
    Auth, ChannelOpenHandle, Config, Handler, Msg, PublicKeyOffer, Session, VerifiedPublicKey,
};
use russh::{Channel, ChannelId, ChannelOpenFailure, MethodKind, MethodSet, SshId};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::exec;
use super::fault::Fault;
use super::sftp::Sftp;
use super::shared::Shared;

/// Version string of OpenSSH on Windows Server 2022.
const SERVER: &str = "SSH-2.0-OpenSSH_for_Windows_8.1";

/// Failed attempts after which OpenSSH disconnects (its `MaxAuthTries`).
const ATTEMPTS: usize = 6;

/// Returns the server's configuration with these host keys.
pub(super) fn config(keys: Vec<PrivateKey>) -> Config {
    Config {
        server_id: SshId::Standard(SERVER.into()),
        methods: MethodSet::from([MethodKind::PublicKey].as_slice()),
        keys,
        // A simulation has no secrets that its timing could reveal.
        auth_rejection_time: Duration::ZERO,
        max_auth_attempts: ATTEMPTS,
        nodelay: true,
        ..Config::default()
    }
}

/// A client's connection.
pub(super) struct Connection {
    host: Arc<Shared>,
    /// Ends the connection and everything that runs on it.
    cut: CancellationToken,
    channels: HashMap<ChannelId, Channel<Msg>>,
}

impl Connection {
    pub(super) fn new(host: Arc<Shared>, cut: CancellationToken) -> Self {
        Self { host, cut, channels: HashMap::new() }
    }

    fn admits(&self, user: &str, key: &PublicKey) -> bool {
        !self.host.conditions.borrow().has(Fault::RefuseAuthentication)
            && self.host.admits(user, key)
    }
}

impl Handler for Connection {
    type Error = russh::Error;

    async fn auth_publickey_offered(
        &mut self,
        user: &str,
        offer: PublicKeyOffer<'_>,
    ) -> Result<Auth, Self::Error> {
        if self.admits(user, offer.public_key) {
            return Ok(Auth::Accept);
        }
        self.host.tally.refused();
        Ok(Auth::reject())
    }

    async fn auth_publickey(
        &mut self,
        user: &str,
        key: VerifiedPublicKey<'_>,
    ) -> Result<Auth, Self::Error> {
        Ok(if self.admits(user, key.public_key) { Auth::Accept } else { Auth::reject() })
    }

    async fn auth_succeeded(&mut self, _session: &mut Session) -> Result<(), Self::Error> {
        self.host.tally.authenticated();
        Ok(())
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _session: &mut Session,
    ) -> Result<(), Self::Error> {
        self.channels.insert(channel.id(), channel);
        reply.accept().await;
        Ok(())
    }

    async fn channel_open_direct_tcpip(
        &mut self,
        channel: Channel<Msg>,
        address: &str,
        _port: u32,
        _origin: &str,
        _origin_port: u32,
        reply: ChannelOpenHandle,
        _session: &mut Session,
    ) -> Result<(), Self::Error> {
        let connected = match self.host.forwards.get(address) {
            Some(to) => TcpStream::connect(to).await.ok(),
            None => None,
        };
        let Some(mut onward) = connected else {
            reply.reject(ChannelOpenFailure::ConnectFailed).await;
            return Ok(());
        };
        reply.accept().await;
        let carry = async move {
            // Either side may close at any time.
            let _ = tokio::io::copy_bidirectional(&mut channel.into_stream(), &mut onward).await;
        };
        self.host.tasks.spawn(self.cut.clone().run_until_cancelled_owned(carry));
        Ok(())
    }

    async fn exec_request(
        &mut self,
        id: ChannelId,
        data: &[u8],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        let Some(channel) = self.channels.remove(&id) else {
            return session.channel_failure(id);
        };
        let command = String::from_utf8_lossy(data).into_owned();
        self.host.tally.executed(&command);
        session.channel_success(id)?;
        let run = exec::run(Arc::clone(&self.host), self.cut.clone(), channel, command);
        self.host.tasks.spawn(run);
        Ok(())
    }

    async fn subsystem_request(
        &mut self,
        id: ChannelId,
        name: &str,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        let channel = (name == "sftp").then(|| self.channels.remove(&id)).flatten();
        let Some(channel) = channel else {
            return session.channel_failure(id);
        };
        self.host.tally.opened_sftp();
        session.channel_success(id)?;
        let sftp = Sftp::new(Arc::clone(&self.host), self.cut.clone());
        russh_sftp::server::run(channel.into_stream(), sftp).await;
        Ok(())
    }

    async fn channel_close(
        &mut self,
        id: ChannelId,
        _session: &mut Session,
    ) -> Result<(), Self::Error> {
        self.channels.remove(&id);
        Ok(())
    }
}
