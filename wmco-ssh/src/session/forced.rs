//! Whether the server runs our commands, or another program in their place.
//!
//! `ForceCommand` of the server, `command=` of a line of keys, or a login shell that is none: such a program answers
//! everything with words of its own, also the start of SFTP, and may take as long as it likes.
//!
//! Source: `docs/contract/ssh.md`, SSH54 and SSH56.

use wmco_core::protocol::ECHO_WORD;

use super::Session;
use super::exec::{Echo, ExecOutcome};
use crate::error::{HostError, printable};

/// Most characters of the program's words that are kept.
const WORDS_LETTERS: usize = 200;

/// What OpenSSH says in place of a command under `ForceCommand internal-sftp`, in no other language.
const SFTP_ONLY: &str = "This service allows sftp connections only.";

/// Whether the server says that it allows SFTP alone.
pub(crate) fn allows_sftp_only(output: &str) -> bool {
    output.lines().any(is_sftp_only)
}

fn is_sftp_only(line: &str) -> bool {
    line.trim() == SFTP_ONLY
}

impl Session {
    /// Returns `error` or a better reason for it: that another program runs in place of our commands.
    pub(crate) async fn explained(&self, error: HostError) -> HostError {
        let is_unclear = match &error {
            HostError::ChannelRefused { .. }
            | HostError::Dropped { .. }
            | HostError::TimedOut { .. }
            | HostError::TooMuchOutput { .. } => true,
            HostError::Blob(_)
            | HostError::ForcedCommand { .. }
            | HostError::Plan { .. }
            | HostError::Sftp { .. }
            | HostError::SftpOnly => false,
        };
        let forced = if is_unclear { self.forced().await } else { None };
        forced.unwrap_or(error)
    }

    /// Returns why no command of ours runs; `None` if commands run, or if that cannot be found out.
    pub(crate) async fn forced(&self) -> Option<HostError> {
        if self.is_closed() {
            return None;
        }
        let ended = self.echo(self.options().timeouts.request).await.ok()?;
        if self.is_closed() {
            return None;
        }
        match ended {
            Echo::Ended(ExecOutcome { output, errors, .. }) => {
                instead_of_the_word(output.lines().chain(errors.lines()), true)
            }
            // One that says nothing may be a host that is slow.
            Echo::GoesOn(lines) if lines.iter().all(|line| line.trim().is_empty()) => None,
            Echo::GoesOn(lines) => instead_of_the_word(lines.iter().map(String::as_str), false),
        }
    }
}

/// The error if the command that prints a word wrote these lines, and no other, before it ended or was given up.
fn instead_of_the_word<'a>(
    lines: impl Iterator<Item = &'a str> + Clone,
    ends: bool,
) -> Option<HostError> {
    let mut lines = lines.map(str::trim).filter(|line| !line.is_empty());
    if lines.clone().any(|line| line == ECHO_WORD) {
        return None;
    }
    if lines.clone().any(is_sftp_only) {
        return Some(HostError::SftpOnly);
    }
    let said = lines.next().map(|line| printable(line, WORDS_LETTERS));
    Some(HostError::ForcedCommand { said, ends })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(output: &str, errors: &str, expected: Option<&str>) {
        let lines = output.lines().chain(errors.lines());
        let found = instead_of_the_word(lines, true).map(|error| error.to_string());
        match (&found, expected) {
            (None, None) => {}
            (Some(found), Some(expected)) => assert!(found.contains(expected), "{found}"),
            (None, Some(_)) | (Some(_), None) => panic!("{found:?}"),
        }
    }

    #[test]
    fn shells_print_the_word() {
        check("wmco-runs-commands\r\n", "", None);
        check("Welcome\nwmco-runs-commands\n", "a profile complains", None);
    }

    #[test]
    fn a_program_that_repeats_the_command_is_no_shell() {
        let output = "not allowed: echo wmco-runs-commands\n";
        check(output, "", Some("it says `not allowed: echo wmco-runs-commands`"));
    }

    #[test]
    fn words_of_the_program_are_told() {
        check("\n  Ask the help desk.\r\nmore", "", Some("it says `Ask the help desk.`"));
        check("", "no shell here\n", Some("it says `no shell here`"));
        check("\n", " ", Some("it says nothing"));
    }

    #[test]
    fn words_of_the_program_are_cleaned_and_cut() {
        let output = format!("\u{1b}[2J{}", "x".repeat(1_000));
        let cut = format!("it says `[2J{}`", "x".repeat(WORDS_LETTERS - 3));
        check(&output, "", Some(&cut));
    }

    #[test]
    fn a_program_that_goes_on_is_told_unless_it_runs_our_commands() {
        let told = |lines: &[&str]| {
            let found = instead_of_the_word(lines.iter().copied(), false);
            found.map(|error| error.to_string())
        };
        assert!(told(&["Hello"]).unwrap().contains("(it says `Hello`, and does not end)"));
        assert_eq!(told(&["Hello", "wmco-runs-commands\r"]), None);
    }

    #[test]
    fn sftp_alone_is_told_as_such() {
        check("This service allows sftp connections only.\r\n", "", Some("internal-sftp"));
    }
}
