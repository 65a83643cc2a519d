//! A server with correct SSH that violates the protocol above it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use russh::keys::{Algorithm, PrivateKey as WireKey};
use russh::server::{Auth, ChannelOpenHandle, Config, Handler, Msg, Session as Serving};
use russh::server::{VerifiedPublicKey, run_stream};
use russh::{Channel, ChannelId, ChannelStream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use wmco_ssh::{ConnectError, Credentials, Options, Route, Session, SshHost, Target, TcpDialer};

/// The server's violation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Lie {
    /// None, to check the server itself.
    No,
    /// Never answers a login.
    SilentLogin,
    /// Refuses every login.
    Refuses,
    /// The same; it lists RSA with SHA-1 alone as what it takes.
    RefusesAllButSha1,
    /// Answers OK instead of a handle.
    OkWithoutHandle,
    /// Answers with wrong request IDs.
    WrongIds,
    /// Accepts writes and never answers.
    SilentWrites,
    /// Closes the channel in the middle of the writes.
    Quits,
    /// Acknowledges writes without carrying them out.
    LostWrites,
    /// Reports an enormous length for parts.
    LongParts,
    /// Announces a packet of 4 GiB.
    HugePacket,
    /// Answers with a packet of an unknown kind.
    UnknownPacket,
    /// Answers every request with data.
    WrongKind,
    /// Sends answers one byte at a time.
    Drip,
    /// Refuses with a message of 100 kB.
    LongMessage,
    /// Lists endless names, none of which we may touch.
    EndlessNames,
    /// Accepts the channel and never answers.
    Silence,
    /// Writes endless standard error.
    EndlessErrors,
    /// Writes an endless line.
    EndlessLine,
    /// Ends a command without an exit status.
    NoStatus,
    /// Reports an exit status and never closes the channel.
    NoEnd,
}

/// Request types of version 3. Source: draft-ietf-secsh-filexfer-02, section 3.
pub(crate) mod kind {
    pub(crate) const INIT: u8 = 1;
    pub(crate) const VERSION: u8 = 2;
    pub(crate) const OPEN: u8 = 3;
    pub(crate) const CLOSE: u8 = 4;
    pub(crate) const WRITE: u8 = 6;
    pub(crate) const OPENDIR: u8 = 11;
    pub(crate) const READDIR: u8 = 12;
    pub(crate) const REMOVE: u8 = 13;
    pub(crate) const STAT: u8 = 17;
    pub(crate) const RENAME: u8 = 18;
    pub(crate) const STATUS: u8 = 101;
    pub(crate) const HANDLE: u8 = 102;
    pub(crate) const DATA: u8 = 103;
    pub(crate) const NAME: u8 = 104;
    pub(crate) const ATTRS: u8 = 105;
}

const OK: u32 = 0;
const NO_SUCH_FILE: u32 = 2;
const FAILURE: u32 = 4;

/// Types of all requests, and the paths of requests that change something.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    kinds: Vec<u8>,
    pub(crate) paths: Vec<String>,
}

impl Seen {
    /// Returns the number of requests of this type.
    pub(crate) fn count(&self, kind: u8) -> usize {
        self.kinds.iter().map(|seen| usize::from(*seen == kind)).sum()
    }
}

pub(crate) struct Liar {
    target: Target,
    pub(crate) seen: Arc<Mutex<Seen>>,
    _stop: DropGuard,
}

struct Connection {
    lie: Lie,
    seen: Arc<Mutex<Seen>>,
    channel: Option<Channel<Msg>>,
}

impl Handler for Connection {
    type Error = russh::Error;

    async fn auth_publickey(
        &mut self,
        _: &str,
        _: VerifiedPublicKey<'_>,
    ) -> Result<Auth, Self::Error> {
        match self.lie {
            Lie::SilentLogin => std::future::pending().await,
            Lie::Refuses | Lie::RefusesAllButSha1 => Ok(Auth::reject()),
            _ => Ok(Auth::Accept),
        }
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut Serving,
    ) -> Result<(), Self::Error> {
        self.channel = Some(channel);
        reply.accept().await;
        Ok(())
    }

    async fn subsystem_request(
        &mut self,
        id: ChannelId,
        _: &str,
        session: &mut Serving,
    ) -> Result<(), Self::Error> {
        session.channel_success(id)?;
        let stream = self.channel.take().unwrap().into_stream();
        let (lie, seen) = (self.lie, Arc::clone(&self.seen));
        tokio::spawn(async move {
            // The client closes the connection when it gives up.
            let _ = sftp(stream, lie, &seen).await;
        });
        Ok(())
    }

    async fn exec_request(
        &mut self,
        id: ChannelId,
        _: &[u8],
        session: &mut Serving,
    ) -> Result<(), Self::Error> {
        session.channel_success(id)?;
        let channel = self.channel.take().unwrap();
        let lie = self.lie;
        tokio::spawn(async move {
            let _ = command(&channel, lie).await;
        });
        Ok(())
    }
}

async fn command(channel: &Channel<Msg>, lie: Lie) -> Result<(), russh::Error> {
    match lie {
        Lie::EndlessErrors => loop {
            channel.extended_data_bytes(1, vec![b'e'; 8192]).await?;
        },
        Lie::EndlessLine => loop {
            channel.data_bytes(vec![b'x'; 8192]).await?;
        },
        Lie::NoStatus => channel.close().await,
        Lie::NoEnd => {
            channel.exit_status(0).await?;
            std::future::pending().await
        }
        _ => {
            channel.exit_status(1).await?;
            channel.eof().await?;
            channel.close().await
        }
    }
}

fn is_part(path: &str) -> bool {
    path.strip_suffix(".part").is_some()
}

