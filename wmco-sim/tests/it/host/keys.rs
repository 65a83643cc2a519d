//! Tests that the agent's key exchange authorizes the new key and revokes old ones.

use russh::keys::{PrivateKey, PublicKey};
use wmco_core::authorized_key::AuthorizedKey;
use wmco_core::names::host::AUTHORIZED_KEYS;
use wmco_core::protocol::{HostStep, ReportLine};
use wmco_core::winpath::WindowsPath;
use wmco_sim::host::SimHost;

use super::agent::Operator;
use super::client::{Client, NoClient, host, new_key, within};

fn authorized(key: &PrivateKey) -> AuthorizedKey {
    key.public_key().to_openssh().unwrap().parse().unwrap()
}

fn file() -> WindowsPath {
    AUTHORIZED_KEYS.parse().unwrap()
}

async fn enters(host: &SimHost, key: &PrivateKey) -> bool {
    match within(Client::try_connect(host, host.user(), key)).await {
        Ok(_) => true,
        Err(NoClient::Refused) => false,
        Err(NoClient::Connection) => panic!("nobody answers"),
    }
}

/// Logs in with `with` and runs the agent's key exchange.
async fn exchange(host: &SimHost, with: &PrivateKey, add: &PrivateKey, remove: &[&PrivateKey]) {
    let mut operator = Operator::new(host, with).await;
    operator.bring(&SimHost::agent_binary("1.2.3-test")).await;
    let remove = remove.iter().map(|key| authorized(key)).collect();
    let step = HostStep::EnsureAuthorizedKeys { add: [authorized(add)].into(), remove };
    let lines = operator.apply(vec![step]).await;
    let changed = lines.iter().any(|line| matches!(line, ReportLine::Done { changed: true, .. }));
    assert!(changed, "{lines:?}");
}

#[tokio::test]
async fn the_new_key_opens_the_host_and_then_the_old_one_no_more() {
    let (host, old) = host().await;
    let (new, person) = (new_key(), new_key());
    let mut authorized = vec![old.public_key().clone(), person.public_key().clone()];
    host.authorize_only(authorized.clone());

    exchange(&host, &old, &new, &[]).await;
    for key in [&old, &new, &person] {
        assert!(enters(&host, key).await);
    }
    exchange(&host, &new, &new, &[&old]).await;
    assert!(!enters(&host, &old).await);
    assert!(enters(&host, &new).await && enters(&host, &person).await);

    authorized[0] = person.public_key().clone();
    authorized[1] = new.public_key().clone();
    let text = host.model().file(&file()).unwrap();
    let lines = str::from_utf8(&text).unwrap().lines();
    let keys: Vec<PublicKey> = lines.map(|line| PublicKey::from_openssh(line).unwrap()).collect();
    assert_eq!(keys, authorized);
}

#[tokio::test]
async fn a_key_in_a_file_that_everybody_may_write_to_opens_nothing() {
    let (host, key) = host().await;
    host.model().open_to_all(&file());
    assert!(!enters(&host, &key).await);
}
