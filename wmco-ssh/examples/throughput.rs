//! Measures uploads of a payload to OpenSSH on loopback: by this crate, by OpenSSH's own `sftp`, and with one
//! outstanding request.
//!
//! ```text
//! cargo run --release -p wmco-ssh --example throughput -- [MEGABYTES [ROUNDS [ROUND_TRIP_MS]]]
//! ```
//!
//! The first table is plain loopback: rounds of both clients in turns, so that both see the same machine; login
//! included. Then comes the memory that our uploads took. The second table goes through a proxy that adds the round
//! trip. Needs OpenSSH's server and client.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement that fails is none"
)]

#[path = "../tests/it/proxy.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod proxy;
#[path = "../tests/it/sshd.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod sshd;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proxy::{Network, Proxy};
use russh::client::{self, Handle};
use russh::keys::{PrivateKeyWithHashAlg, PublicKeyOrCertificate, load_secret_key};
use russh_sftp::client::RawSftpSession;
use russh_sftp::protocol::{FileAttributes, OpenFlags};
use sshd::Sshd;
use wmco_core::digest::Sha256;
use wmco_core::protocol::staged_content;
use wmco_ssh::{Blob, HostAgent as _, Route, Session, SshHost, Target, TcpDialer};

/// Bytes of each write with one outstanding request.
const ONE_BLOCK: u32 = 32 * 1024;

/// Approximate seconds of the measurement with one outstanding request.
const ONE_SECONDS: u32 = 5;

#[tokio::main]
async fn main() {
    let argument = |at: usize, default: u32| {
        std::env::args().nth(at).map_or(default, |text| text.parse().expect("a number"))
    };
    let (megabytes, rounds, round_trip) = (argument(1, 200), argument(2, 5), argument(3, 50));
    let server = Sshd::start(&["ed25519"]).await;
    let payload = Payload::make(&server, megabytes).await;

    println!("{megabytes} MB to OpenSSH on loopback, {rounds} rounds in turns, MB/s");
    let direct = server.target();
    let before = forget_peak();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        theirs.push(payload.rate(sftp(&server, &direct, &payload).await));
        ours.push(payload.rate(upload(&server, &direct, &payload).await));
        println!("round {round}: sftp {:.0}, ours {:.0}", last(&theirs), last(&ours));
    }
    let (sftp_rate, our_rate) = (median(&mut theirs), median(&mut ours));
    println!("median: sftp {sftp_rate:.0}, ours {our_rate:.0}, {:.2} of it", our_rate / sftp_rate);

    println!("memory: {before:.1} MB before, at most {:.1} MB during uploads", peak());

    println!("the same through {round_trip} ms of round trip, MB/s");
    let one_way = Duration::from_millis(round_trip.into()) / 2;
    let network = Network { one_way, ..Network::default() };
    let proxy = Proxy::start(&direct, network).await;
    let far = proxy.target();
    let sftp_rate = payload.rate(sftp(&server, &far, &payload).await);
    let our_rate = payload.rate(upload(&server, &far, &payload).await);
    let one_rate = one_outstanding(&server, &far, round_trip).await;
    println!(
        "sftp {sftp_rate:.1}, ours {our_rate:.1}, one request outstanding {one_rate:.2}; \
         ours is {:.1} times the last",
        our_rate / one_rate
    );
}

/// Resets the peak memory of this process, and returns its current memory in MB.
fn forget_peak() -> f64 {
    std::fs::write("/proc/self/clear_refs", "5").expect("linux lets a process do that");
    peak()
}

/// Returns the peak memory of this process in MB.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    kilobytes * 1.024 / 1000.0
}

/// A file of incompressible bytes.
struct Payload {
    file: PathBuf,
    bytes: u64,
    blob: Blob,
}

impl Payload {
    async fn make(server: &Sshd, megabytes: u32) -> Self {
        let file = server.path("payload");
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut content = Vec::new();
        while content.len() < megabytes as usize * 1_000_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            content.extend(state.to_le_bytes());
        }
        std::fs::write(&file, &content).unwrap();
        let blob = Blob::from_file(&file, Sha256::of(&content), server.path("cache"));
        // Hashed once for all hosts, so not part of an upload.
        blob.raw().await.unwrap();
        Self { file, bytes: content.len() as u64, blob }
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more")]
    fn rate(&self, time: Duration) -> f64 {
        self.bytes as f64 / 1e6 / time.as_secs_f64()
    }
}

