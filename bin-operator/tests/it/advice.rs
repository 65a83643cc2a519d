//! The commands that messages and the README advise, run on the input that caused them, as they are written.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use tempfile::TempDir;
use wmco_core::names::objects::{self, DEFAULT_NAMESPACE as NAMESPACE};
use wmco_sim::host::SimHost;

use crate::program::{PROGRAM, Run, run_at};

/// Whether nothing is wrong with the key or the host, so that `plan` warns of nothing.
const WARNING: &str = "warning";

/// Runs a line of a shell in `folder`, where `wmco-operator` is the built one. A missing program fails the test.
fn shell(folder: &Path, line: &str) -> String {
    let programs = Path::new(PROGRAM).parent().unwrap().display();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-ec", line])
        .current_dir(folder)
        .env("PATH", path)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {errors} (see scripts/setup.sh test)");
    String::from_utf8(output.stdout).unwrap()
}

fn write_hosts(folder: &Path, more: &str) {
    let text = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {}, namespace: {NAMESPACE}}}\ndata:\n  \
         10.0.0.5: |\n    username=Administrator\n{more}",
        objects::INSTANCES_CONFIG_MAP
    );
    fs::write(folder.join("hosts.yaml"), text).unwrap();
}

/// `plan` for a Secret with the key in this file of the folder.
fn plan(folder: &Path, key: &str) -> Run {
    let key = BASE64_STANDARD.encode(fs::read(folder.join(key)).unwrap());
    let text = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: {}, namespace: {NAMESPACE}}}\ndata:\n  \
         {}: {key}\n",
        objects::PRIVATE_KEY_SECRET,
        objects::PRIVATE_KEY_KEY
    );
    fs::write(folder.join("secret.yaml"), text).unwrap();
    write_hosts(folder, "");
    run_at(folder, &["plan", "-f", "hosts.yaml", "secret.yaml"])
}

/// The command in the message, which begins with this program.
#[track_caller]
fn advised(run: &Run, program: &str) -> String {
    let commands = run.err.split('`').skip(1).step_by(2);
    let mut found = commands.filter(|command| command.starts_with(program));
    found.next().unwrap_or_else(|| panic!("no `{program}` in {}", run.err)).to_owned()
}

/// Makes a key in `file`, follows the advice of `plan` about it, with what a person adds to the command, and asks again.
#[track_caller]
fn advice_works(make: &str, file: &str, program: &str, added: &str) {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    shell(folder, make);
    let command = advised(&plan(folder, file), program);
    let command = command.replace("NEW-FILE", "key").replace("FILE", file);
    shell(folder, &format!("{command}{added}"));
    let run = plan(folder, "key");
    assert!(run.status == 0 && !run.err.contains(WARNING), "{make}: {run:?}");
}

#[test]
fn key_of_putty_is_converted() {
    for kind in ["rsa -b 2048", "ecdsa -b 256", "ed25519"] {
        let make = format!("puttygen -q -t {kind} -o key.ppk --new-passphrase /dev/null");
        advice_works(&make, "key.ppk", "puttygen ", "");
    }
}

#[test]
fn passphrase_is_removed() {
    // A person types the old passphrase.
    for form in ["RFC4716", "PEM"] {
        let make = format!("ssh-keygen -q -t rsa -b 2048 -m {form} -N secret -f key");
        advice_works(&make, "key", "ssh-keygen ", " -P secret");
    }
    for make in [
        "ssh-keygen -q -t rsa -b 2048 -m PKCS8 -N secret -f old",
        "openssl genpkey -quiet -algorithm ed25519 -aes256 -pass pass:secret -out old",
    ] {
        advice_works(make, "old", "openssl ", " -passin pass:secret");
    }
}

#[tokio::test]
async fn line_of_ssh_keyscan_pins_the_host() {
    let host = SimHost::builder().start().await.unwrap();
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    let fingerprint = "SHA256:uNiVztksCsDhcc0u9e8BrwQN2GoOLpvpIHlVOQc0Fe0";
    write_hosts(folder, &format!("    hostKey={fingerprint}\n"));
    let told = run_at(folder, &["check", "instances", "-f", "hosts.yaml"]);
    let told = Run { err: format!("{}{}", told.out, told.err), ..told };
    let port = host.ssh_address().port();
    let command = advised(&told, "ssh-keyscan ").replace("HOST", &format!("-p {port} 127.0.0.1"));
    let at = folder.to_owned();
    let lines = tokio::task::spawn_blocking(move || shell(&at, &command)).await.unwrap();
    let lines: Vec<&str> = lines.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(!lines.is_empty());
    for line in lines {
        write_hosts(folder, &format!("    hostKey={line}\n"));
        let run = run_at(folder, &["check", "instances", "-f", "hosts.yaml"]);
        assert_eq!(run.status, 0, "{line}: {run:?}");
        let run = run_at(folder, &["plan", "-f", "hosts.yaml"]);
        assert!(!run.err.contains(WARNING), "{line}: {run:?}");
    }
}

/// Comments of keys are in whatever encoding their host had.
#[test]
fn pipe_of_the_readme_makes_user_data() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md"));
    let readme = readme.unwrap();
    let pipe = readme.lines().find(|line| line.starts_with("ssh-keygen -y -f private-key.pem |"));
    for comment in ["me@home", r"J\374rgen@WIN-1", ""] {
        let folder = TempDir::new().unwrap();
        let folder = folder.path();
        shell(
            folder,
            &format!(
                "ssh-keygen -q -t ed25519 -N '' -C \"$(printf '{comment}')\" -f private-key.pem"
            ),
        );
        let text = shell(folder, pipe.unwrap());
        let line = fs::read(folder.join("private-key.pem.pub")).unwrap();
        let line = String::from_utf8_lossy(&line).into_owned();
        let key = line.split(' ').take(2).collect::<Vec<_>>().join(" ");
        assert!(text.contains(key.trim()), "{comment}: {text}");
    }
}
