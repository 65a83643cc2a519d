//! Probe and apply through a real server's shell, with scripts in the agent's place.

use std::time::Duration;

use wmco_core::digest::Sha256;
use wmco_core::names::host;
use wmco_core::protocol::{
    AgentLocation, HostPlan, HostStep, PROTOCOL, ReportError, ReportLine, staged_agent, staged_plan,
};
use wmco_ssh::{
    ApplyOutcome, Blob, Exited, HostAgent, HostError, NoReport, ProbeOutcome, SshHost, TcpDialer,
};

use crate::sshd::Sshd;

const PROBE: &str = r#"{"wicd":"probed","protocol":1,"agent":{"version":"1.0.0","sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","installed":null},"hostName":"win","osBuild":"10.0.20348","addresses":["10.0.0.7"],"containers":"enabled","reboot":[],"bootId":"b","files":{},"services":{},"environment":{},"networks":[],"directories":[],"stagingProtected":true,"daemonCertificateValid":false,"state":null}"#;

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
async fn a_probe_is_read_around_a_shells_own_lines() {
    let script = format!("test \"$1\" = probe || exit 3\necho Welcome\necho '{PROBE}'\necho x >&2");
    let (_server, host) = host_with(&script).await;
    let ProbeOutcome::Reported(probe) = host.probe(INSTALLED).await.unwrap() else { panic!() };
    assert_eq!(probe.host_name, "win");
}

