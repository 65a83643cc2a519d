//! A new boot identity proves a restart, wherever the connection that ordered it drops: in the handshake, in the plan's
//! upload, before and after the order, in the report.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use wmco_core::protocol::{AgentLocation, HostPlan, HostStep, PROTOCOL, Probe};
use wmco_services::windows::Machine as _;
use wmco_ssh::{
    ApplyOutcome, ConnectError, HostAgent, HostError, ProbeOutcome, Route, Session, SshHost,
    TcpDialer,
};

use crate::backend::{Backend, Does, Sim};
use crate::proxy::{Network, Proxy};

/// Bytes between two tested positions. Odd, so that they hit different places.
const STRIDE: u64 = 223;

/// The direction that is cut.
#[derive(Clone, Copy, Debug)]
enum Direction {
    ToHost,
    FromHost,
}

async fn connect(server: &Sim, route: &Route) -> Result<SshHost, ConnectError> {
    Session::connect(route, &TcpDialer, &server.options()).await.map(SshHost::new)
}

/// Probes the host as soon as possible, as the operator does.
async fn look(server: &Sim, agent: AgentLocation) -> Box<Probe> {
    loop {
        if let Ok(host) = connect(server, &server.route()).await
            && let Ok(ProbeOutcome::Reported(probe)) = host.probe(agent).await
        {
            return probe;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Orders a restart over a connection that may drop.
async fn order(
    server: &Sim,
    agent: AgentLocation,
    route: &Route,
) -> Option<Result<ApplyOutcome, HostError>> {
    let host = connect(server, route).await.ok()?;
    let plan = HostPlan { protocol: PROTOCOL, vacant_since: None, steps: vec![HostStep::Restart] };
    let outcome = host.apply(agent, &plan, &mut |_| {}).await;
    host.close().await;
    Some(outcome)
}

/// Tests a host whose connection drops after this many bytes while a restart is ordered. Returns whether the cut came
/// too late to have an effect.
async fn drops_at(direction: Direction, bytes: u64) -> bool {
    let server = Sim::start().await;
    let agent = server.stage(Does::Work);
    let before = look(&server, agent).await.boot_id;
    let left = Arc::new(AtomicU64::new(bytes));
    let network = match direction {
        Direction::ToHost => Network { cut_after: Some(Arc::clone(&left)), ..Network::default() },
        Direction::FromHost => {
            Network { cut_answers_after: Some(Arc::clone(&left)), ..Network::default() }
        }
    };
    let proxy = Proxy::start(&server.target(), network).await;
    let through = Route { target: proxy.target(), ..server.route() };
    let outcome = order(&server, agent, &through).await;

    // The outcome never claims more than what happened: only a new boot identity counts as a restart.
    let mut orders = 1;
    let after = loop {
        let seen = look(&server, agent).await;
        if seen.boot_id != before {
            break seen;
        }
        assert!(orders < 5, "{direction:?} {bytes}: {outcome:?}");
        order(&server, agent, &server.route()).await;
        orders += 1;
    };
    let at = format!("{direction:?} {bytes}: {outcome:?}");
    assert!(server.host.counts().restarts >= 1, "a restart that was none, {at}");
    assert_eq!(after.boot_id, server.host.model().boot_id().unwrap(), "{at}");
    // A restart order that could not be confirmed is repeated at most once.
    assert!(server.host.counts().restarts <= 2, "{at}");
    left.load(Ordering::Relaxed) > 0
}

async fn drops_everywhere(direction: Direction) {
    let mut moments = 0;
    while !drops_at(direction, moments * STRIDE).await {
        moments += 1;
    }
    assert!(moments > 10, "{moments} moments are no handshake, upload and command");
}

#[tokio::test]
async fn a_restart_is_proven_whenever_the_order_is_cut() {
    drops_everywhere(Direction::ToHost).await;
}

#[tokio::test]
async fn a_restart_is_proven_whenever_the_answer_is_cut() {
    drops_everywhere(Direction::FromHost).await;
}
