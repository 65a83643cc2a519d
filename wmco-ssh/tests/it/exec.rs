//! Probe and apply through a real server's shell, with scripts as the agent.

use std::time::Duration;

use wmco_core::digest::Sha256;
use wmco_core::names::host;
use wmco_core::protocol::{
    AgentLocation, HostPlan, HostStep, PROTOCOL, ReportError, ReportLine, staged_plan,
};
use wmco_ssh::{ApplyOutcome, HostAgent, HostError, NoReport, ProbeOutcome, SshHost, TcpDialer};

use crate::sshd::Sshd;

const INSTALLED: AgentLocation = AgentLocation::Installed;

async fn host_with(script: &str) -> (Sshd, SshHost) {
    let server = Sshd::start(&["ed25519"]).await;
    server.install_agent(host::AGENT, script);
    let host = server.host(&TcpDialer, &server.options()).await;
    (server, host)
}

async fn no_report(script: &str) -> NoReport {
    let (_server, host) = host_with(script).await;
    match host.probe(INSTALLED).await.unwrap() {
        ProbeOutcome::NoReport(why) => why,
        ProbeOutcome::Reported(probe) => panic!("{probe:?}"),
    }
}

#[tokio::test]
async fn an_agent_that_dies_is_incomplete() {
    let why = no_report(r#"echo '{"wicd":"started","step":0}'; kill -SEGV $$"#).await;
    let NoReport::Unusable { error: ReportError::Incomplete, .. } = why else { panic!("{why:?}") };
}

#[tokio::test]
async fn a_hanging_command_times_out_and_ends() {
    let server = Sshd::start(&["ed25519"]).await;
    let mark = server.path("mark");
    // The script ends when its output is closed; the mark file proves that.
    let script =
        format!("trap '' PIPE\nwhile echo x; do sleep 0.05; done\ntouch '{}'", mark.display());
    server.install_agent(host::AGENT, &script);
    let mut options = server.options();
    options.timeouts.probe = Duration::from_millis(500);
    let host = server.host(&TcpDialer, &options).await;
    // Again where it took so long to begin that the script had not.
    while !mark.exists() {
        let error = host.probe(INSTALLED).await.unwrap_err();
        assert!(matches!(error, HostError::TimedOut { .. }), "{error}");
    }
    assert!(!host.is_closed(), "the connection is still good");
}

fn plan(steps: Vec<HostStep>) -> HostPlan {
    HostPlan { protocol: PROTOCOL, vacant_since: None, steps }
}

/// Checks that the plan is at the path on the command line, then runs `then`.
fn apply_script(server: &Sshd, plan: &HostPlan, then: &str) -> String {
    let path = staged_plan(Sha256::of(&serde_json::to_vec(plan).unwrap()));
    let file = server.file(&path);
    format!(
        "test \"$1\" = apply || exit 3\ntest \"$2\" = '{}' || exit 4\nrm '{}' || exit 5\n{then}",
        path.as_str().replace('\\', ""),
        file.display()
    )
}

async fn apply_then_drop(steps: Vec<HostStep>) -> Result<ApplyOutcome, HostError> {
    let server = Sshd::start(&["ed25519"]).await;
    let plan = plan(steps);
    let arrived = server.path("arrived");
    // The server process of this connection ends, as on a host that restarts, but only after its line has arrived.
    let then = format!(
        "echo '{{\"wicd\":\"done\",\"step\":0,\"changed\":true}}'\n\
         until test -e '{}'; do sleep 0.05; done\nkill -9 $PPID",
        arrived.display()
    );
    server.install_agent(host::AGENT, &apply_script(&server, &plan, &then));
    let host = server.host(&TcpDialer, &server.options()).await;
    host.apply(INSTALLED, &plan, &mut |_| std::fs::write(&arrived, "").unwrap()).await
}

#[tokio::test]
async fn a_connection_that_drops_in_a_restart_is_expected() {
    let outcome = apply_then_drop(vec![HostStep::InstallAgent, HostStep::Restart]).await.unwrap();
    let ApplyOutcome::Restarting { lines } = outcome else { panic!("{outcome:?}") };
    assert_eq!(lines, [ReportLine::Done { step: 0, changed: true }]);
}

#[tokio::test]
async fn a_connection_that_drops_before_the_restart_is_an_error() {
    let steps = vec![HostStep::InstallAgent, HostStep::EnableContainers, HostStep::Restart];
    let error = apply_then_drop(steps).await.unwrap_err();
    assert!(matches!(error, HostError::Dropped { .. }), "{error}");
    let error = apply_then_drop(vec![HostStep::InstallAgent]).await.unwrap_err();
    assert!(matches!(error, HostError::Dropped { .. }), "{error}");
}

#[tokio::test]
async fn a_cancelled_command_ends_and_leaves_the_connection() {
    let server = Sshd::start(&["ed25519"]).await;
    let (begun, ended) = (server.path("begun"), server.path("ended"));
    let script = format!(
        "trap '' PIPE\ntouch '{}'\nwhile echo x; do sleep 0.05; done\ntouch '{}'",
        begun.display(),
        ended.display()
    );
    server.install_agent(host::AGENT, &script);
    let host = server.host(&TcpDialer, &server.options()).await;
    let exists = async |file: &std::path::Path| {
        while !file.exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        outcome = host.probe(INSTALLED) => panic!("{outcome:?}"),
        () = exists(&begun) => {}
    }
    exists(&ended).await;
    server.install_agent(host::AGENT, &format!("echo '{}'", crate::scripts::probe()));
    assert!(matches!(host.probe(INSTALLED).await, Ok(ProbeOutcome::Reported(_))));
}
