//! The line between a client and the host's SSH server: latency, faults and disconnects.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::counts::Tally;
use super::fault::{Conditions, Fault};
use crate::round_trips::RoundTrips;

/// Most bytes that are forwarded together.
const CHUNK: usize = 32 * 1024;

/// Most chunks in transit: enough that latency does not limit throughput.
const IN_FLIGHT: usize = 128;

/// Bytes buffered between the line and the server.
const BUFFER: usize = 256 * 1024;

/// Connects `client` through a simulated line to the returned stream, which the server uses. The future forwards the
/// bytes; the connection ends when it does or when it is dropped.
pub(super) fn line(
    client: TcpStream,
    conditions: watch::Receiver<Conditions>,
    tally: Arc<Tally>,
) -> (DuplexStream, impl Future<Output = ()> + Send) {
    let (near, far) = tokio::io::duplex(BUFFER);
    let carry = async move {
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = tokio::io::split(far);
        let (depart, arrive) = mpsc::channel(IN_FLIGHT);
        let trips = RoundTrips::connected();
        tally.went_round();
        // The end of the client's input ends only that direction: answers may be in transit.
        let inbound = async {
            let (sent, taken) = tokio::join!(
                receive(from_client, depart, &conditions, &tally, &trips),
                deliver(arrive, to_server, conditions.clone(), &trips),
            );
            sent.and(taken)
        };
        let outbound = answer(from_server, to_client, conditions.clone(), &tally, &trips);
        let ended = tokio::select! {
            result = outbound => result,
            Err(error) = inbound => Err(error),
        };
        tracing::debug!(?ended, "connection to a simulated host ended");
    };
    (near, carry)
}

/// Bytes sent by the client.
struct Chunk {
    arrives: Instant,
    round_trip: u64,
    bytes: Vec<u8>,
}

async fn receive(
    mut client: impl AsyncRead + Unpin,
    depart: mpsc::Sender<Chunk>,
    conditions: &watch::Receiver<Conditions>,
    tally: &Tally,
    trips: &RoundTrips,
) -> io::Result<()> {
    // Over a real network the client could not have sent earlier.
    let connected = Instant::now() + conditions.borrow().latency;
    let mut total = 0_u64;
    loop {
        let mut bytes = Vec::with_capacity(CHUNK);
        let count = client.read_buf(&mut bytes).await?;
        if count == 0 {
            return Ok(());
        }
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        tally.received(count);
        total = total.saturating_add(count);
        let (latency, limit) = {
            let now = conditions.borrow();
            (now.latency, now.connection_limit())
        };
        if limit.is_some_and(|limit| total >= limit) {
            return Err(io::Error::from(io::ErrorKind::ConnectionReset));
        }
        let arrives = Instant::now().max(connected) + latency;
        let chunk = Chunk { arrives, round_trip: trips.of_request(), bytes };
        if depart.send(chunk).await.is_err() {
            return Ok(());
        }
    }
}

async fn deliver(
    mut arrive: mpsc::Receiver<Chunk>,
    mut server: impl AsyncWrite + Unpin,
    mut conditions: watch::Receiver<Conditions>,
    trips: &RoundTrips,
) -> io::Result<()> {
    while let Some(Chunk { arrives, round_trip, bytes }) = arrive.recv().await {
        tokio::time::sleep_until(arrives).await;
        passable(&mut conditions).await?;
        let time = conditions.borrow().line_time(bytes.len());
        if time > Duration::ZERO {
            tokio::time::sleep(time).await;
        }
        trips.request_arrives(round_trip);
        if server.write_all(&bytes).await.is_err() {
            return Ok(());
        }
    }
    // Either side may be gone already, so a failure does not matter.
    let _ = server.shutdown().await;
    Ok(())
}

async fn answer(
    mut server: impl AsyncRead + Unpin,
    mut client: impl AsyncWrite + Unpin,
    mut conditions: watch::Receiver<Conditions>,
    tally: &Tally,
    trips: &RoundTrips,
) -> io::Result<()> {
    let mut chunk = Vec::with_capacity(CHUNK);
    while server.read_buf(&mut chunk).await? > 0 {
        let round_trip = trips.of_answer();
        passable(&mut conditions).await?;
        client.write_all(&chunk).await?;
        if trips.answer_arrives(round_trip) {
            tally.went_round();
        }
        chunk.clear();
    }
    client.shutdown().await
}

/// Waits until the host is no black hole.
async fn passable(conditions: &mut watch::Receiver<Conditions>) -> io::Result<()> {
    conditions
        .wait_for(|now| !now.has(Fault::BlackHole))
        .await
        .map(|_| ())
        .map_err(|_| io::Error::from(io::ErrorKind::ConnectionAborted))
}
