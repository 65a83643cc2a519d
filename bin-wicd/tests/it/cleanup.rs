//! `wicd cleanup` after the controller.

use bin_wicd::cleanup::cleanup;
use wmco_core::names;
use wmco_core::protocol::ServiceRunState;
use wmco_services::fake::FakeWindows;
use wmco_services::windows::{Machine as _, ServiceConfig, StartType};

use super::world::{VERSION, World, manifest, until};

/// Cleans on a thread, as the command does, and returns whether the restart is left to its caller, and
/// what it said.
async fn clean(world: &World) -> anyhow::Result<(bool, String)> {
    let (host, cluster) = (world.host.clone(), world.settings.cluster.clone());
    let work = move || {
        let mut out = Vec::new();
        cleanup(&host, &cluster, &mut out).map(|restart| (restart, String::from_utf8(out).unwrap()))
    };
    tokio::task::spawn_blocking(work).await.unwrap()
}

#[tokio::test]
async fn services_and_mark_go_and_the_rest_is_as_before() {
    let world = World::new().await;
    world.put_manifest(VERSION, &manifest(&[]).render());
    let before = world.host.snapshot();
    world.annotate(names::DESIRED_VERSION_ANNOTATION, VERSION).await;
    let running = world.configured().await;
    running.stop().await;
    assert_ne!(world.host.snapshot().services, before.services);
    assert_eq!(clean(&world).await.unwrap(), (false, String::new()));
    let after = world.host.snapshot();
    assert_eq!((after.services, after.environment), (before.services, before.environment));
    assert_eq!(after.roots, before.roots);
    assert_eq!(world.version(), None);
    assert!(!world.annotations().contains_key(names::REBOOT_ANNOTATION));
    // A second time there is nothing to do.
    world.host.clear_changes();
    clean(&world).await.unwrap();
    let touched = world.host.changes();
    assert!(touched.iter().all(|(_, object)| object.ends_with("runhcs-v1.exe")), "{touched:?}");
}

#[tokio::test]
async fn variables_that_go_ask_for_a_restart() {
    let world = World::asked(&manifest(&[("HTTP_PROXY", "http://proxy:3128")])).await;
    let running = world.start();
    until(|| world.annotations().contains_key(names::REBOOT_ANNOTATION)).await;
    running.stop().await;
    world.host.restart().unwrap();
    world.annotate(names::REBOOT_ANNOTATION, serde_json::Value::Null).await;
    let (restart, said) = clean(&world).await.unwrap();
    assert!(!restart && said.starts_with("restart this host"), "{said}");
    assert!(world.annotations().contains_key(names::REBOOT_ANNOTATION));
    assert!(world.host.snapshot().environment.is_empty());
}

#[tokio::test]
async fn without_a_node_it_says_that_a_restart_is_needed() {
    let world = World::new().await;
    world.host.set_addresses(vec![[10, 9, 9, 9].into()]);
    let set = |host: &FakeWindows| {
        use wmco_services::windows::Environment as _;
        host.set("NO_PROXY", "x").unwrap();
    };
    set(&world.host);
    world.host.restart().unwrap();
    let (restart, said) = clean(&world).await.unwrap();
    assert!(restart && said.starts_with("restart this host"), "{said}");
    assert!(!world.annotations().contains_key(names::REBOOT_ANNOTATION));
}

#[tokio::test]
async fn without_a_config_map_tagged_services_still_go() {
    let world = World::new().await;
    let config = ServiceConfig {
        command: "x".to_owned(),
        description: "OpenShift managed leftover".to_owned(),
        dependencies: Vec::new(),
        start: StartType::Manual,
        recovery: None,
    };
    world.host.add_service(&"leftover".parse().unwrap(), &config, ServiceRunState::Running);
    clean(&world).await.unwrap();
    assert_eq!(world.service("leftover"), None);
}

#[tokio::test]
async fn a_cluster_that_does_not_answer_leaves_the_host_untouched() {
    let world = World::new().await;
    let before = world.host.snapshot();
    world.cluster.inject_faults(|_| Some(wmco_sim::cluster::Fault::Hangup));
    assert!(clean(&world).await.is_err());
    assert_eq!(world.host.snapshot(), before);
}