#[tokio::test]
async fn without_an_agent_the_shell_says_so() {
    let server = Sshd::start(&["ed25519"]).await;
    let host = server.host(&TcpDialer, &server.options()).await;
    let outcome = host.probe(INSTALLED).await.unwrap();
    let ProbeOutcome::NoReport(NoReport::NoAgent { status, errors }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(status, 127);
    assert!(errors.contains("not found"), "{errors}");
}

#[tokio::test]
async fn what_cmd_and_powershell_say_means_no_agent() {
    let cmd = r"echo \'C:\\k\\x.exe\' is not recognized as an internal or external command >&2";
    for script in [format!("{cmd}; exit 1"), format!("{cmd}; exit 240"), "exit 9".to_owned()] {
        let why = no_report(&script).await;
        assert!(matches!(why, NoReport::NoAgent { .. }), "{script}: {why:?}");
    }
}

#[tokio::test]
async fn garbage_is_not_an_absent_agent() {
    let why = no_report("echo hello").await;
    let NoReport::Unusable { error, exited, .. } = why else { panic!("{why:?}") };
    assert!(matches!(error, ReportError::Garbage { bytes: 6 }));
    assert_eq!(exited, Exited::Status(0));
}

#[tokio::test]
async fn another_protocol_is_named() {
    let other = PROBE.replace(r#""protocol":1"#, r#""protocol":99"#);
    let why = no_report(&format!("echo '{other}'; exit 1")).await;
    let NoReport::Unusable { error: ReportError::OtherProtocol { found: 99 }, .. } = why else {
        panic!("{why:?}")
    };
}

#[tokio::test]
async fn an_agent_that_dies_is_incomplete() {
    let why = no_report(r#"echo '{"wicd":"started","step":0}'; kill -SEGV $$"#).await;
    let NoReport::Unusable { error: ReportError::Incomplete, .. } = why else { panic!("{why:?}") };
}

#[tokio::test]
async fn endless_output_is_cut_off() {
    let (_server, host) = host_with("yes").await;
    let error = host.probe(INSTALLED).await.unwrap_err();
    assert!(matches!(error, HostError::TooMuchOutput { .. }), "{error}");
    assert!(!host.is_closed());
}

#[tokio::test]
async fn a_hanging_command_times_out_and_ends() {
    let server = Sshd::start(&["ed25519"]).await;
    let mark = server.path("mark");
    // It notices that its output is closed; the mark is the proof.
    let script =
        format!("trap '' PIPE\nwhile echo x; do sleep 0.05; done\ntouch '{}'", mark.display());
    server.install_agent(host::AGENT, &script);
    let mut options = server.options();
    options.timeouts.probe = Duration::from_millis(500);
    let host = server.host(&TcpDialer, &options).await;
    let error = host.probe(INSTALLED).await.unwrap_err();
    assert!(matches!(error, HostError::TimedOut { .. }), "{error}");
    while !mark.exists() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!host.is_closed(), "the connection is still good");
}

fn plan(steps: Vec<HostStep>) -> HostPlan {
    HostPlan { protocol: PROTOCOL, vacant_since: None, steps }
}

/// Checks that the plan is where the command line says, then reports.
fn apply_script(server: &Sshd, plan: &HostPlan, then: &str) -> String {
    let path = staged_plan(Sha256::of(&serde_json::to_vec(plan).unwrap()));
    let file = server.file(&path);
    format!(
        "test \"$1\" = apply || exit 3\ntest \"$2\" = '{}' || exit 4\nrm '{}' || exit 5\n{then}",
        path.as_str().replace('\\', ""),
        file.display()
    )
}

#[tokio::test]
async fn a_plan_arrives_and_its_lines_stream() {
    let server = Sshd::start(&["ed25519"]).await;
    let plan = plan(vec![HostStep::InstallAgent]);
    let lines = format!(
        "echo '{}'\necho '{}'\necho '{PROBE}'",
        r#"{"wicd":"started","step":0}"#, r#"{"wicd":"done","step":0,"changed":true}"#
    );
    let digest = Sha256::of(b"agent");
    let agent = staged_agent(digest);
    server.install_agent(agent.as_str(), &apply_script(&server, &plan, &lines));
    let host = server.host(&TcpDialer, &server.options()).await;
    let mut seen = Vec::new();
    let mut note = |line: &ReportLine| seen.push(line.clone());
    let outcome = host.apply(AgentLocation::Staged(digest), &plan, &mut note).await.unwrap();
    let ApplyOutcome::Finished { lines, probe } = outcome else { panic!("{outcome:?}") };
    assert_eq!(probe.boot_id, "b");
    assert_eq!(lines.len(), 3);
    assert_eq!(seen, lines);
}

async fn apply_then_drop(steps: Vec<HostStep>) -> Result<ApplyOutcome, HostError> {
    let server = Sshd::start(&["ed25519"]).await;
    let plan = plan(steps);
    // The server process of this connection goes away, as on a host that restarts; not before it
    // has passed the line on.
    let then = "echo '{\"wicd\":\"done\",\"step\":0,\"changed\":true}'\nsleep 0.5\nkill -9 $PPID";
    server.install_agent(host::AGENT, &apply_script(&server, &plan, then));
    let host = server.host(&TcpDialer, &server.options()).await;
    host.apply(INSTALLED, &plan, &mut |_| {}).await
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
async fn a_staged_agent_that_does_not_run_is_sent_again() {
    let server = Sshd::start(&["ed25519"]).await;
    let host = server.host(&TcpDialer, &server.options()).await;
    let agent = Blob::from_bytes("no program");
    let path = server.file(&staged_agent(agent.digest()));
    host.upload_agent(&agent, &|_| {}).await.unwrap();
    assert!(path.exists());
    let outcome = host.probe(AgentLocation::Staged(agent.digest())).await.unwrap();
    assert!(matches!(outcome, ProbeOutcome::NoReport(NoReport::NoAgent { .. })));
    assert!(!path.exists());
    assert_eq!(host.upload_agent(&agent, &|_| {}).await.unwrap().sent, 1);
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
    server.install_agent(host::AGENT, &format!("echo '{PROBE}'"));
    assert!(matches!(host.probe(INSTALLED).await, Ok(ProbeOutcome::Reported(_))));
}

#[tokio::test]
async fn commands_and_uploads_share_a_connection() {
    let (_server, host) = host_with(&format!("sleep 0.1; echo '{PROBE}'")).await;
    let blob = Blob::from_bytes(vec![7; 5_000_000]);
    let (uploaded, first, second) = tokio::join!(
        host.upload(std::slice::from_ref(&blob), &|_| {}),
        host.probe(INSTALLED),
        host.probe(INSTALLED),
    );
    assert_eq!(uploaded.unwrap().sent, 1);
    for probed in [first, second] {
        assert!(matches!(probed, Ok(ProbeOutcome::Reported(_))));
    }
}
