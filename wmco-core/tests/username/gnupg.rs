//! The encrypted user name against GnuPG, in both directions.

use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;
use wmco_core::secret::Secret;
use wmco_core::username::{RANDOM_BYTES, Randomness, decrypt, encrypt};

const PASSPHRASE: &str = "correct horse battery staple";

/// Runs `gpg` in a home of its own and returns what it wrote.
fn gpg(home: &Path, arguments: &[&str], file: &Path) -> String {
    let output = Command::new("gpg")
        .args(["--batch", "--quiet", "--no-tty", "--pinentry-mode", "loopback", "--homedir"])
        .arg(home)
        .args(["--passphrase", PASSPHRASE, "--output", "-"])
        .args(arguments)
        .arg(file)
        .stdin(Stdio::null())
        .output()
        .expect("this test needs GnuPG: apt-get install gnupg");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn home() -> TempDir {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().unwrap();
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    home
}

#[test]
fn gnupg_reads_ours() {
    let home = home();
    let file = home.path().join("message.asc");
    for user in ["Administrator", "", "ACME\\ädmin", &"long".repeat(100)] {
        let randomness = Randomness::new([0x5a; RANDOM_BYTES]);
        let text = encrypt(user, &Secret::new(PASSPHRASE), &randomness);
        let body = text.replace("<wmcoMarker>", "\n");
        let message = format!("-----BEGIN PGP MESSAGE-----\n\n{body}\n-----END PGP MESSAGE-----\n");
        std::fs::write(&file, message).unwrap();
        assert_eq!(gpg(home.path(), &["--decrypt"], &file), user);
    }
}

#[test]
fn we_read_gnupgs() {
    let home = home();
    let file = home.path().join("plain");
    std::fs::write(&file, "Administrator").unwrap();
    for cipher in ["AES128", "AES192", "AES256"] {
        let arguments = [
            "--armor",
            "--cipher-algo",
            cipher,
            "--s2k-digest-algo",
            "SHA256",
            "--s2k-count",
            "65536",
            "--compress-algo",
            "none",
            "--symmetric",
        ];
        let message = gpg(home.path(), &arguments, &file)
            .replace("PGP MESSAGE", "ENCRYPTED DATA")
            .trim()
            .replace('\n', "<wmcoMarker>");
        assert_eq!(
            decrypt(&message, &Secret::new(PASSPHRASE)).unwrap(),
            "Administrator",
            "{cipher}"
        );
    }
}