fn packet(kind: u8, body: &[&[u8]]) -> Vec<u8> {
    let length = 1 + body.iter().map(|part| part.len()).sum::<usize>();
    let mut bytes = u32::try_from(length).unwrap().to_be_bytes().to_vec();
    bytes.push(kind);
    bytes.extend(body.concat());
    bytes
}

fn text(text: &str) -> Vec<u8> {
    [&u32::try_from(text.len()).unwrap().to_be_bytes(), text.as_bytes()].concat()
}

fn status(id: u32, code: u32, message: &str) -> Vec<u8> {
    packet(kind::STATUS, &[&id.to_be_bytes(), &code.to_be_bytes(), &text(message), &text("")])
}

fn attrs(id: u32, size: u64) -> Vec<u8> {
    const HAS_SIZE: u32 = 1;
    packet(kind::ATTRS, &[&id.to_be_bytes(), &HAS_SIZE.to_be_bytes(), &size.to_be_bytes()])
}

fn names(id: u32) -> Vec<u8> {
    let names =
        ["..", ".", "../../etc/passwd", "a/b", r"a\b", r"C:\Windows", "", "a b; rm", "nul:"];
    let count = u32::try_from(names.len()).unwrap();
    let mut body = [id.to_be_bytes(), count.to_be_bytes()].concat();
    for name in names {
        body.extend([text(name), text("-"), vec![0; 4]].concat());
    }
    packet(kind::NAME, &[&body])
}

async fn sftp(mut stream: ChannelStream<Msg>, lie: Lie, seen: &Mutex<Seen>) -> std::io::Result<()> {
    if lie == Lie::Silence {
        std::future::pending::<()>().await;
    }
    loop {
        let length = stream.read_u32().await?;
        let mut request = vec![0; length as usize];
        stream.read_exact(&mut request).await?;
        let (kind, body) = (request[0], &request[1..]);
        let number = |at: usize| u32::from_be_bytes(body[at..at + 4].try_into().unwrap());
        let id = number(0);
        let string = || String::from_utf8_lossy(&body[8..8 + number(4) as usize]).into_owned();
        {
            let mut seen = seen.lock().unwrap();
            seen.kinds.push(kind);
            if matches!(kind, kind::OPEN | kind::REMOVE | kind::RENAME) {
                seen.paths.push(string());
            }
        }
        let answer = match (kind, lie) {
            (kind::INIT, _) => packet(kind::VERSION, &[&3_u32.to_be_bytes()]),
            (_, Lie::WrongIds) => status(id.wrapping_add(1000), OK, ""),
            (_, Lie::HugePacket) => vec![0xff; 64],
            (_, Lie::UnknownPacket) => packet(77, &[&id.to_be_bytes()]),
            (_, Lie::WrongKind) => packet(kind::DATA, &[&id.to_be_bytes(), &text("data")]),
            (_, Lie::LongMessage) => status(id, FAILURE, &"\x1b[2Jno ".repeat(20_000)),
            (_, Lie::Drip) => {
                for byte in attrs(id, 7) {
                    stream.write_all(&[byte]).await?;
                    stream.flush().await?;
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                continue;
            }
            (kind::STAT, Lie::LongParts) if is_part(&string()) => attrs(id, u64::MAX),
            (kind::STAT, Lie::LostWrites) if is_part(&string()) => attrs(id, 1),
            (kind::STAT, Lie::EndlessNames) => attrs(id, 0),
            (kind::STAT, _) => status(id, NO_SUCH_FILE, ""),
            (kind::OPEN, Lie::OkWithoutHandle) => status(id, OK, ""),
            (kind::OPEN | kind::OPENDIR, _) => {
                packet(kind::HANDLE, &[&id.to_be_bytes(), &text("h")])
            }
            (kind::READDIR, _) => names(id),
            (kind::WRITE, Lie::SilentWrites) => continue,
            (kind::WRITE, Lie::Quits) => return Ok(()),
            _ => status(id, OK, ""),
        };
        stream.write_all(&answer).await?;
        stream.flush().await?;
    }
}

impl Liar {
    pub(crate) async fn start(lie: Lie) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut rng = russh::keys::key::safe_rng();
        let mut config = Config {
            keys: vec![WireKey::random(&mut rng, Algorithm::Ed25519).unwrap()],
            auth_rejection_time: Duration::ZERO,
            ..Config::default()
        };
        if lie == Lie::RefusesAllButSha1 {
            config.preferred.key = vec![Algorithm::Ed25519, Algorithm::Rsa { hash: None }].into();
        }
        let config = Arc::new(config);
        let seen = Arc::new(Mutex::new(Seen::default()));
        let stop = CancellationToken::new();
        let shared = Arc::clone(&seen);
        let serving = async move {
            while let Ok((socket, _)) = listener.accept().await {
                let connection = Connection { lie, seen: Arc::clone(&shared), channel: None };
                let config = Arc::clone(&config);
                tokio::spawn(async move { run_stream(config, socket, connection).await.map(drop) });
            }
        };
        tokio::spawn(stop.clone().run_until_cancelled_owned(serving));
        let target = Target { address: address.ip().to_string(), port: address.port() };
        Self { target, seen, _stop: stop.drop_guard() }
    }

    pub(crate) async fn connect(&self, options: &Options) -> Result<SshHost, ConnectError> {
        self.log_in(crate::hostile::credentials(), options).await
    }

    pub(crate) async fn log_in(
        &self,
        credentials: Credentials,
        options: &Options,
    ) -> Result<SshHost, ConnectError> {
        let route = Route::new(self.target.clone(), credentials);
        Session::connect(&route, &TcpDialer, options).await.map(SshHost::new)
    }
}
