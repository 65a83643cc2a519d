//! What OpenSSH answers to a login, kind by kind.

use std::sync::Arc;

use wmco_ssh::{ConnectError, Credentials, HostKeyPolicy, Options, Retry};

use crate::liar::{Liar, Lie};
use crate::sshd::{Sshd, keygen, private_key};

const TRUST: HostKeyPolicy = HostKeyPolicy::TrustOnFirstUse;

/// An RSA key that the server does not know: it is offered with two hashes.
async fn stranger(server: &Sshd) -> ConnectError {
    let file = server.path("stranger");
    keygen(&file, &["-t", "rsa", "-b", "2048"]);
    let mut credentials = server.credentials();
    credentials.keys = vec![Arc::new(private_key(&file))];
    server.connect(&credentials, &TRUST).await.expect_err("the server does not know it")
}

#[tokio::test]
async fn unknown_key_is_refused_however_few_tries_are_allowed() {
    for line in ["", "MaxAuthTries 1", "MaxAuthTries 2"] {
        let server = Sshd::start(&["ed25519"]).await;
        server.configure(line);
        let error = stranger(&server).await;
        assert_eq!(error.verb(), "authentication-refused", "{line}: {error}");
    }
}

/// Its refusal says nothing of the key, so no Machine may be replaced for it.
#[tokio::test]
async fn a_server_that_lists_no_kind_of_ours_has_refused_no_key() {
    let folder = tempfile::tempdir().unwrap();
    let new_key = |kind: &[&str]| {
        let file = folder.path().join(kind.join("-"));
        keygen(&file, kind);
        Arc::new(private_key(&file))
    };
    let (rsa, ed25519) = (new_key(&["-t", "rsa", "-b", "2048"]), new_key(&["-t", "ed25519"]));
    for (lie, keys, verb) in [
        (Lie::RefusesAllButSha1, vec![&rsa], "no-algorithm"),
        (Lie::RefusesAllButSha1, vec![&rsa, &ed25519], "no-algorithm"),
        (Lie::RefusesAllButSha1, vec![&ed25519], "authentication-refused"),
        (Lie::Refuses, vec![&rsa], "authentication-refused"),
    ] {
        let server = Liar::start(lie).await;
        let keys = keys.into_iter().cloned().collect();
        let credentials = Credentials { user: "Administrator".into(), keys };
        let options = Options::default();
        let error = server.log_in(credentials, &options).await.expect_err("it takes no key");
        assert_eq!(error.verb(), verb, "{lie:?}: {error}");
        if verb == "no-algorithm" {
            assert_eq!(error.retry(), Retry::NeedsPerson);
            assert!(error.to_string().contains("takes no keys of this kind (RSA 2048"), "{error}");
        }
    }
}

/// OpenSSH lists what it knows, not what its configuration takes. So this is a refusal, which names the setting.
#[tokio::test]
async fn a_setting_that_refuses_the_kind_of_our_key_is_named() {
    for kind in [["-t", "rsa"], ["-t", "ecdsa"]] {
        let server = Sshd::start(&["ed25519"]).await;
        server.configure("PubkeyAcceptedAlgorithms ssh-ed25519");
        let file = server.path("other");
        keygen(&file, &kind);
        let credentials = server.admit(private_key(&file));
        let error = server.connect(&credentials, &TRUST).await.expect_err("only ed25519");
        assert_eq!(error.verb(), "authentication-refused", "{kind:?}: {error}");
        assert!(error.to_string().contains("`PubkeyAcceptedAlgorithms`"), "{error}");
    }
}

#[tokio::test]
async fn several_keys_and_one_try_prove_nothing_of_the_last() {
    let server = Sshd::start(&["ed25519"]).await;
    server.configure("MaxAuthTries 1");
    let file = server.path("stranger");
    keygen(&file, &["-t", "ed25519"]);
    let mut credentials = server.credentials();
    credentials.keys.insert(0, Arc::new(private_key(&file)));
    let error = server.connect(&credentials, &TRUST).await.expect_err("one try is not enough");
    assert_eq!(error.verb(), "too-many-tries", "{error}");
    assert_eq!(error.retry(), Retry::NeedsPerson);
}

#[tokio::test]
async fn a_server_that_wants_a_second_factor_takes_the_key() {
    let server = Sshd::start(&["ed25519"]).await;
    server.reconfigure("PasswordAuthentication no", "PasswordAuthentication yes");
    server.configure("AuthenticationMethods publickey,password");
    let error = server.connect(&server.credentials(), &TRUST).await.expect_err("it wants more");
    assert_eq!(error.verb(), "wants-more", "{error}");
    assert!(error.to_string().contains("wants password as well"), "{error}");
}

