//! Tests that a Machine's user data decides who can log in to its host.

use russh::keys::PrivateKey;
use wmco_core::names::host::AUTHORIZED_KEYS;
use wmco_core::names::platforms;
use wmco_core::render::user_data;
use wmco_services::windows::Machine as _;
use wmco_sim::host::SimHost;

use super::scenery::{World, authorized};
use crate::host::client::{Client, NoClient, new_key, until, within};

/// Whether this user can log in with this key.
async fn enters(host: &SimHost, user: &str, key: &PrivateKey) -> bool {
    match within(Client::try_connect(host, user, key)).await {
        Ok(_) => true,
        Err(NoClient::Refused) => false,
        Err(NoClient::Connection) => panic!("nobody answers"),
    }
}

async fn with(platform: &str) -> World {
    World::new(platform, |api| api).await.with_hosts(1).await
}

/// Creates a world whose user data is changed before its Machine is created.
async fn with_user_data(change: impl FnOnce(&World) -> String) -> World {
    let world = World::new(platforms::NONE, |api| api).await;
    world.give_user_data(&change(&world));
    world.with_hosts(1).await
}

fn host(world: &World) -> std::sync::Arc<SimHost> {
    world.host(&world.names()[0])
}

fn rendered(world: &World) -> String {
    user_data(platforms::NONE, &authorized(&world.key), None)
}

#[tokio::test]
async fn the_key_of_the_user_data_opens_the_host_and_no_other() {
    let world = with(platforms::AWS).await;
    assert!(enters(&host(&world), "Administrator", &world.key).await);
    assert!(!enters(&host(&world), "Administrator", &new_key()).await);
    assert!(!enters(&host(&world), "capi", &world.key).await);
    world.end().await;
}

#[tokio::test]
async fn the_user_on_azure_is_its_own() {
    let world = with(platforms::AZURE).await;
    assert!(enters(&host(&world), "capi", &world.key).await);
    assert!(!enters(&host(&world), "Administrator", &world.key).await);
    world.end().await;
}

#[tokio::test]
async fn both_keys_of_an_exchange_open_the_host() {
    let next = new_key();
    let world = with_user_data(|world| {
        user_data(platforms::NONE, &authorized(&world.key), Some(&authorized(&next)))
    })
    .await;
    for key in [&world.key, &next] {
        assert!(enters(&host(&world), "Administrator", key).await);
    }
    world.end().await;
}

#[tokio::test]
async fn user_data_with_another_key_refuses_ours() {
    let other = new_key();
    let world = with_user_data(|_| user_data(platforms::NONE, &authorized(&other), None)).await;
    assert!(!enters(&host(&world), "Administrator", &world.key).await);
    assert!(enters(&host(&world), "Administrator", &other).await);
    world.end().await;
}

#[tokio::test]
async fn a_key_that_is_commented_out_does_not_open_the_host() {
    let world = with_user_data(|world| rendered(world).replace("'ecdsa-", "# 'ecdsa-")).await;
    assert!(!enters(&host(&world), "Administrator", &world.key).await);
    world.end().await;
}

#[tokio::test]
async fn nobody_answers_on_a_host_without_user_data() {
    let world = with_user_data(|_| String::new()).await;
    let answer = within(Client::try_connect(&host(&world), "Administrator", &world.key)).await;
    assert!(matches!(answer, Err(NoClient::Connection)));
    world.end().await;
}

#[tokio::test]
async fn user_data_counts_as_it_was_when_the_machine_was_made() {
    let world = with(platforms::NONE).await;
    let (first, next) = (world.names()[0].clone(), new_key());
    world.give_user_data(&user_data(platforms::NONE, &authorized(&next), None));
    world.scale(2).await;
    world.hosts(2).await;
    for name in world.names() {
        let host = world.host(&name);
        assert_eq!(enters(&host, "Administrator", &world.key).await, name == first, "{name}");
        assert_eq!(enters(&host, "Administrator", &next).await, name != first, "{name}");
    }
    world.end().await;
}

/// Like the operator's key exchange.
#[tokio::test]
async fn a_key_that_is_written_to_the_file_opens_the_host() {
    let world = with(platforms::NONE).await;
    let (path, next) = (AUTHORIZED_KEYS.parse().unwrap(), new_key());
    let file = host(&world).model().file(&path).unwrap();
    let both = format!("{}# mine\n{}\n", str::from_utf8(&file).unwrap(), authorized(&next));
    host(&world).model().put_file(&path, both);
    for key in [&world.key, &next] {
        assert!(enters(&host(&world), "Administrator", key).await);
    }
    host(&world).model().put_file(&path, authorized(&next).to_string());
    assert!(!enters(&host(&world), "Administrator", &world.key).await);
    host(&world).model().restart().unwrap();
    until(|| host(&world).counts().restarts == 1).await;
    assert!(enters(&host(&world), "Administrator", &next).await);
    world.end().await;
}
