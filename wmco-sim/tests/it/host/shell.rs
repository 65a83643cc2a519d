//! Tests commands that start no agent.

use std::time::Duration;

use russh::ChannelMsg;
use wmco_core::digest::Sha256;
use wmco_core::names::host::AGENT;
use wmco_core::protocol::{AgentCommand, AgentLocation, ReportError, Verb, read_report};
use wmco_sim::host::{AgentFile, AgentNature, Fault, Shell, SimHost};

use super::client::{Client, Output, host, host_with, within};

const PROBE: AgentCommand = AgentCommand { agent: AgentLocation::Installed, verb: Verb::Probe };

fn install(host: &SimHost, file: Vec<u8>) {
    host.model().put_file(&AGENT.parse().unwrap(), file);
}

async fn probe(host: &SimHost, key: &russh::keys::PrivateKey) -> Output {
    within(Client::connect(host, key)).await.exec(PROBE).await.unwrap()
}

#[tokio::test]
async fn cmd_says_that_a_folder_or_a_program_is_missing() {
    let (host, key) = host().await;
    let output = within(probe(&host, &key)).await;
    assert_eq!(output.stderr, "The system cannot find the path specified.\r\n");
    assert_eq!(output.code, Some(1));
    host.model().put_file(&r"C:\k\other.txt".parse().unwrap(), "");
    let output = within(probe(&host, &key)).await;
    assert!(output.stderr.starts_with(&format!("'{AGENT}' is not recognized")), "{output:?}");
    assert_eq!(output.code, Some(1));
    assert_eq!(output.stdout, "");
    assert_eq!(host.counts().executions, [PROBE.to_string(), PROBE.to_string()]);
}

#[tokio::test]
async fn powershell_says_it_in_its_own_words() {
    let (host, key) = host_with(|builder| builder.shell(Shell::PowerShell)).await;
    let output = within(probe(&host, &key)).await;
    assert!(output.stderr.contains("CommandNotFoundException"), "{output:?}");
    assert_eq!(output.code, Some(1));
}

#[tokio::test]
async fn only_a_stand_in_is_a_program() {
    let (host, key) = host().await;
    install(&host, b"not a program".to_vec());
    let output = within(probe(&host, &key)).await;
    assert!(output.stderr.contains("not a valid Win32 application"), "{output:?}");
    assert_ne!(output.code, Some(0));
}

#[tokio::test]
async fn commands_of_a_shell_are_unknown() {
    let (host, key) = host().await;
    let client = within(Client::connect(&host, &key)).await;
    let output = within(client.exec("Get-Help")).await.unwrap();
    assert!(output.stderr.contains("'Get-Help' is not recognized"), "{output:?}");
}

#[tokio::test]
async fn a_garbage_agent_gives_no_report() {
    let (host, key) = host().await;
    install(&host, AgentFile::new("1").nature(AgentNature::Garbage).bytes());
    let output = within(probe(&host, &key)).await;
    assert!(matches!(read_report(&output.stdout), Err(ReportError::Garbage { bytes: 1.. })));
    assert_eq!(output.code, Some(0));
}

#[tokio::test]
async fn a_silent_agent_exits_without_a_word() {
    let (host, key) = host().await;
    install(&host, AgentFile::new("1").nature(AgentNature::Silent).bytes());
    let output = within(probe(&host, &key)).await;
    assert_eq!(output, Output { code: Some(0), ..Output::default() });
}

#[tokio::test]
async fn a_hanging_agent_holds_its_channel_and_nothing_else() {
    let (host, key) = host().await;
    install(&host, AgentFile::new("1").nature(AgentNature::Hanging).bytes());
    let client = within(Client::connect(&host, &key)).await;
    let mut channel = client.handle.channel_open_session().await.unwrap();
    channel.exec(true, PROBE.to_string()).await.unwrap();
    let answer = within(channel.wait()).await;
    assert!(matches!(answer, Some(ChannelMsg::Success)), "{answer:?}");
    let unknown = AgentLocation::Staged(Sha256::of(b""));
    let other = AgentCommand { agent: unknown, verb: Verb::Probe };
    assert_eq!(within(client.exec(other)).await.unwrap().code, Some(1));
    let more = tokio::time::timeout(Duration::from_millis(100), channel.wait()).await;
    assert!(more.is_err(), "{more:?}");
}

#[tokio::test]
async fn faults_turn_a_good_agent_bad() {
    let (host, key) = host().await;
    install(&host, SimHost::agent_binary("1"));
    host.set_fault(Fault::AgentGarbage);
    let output = within(probe(&host, &key)).await;
    assert!(matches!(read_report(&output.stdout), Err(ReportError::Garbage { .. })));
}
