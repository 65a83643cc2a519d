//! Servers that speak SSH as they should, and then lie.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use russh::keys::{Algorithm, PrivateKey as WireKey};
use russh::server::{Auth, ChannelOpenHandle, Config, Handler, Msg, Session as Serving};
use russh::server::{VerifiedPublicKey, run_stream};
use russh::{Channel, ChannelId, ChannelStream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use wmco_core::limits;
use wmco_core::names::host;
use wmco_core::protocol::AgentLocation;
use wmco_ssh::{
    Blob, HostAgent, HostError, NoReport, Options, ProbeOutcome, Route, Session, SshHost, Target,
    TcpDialer, Timeouts, UploadProgress,
};

use crate::conformance::noise;

/// What the server does instead of what it should.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Lie {
    /// None, to see that the server is one.
    No,
    /// Says OK where a handle is asked for.
    OkWithoutHandle,
    /// Answers other requests than those that were made.
    WrongIds,
    /// Takes writes and never answers.
    SilentWrites,
    /// Ends its side of the channel in the middle of the writes.
    Quits,
    /// Acknowledges writes that it did not carry out.
    LostWrites,
    /// Says that a part is longer than anything.
    LongParts,
    /// Announces a packet of 4 GiB.
    HugePacket,
    /// Answers with a packet of no known kind.
    UnknownPacket,
    /// Answers with data to everything.
    WrongKind,
    /// Sends an answer one byte at a time.
    Drip,
    /// Refuses with a message of 100 kB.
    LongMessage,
    /// Lists names without end, none of which we may touch.
    EndlessNames,
    /// Takes the channel and says nothing.
    Silence,
    /// Writes errors without end.
    EndlessErrors,
    /// Writes one line without end.
    EndlessLine,
    /// Ends a command without saying how.
    NoStatus,
    /// Says how a command ended and goes on for ever.
    NoEnd,
}

/// Requests of version 3. Source: draft-ietf-secsh-filexfer-02, section 3.
mod kind {
    pub(super) const INIT: u8 = 1;
    pub(super) const VERSION: u8 = 2;
    pub(super) const OPEN: u8 = 3;
    pub(super) const CLOSE: u8 = 4;
    pub(super) const WRITE: u8 = 6;
    pub(super) const OPENDIR: u8 = 11;
    pub(super) const READDIR: u8 = 12;
    pub(super) const REMOVE: u8 = 13;
    pub(super) const STAT: u8 = 17;
    pub(super) const RENAME: u8 = 18;
    pub(super) const STATUS: u8 = 101;
    pub(super) const HANDLE: u8 = 102;
    pub(super) const DATA: u8 = 103;
    pub(super) const NAME: u8 = 104;
    pub(super) const ATTRS: u8 = 105;
}

const OK: u32 = 0;
const NO_SUCH_FILE: u32 = 2;
const FAILURE: u32 = 4;

/// Kinds of all requests, and the paths in those that change something.
#[derive(Debug, Default)]
struct Seen {
    kinds: Vec<u8>,
    paths: Vec<String>,
}

impl Seen {
    fn count(&self, kind: u8) -> usize {
        self.kinds.iter().map(|seen| usize::from(*seen == kind)).sum()
    }
}

struct Liar {
    target: Target,
    seen: Arc<Mutex<Seen>>,
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
        Ok(Auth::Accept)
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
            // The client leaves when it has had enough.
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
    async fn start(lie: Lie) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut rng = russh::keys::key::safe_rng();
        let config = Arc::new(Config {
            keys: vec![WireKey::random(&mut rng, Algorithm::Ed25519).unwrap()],
            ..Config::default()
        });
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

    async fn host(&self, options: &Options) -> SshHost {
        let route = Route::new(self.target.clone(), crate::hostile::credentials());
        SshHost::new(Session::connect(&route, &TcpDialer, options).await.unwrap())
    }
}

fn options() -> Options {
    let short = Duration::from_millis(500);
    let long = Duration::from_secs(30);
    let timeouts = Timeouts { connect: long, authenticate: long, ..Timeouts::default() };
    Options {
        timeouts: Timeouts { probe: short, request: short, upload_stall: short, ..timeouts },
        ..Options::default()
    }
}

const QUIET: fn(UploadProgress) = |_| {};

/// More than any of our buffers, less than what a server could send within the time-outs.
const PEAK_KIB: u64 = 512 * 1024;

fn check_memory() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < PEAK_KIB, "{peak} KiB");
}

/// An upload of several blocks to a liar: the error, what it was asked, and nothing left open.
async fn upload(lie: Lie) -> (HostError, Arc<Mutex<Seen>>) {
    let (server, options) = (Liar::start(lie).await, options());
    let host = server.host(&options).await;
    let blobs = [Blob::from_bytes(noise(6_000_000, 31))];
    let uploading = host.upload(&blobs, &QUIET);
    let limit = Duration::from_secs(60);
    let error = tokio::time::timeout(limit, uploading).await.expect("in time").unwrap_err();
    host.close().await;
    assert_eq!(options.counters.snapshot().open, 0);
    check_memory();
    (error, Arc::clone(&server.seen))
}

async fn probe(lie: Lie) -> Result<ProbeOutcome, HostError> {
    let (server, options) = (Liar::start(lie).await, options());
    let host = server.host(&options).await;
    let limit = Duration::from_secs(60);
    let probing = tokio::time::timeout(limit, host.probe(AgentLocation::Installed));
    let outcome = probing.await.expect("in time");
    host.close().await;
    assert_eq!(options.counters.snapshot().open, 0);
    check_memory();
    outcome
}

