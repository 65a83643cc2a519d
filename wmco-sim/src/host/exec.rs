//! Remote commands.

use std::io::{self, Write};
use std::sync::Arc;

use russh::server::Msg;
use russh::{Channel, ChannelReadHalf, ChannelWriteHalf};
use tokio::sync::mpsc;
use wmco_core::protocol::ReportLine;
use wmco_core::winpath::WindowsPath;
use wmco_services::windows::{EntryKind, Files as _, Windows as _};

use super::agent_file::{AgentNature, Head};
use super::fault::Fault;
use super::shared::Shared;
use super::shell::{Command, Ended};

/// Number of the SSH stream for standard error (RFC 4254, section 5.2).
const STDERR: u32 = 1;

/// Pieces of output that wait for the network before the agent does.
const PIECES: usize = 64;

/// Runs one command and tells the client how it ended.
pub(super) async fn run(host: Arc<Shared>, channel: Channel<Msg>, command: String) {
    let (mut from_client, to_client) = channel.split();
    let ended = tokio::select! {
        ended = execute(&host, &to_client, &command) => ended,
        () = closed(&mut from_client) => return,
    };
    if let Err(error) = finish(&to_client, &ended).await {
        tracing::debug!(%error, "the client did not wait for the end of its command");
    }
}

async fn closed(channel: &mut ChannelReadHalf) {
    // Whatever else comes (data, end of input) does not matter to our programs.
    while channel.wait().await.is_some() {}
}
