//! The daemon's own certificate: asked for, renewed, replaced.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use kube_testserver::Fault;
use kube_testserver::error::ApiError;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, date_time_ymd};
use wmco_core::names::{self, objects};
use wmco_core::secret::Secret;
use wmco_services::identity::{Certificate, Store};
use wmco_services::windows::Files as _;

use super::world::{NAMESPACE, NODE, VERSION, World, manifest, until};

fn stored(world: &World) -> Option<Secret> {
    Store { folder: &world.settings.certificates }.load(&world.host).unwrap()
}

/// Of the hour for which the daemon asks, so that the next certificate is due at once, and this one good for a while.
const NEARLY_AN_HOUR: i64 = 55 * 60;

/// A certificate of this node that has expired, with its key.
fn expired() -> Secret {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, own());
    params.distinguished_name.push(DnType::OrganizationName, names::WICD_NODES_GROUP);
    (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    Secret::new(format!("{}{}", certificate.pem(), key.serialize_pem()))
}

fn account() -> String {
    format!("system:serviceaccount:{NAMESPACE}:{}", objects::WICD)
}

fn own() -> String {
    format!("{}{NODE}", names::WICD_USER_PREFIX)
}

#[tokio::test]
async fn the_first_is_asked_for_by_the_account_and_kept() {
    let world = World::new().await;
    let running = world.logged_in().await;
    assert_eq!(world.requesters(), [account()]);
    let certificate = Certificate::parse(stored(&world).unwrap().expose()).unwrap();
    assert_eq!(certificate.node(), Some(NODE));
    running.stop().await;
}

#[tokio::test]
async fn one_that_is_good_is_used_again() {
    let world = World::new().await;
    let running = world.logged_in().await;
    running.stop().await;
    let running = world.logged_in().await;
    assert_eq!(world.requesters().len(), 1);
    running.stop().await;
}

#[tokio::test]
async fn short_lived_ones_are_renewed_without_a_restart() {
    let world = World::new().await;
    world.cluster.move_certificate_clock(-NEARLY_AN_HOUR);
    world.put_manifest(VERSION, &manifest(&[]).render());
    let running = world.start();
    until(|| world.requesters().len() >= 3).await;
    // Only the first was asked for with the account; each asked for the next.
    let requesters = world.requesters();
    assert_eq!(requesters.iter().filter(|user| **user == account()).count(), 1);
    assert_eq!(requesters.iter().filter(|user| **user == own()).count(), requesters.len() - 1);
    // Each was used for a while before the next was asked for.
    let requests = world.cluster.objects("certificates.k8s.io", "certificatesigningrequests", "");
    let times: BTreeSet<&str> =
        requests.iter().filter_map(|r| r["metadata"]["creationTimestamp"].as_str()).collect();
    assert_eq!(times.len(), requests.len());
    // The work continues with the newest.
    world.annotate(names::DESIRED_VERSION_ANNOTATION, VERSION).await;
    until(|| world.version().is_some()).await;
    running.stop().await;
    let files = world.host.walk(&world.settings.certificates).unwrap();
    assert!(files.len() <= 3, "{files:?}");
}

#[tokio::test]
async fn one_that_expired_while_the_host_was_off_is_replaced_through_the_kubeconfig() {
    let world = World::new().await;
    let running = world.logged_in().await;
    running.kill().await;
    let store = Store { folder: &world.settings.certificates };
    store.keep(&world.host, &expired(), jiff::Timestamp::UNIX_EPOCH).unwrap();
    let before = world.requesters().len();
    let running = world.logged_in().await;
    assert_eq!(world.requesters().iter().filter(|user| **user == account()).count(), 2);
    assert!(world.requesters().len() > before);
    running.stop().await;
}

#[tokio::test]
async fn one_that_the_cluster_does_not_accept_any_more_is_replaced() {
    let world = World::new().await;
    let running = world.logged_in().await;
    world.idle().await;
    let refused = AtomicBool::new(false);
    world.cluster.inject_faults(move |request| {
        let pass = (request.verb.as_str(), request.resource.as_str()) == ("get", "nodes");
        let first = pass && !refused.swap(true, Ordering::SeqCst);
        first.then(|| Fault::Answer(ApiError::unauthorized()))
    });
    world.put_manifest(VERSION, &manifest(&[]).render());
    world.annotate(names::DESIRED_VERSION_ANNOTATION, VERSION).await;
    until(|| world.version().is_some()).await;
    assert_eq!(world.requesters(), [account(), account()]);
    assert_eq!(running.times_ready(), 2);
    running.stop().await;
}

#[tokio::test]
async fn one_of_another_node_is_replaced() {
    let world = World::new().await;
    let other = format!("{}win-2", names::WICD_USER_PREFIX);
    let made = world.cluster.client_certificate(&other, &[names::WICD_NODES_GROUP]).unwrap();
    let store = Store { folder: &world.settings.certificates };
    let text = Secret::new(format!("{}{}", made.certificate, made.key));
    store.keep(&world.host, &text, jiff::Timestamp::UNIX_EPOCH).unwrap();
    let running = world.logged_in().await;
    assert_eq!(world.requesters(), [account()]);
    running.stop().await;
}

#[tokio::test]
async fn half_a_file_is_replaced() {
    let world = World::new().await;
    let store = Store { folder: &world.settings.certificates };
    let half = Secret::new("-----BEGIN CERTIFICATE-----\nMIIB");
    store.keep(&world.host, &half, jiff::Timestamp::UNIX_EPOCH).unwrap();
    let running = world.logged_in().await;
    assert_eq!(world.requesters().len(), 1);
    running.stop().await;
}

#[tokio::test]
async fn nothing_is_done_before_somebody_approves() {
    let world = World::new().await;
    world.approve_only(0);
    world.put_manifest(VERSION, &manifest(&[]).render());
    world.annotate(names::DESIRED_VERSION_ANNOTATION, VERSION).await;
    let running = world.start();
    until(|| world.requesters().len() == 1).await;
    assert_eq!((running.times_ready(), world.service("kubelet")), (0, None));
    world.approve_only(1);
    until(|| world.version().is_some()).await;
    running.stop().await;
}
