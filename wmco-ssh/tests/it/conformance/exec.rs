//! Remote commands: the agent's output and exit, and their effect on the connection.

use std::time::Duration;

use wmco_core::protocol::{AgentLocation, HostPlan, HostStep, PROTOCOL, ReportError, ReportLine};
use wmco_core::winpath::WindowsPath;
use wmco_ssh::{
    ApplyOutcome, Blob, Exited, HostAgent, HostError, NoReport, ProbeOutcome, Route, Session,
    SshHost, TcpDialer,
};

use super::{QUIET, noise};
use crate::backend::{Backend, Does, HOST_NAME};
use crate::proxy::{Network, Proxy};

async fn reports(host: &SshHost, agent: AgentLocation) {
    let outcome = host.probe(agent).await.unwrap();
    let ProbeOutcome::Reported(probe) = outcome else { panic!("{outcome:?}") };
    assert_eq!(probe.host_name, HOST_NAME);
}

async fn no_report(host: &SshHost, agent: AgentLocation) -> NoReport {
    match host.probe(agent).await.unwrap() {
        ProbeOutcome::NoReport(why) => why,
        ProbeOutcome::Reported(probe) => panic!("{probe:?}"),
    }
}

pub(super) async fn without_an_agent_the_shell_says_so<B: Backend>() {
    let server = B::start().await;
    let host = server.host().await;
    let why = no_report(&host, AgentLocation::Installed).await;
    let NoReport::NoAgent { status, errors } = why else { panic!("{why:?}") };
    assert_ne!(status, 0);
    assert!(!errors.is_empty());
}

pub(super) async fn an_agent_reports<B: Backend>() {
    let (_server, host, agent) = B::host_with(Does::Work).await;
    reports(&host, agent).await;
    reports(&host, agent).await;
}

pub(super) async fn a_failing_agent_is_no_agent<B: Backend>() {
    for code in [1, 9, 240] {
        let (_server, host, agent) = B::host_with(Does::Fail(code)).await;
        let why = no_report(&host, agent).await;
        let NoReport::NoAgent { status, errors } = why else { panic!("{why:?}") };
        assert_eq!((status, errors.as_str()), (code, "something went wrong"));
    }
}

pub(super) async fn garbage_is_not_an_absent_agent<B: Backend>() {
    for does in [Does::Garbage, Does::Nothing] {
        let (_server, host, agent) = B::host_with(does).await;
        let why = no_report(&host, agent).await;
        let NoReport::Unusable { error, exited, .. } = why else { panic!("{why:?}") };
        assert!(matches!(error, ReportError::Garbage { .. }), "{error}");
        assert_eq!(exited, Exited::Status(0));
    }
}

pub(super) async fn another_protocol_is_named<B: Backend>() {
    let (_server, host, agent) = B::host_with(Does::OtherProtocol(99)).await;
    let why = no_report(&host, agent).await;
    let NoReport::Unusable { error: ReportError::OtherProtocol { found: 99 }, .. } = why else {
        panic!("{why:?}")
    };
}

pub(super) async fn big_output_is_read<B: Backend>() {
    let (_server, host, agent) = B::host_with(Does::Talk(3_000_000)).await;
    let why = no_report(&host, agent).await;
    let NoReport::Unusable { error, .. } = why else { panic!("{why:?}") };
    assert!(matches!(error, ReportError::Garbage { bytes: 3_000_000 }), "{error:?}");
}

pub(super) async fn endless_output_is_cut_off<B: Backend>() {
    let (server, host, agent) = B::host_with(Does::Talk(u64::MAX / 4)).await;
    let error = host.probe(agent).await.unwrap_err();
    assert!(matches!(error, HostError::TooMuchOutput { .. }), "{error}");
    reports(&host, server.stage(Does::Work)).await;
}

