//! A TCP proxy on loopback that simulates a bad network: distant, or cut at a certain byte.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use wmco_sim::round_trips::RoundTrips;
use wmco_ssh::Target;

/// Most bytes that are forwarded together.
const CHUNK: usize = 32 * 1024;

/// Chunks in transit in one direction: enough that distance does not limit throughput.
const UNDER_WAY: usize = 4096;

/// The network's effects on each connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Network {
    /// Delay of each direction: half a round trip.
    pub(crate) one_way: Duration,
    /// Bytes from the client after which connections are cut, counted down; `None` never cuts.
    pub(crate) cut_after: Option<Arc<AtomicU64>>,
    /// Like `cut_after`, for bytes from the server.
    pub(crate) cut_answers_after: Option<Arc<AtomicU64>>,
    /// Round trips so far, of all connections together.
    pub(crate) round_trips: Arc<AtomicU64>,
}

/// A running proxy. Dropping it stops it.
pub(crate) struct Proxy {
    address: SocketAddr,
    /// Cancels the current connections.
    cut: Arc<Mutex<CancellationToken>>,
    stop: CancellationToken,
    _stop: DropGuard,
}

impl Network {
    /// Creates a network that fails permanently after this many bytes to the server, of all connections together.
    pub(crate) fn cut_after(bytes: u64) -> Self {
        Self { cut_after: Some(Arc::new(AtomicU64::new(bytes))), ..Self::default() }
    }
}

impl Proxy {
    /// Forwards connections to `to` through `network`.
    pub(crate) async fn start(to: &Target, network: Network) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let cut = Arc::new(Mutex::new(stop.child_token()));
        let to = (to.address.clone(), to.port);
        let now = Arc::clone(&cut);
        let serving = async move {
            while let Ok((client, _)) = listener.accept().await {
                let (to, network, cut) = (to.clone(), network.clone(), now.lock().unwrap().clone());
                tokio::spawn(cut.run_until_cancelled_owned(async move {
                    if let Ok(server) = TcpStream::connect(to).await {
                        carry(client, server, &network).await;
                    }
                }));
            }
        };
        tokio::spawn(stop.clone().run_until_cancelled_owned(serving));
        Self { address, cut, stop: stop.clone(), _stop: stop.drop_guard() }
    }

    /// Cuts all current connections; later ones are forwarded.
    pub(crate) fn cut_all(&self) {
        let mut cut = self.cut.lock().unwrap();
        cut.cancel();
        *cut = self.stop.child_token();
    }

    /// Returns its address.
    pub(crate) fn target(&self) -> Target {
        Target { address: self.address.ip().to_string(), port: self.address.port() }
    }
}

/// Forwards a connection until either side closes it, or it is cut.
async fn carry(client: TcpStream, server: TcpStream, network: &Network) {
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let way = RoundTrips::connected();
    network.round_trips.fetch_add(way.count(), Ordering::Relaxed);
    let answered = |round_trip| {
        if way.answer_arrives(round_trip) {
            network.round_trips.fetch_add(1, Ordering::Relaxed);
        }
    };
    let (there, back) = (network.cut_after.as_deref(), network.cut_answers_after.as_deref());
    let (of_request, heard) = (|| way.of_request(), |trip| way.request_arrives(trip));
    let of_answer = || way.of_answer();
    tokio::select! {
        () = one_way(from_client, to_server, network.one_way, there, of_request, heard) => {}
        () = one_way(from_server, to_client, network.one_way, back, of_answer, answered) => {}
    }
}

/// Forwards bytes from `from` to `to`; `now` returns the current round trip, and `arrives` is called with it when they
/// have arrived.
async fn one_way(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    delay: Duration,
    left: Option<&AtomicU64>,
    now: impl Fn() -> u64,
    arrives: impl Fn(u64),
) {
    let (depart, mut arrive) = mpsc::channel::<(Instant, u64, Vec<u8>)>(UNDER_WAY);
    let receive = async move {
        loop {
            let mut chunk = Vec::with_capacity(CHUNK);
            if !from.read_buf(&mut chunk).await.is_ok_and(|read| read > 0) {
                return;
            }
            let cut = left.is_some_and(|left| shorten(&mut chunk, left));
            if depart.send((Instant::now() + delay, now(), chunk)).await.is_err() || cut {
                return;
            }
        }
    };
    let deliver = async move {
        while let Some((due, round_trip, chunk)) = arrive.recv().await {
            // Even a sleep of zero costs a millisecond.
            if delay > Duration::ZERO {
                tokio::time::sleep_until(due).await;
            }
            if to.write_all(&chunk).await.is_err() {
                return;
            }
            arrives(round_trip);
        }
    };
    tokio::join!(receive, deliver);
}

/// Truncates `chunk` to the bytes that still get through; returns whether those were the last.
fn shorten(chunk: &mut Vec<u8>, left: &AtomicU64) -> bool {
    let length = chunk.len() as u64;
    let before = left
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| Some(left.saturating_sub(length)))
        .unwrap_or_default();
    chunk.truncate(usize::try_from(before).unwrap_or(usize::MAX));
    before <= length
}
