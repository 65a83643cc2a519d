//! Remote commands.

use std::time::Duration;

use russh::ChannelMsg;
use russh::client::Msg;
use tokio::time::timeout;
use wmco_core::limits;
use wmco_core::protocol::{AgentCommand, ECHO_COMMAND};

use super::Session;
use super::channels::Alone;
use crate::error::{HostError, printable};

/// Most bytes of standard error that are kept; the rest is discarded.
const ERROR_BYTES: usize = 16 * 1024;

/// Number of the standard error stream. Source: RFC 4254, section 5.2.
const STDERR: u32 = 1;

/// Lines of a program that runs in place of our command which are looked at while it goes on.
const ECHO_LINES: usize = 1_000;

const DOING: &str = "running the agent";

/// The exit of a remote command.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Exited {
    /// It exited with this status.
    Status(u32),
    /// It was ended by this signal.
    Signal(String),
    /// Unknown: the channel or connection ended first.
    Dropped,
}

/// The output and the exit of a remote command.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ExecOutcome {
    /// The exit of the command.
    pub exited: Exited,
    /// Its standard output; invalid UTF-8 is replaced.
    pub output: String,
    /// The start of its standard error, without control characters except line feeds.
    pub errors: String,
}

/// A channel for one command. Dropping it makes the server close it, which ends the command.
pub(crate) struct CommandChannel {
    channel: Option<russh::Channel<Msg>>,
    /// On a server that opens one channel at a time.
    _turn: Option<Alone>,
}

impl Drop for CommandChannel {
    fn drop(&mut self) {
        let Some(channel) = self.channel.take() else { return };
        // Ends with the session at the latest, whose queue it waits for.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = channel.close().await;
            });
        }
    }
}

impl Session {
    /// Runs `command` for at most `limit` and passes each line of its standard output, without the line end, to
    /// `on_line` as it arrives.
    ///
    /// Dropping the future closes the channel.
    ///
    /// # Errors
    /// [`HostError::ChannelRefused`], [`HostError::Dropped`] before the command began, [`HostError::TimedOut`],
    /// [`HostError::TooMuchOutput`]. A command that failed is no error.
    pub async fn exec(
        &self,
        command: AgentCommand,
        limit: Duration,
        on_line: &mut (dyn FnMut(&str) + Send),
    ) -> Result<ExecOutcome, HostError> {
        let command = command.to_string();
        let running =
            async { self.run(self.opened().await?, &command, Input::Open, on_line).await };
        Box::pin(timeout(limit, running))
            .await
            .unwrap_or(Err(HostError::TimedOut { doing: DOING, after: limit }))
    }

    /// Opens a channel for [`Self::exec_in`] ahead of time; `None` if the server refuses one beside SFTP.
    pub(crate) async fn command_channel(&self) -> Result<Option<CommandChannel>, HostError> {
        let limit = self.options().timeouts.request;
        let opening = async {
            let channel = self.channel_beside(DOING).await?;
            Ok(channel.map(|channel| CommandChannel { channel: Some(channel), _turn: None }))
        };
        timeout(limit, opening)
            .await
            .unwrap_or(Err(HostError::TimedOut { doing: DOING, after: limit }))
    }

    /// Like [`Self::exec`], in a channel that was opened ahead of time, if there is one.
    pub(crate) async fn exec_in(
        &self,
        channel: Option<CommandChannel>,
        command: AgentCommand,
        limit: Duration,
        on_line: &mut (dyn FnMut(&str) + Send),
    ) -> Result<ExecOutcome, HostError> {
        let command = command.to_string();
        let running = async {
            let channel = match channel {
                Some(channel) => channel,
                None => self.opened().await?,
            };
            self.run(channel, &command, Input::Open, on_line).await
        };
        Box::pin(timeout(limit, running))
            .await
            .unwrap_or(Err(HostError::TimedOut { doing: DOING, after: limit }))
    }

    /// Runs the command that prints a word, for at most `limit` after its channel was opened in as much time. Its input
    /// ends at once, so that a program that reads commands, in its place, ends, too.
    pub(super) async fn echo(&self, limit: Duration) -> Result<Echo, HostError> {
        let late = HostError::TimedOut { doing: DOING, after: limit };
        let channel = timeout(limit, self.opened()).await.unwrap_or(Err(late))?;
        let mut lines = Vec::new();
        let mut on_line = |line: &str| {
            if lines.len() < ECHO_LINES {
                lines.push(line.to_owned());
            }
        };
        let running = self.run(channel, ECHO_COMMAND, Input::Ended, &mut on_line);
        match Box::pin(timeout(limit, running)).await {
            Ok(Ok(ended)) => Ok(Echo::Ended(ended)),
            Err(_) | Ok(Err(HostError::TooMuchOutput { .. })) => Ok(Echo::GoesOn(lines)),
            Ok(Err(error)) => Err(error),
        }
    }

    async fn opened(&self) -> Result<CommandChannel, HostError> {
        if let Some(channel) = self.channel_beside(DOING).await? {
            return Ok(CommandChannel { channel: Some(channel), _turn: None });
        }
        let (channel, turn) = self.channel_alone(DOING).await?;
        Ok(CommandChannel { channel: Some(channel), _turn: Some(turn) })
    }

