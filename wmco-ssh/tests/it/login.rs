//! Logins with keys of every kind and file format.

use wmco_core::secret::Secret;
use wmco_ssh::{HostKeyPolicy, KeyError, PrivateKey};

use crate::sshd::{Sshd, keygen, private_key, tool};

const TRUST: HostKeyPolicy = HostKeyPolicy::TrustOnFirstUse;

async fn logs_in(server: &Sshd, name: &str, key: PrivateKey) {
    let credentials = server.admit(key);
    let session = server.connect(&credentials, &TRUST).await;
    session.unwrap_or_else(|error| panic!("{name}: {error}")).close().await;
}

#[tokio::test]
async fn every_kind_and_form_logs_in() {
    let server = Sshd::start(&["ed25519"]).await;
    let kinds =
        [("rsa", "2048"), ("rsa", "3072"), ("ecdsa", "256"), ("ecdsa", "384"), ("ecdsa", "521")];
    for (kind, bits) in kinds {
        for form in ["RFC4716", "PEM", "PKCS8"] {
            let name = format!("{kind}{bits}-{form}");
            let file = server.path(&name);
            keygen(&file, &["-t", kind, "-b", bits, "-m", form]);
            logs_in(&server, &name, private_key(&file)).await;
        }
    }
    logs_in(&server, "ed25519", private_key(&server.path("client"))).await;
    let file = server.path("ed25519.pem");
    tool("openssl", &["genpkey", "-algorithm", "ed25519", "-out", file.to_str().unwrap()]);
    logs_in(&server, "ed25519-PKCS8", private_key(&file)).await;
}

#[tokio::test]
async fn odd_but_whole_files_log_in() {
    let server = Sshd::start(&["ed25519"]).await;
    let file = server.path("ec.pem");
    let out = file.to_str().unwrap();
    tool("openssl", &["ecparam", "-genkey", "-name", "prime256v1", "-out", out]);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("EC PARAMETERS"));
    let odd = [
        text.clone(),
        text.replace('\n', "\r\n"),
        text.replace('\n', "  \n"),
        format!("    {}", text.replace('\n', "\n    ")),
        format!("Bag Attributes\n\n{text}\n\n\n"),
        text.trim_end().to_owned(),
    ];
    for text in odd {
        let key = PrivateKey::parse(&Secret::new(text.clone())).unwrap();
        logs_in(&server, &text, key).await;
    }
}

/// OpenSSH files hold the private number without its leading zeros, which one key of 256 has.
#[tokio::test]
async fn a_key_whose_number_begins_with_zeros_logs_in() {
    const ZEROS: [usize; 3] = [1, 2, 7];
    let server = Sshd::start(&["ed25519"]).await;
    for zeros in ZEROS {
        // A SEC1 key on P-256 without its public half, which openssl adds.
        let mut der = vec![0x30, 0x31, 0x02, 0x01, 0x01, 0x04, 0x20];
        der.extend((0..32).map(|at| if at < zeros { 0 } else { 0x5a }));
        der.extend(b"\xa0\x0a\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07");
        let half = server.path(&format!("{zeros}.der"));
        std::fs::write(&half, der).unwrap();
        let file = server.path(&format!("{zeros}-zeros"));
        let (half, name) = (half.to_str().unwrap(), file.to_str().unwrap());
        tool("openssl", &["ec", "-inform", "DER", "-in", half, "-out", name]);
        for form in ["PEM", "RFC4716", "PKCS8"] {
            tool("ssh-keygen", &["-q", "-p", "-N", "", "-m", form, "-f", name]);
            logs_in(&server, &format!("{zeros} {form}"), private_key(&file)).await;
        }
    }
}

#[test]
fn passphrases_are_named_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    for (number, (kind, form)) in
        [("ed25519", "RFC4716"), ("rsa", "PEM"), ("rsa", "PKCS8"), ("ecdsa", "PEM")]
            .into_iter()
            .enumerate()
    {
        let file = folder.path().join(number.to_string());
        let path = file.to_str().unwrap();
        tool("ssh-keygen", &["-q", "-N", "secret", "-f", path, "-t", kind, "-m", form]);
        let refused = PrivateKey::parse(&Secret::new(std::fs::read(&file).unwrap()));
        assert!(matches!(refused, Err(KeyError::Encrypted { .. })), "{kind} {form}: {refused:?}");
    }
}

#[test]
fn weak_and_foreign_keys_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let parse = |name: &str, arguments: &[&str]| {
        let file = folder.path().join(name);
        keygen(&file, arguments);
        PrivateKey::parse(&Secret::new(std::fs::read(file).unwrap())).unwrap_err()
    };
    for form in ["RFC4716", "PEM", "PKCS8"] {
        let short = parse(form, &["-t", "rsa", "-b", "1024", "-m", form]);
        assert!(matches!(short, KeyError::ShortRsa { bits: 1024 }), "{form}: {short}");
        let dsa = parse(&format!("dsa{form}"), &["-t", "dsa", "-m", form]);
        assert!(matches!(dsa, KeyError::Unsupported { .. }), "{form}: {dsa}");
    }
    let file = folder.path().join("k1.pem");
    let out = file.to_str().unwrap();
    tool("openssl", &["ecparam", "-genkey", "-noout", "-name", "secp256k1", "-out", out]);
    let curve = PrivateKey::parse(&Secret::new(std::fs::read(&file).unwrap())).unwrap_err();
    assert!(matches!(curve, KeyError::Unsupported { .. }), "{curve}");
}

#[test]
fn the_hash_is_that_of_the_public_key_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    keygen(&file, &["-t", "rsa", "-b", "2048"]);
    let line = std::fs::read_to_string(file.with_extension("pub")).unwrap();
    let key = private_key(&file);
    assert_eq!(key.public().authorized_key(), line.trim());
    let debug = format!("{key:?}");
    assert!(debug.contains("SHA256:") && debug.len() < 200, "{debug}");
}

#[tokio::test]
async fn an_rsa_key_finds_the_hash_that_the_server_accepts() {
    let server = Sshd::start(&["ed25519"]).await;
    server.configure("PubkeyAcceptedAlgorithms rsa-sha2-256");
    let file = server.path("rsa");
    keygen(&file, &["-t", "rsa", "-b", "2048"]);
    logs_in(&server, "rsa-sha2-256 only", private_key(&file)).await;
}
