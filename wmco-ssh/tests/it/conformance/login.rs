//! Accepted logins and trusted servers.

use wmco_ssh::{
    ConnectError, Credentials, HostKeyPolicy, HostKeyVerdict, Options, Retry, Route, Session,
    TcpDialer,
};

use crate::backend::{Backend, HOST_KEYS};

async fn try_login<B: Backend>(
    server: &B,
    credentials: Credentials,
    policy: HostKeyPolicy,
    options: &Options,
) -> Result<Session, ConnectError> {
    let route = Route::new(server.target(), credentials).host_key(policy);
    Session::connect(&route, &TcpDialer, options).await
}

pub(super) async fn each_kind_of_key_logs_in<B: Backend>() {
    let server = B::start().await;
    let kinds: [&[&str]; 8] = [
        &["-t", "ed25519"],
        &["-t", "rsa", "-b", "2048"],
        &["-t", "rsa", "-b", "4096"],
        &["-t", "rsa", "-b", "2048", "-m", "PEM"],
        &["-t", "rsa", "-b", "2048", "-m", "PKCS8"],
        &["-t", "ecdsa", "-b", "256", "-m", "PEM"],
        &["-t", "ecdsa", "-b", "384", "-m", "PKCS8"],
        &["-t", "ecdsa", "-b", "521"],
    ];
    for kind in kinds {
        let credentials = server.admit(server.new_key(kind));
        let (policy, options) = (HostKeyPolicy::TrustOnFirstUse, server.options());
        let session = try_login(&server, credentials, policy, &options);
        session.await.unwrap_or_else(|error| panic!("{kind:?}: {error}")).close().await;
    }
}

pub(super) async fn strangers_are_refused<B: Backend>() {
    let server = B::start().await;
    let options = server.options();
    let known = server.credentials();
    let stranger = server.new_key(&["-t", "ecdsa"]);
    let strangers = [
        Credentials::new(known.user.clone(), stranger),
        Credentials::new(known.user.clone(), server.new_key(&["-t", "rsa", "-b", "3072"])),
        Credentials { user: "no-such-user".to_owned(), ..known.clone() },
        Credentials { user: "a b; $(reboot) & \"x\" 'y' %PATH% `z`".to_owned(), ..known },
    ];
    let kinds = ["ECDSA nistp256", "RSA 3072", "ED25519", "ED25519"];
    for (credentials, kind) in strangers.into_iter().zip(kinds) {
        let user = credentials.user.clone();
        let refused = try_login(&server, credentials, HostKeyPolicy::TrustOnFirstUse, &options);
        let error = refused.await.unwrap_err();
        assert!(matches!(error, ConnectError::AuthenticationRefused { .. }), "{user}: {error}");
        assert_eq!(error.retry(), Retry::WhileNew);
        assert!(error.to_string().contains(&user), "{error}");
        assert!(error.to_string().contains(&format!("private key ({kind})")), "{error}");
    }
    crate::hostile::all_closed(&options).await;
}

pub(super) async fn each_kind_of_host_key_is_pinned<B: Backend>() {
    for kind in HOST_KEYS {
        let server = B::with_host_keys(&[kind]).await;
        let options = server.options();
        let login = |policy| try_login(&server, server.credentials(), policy, &options);
        let seen = login(HostKeyPolicy::TrustOnFirstUse).await.unwrap().host_key().clone();
        assert_eq!(seen.verdict, HostKeyVerdict::FirstUse, "{kind}");
        assert_eq!(seen.key.algorithm(), kind);
        assert_eq!(server.host_keys(), std::slice::from_ref(&seen.key));

        // Parses it from the cluster's text, as a later process would.
        let pinned = HostKeyPolicy::Pinned(seen.key.to_string().parse().unwrap());
        let session = login(pinned).await.unwrap();
        assert_eq!(session.host_key().verdict, HostKeyVerdict::Matches, "{kind}");
    }
}

pub(super) async fn of_several_host_keys_the_pinned_one_is_asked_for<B: Backend>() {
    let server = B::with_host_keys(&HOST_KEYS).await;
    let options = server.options();
    let login = |policy| try_login(&server, server.credentials(), policy, &options);
    let first = login(HostKeyPolicy::TrustOnFirstUse).await.unwrap();
    assert_eq!(first.host_key().key.algorithm(), "ecdsa-sha2-nistp256", "as the Go operator would");
    let keys = server.host_keys();
    assert_eq!(keys.len(), HOST_KEYS.len());
    for key in keys {
        let session = login(HostKeyPolicy::Pinned(key.clone())).await.unwrap();
        assert_eq!(session.host_key().key, key);
    }
}

pub(super) async fn another_host_key_is_a_mismatch<B: Backend>() {
    let server = B::with_host_keys(&["ecdsa-sha2-nistp256"]).await;
    let other = B::with_host_keys(&["ecdsa-sha2-nistp256", "ssh-ed25519"]).await;
    let shown = server.host_keys().remove(0);
    let options = server.options();
    // A key of the same kind, and of a kind that the server does not have.
    for pinned in other.host_keys() {
        let policy = HostKeyPolicy::Pinned(pinned.clone());
        let error = try_login(&server, server.credentials(), policy, &options).await.unwrap_err();
        let ConnectError::HostKeyMismatch { expected, found, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!((expected, found), (&pinned.fingerprint(), &shown.fingerprint()));
        assert_eq!(error.retry(), Retry::NeedsPerson);
    }
    crate::hostile::all_closed(&options).await;
}
