//! Round trips to a distant host.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use wmco_core::protocol::{AgentLocation, HostPlan, HostStep, PROTOCOL, staged_agent};
use wmco_ssh::{ApplyOutcome, Blob, HostAgent, ProbeOutcome, Route, Session, SshHost, TcpDialer};

use super::{QUIET, noise};
use crate::backend::{Backend, Does};
use crate::proxy::{Network, Proxy};

/// Half a round trip, far longer than any operation here, so that overlaps show.
const ONE_WAY: Duration = Duration::from_millis(150);

/// Most round trips of a join.
const MOST: u64 = 30;

/// Contents of a first configuration: programs, and small files. They fill a little more than two windows.
const PROGRAMS: u64 = 18;
const SMALL: u64 = 6;

/// Runs all operations of a join over one connection.
pub(super) async fn a_visit_takes_few_round_trips<B: Backend>() {
    let server = B::start().await;
    let ours = server.program(Does::Work);
    // Puts a copy of the agent there, as the agent does itself; not every stand-in does.
    server.install(&staged_agent(ours.digest()), Does::Work);
    let agent = AgentLocation::Staged(ours.digest());
    let far = Network { one_way: ONE_WAY, ..Network::default() };
    let round_trips = Arc::clone(&far.round_trips);
    let proxy = Proxy::start(&server.target(), far).await;
    let mut before = 0;
    let mut spent = |doing: &'static str| {
        let now = round_trips.load(Ordering::Relaxed);
        (doing, now - std::mem::replace(&mut before, now))
    };

    let route = Route::new(proxy.target(), server.credentials());
    let session = Session::connect(&route, &TcpDialer, &server.options()).await.unwrap();
    let host = SshHost::new(session);
    let connected = spent("connect");

    let outcome = host.probe_with(&ours, server.fresh_folder(), &QUIET).await.unwrap();
    assert!(matches!(outcome, ProbeOutcome::Reported(_)), "{outcome:?}");
    let probed_with_ours = spent("bring an agent, ask it, take it back");

    let programs = (0..PROGRAMS).map(|seed| noise(240_000, 2 * seed + 1));
    let small = (0..SMALL).map(|seed| noise(2_000, 2 * seed + 101));
    let blobs: Vec<_> = programs.chain(small).map(Blob::from_bytes).collect();
    host.upload(&blobs, &QUIET).await.unwrap();
    let uploaded = spent("upload 24 contents");

    let steps = vec![HostStep::InstallAgent];
    let plan = HostPlan { protocol: PROTOCOL, vacant_since: None, steps };
    let outcome = host.apply(agent, &plan, &mut |_| {}).await.unwrap();
    assert!(matches!(outcome, ApplyOutcome::Finished { .. }), "{outcome:?}");
    let applied = spent("apply a plan");

    host.probe(agent).await.unwrap();
    let looked = spent("look");

    let all = [connected, probed_with_ours, uploaded, applied, looked];
    let took: u64 = all.iter().map(|(_, took)| took).sum();
    assert!(took <= MOST, "{took}: {all:?}");
    assert!(all.iter().all(|(_, took)| *took >= 2), "nothing is free: {all:?}");
}