    async fn run(
        &self,
        mut running: CommandChannel,
        command: &str,
        input: Input,
        on_line: &mut (dyn FnMut(&str) + Send),
    ) -> Result<ExecOutcome, HostError> {
        self.options().counters.executed();
        tracing::debug!(target = %self.target(), %command, "exec");
        let Some(channel) = &mut running.channel else {
            return Err(HostError::Dropped { doing: DOING, source: None });
        };
        let requested = channel.exec(true, command).await;
        requested.map_err(|error| HostError::from_channel(DOING, error))?;
        if input == Input::Ended {
            channel.eof().await.map_err(|error| HostError::from_channel(DOING, error))?;
        }
        let mut collected = Collected::default();
        let mut exited = Exited::Dropped;
        let mut at_end = false;
        while let Some(message) = channel.wait().await {
            match message {
                ChannelMsg::Data { data } => collected.output(&data, on_line)?,
                ChannelMsg::ExtendedData { data, ext: STDERR } => collected.error(&data)?,
                ChannelMsg::Failure => {
                    return Err(HostError::ChannelRefused { doing: DOING, source: None });
                }
                ChannelMsg::ExitStatus { exit_status } => exited = Exited::Status(exit_status),
                ChannelMsg::ExitSignal { signal_name, .. } => {
                    exited = Exited::Signal(format!("{signal_name:?}"));
                }
                ChannelMsg::Eof => at_end = true,
                ChannelMsg::Close => break,
                _ => {}
            }
            // Waits for both, since output may follow the status.
            if at_end && exited != Exited::Dropped {
                break;
            }
        }
        Ok(collected.finish(exited, on_line))
    }
}

/// What came of the command that prints a word.
pub(super) enum Echo {
    /// It ended.
    Ended(ExecOutcome),
    /// It did not end in time, or wrote too much; the first lines of its standard output.
    GoesOn(Vec<String>),
}

/// The standard input of a command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Input {
    /// It ends with the channel.
    Open,
    /// It ends at once.
    Ended,
}

/// Output so far, within limits.
#[derive(Default)]
struct Collected {
    bytes: usize,
    output: String,
    errors: Vec<u8>,
    line: Vec<u8>,
}

impl Collected {
    fn count(&mut self, more: usize) -> Result<(), HostError> {
        self.bytes = self.bytes.saturating_add(more);
        if self.bytes > limits::OUTPUT_BYTES {
            return Err(HostError::TooMuchOutput { limit: limits::OUTPUT_BYTES });
        }
        Ok(())
    }

    fn output(
        &mut self,
        data: &[u8],
        on_line: &mut (dyn FnMut(&str) + Send),
    ) -> Result<(), HostError> {
        self.count(data.len())?;
        for piece in data.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.end_line(on_line);
            }
        }
        Ok(())
    }

    fn error(&mut self, data: &[u8]) -> Result<(), HostError> {
        self.count(data.len())?;
        let room = ERROR_BYTES.saturating_sub(self.errors.len());
        self.errors.extend(data.iter().take(room));
        Ok(())
    }

    /// Decodes complete lines only, so that no character is split.
    fn end_line(&mut self, on_line: &mut (dyn FnMut(&str) + Send)) {
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&line);
        on_line(text.trim_end_matches(['\r', '\n']));
        self.output.push_str(&text);
    }

    fn finish(mut self, exited: Exited, on_line: &mut (dyn FnMut(&str) + Send)) -> ExecOutcome {
        if !self.line.is_empty() {
            self.end_line(on_line);
        }
        let errors = printable(String::from_utf8_lossy(&self.errors).trim(), ERROR_BYTES);
        ExecOutcome { exited, output: self.output, errors }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(pieces: &[&[u8]]) -> (Vec<String>, ExecOutcome) {
        let mut lines = Vec::new();
        let mut on_line = |line: &str| lines.push(line.to_owned());
        let mut collected = Collected::default();
        for piece in pieces {
            collected.output(piece, &mut on_line).unwrap();
        }
        let outcome = collected.finish(Exited::Status(0), &mut on_line);
        (lines, outcome)
    }

    #[test]
    fn lines_are_put_together_from_pieces() {
        let (lines, outcome) = lines_of(&[b"a\r\nb", b"c\n\xc3", b"\xa4\nd"]);
        assert_eq!(lines, ["a", "bc", "ä", "d"]);
        assert_eq!(outcome.output, "a\r\nbc\nä\nd");
    }

    #[test]
    fn output_has_a_limit() {
        let mut collected = Collected::default();
        let piece = vec![b'x'; limits::OUTPUT_BYTES];
        collected.output(&piece, &mut |_| {}).unwrap();
        assert!(matches!(collected.error(b"y"), Err(HostError::TooMuchOutput { .. })));
    }

    #[test]
    fn of_errors_the_start_is_kept() {
        let mut collected = Collected::default();
        collected.error(&[b'e'; ERROR_BYTES]).unwrap();
        collected.error(b"late").unwrap();
        let outcome = collected.finish(Exited::Dropped, &mut |_| {});
        assert_eq!(outcome.errors, "e".repeat(ERROR_BYTES));
    }

    #[test]
    fn errors_cannot_paint_a_terminal() {
        let mut collected = Collected::default();
        collected.error(b"\x1b[2Jgone\r\nline\x07").unwrap();
        assert_eq!(collected.finish(Exited::Dropped, &mut |_| {}).errors, "[2Jgone\nline");
    }
}
