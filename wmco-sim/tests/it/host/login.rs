//! Tests logins and host keys.

use russh::keys::{Algorithm, EcdsaCurve};
use wmco_sim::host::{Fault, HostKeyKind};

use super::client::{Client, NoClient, host, host_with, new_key, within};

#[tokio::test]
async fn the_authorized_key_opens_and_is_counted() {
    let (host, key) = host().await;
    let client = within(Client::connect(&host, &key)).await;
    assert_eq!(client.host_key, host.host_keys()[0]);
    let counts = host.counts();
    assert_eq!((counts.connections, counts.authentications, counts.refusals), (1, 1, 0));
    assert!(counts.bytes_received > 500, "{counts:?}");
    client.close().await;
    within(host.shutdown()).await;
}

#[tokio::test]
async fn another_key_or_user_is_refused() {
    let (host, key) = host_with(|builder| builder.user("core")).await;
    for (user, key) in [("core", &new_key()), ("root", &key)] {
        let refused = within(Client::try_connect(&host, user, key)).await;
        assert!(matches!(refused, Err(NoClient::Refused)), "{user}");
    }
    assert_eq!(host.counts().authentications, 0);
    assert_eq!(host.counts().refusals, 2);
    within(Client::try_connect(&host, "CORE", &key)).await.unwrap();
}

#[tokio::test]
async fn keys_can_be_exchanged_while_it_runs() {
    let (host, old) = host().await;
    let new = new_key();
    host.authorize_only([new.public_key().clone()]);
    let refused = within(Client::try_connect(&host, host.user(), &old)).await;
    assert!(matches!(refused, Err(NoClient::Refused)));
    within(Client::connect(&host, &new)).await;
}

#[tokio::test]
async fn authentication_can_be_refused_for_a_while() {
    let (host, key) = host().await;
    host.set_fault(Fault::RefuseAuthentication);
    let refused = within(Client::try_connect(&host, host.user(), &key)).await;
    assert!(matches!(refused, Err(NoClient::Refused)));
    host.clear_faults();
    within(Client::connect(&host, &key)).await;
}

#[tokio::test]
async fn a_host_shows_a_key_of_the_kind_that_was_asked_for() {
    for (kind, algorithm) in [
        (HostKeyKind::EcdsaP256, Algorithm::Ecdsa { curve: EcdsaCurve::NistP256 }),
        (HostKeyKind::Ed25519, Algorithm::Ed25519),
        (HostKeyKind::Rsa, Algorithm::Rsa { hash: None }),
    ] {
        let (host, key) = host_with(|builder| builder.host_keys(&[kind])).await;
        let client = within(Client::connect(&host, &key)).await;
        assert_eq!(client.host_key.algorithm(), algorithm);
        assert_eq!(client.host_key, host.host_keys()[0]);
    }
}

#[tokio::test]
async fn a_changed_host_key_comes_and_goes_with_its_fault() {
    let (host, key) = host().await;
    let first = host.host_keys();
    host.set_fault(Fault::ChangedHostKey);
    let other = within(Client::connect(&host, &key)).await.host_key;
    assert_ne!(other, first[0]);
    assert_eq!(within(Client::connect(&host, &key)).await.host_key, other);
    host.clear_faults();
    assert_eq!(within(Client::connect(&host, &key)).await.host_key, first[0]);
}

#[tokio::test]
async fn a_reinstalled_host_has_new_keys_for_good() {
    let (host, key) = host().await;
    let first = host.host_keys();
    host.change_host_keys().unwrap();
    let new = within(Client::connect(&host, &key)).await.host_key;
    assert_ne!(new, first[0]);
    assert_eq!(new, host.host_keys()[0]);
}
