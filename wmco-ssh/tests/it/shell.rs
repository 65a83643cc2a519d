//! No text that a person or a host wrote reaches a shell: remote commands consist of constants and digests, whatever
//! users, names and paths are.

use proptest::prelude::*;
use proptest::test_runner::Config;
use wmco_core::digest::Sha256;
use wmco_core::protocol::{Access, AgentLocation, FreshFolder, HostPlan, HostStep, PROTOCOL};
use wmco_core::winpath::WindowsPath;
use wmco_ssh::{Blob, HostAgent, Route, Session, SshHost, TcpDialer, UploadProgress};

use crate::backend::{Backend, Does, Sim};
use crate::sshd::Sshd;

/// Number of servers that the property starts.
const CASES: u32 = 24;

/// Words with a meaning for shells.
const WORDS: [&str; 12] = [
    "$(touch x)",
    "`touch x`",
    "; touch x",
    "& calc",
    "| more",
    "%PATH%",
    "'",
    "\"",
    "\n",
    "^",
    "..",
    "a b",
];

fn any_text() -> impl Strategy<Value = String> {
    let word = prop_oneof![prop::sample::select(&WORDS[..]).prop_map(str::to_owned), ".{0,8}"];
    prop::collection::vec(word, 1..4).prop_map(|words| words.concat())
}

/// Generates paths with any content that a path may hold.
fn any_path() -> impl Strategy<Value = Option<WindowsPath>> {
    any_text().prop_map(|text| format!(r"C:\k\{text}").parse().ok())
}

/// Whether this is one of our command lines.
fn is_ours(command: &str) -> bool {
    let digest = |text: &str| text.parse::<Sha256>().is_ok_and(|sha| sha.to_string() == text);
    let between = |text: &str, from: &str, to: &str| {
        text.strip_prefix(from).and_then(|rest| rest.strip_suffix(to)).is_some_and(digest)
    };
    let Some((agent, rest)) = command.split_once(' ') else { return false };
    let brought = agent.strip_prefix(r".\").and_then(|rest| rest.strip_suffix(r"\wicd.exe"));
    let known = agent == r"C:\k\windows-instance-config-daemon.exe"
        || between(agent, r"C:\k\staging\wicd-", ".exe")
        || brought.is_some_and(|folder| folder.parse::<FreshFolder>().is_ok());
    known && (rest == "probe" || between(rest, r"apply C:\k\staging\plan-", ".json"))
}

/// Runs all operations on a host, with these texts wherever one fits.
async fn everything<B: Backend>(
    server: &B,
    host: &SshHost,
    texts: &[String],
    paths: &[WindowsPath],
) {
    let quiet: fn(UploadProgress) = |_| {};
    let agent = server.stage(Does::Work);
    let ours = server.program(Does::Work);
    let _ = host.probe_with(&ours, server.fresh_folder(), &quiet).await.unwrap();
    let blobs: Vec<_> = texts.iter().map(|text| Blob::from_bytes(text.as_bytes())).collect();
    host.upload(&blobs, &quiet).await.unwrap();
    for agent in [AgentLocation::Installed, agent] {
        let _ = host.probe(agent).await.unwrap();
        let rename = texts.iter().map(|name| HostStep::RenameComputer { name: name.clone() });
        let place = paths.iter().map(|path| HostStep::PlaceFile {
            path: path.clone(),
            sha256: Sha256::of(b"x"),
            access: Access::Inherited,
        });
        let plan = HostPlan {
            protocol: PROTOCOL,
            vacant_since: None,
            steps: place.chain(rename).collect(),
        };
        let _ = host.apply(agent, &plan, &mut |_| {}).await.unwrap();
    }
    // The SFTP server may refuse a path that is no file.
    let _ = host.remove_leftovers(paths, paths).await;
}

proptest! {
    #![proptest_config(Config { cases: CASES, ..Config::default() })]

    /// For any user, names and paths, only our commands are sent to a host.
    #[test]
    fn commands_are_ours(
        user in any_text(),
        texts in prop::collection::vec(any_text(), 1..3),
        paths in prop::collection::vec(any_path(), 0..3),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let commands = runtime.block_on(async {
            let paths: Vec<_> = paths.into_iter().flatten().collect();
            let server = Sim::build(|builder| builder.user(user.clone())).await;
            let host = server.host().await;
            everything(&server, &host, &texts, &paths).await;
            host.close().await;
            server.host.counts().executions
        });
        prop_assert_eq!(commands.len(), 5);
        for command in commands {
            prop_assert!(is_ours(&command), "{}", command);
        }
    }
}

/// The same on a server with a real shell, which must not see the texts.
#[tokio::test]
async fn a_real_shell_is_handed_our_commands_only() {
    let server = Sshd::start(&["ed25519"]).await;
    let log = server.path("log");
    let script = server.path("log.sh");
    let write = format!("printf '%s\\n' \"$SSH_ORIGINAL_COMMAND\" >> '{}'\n", log.display());
    let run = "exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"";
    std::fs::write(&script, format!("{write}{run}\n")).unwrap();
    // SFTP is started by the command itself, since a forced command runs for subsystems, too.
    server.configure(&format!(
        "ForceCommand case \"$SSH_ORIGINAL_COMMAND\" in *sftp*) exec /usr/lib/openssh/sftp-server -d '{home}';; \
         *) exec /bin/sh '{}';; esac",
        script.display(),
        home = server.path("home").display()
    ));
    let texts: Vec<String> = WORDS.iter().map(|word| format!("x{word}y")).collect();
    let paths: Vec<WindowsPath> = vec![r"C:\k\a-b_c.d".parse().unwrap()];
    let strangers = ["$(touch x)", "; reboot", "-oProxyCommand=x"];
    for user in strangers {
        let mut credentials = server.credentials();
        user.clone_into(&mut credentials.user);
        let route = Route::new(server.target(), credentials);
        let refused = Session::connect(&route, &TcpDialer, &server.options()).await;
        assert_eq!(refused.unwrap_err().verb(), "authentication-refused");
    }
    let host = server.host(&TcpDialer, &server.options()).await;
    everything(&server, &host, &texts, &paths).await;
    host.close().await;
    let commands = std::fs::read_to_string(log).unwrap();
    assert_eq!(commands.lines().count(), 5, "{commands}");
    for command in commands.lines() {
        assert!(is_ours(command), "{command}");
    }
}
