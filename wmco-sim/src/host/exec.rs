//! Remote commands.

use std::sync::Arc;

use russh::server::Msg;
use russh::{Channel, ChannelReadHalf, ChannelWriteHalf};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use wmco_core::winpath::WindowsPath;
use wmco_services::windows::EntryKind;

use super::agent;
use super::agent_file::{AgentNature, Head};
use super::fault::Fault;
use super::shared::Shared;
use super::shell::{Command, Ended};

/// Number of the SSH stream for standard error (RFC 4254, section 5.2).
const STDERR: u32 = 1;

/// Most lines that wait for the network before the agent has to wait.
const WAITING_LINES: usize = 64;

/// Runs a command and sends its exit to the client, unless the connection is cut before.
pub(super) async fn run(
    host: Arc<Shared>,
    cut: CancellationToken,
    channel: Channel<Msg>,
    command: String,
) {
    let (mut from_client, to_client) = channel.split();
    let ended = tokio::select! {
        // The first branch, so that a program that dies with the machine sends nothing more.
        biased;
        () = cut.cancelled() => return,
        () = closed(&mut from_client) => return,
        ended = execute(&host, &to_client, &command) => ended,
    };
    if let Err(error) = finish(&to_client, ended).await {
        tracing::debug!(%error, "the client did not wait for the end of its command");
    }
}

/// Waits until the client closes the channel. Our programs ignore its input.
async fn closed(from_client: &mut ChannelReadHalf) {
    while from_client.wait().await.is_some() {}
}

async fn execute(host: &Shared, to_client: &ChannelWriteHalf<Msg>, command: &str) -> Ended {
    let (program, arguments) = match Command::parse(command, &host.home()) {
        Command::Program { path, arguments } => (path, arguments),
        Command::Echo(text) => return Ended { stdout: format!("{text}\r\n"), ..Ended::default() },
        Command::Unknown(word) => return host.shell.not_found(&word),
    };
    let folder = program.parent();
    let kind = |path: &WindowsPath| host.model.with_tree(|tree| tree.kind(path));
    let Some(file) = host.model.file(&program) else {
        return match folder.as_ref().and_then(kind) {
            Some(EntryKind::Directory) => host.shell.not_found(program.as_str()),
            Some(EntryKind::File | EntryKind::Link) | None => host.shell.no_such_folder(&program),
        };
    };
    let Some(head) = Head::of(&file) else {
        return host.shell.no_program(&program);
    };
    match nature(host, &head).await {
        AgentNature::Garbage => Ended {
            stdout: "0123 not what you asked for\r\n\u{0}\u{1}\u{2}\r\n".to_owned(),
            ..Ended::default()
        },
        AgentNature::Failing(code) => {
            Ended { stderr: "something went wrong\r\n".to_owned(), code, ..Ended::default() }
        }
        AgentNature::Hanging => std::future::pending().await,
        AgentNature::Talking(bytes) => talk(to_client, bytes).await,
        AgentNature::Silent => Ended::default(),
        AgentNature::Real | AgentNature::Protocol(_) => {
            report(host, to_client, program, head, arguments).await
        }
    }
}

/// Prints this many bytes in lines, while the client accepts them.
async fn talk(to_client: &ChannelWriteHalf<Msg>, bytes: u64) -> Ended {
    let lines = format!("{}\n", "-".repeat(63)).repeat(128).into_bytes();
    let mut left = usize::try_from(bytes).unwrap_or(usize::MAX);
    while left > 0 {
        let piece = lines.get(..left).unwrap_or(&lines);
        if to_client.data_bytes(piece.to_vec()).await.is_err() {
            break;
        }
        left -= piece.len();
    }
    Ended::default()
}

/// Returns the agent's behaviour, including faults, once none holds it up.
async fn nature(host: &Shared, head: &Head) -> AgentNature {
    let mut conditions = host.conditions.subscribe();
    let Ok(now) = conditions.wait_for(|now| !now.has(Fault::AgentHangs)).await else {
        return AgentNature::Hanging;
    };
    if now.has(Fault::AgentGarbage) { AgentNature::Garbage } else { head.nature }
}

/// Runs the real agent's code and sends its lines as they come.
async fn report(
    host: &Shared,
    to_client: &ChannelWriteHalf<Msg>,
    program: WindowsPath,
    head: Head,
    arguments: Vec<String>,
) -> Ended {
    let (lines, mut written) = mpsc::channel::<String>(WAITING_LINES);
    let model = host.model.running_as(program);
    let agent = host.threads.spawn_blocking(move || {
        agent::run(&model, &head, &arguments, |line| {
            // Without a reader the agent continues alone, as a process would.
            let _ = lines.blocking_send(line);
        })
    });
    while let Some(line) = written.recv().await {
        if to_client.data_bytes(line).await.is_err() {
            break;
        }
    }
    drop(written);
    agent.await.unwrap_or_else(|error| Ended {
        stderr: format!("the agent broke: {error}\r\n"),
        code: 0xC000_0005,
        ..Ended::default()
    })
}

async fn finish(to_client: &ChannelWriteHalf<Msg>, ended: Ended) -> Result<(), russh::Error> {
    if !ended.stdout.is_empty() {
        to_client.data_bytes(ended.stdout).await?;
    }
    if !ended.stderr.is_empty() {
        to_client.extended_data_bytes(STDERR, ended.stderr).await?;
    }
    to_client.exit_status(ended.code).await?;
    to_client.eof().await?;
    to_client.close().await
}
