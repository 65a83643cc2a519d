//! User names as the Go operator encrypts them, by a program that is neither its nor ours.
//!
//! Source: `docs/contract/ssh.md`, SSH10 to SSH16.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::process::{Command, Stdio};

/// What stands for the end of a line in an annotation.
const LINE_FEED: &str = "<wmcoMarker>";

/// How GnuPG calls what the Go operator leaves out.
const BEGIN: &str = "-----BEGIN PGP MESSAGE-----";
const END: &str = "-----END PGP MESSAGE-----";

/// A user name as it stands in an annotation; the passphrase is the file of the private key.
pub(super) fn encrypt(user: &str, key_file: &[u8]) -> String {
    let settings = [
        "--armor",
        "--cipher-algo",
        "AES128",
        "--s2k-digest-algo",
        "SHA256",
        "--s2k-count",
        "65536",
        "--compress-algo",
        "none",
        "--symmetric",
    ];
    let message = gpg(&settings, user, key_file).expect("GnuPG encrypts");
    let body = message.trim().strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END));
    body.expect("it is armoured").trim_matches('\n').replace('\n', LINE_FEED)
}

/// The user name of an annotation; none when the passphrase is another one or the text is damaged.
pub(super) fn decrypt(annotation: &str, key_file: &[u8]) -> Option<String> {
    let body = annotation.replace(LINE_FEED, "\n");
    gpg(&["--decrypt"], &format!("{BEGIN}\n\n{body}\n{END}\n"), key_file)
}

fn gpg(arguments: &[&str], input: &str, passphrase: &[u8]) -> Option<String> {
    let home = tempfile::Builder::new().prefix("gnupg-").tempdir().unwrap();
    let file = home.path().join("input");
    std::fs::write(&file, input).unwrap();
    // A file of a passphrase would be read to the end of its first line.
    let passphrase = OsString::from_vec([b"--passphrase=", passphrase].concat());
    let output = Command::new("gpg")
        .args(["--batch", "--quiet", "--no-tty", "--pinentry-mode", "loopback", "--homedir"])
        .arg(home.path())
        .arg(passphrase)
        .args(["--output", "-"])
        .args(arguments)
        .arg(&file)
        .stdin(Stdio::null())
        .output()
        .expect("this test needs GnuPG: apt-get install gnupg");
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}