#[tokio::test]
async fn a_server_without_public_keys_refuses_none() {
    let server = Sshd::start(&["ed25519"]).await;
    server.reconfigure("PasswordAuthentication no", "PasswordAuthentication yes");
    server.configure("PubkeyAuthentication no");
    let error = server.connect(&server.credentials(), &TRUST).await.expect_err("no keys");
    assert_eq!(error.verb(), "no-public-key", "{error}");
    assert!(error.to_string().contains("offers password"), "{error}");
}

/// Each alone, as hardened servers and those in FIPS mode are set up.
#[tokio::test]
async fn every_algorithm_that_is_offered_works_alone() {
    let exchanges = [
        "curve25519-sha256",
        "curve25519-sha256@libssh.org",
        "ecdh-sha2-nistp256",
        "ecdh-sha2-nistp384",
        "ecdh-sha2-nistp521",
        "diffie-hellman-group-exchange-sha256",
        "diffie-hellman-group14-sha256",
        "diffie-hellman-group16-sha512",
        "diffie-hellman-group18-sha512",
    ];
    let ciphers = [
        "aes256-gcm@openssh.com",
        "aes128-gcm@openssh.com",
        "chacha20-poly1305@openssh.com",
        "aes256-ctr",
        "aes192-ctr",
        "aes128-ctr",
    ];
    let macs = [
        "hmac-sha2-512-etm@openssh.com",
        "hmac-sha2-256-etm@openssh.com",
        "hmac-sha2-512",
        "hmac-sha2-256",
    ];
    let lines = exchanges.map(|name| format!("KexAlgorithms {name}")).into_iter();
    let lines = lines.chain(ciphers.map(|name| format!("Ciphers {name}")));
    let lines = lines.chain(macs.map(|name| format!("Ciphers aes128-ctr\nMACs {name}")));
    for line in lines {
        let server = Sshd::start(&["ed25519"]).await;
        server.configure(&line);
        let session = server.connect(&server.credentials(), &TRUST).await;
        session.unwrap_or_else(|error| panic!("{line}: {error:#}")).close().await;
    }
}

/// As public set-up scripts for FIPS mode write it.
#[tokio::test]
async fn a_server_in_fips_mode_is_reached() {
    let server = Sshd::start(&["ecdsa-sha2-nistp256"]).await;
    server.configure(
        "KexAlgorithms ecdh-sha2-nistp256,ecdh-sha2-nistp384,ecdh-sha2-nistp521\n\
         Ciphers aes256-gcm@openssh.com,aes128-gcm@openssh.com\n\
         MACs hmac-sha2-256,hmac-sha2-512",
    );
    let session = server.connect(&server.credentials(), &TRUST).await;
    session.unwrap_or_else(|error| panic!("{error:#}")).close().await;
}

#[tokio::test]
async fn both_lists_are_shown_when_nothing_is_common() {
    let server = Sshd::start(&["ed25519"]).await;
    server.configure("KexAlgorithms diffie-hellman-group14-sha1");
    let error = server.connect(&server.credentials(), &TRUST).await.expect_err("only sha-1");
    assert_eq!((error.verb(), error.retry()), ("protocol", Retry::NeedsPerson), "{error}");
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("group14-sha1") && cause.contains("curve25519-sha256"), "{cause}");
}

/// The kind of an RSA key is `ssh-rsa` whatever hash the server signs with. Source: RFC 8332, section 3.
#[tokio::test]
async fn a_pinned_rsa_key_counts_for_each_hash() {
    for hash in ["rsa-sha2-256", "rsa-sha2-512"] {
        let server = Sshd::start(&["rsa"]).await;
        server.configure(&format!("HostKeyAlgorithms {hash}"));
        let key = server.host_key("rsa");
        assert_eq!(key.algorithm(), "ssh-rsa");
        let session = server.connect(&server.credentials(), &HostKeyPolicy::Pinned(key)).await;
        session.unwrap_or_else(|error| panic!("{hash}: {error:#}")).close().await;
    }
}

/// The second of several is the right one, and the server allows as many tries. A first one of RSA has another hash, with
/// which it is offered last.
#[tokio::test]
async fn a_second_key_is_taken_after_a_first_that_was_refused() {
    let server = Sshd::start(&["ed25519"]).await;
    server.configure("MaxAuthTries 2");
    let file = server.path("stranger");
    keygen(&file, &["-t", "rsa", "-b", "2048"]);
    let mut credentials = server.credentials();
    credentials.keys.insert(0, Arc::new(private_key(&file)));
    let session = server.connect(&credentials, &TRUST).await.expect("the second key is right");
    assert_eq!(session.accepted_key(), credentials.keys[1].public());
    session.close().await;
}
