//! Accounts whose commands the server replaces by another program.

use std::time::Duration;

use wmco_core::digest::Sha256;
use wmco_core::protocol::AgentLocation;
use wmco_ssh::{HostAgent, HostError, NoReport, ProbeOutcome, Retry, TcpDialer, UploadProgress};

use crate::backend::{Backend, Does};
use crate::sshd::Sshd;

const QUIET: fn(UploadProgress) = |_| {};

/// The error of a first contact with the server.
async fn contact(server: &Sshd) -> HostError {
    let host = server.host(&TcpDialer, &server.options()).await;
    let ours = server.program(Does::Work);
    let error = host.probe_with(&ours, server.fresh_folder(), &QUIET).await.unwrap_err();
    assert_eq!(server.home(), Vec::<String>::new(), "nothing is left there");
    host.close().await;
    error
}

async fn forced_by(line: &str) -> HostError {
    let server = Sshd::start(&["ed25519"]).await;
    server.configure(line);
    contact(&server).await
}

#[track_caller]
fn is_told(error: &HostError, words: &str) {
    assert_eq!((error.verb(), error.retry()), ("forced-command", Retry::NeedsPerson), "{error}");
    let text = error.to_string();
    for part in [words, "another program in place of our commands", "take `ForceCommand` off"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[tokio::test]
async fn a_program_that_says_something_is_quoted() {
    is_told(&forced_by("ForceCommand echo Ask the help desk").await, "`Ask the help desk`");
    let to_errors = "ForceCommand echo Ask the help desk >&2; exit 1";
    is_told(&forced_by(to_errors).await, "`Ask the help desk`");
}

#[tokio::test]
async fn a_program_that_says_nothing_is_told() {
    is_told(&forced_by("ForceCommand /bin/true").await, "it says nothing");
    is_told(&forced_by("ForceCommand /bin/false").await, "it says nothing");
}

/// As a menu of an appliance says what it does not take.
#[tokio::test]
async fn a_program_that_repeats_our_command_is_no_shell() {
    let error = forced_by("ForceCommand echo \"not allowed: $SSH_ORIGINAL_COMMAND\"").await;
    is_told(&error, "`not allowed: echo ");
}

#[tokio::test]
async fn a_command_of_a_line_of_keys_is_told() {
    let server = Sshd::start(&["ed25519"]).await;
    let line = std::fs::read_to_string(server.path("authorized")).unwrap();
    let forced = format!("command=\"echo backups only\" {line}");
    std::fs::write(server.path("authorized"), forced).unwrap();
    is_told(&contact(&server).await, "`backups only`");
}

/// SFTP works there, and the agent comes up.
#[tokio::test]
async fn a_login_shell_that_is_none_is_told() {
    let line = "ForceCommand case \"$SSH_ORIGINAL_COMMAND\" in *sftp*) exec /usr/lib/openssh/sftp-server -d HOME;; \
                *) echo This account is not available; exit 1;; esac";
    let server = Sshd::start(&["ed25519"]).await;
    // The path of the program is what a forced command is given for a subsystem.
    server.reconfigure("sftp internal-sftp", "sftp /usr/lib/openssh/sftp-server");
    server.configure(&line.replace("HOME", &server.path("home").display().to_string()));
    is_told(&contact(&server).await, "`This account is not available`");
}

/// A shell or a menu that waits for its user.
#[tokio::test]
async fn a_program_that_waits_for_input_is_told() {
    let server = Sshd::start(&["ed25519"]).await;
    server.configure("ForceCommand cat > /dev/null");
    let mut options = server.options();
    // The time that is over here is that of SFTP and of the agent.
    (options.timeouts.request, options.timeouts.probe) =
        (Duration::from_secs(2), Duration::from_secs(2));
    let host = server.host(&TcpDialer, &options).await;
    let ours = server.program(Does::Work);
    let error = host.probe_with(&ours, server.fresh_folder(), &QUIET).await.unwrap_err();
    is_told(&error, "it says nothing");
    let error = host.probe(AgentLocation::Staged(Sha256::of(b""))).await.unwrap_err();
    is_told(&error, "it says nothing");
    host.close().await;
}

/// A menu or a script without an end, which ends with the connection here. One that says nothing is like a slow host.
#[tokio::test]
async fn a_program_that_never_ends_is_told_by_its_words() {
    const ENDLESS: &str = "exec tail -f /dev/null --pid=$PPID";
    for (hello, words) in
        [("echo Welcome; ", Some("(it says `Welcome`, and does not end)")), ("", None)]
    {
        let server = Sshd::start(&["ed25519"]).await;
        server.configure(&format!("ForceCommand {hello}{ENDLESS}"));
        let mut options = server.options();
        // The time that is over here is that of SFTP, of the agent and of the program.
        let wait = Duration::from_secs(6);
        (options.timeouts.request, options.timeouts.probe) = (wait, wait);
        let host = server.host(&TcpDialer, &options).await;
        let ours = server.program(Does::Work);
        let error = host.probe_with(&ours, server.fresh_folder(), &QUIET).await.unwrap_err();
        match words {
            Some(words) => is_told(&error, words),
            None => assert_eq!(error.verb(), "timed-out", "{error}"),
        }
        host.close().await;
    }
}

/// It writes without an end, too.
#[tokio::test]
async fn a_program_that_writes_for_ever_is_told() {
    let server = Sshd::start(&["ed25519"]).await;
    server.configure("ForceCommand exec yes Choose a door");
    is_told(&contact(&server).await, "(it says `Choose a door`, and does not end)");
}

/// An administrator's program that logs commands and runs them.
#[tokio::test]
async fn a_program_that_runs_our_commands_is_no_obstacle() {
    let server = Sshd::start(&["ed25519"]).await;
    server.configure("ForceCommand exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"");
    server.reconfigure("sftp internal-sftp", "sftp /usr/lib/openssh/sftp-server");
    let host = server.host(&TcpDialer, &server.options()).await;
    let ours = server.program(Does::Work);
    let outcome = host.probe_with(&ours, server.fresh_folder(), &QUIET).await.unwrap();
    assert!(matches!(outcome, ProbeOutcome::Reported(_)), "{outcome:?}");
    host.close().await;
}

/// What fails for another reason keeps its own words.
#[tokio::test]
async fn other_failures_are_not_blamed_on_the_server() {
    let server = Sshd::start(&["ed25519"]).await;
    let host = server.host(&TcpDialer, &server.options()).await;
    let fails = server.program(Does::Fail(9));
    let outcome = host.probe_with(&fails, server.fresh_folder(), &QUIET).await.unwrap();
    assert!(
        matches!(outcome, ProbeOutcome::NoReport(NoReport::NoAgent { status: 9, .. })),
        "{outcome:?}"
    );
    host.close().await;
    let server = Sshd::start(&["ed25519"]).await;
    server.reconfigure("Subsystem sftp", "Subsystem other");
    assert_eq!(contact(&server).await.verb(), "channel-refused");
}

#[tokio::test]
async fn an_account_for_sftp_alone_is_named() {
    for line in ["ForceCommand internal-sftp", "ForceCommand internal-sftp -l INFO"] {
        let server = Sshd::start(&["ed25519"]).await;
        server.configure(line);
        let host = server.host(&TcpDialer, &server.options()).await;
        let error = host.probe(AgentLocation::Staged(Sha256::of(b""))).await.unwrap_err();
        assert_eq!(error.verb(), "sftp-only", "{line}: {error}");
        let ours = server.program(Does::Work);
        let error = host.probe_with(&ours, server.fresh_folder(), &QUIET).await.unwrap_err();
        assert_eq!(error.verb(), "sftp-only", "{line}: {error}");
        assert!(error.to_string().contains("ForceCommand"), "{error}");
    }
}