pub(super) async fn a_hanging_agent_times_out<B: Backend>() {
    let server = B::start().await;
    let (hanging, working) = (server.stage(Does::Hang), server.stage(Does::Work));
    let mut options = server.options();
    options.timeouts.probe = Duration::from_millis(500);
    let host = server.connect(&options).await;
    let error = host.probe(hanging).await.unwrap_err();
    assert!(matches!(error, HostError::TimedOut { .. }), "{error}");
    assert!(!host.is_closed(), "the connection is still good");
    host.close().await;
    reports(&server.host().await, working).await;
}

pub(super) async fn a_cancelled_command_leaves_the_connection<B: Backend>() {
    let (server, host, agent) = B::host_with(Does::Hang).await;
    tokio::select! {
        outcome = host.probe(agent) => panic!("{outcome:?}"),
        () = tokio::time::sleep(Duration::from_millis(300)) => {}
    }
    reports(&host, server.stage(Does::Work)).await;
}

pub(super) async fn a_cut_is_told<B: Backend>() {
    let server = B::start().await;
    let agent = server.stage(Does::Hang);
    let options = server.options();
    let proxy = Proxy::start(&server.target(), Network::default()).await;
    let route = Route::new(proxy.target(), server.credentials());
    let host = SshHost::new(Session::connect(&route, &TcpDialer, &options).await.unwrap());
    let (error, ()) = tokio::join!(host.probe(agent), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        drop(proxy);
    });
    let error = error.unwrap_err();
    assert!(matches!(error, HostError::Dropped { .. }), "{error}");
    assert!(host.is_closed());
    host.close().await;
    assert_eq!(options.counters.snapshot().open, 0);
}

fn plan(steps: Vec<HostStep>) -> HostPlan {
    HostPlan { protocol: PROTOCOL, vacant_since: None, steps }
}

pub(super) async fn a_plan_is_carried_out<B: Backend>() {
    let (server, host, agent) = B::host_with(Does::Work).await;
    let mut seen = Vec::new();
    let mut note = |line: &ReportLine| seen.push(line.clone());
    let outcome = host.apply(agent, &plan(vec![HostStep::InstallAgent]), &mut note).await.unwrap();
    let ApplyOutcome::Finished { lines, probe } = outcome else { panic!("{outcome:?}") };
    assert_eq!(probe.host_name, HOST_NAME);
    assert!(lines.contains(&ReportLine::Done { step: 0, changed: true }), "{lines:?}");
    assert!(matches!(lines.last(), Some(ReportLine::Probed(_))));
    assert_eq!(seen, lines);
    let staging: WindowsPath = wmco_core::names::host::STAGING.parse().unwrap();
    let names = server.names(&staging);
    assert!(!names.iter().any(|name| name.starts_with("plan-")), "{names:?}");
}

pub(super) async fn a_restart_is_expected<B: Backend>() {
    let (_server, host, agent) = B::host_with(Does::Work).await;
    let plan = plan(vec![HostStep::InstallAgent, HostStep::Restart]);
    let lines = match host.apply(agent, &plan, &mut |_| {}).await.unwrap() {
        // A shutdown takes a while, in which an agent may still report.
        ApplyOutcome::Restarting { lines } | ApplyOutcome::Finished { lines, .. } => lines,
        outcome @ ApplyOutcome::NoReport(_) => panic!("{outcome:?}"),
    };
    assert!(lines.contains(&ReportLine::Done { step: 0, changed: true }), "{lines:?}");
    while !host.is_closed() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(super) async fn commands_and_uploads_share_a_connection<B: Backend>() {
    let server = B::start().await;
    let agent = server.stage(Does::Work);
    let options = server.options();
    let host = server.connect(&options).await;
    let blob = Blob::from_bytes(noise(3_000_000, 21));
    let (uploaded, (), ()) = tokio::join!(
        host.upload(std::slice::from_ref(&blob), &QUIET),
        reports(&host, agent),
        reports(&host, agent),
    );
    uploaded.unwrap();
    let counts = options.counters.snapshot();
    assert_eq!((counts.connects, counts.executions, counts.sftp_sessions), (1, 2, 1));
}
