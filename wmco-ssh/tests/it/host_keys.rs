//! Host keys of a real server.

use wmco_ssh::{ConnectError, HostKeyPolicy, HostKeyVerdict, Retry};

use crate::sshd::Sshd;

const TRUST: HostKeyPolicy = HostKeyPolicy::TrustOnFirstUse;

#[tokio::test]
async fn first_use_then_pinned_for_each_kind() {
    for kind in ["rsa", "ecdsa", "ed25519"] {
        let server = Sshd::start(&[kind]).await;
        let session = server.connect(&server.credentials(), &TRUST).await.unwrap();
        let seen = session.host_key().clone();
        assert_eq!(seen.verdict, HostKeyVerdict::FirstUse);
        assert_eq!(seen.key, server.host_key(kind));
        session.close().await;

        // As a later process would do it: through the text in the cluster.
        let pinned = HostKeyPolicy::Pinned(seen.key.to_string().parse().unwrap());
        let session = server.connect(&server.credentials(), &pinned).await.unwrap();
        assert_eq!(session.host_key().verdict, HostKeyVerdict::Matches);
    }
}

#[tokio::test]
async fn of_several_keys_the_pinned_one_is_asked_for() {
    let server = Sshd::start(&["rsa", "ecdsa", "ed25519"]).await;
    let first = server.connect(&server.credentials(), &TRUST).await.unwrap();
    assert_eq!(first.host_key().key, server.host_key("ecdsa"), "as the Go operator would");
    for kind in ["rsa", "ecdsa", "ed25519"] {
        let pinned = HostKeyPolicy::Pinned(server.host_key(kind));
        let session = server.connect(&server.credentials(), &pinned).await.unwrap();
        assert_eq!(session.host_key().key, server.host_key(kind));
    }
}

#[tokio::test]
async fn another_key_is_a_mismatch_with_both_fingerprints() {
    let (server, other) = tokio::join!(Sshd::start(&["ecdsa"]), Sshd::start(&["ecdsa", "ed25519"]));
    // The same kind, and a kind that the server no longer has.
    for pinned in [other.host_key("ecdsa"), other.host_key("ed25519")] {
        let policy = HostKeyPolicy::Pinned(pinned.clone());
        let error = server.connect(&server.credentials(), &policy).await.unwrap_err();
        let ConnectError::HostKeyMismatch { expected, found, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!(*expected, pinned.fingerprint());
        assert_eq!(*found, server.host_key("ecdsa").fingerprint());
        assert_eq!(error.retry(), Retry::NeedsPerson);
        let text = error.to_string();
        assert!(text.contains("ssh-host-key`") && text.contains("windows-ssh-host-keys"), "{text}");
    }
}

#[tokio::test]
async fn a_mismatch_leaves_nothing_open() {
    let (server, other) = tokio::join!(Sshd::start(&["ecdsa"]), Sshd::start(&["ecdsa"]));
    let options = server.options();
    let policy = HostKeyPolicy::Pinned(other.host_key("ecdsa"));
    let route = server.route(&server.credentials()).host_key(policy);
    let refused = wmco_ssh::Session::connect(&route, &wmco_ssh::TcpDialer, &options).await;
    assert_eq!(refused.unwrap_err().verb(), "host-key-mismatch");
    crate::hostile::all_closed(&options).await;
}