fn last(rates: &[f64]) -> f64 {
    rates.last().copied().unwrap_or_default()
}

fn median(rates: &mut [f64]) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or_default()
}

/// Uploads with this crate, from the connect to the final name.
async fn upload(server: &Sshd, target: &Target, payload: &Payload) -> Duration {
    let staged = server.file(&staged_content(payload.blob.digest()));
    let _ = std::fs::remove_file(&staged);
    let started = Instant::now();
    let route = Route::new(target.clone(), server.credentials());
    let session = Session::connect(&route, &TcpDialer, &server.options()).await;
    let host = SshHost::new(session.unwrap());
    host.upload(std::slice::from_ref(&payload.blob), &|_| {}).await.unwrap();
    let time = started.elapsed();
    host.close().await;
    assert!(std::fs::metadata(staged).unwrap().len() > 0);
    time
}

/// Uploads with OpenSSH's client, from its start to its end.
async fn sftp(server: &Sshd, target: &Target, payload: &Payload) -> Duration {
    let (there, batch) = (server.path("by-sftp"), server.path("batch"));
    let _ = std::fs::remove_file(&there);
    let put = format!("put {} {}\n", payload.file.display(), there.display());
    std::fs::write(&batch, put).unwrap();
    let (key, user) = (server.path("client"), server.credentials().user);
    let (port, target) = (target.port.to_string(), format!("{user}@{}", target.address));
    let started = Instant::now();
    let status = run(
        "sftp",
        &[
            "-q",
            "-F",
            "none",
            "-i",
            path(&key),
            "-P",
            &port,
            "-b",
            path(&batch),
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
            &target,
        ],
    )
    .await;
    let time = started.elapsed();
    assert!(status, "sftp failed");
    assert_eq!(std::fs::metadata(there).unwrap().len(), payload.bytes);
    time
}

async fn run(program: &str, arguments: &[&str]) -> bool {
    let mut command = std::process::Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
    tokio::task::spawn_blocking(move || command.status().expect("it can be run").success())
        .await
        .unwrap()
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Returns the MB/s when each write waits for the response to the previous one.
async fn one_outstanding(server: &Sshd, target: &Target, round_trip: u32) -> f64 {
    let handle = log_in(server, target).await;
    let channel = handle.channel_open_session().await.unwrap();
    channel.request_subsystem(true, "sftp").await.unwrap();
    let sftp = RawSftpSession::new(channel.into_stream());
    sftp.init().await.unwrap();
    let file = server.path("one").display().to_string();
    let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::TRUNCATE;
    let opened = sftp.open(file, flags, FileAttributes::empty()).await.unwrap();
    let writes = ONE_SECONDS * 1000 / round_trip.max(1);
    let started = Instant::now();
    for write in 0..writes {
        let offset = u64::from(write) * u64::from(ONE_BLOCK);
        sftp.write(opened.handle.as_str(), offset, vec![7; ONE_BLOCK as usize]).await.unwrap();
    }
    f64::from(writes) * f64::from(ONE_BLOCK) / 1e6 / started.elapsed().as_secs_f64()
}

/// Accepts any host key: it is our own server.
struct AnyKey;

impl client::Handler for AnyKey {
    type Error = russh::Error;

    async fn check_server_key(&mut self, _: &PublicKeyOrCertificate) -> Result<bool, russh::Error> {
        Ok(true)
    }
}

async fn log_in(server: &Sshd, target: &Target) -> Handle<AnyKey> {
    let config = Arc::new(client::Config { nodelay: true, ..client::Config::default() });
    let to = (target.address.clone(), target.port);
    let mut handle = Box::pin(client::connect(config, to, AnyKey)).await.unwrap();
    let key = load_secret_key(server.path("client"), None).unwrap();
    let key = PrivateKeyWithHashAlg::new(Arc::new(key), None);
    let user = server.credentials().user;
    assert!(handle.authenticate_publickey(user, key).await.unwrap().success());
    handle
}
