//! Tests key exchanges with OpenSSH's parser of authorized keys.

use std::fs;

use wmco_core::authorized_key::{AuthorizedKey, exchange_keys};
use wmco_ssh::{ConnectError, Credentials, HostKeyPolicy};

use crate::sshd::{Sshd, keygen, private_key};

async fn enters(server: &Sshd, who: &Credentials) -> bool {
    match server.connect(who, &HostKeyPolicy::TrustOnFirstUse).await {
        Ok(session) => {
            session.close().await;
            true
        }
        Err(ConnectError::AuthenticationRefused { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Returns a key for an exchange, and the credentials for login with it.
fn new_key(server: &Sshd, name: &str) -> (AuthorizedKey, Credentials) {
    let file = server.path(name);
    keygen(&file, &["-t", "ed25519"]);
    let key = private_key(&file);
    (AuthorizedKey::try_from(key.public()).unwrap(), server.admit(key))
}

/// A removed key is not accepted any more, in whatever form sshd has read it.
#[tokio::test]
async fn openssh_takes_the_new_key_and_no_old_one() {
    let server = Sshd::start(&["ed25519"]).await;
    let [old, new, other] = ["old", "new", "other"].map(|name| new_key(&server, name));
    let line = old.0.to_string();
    let base64 = line.split(' ').nth(1).unwrap();
    let (head, tail) = base64.split_at(30);
    for spelling in [
        line.clone(),
        format!(" \t{line} me@home\r"),
        format!("no-pty,command=\"a \\\" b\" {line}"),
        format!("command=\"a \\\\ b\" {line}"),
        format!("ssh-ed25519\t{base64}"),
        format!("ssh-ed25519 {head}\x0b\r{tail}"),
    ] {
        let file = format!("# people\n{spelling}\n{} me@home", other.0);
        fs::write(server.path("authorized"), &file).unwrap();
        assert!(enters(&server, &old.1).await, "{spelling:?}");
        assert!(!enters(&server, &new.1).await);

        let (add, remove) = ([new.0.clone()].into(), [old.0.clone()].into());
        let file = exchange_keys(file.as_bytes(), &add, &remove).unwrap();
        fs::write(server.path("authorized"), &file).unwrap();
        assert!(!enters(&server, &old.1).await, "{spelling:?}");
        assert!(enters(&server, &new.1).await && enters(&server, &other.1).await);
    }
}

/// Lines of a file that begins with a byte order mark of a Windows program.
#[tokio::test]
async fn openssh_takes_a_key_that_is_added_to_any_file() {
    let server = Sshd::start(&["ed25519"]).await;
    let [old, new] = ["old", "new"].map(|name| new_key(&server, name));
    for file in [
        String::new(),
        format!("{}", old.0),
        format!("\u{feff}{}\r\n", new.0),
        format!("ED25519 {}\r\n", new.0.to_string().split(' ').nth(1).unwrap()),
    ] {
        let file = exchange_keys(file.as_bytes(), &[new.0.clone()].into(), &[].into()).unwrap();
        fs::write(server.path("authorized"), &file).unwrap();
        assert!(enters(&server, &new.1).await, "{}", String::from_utf8_lossy(&file));
    }
}