#[tokio::test]
async fn a_handle_that_is_none() {
    let (error, seen) = upload(Lie::OkWithoutHandle).await;
    assert!(matches!(error, HostError::Sftp { doing: "opening", .. }), "{error}");
    assert_eq!(seen.lock().unwrap().count(kind::WRITE), 0);
}

#[tokio::test]
async fn answers_to_other_requests() {
    let (error, _) = upload(Lie::WrongIds).await;
    assert!(matches!(error, HostError::TimedOut { .. }), "{error}");
}

/// Also what makes distance cheap: as many writes as allowed are sent before the first answer.
#[tokio::test]
async fn writes_that_are_never_acknowledged() {
    let (error, seen) = upload(Lie::SilentWrites).await;
    assert!(matches!(error, HostError::TimedOut { doing: "uploading", .. }), "{error}");
    let seen = seen.lock().unwrap();
    assert_eq!(seen.count(kind::WRITE), limits::UPLOAD_BLOCKS_IN_FLIGHT);
    assert_eq!(seen.count(kind::RENAME), 0);
}

#[tokio::test]
async fn a_server_that_quits() {
    let (error, seen) = upload(Lie::Quits).await;
    assert!(matches!(error, HostError::Dropped { .. }), "no time-out is needed: {error}");
    assert_eq!(seen.lock().unwrap().count(kind::WRITE), 1);
}

#[tokio::test]
async fn writes_that_are_acknowledged_and_lost() {
    let (error, seen) = upload(Lie::LostWrites).await;
    assert!(matches!(error, HostError::Sftp { doing: "writing all of", .. }), "{error}");
    assert_eq!(seen.lock().unwrap().count(kind::RENAME), 0, "no half file gets its final name");
}

#[tokio::test]
async fn parts_longer_than_anything() {
    let (error, seen) = upload(Lie::LongParts).await;
    assert!(matches!(error, HostError::Sftp { doing: "writing all of", .. }), "{error}");
    assert_eq!(seen.lock().unwrap().count(kind::RENAME), 0);
}

#[tokio::test]
async fn packets_that_are_none() {
    for lie in [Lie::HugePacket, Lie::UnknownPacket] {
        let (error, _) = upload(lie).await;
        assert!(matches!(error, HostError::Dropped { .. }), "{lie:?}: {error}");
    }
    let (error, _) = upload(Lie::WrongKind).await;
    assert!(matches!(error, HostError::Dropped { .. } | HostError::Sftp { .. }), "{error}");
}

#[tokio::test]
async fn answers_byte_by_byte_and_no_answers() {
    for lie in [Lie::Drip, Lie::Silence] {
        let (error, _) = upload(lie).await;
        assert!(matches!(error, HostError::TimedOut { .. }), "{lie:?}: {error}");
    }
}

#[tokio::test]
async fn messages_are_cut_and_cleaned() {
    let (error, _) = upload(Lie::LongMessage).await;
    let HostError::Sftp { source, .. } = &error else { panic!("{error}") };
    let text = source.to_string();
    assert!(text.len() < 300 && text.contains("no ") && !text.contains('\x1b'), "{text}");
}

#[tokio::test]
async fn listed_names_lead_nowhere() {
    let (server, options) = (Liar::start(Lie::EndlessNames).await, options());
    let host = server.host(&options).await;
    let folders = [host::STAGING.parse().unwrap()];
    host.remove_leftovers(&[], &folders).await.unwrap();
    let seen = server.seen.lock().unwrap();
    assert!(seen.count(kind::READDIR) < 5_000, "it is not read to the end");
    assert_eq!(seen.paths, Vec::<String>::new(), "none of these names is one of ours");
    check_memory();
}

#[tokio::test]
async fn output_without_end() {
    for lie in [Lie::EndlessErrors, Lie::EndlessLine] {
        let error = probe(lie).await.unwrap_err();
        let bounded = matches!(error, HostError::TooMuchOutput { .. } | HostError::TimedOut { .. });
        assert!(bounded, "{lie:?}: {error}");
    }
}

#[tokio::test]
async fn commands_that_end_in_strange_ways() {
    let error = probe(Lie::NoStatus).await.unwrap_err();
    assert!(matches!(error, HostError::Dropped { .. }), "{error}");
    let error = probe(Lie::NoEnd).await.unwrap_err();
    assert!(matches!(error, HostError::TimedOut { .. }), "{error}");
    let outcome = probe(Lie::No).await.unwrap();
    let ProbeOutcome::NoReport(NoReport::NoAgent { status: 1, .. }) = outcome else {
        panic!("{outcome:?}")
    };
}

/// What a round trip costs: an upload of many files takes a handful of them, and none per block.
#[tokio::test]
async fn requests_are_few() {
    let (server, options) = (Liar::start(Lie::No).await, options());
    let host = server.host(&options).await;
    // Everything is absent and stays so, so the first file that is checked is missed.
    let blobs: Vec<_> = (0..26).map(|seed| Blob::from_bytes(noise(20_000, 2 * seed + 1))).collect();
    host.upload(&blobs, &QUIET).await.unwrap();
    let seen = server.seen.lock().unwrap();
    let per_file = [kind::STAT, kind::OPEN, kind::WRITE, kind::CLOSE, kind::RENAME];
    let counts = per_file.map(|kind| seen.count(kind));
    // One more look is for the folder.
    assert_eq!(counts, [27, 26, 26, 26, 26]);
}
