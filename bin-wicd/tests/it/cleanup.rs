//! `wicd cleanup` after the controller.

use bin_wicd::cleanup::cleanup;
use bin_wicd::report;
use wmco_core::names::{self, host as paths};
use wmco_core::protocol::{HostStep, ServiceRunState, ServicesData};
use wmco_services::fake::{Call, FakeWindows, Snapshot};
use wmco_services::windows::{
    Files as _, Machine as _, ServiceConfig, ServiceManager as _, StartType,
};

use super::bench::{plan, succeeded};
use super::controller::Log;
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

/// A world whose host is configured and has no daemon running any more, and the host before.
async fn configured() -> (World, Snapshot) {
    let world = World::new().await;
    world.put_manifest(VERSION, &manifest(&[]).render());
    let before = world.host.snapshot();
    world.annotate(names::DESIRED_VERSION_ANNOTATION, VERSION).await;
    let running = world.configured().await;
    running.stop().await;
    (world, before)
}

#[tokio::test]
async fn services_and_mark_go_and_the_rest_is_as_before() {
    let (world, before) = configured().await;
    assert_ne!(world.host.snapshot().services, before.services);
    assert_eq!(clean(&world).await.unwrap(), (false, String::new()));
    let after = world.host.snapshot();
    assert_eq!(after.services, before.services);
    assert_eq!((&after.environment, &after.roots), (&before.environment, &before.roots));
    assert_eq!(world.version(), None);
    assert!(!world.annotations().contains_key(names::REBOOT_ANNOTATION));
    // A second time there is nothing to do, but to look for processes.
    world.host.clear_changes();
    clean(&world).await.unwrap();
    let touched = world.host.changes();
    assert!(touched.iter().all(|(call, _)| *call == Call::MachineEndProcesses), "{touched:?}");
    assert_eq!(world.host.snapshot(), after);
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
    world.cluster.inject_faults(|_| Some(kube_testserver::Fault::Hangup));
    assert!(clean(&world).await.is_err());
    assert_eq!(world.host.snapshot(), before);
}

/// `docs/contract/wicd.md`, WICD81.
#[tokio::test]
async fn what_cannot_be_read_is_reported_and_the_rest_goes() {
    let (world, before) = configured().await;
    let mut damaged = manifest(&[]).render();
    damaged.0.insert("services".to_owned(), "[{".to_owned());
    world.put_manifest("0.9.0-damaged", &damaged);
    for file in [paths::KUBELET_CLIENT_CERTIFICATE, paths::WICD_CURRENT_CERTIFICATE] {
        world.host.put_file(&file.parse().unwrap(), "half");
    }
    let (restart, said) = clean(&world).await.unwrap();
    assert!(!restart);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    assert!(
        lines[0].starts_with("ConfigMap windows-services-0.9.0-damaged cannot be read")
            && lines[0].contains("EOF while parsing"),
        "{said}"
    );
    assert!(lines[1].starts_with("the kubelet's certificate tells no node"), "{said}");
    assert!(lines[2].starts_with("the daemon's certificate tells no node"), "{said}");
    assert_eq!(world.host.snapshot().services, before.services);
    assert_eq!(world.version(), None);
}

#[test]
fn the_agent_reports_what_it_cannot_read_and_takes_away_the_rest() {
    let (host, log) = (FakeWindows::new("winhost"), Log::default());
    let _kept = log.keep();
    host.put_file(&paths::AGENT.parse().unwrap(), "MZ");
    host.put_file(&paths::STATE_FILE.parse().unwrap(), "half");
    let config = ServiceConfig {
        command: "x".to_owned(),
        description: format!("{} leftover", paths::SERVICE_TAG),
        dependencies: Vec::new(),
        start: StartType::Manual,
        recovery: None,
    };
    host.add_service(&"leftover".parse().unwrap(), &config, ServiceRunState::Running);
    let damaged = ServicesData([("services".to_owned(), "[{".to_owned())].into());
    let (place, text) = plan(vec![HostStep::RemoveServices { manifests: vec![damaged] }]);
    host.put_file(&place, text);
    let mut out = Vec::new();
    report::apply(&host, VERSION, &place, &mut out).unwrap();
    succeeded(&String::from_utf8(out).unwrap());
    assert_eq!(host.query(&"leftover".parse().unwrap()).unwrap(), None);
    let told = log.with("a services ConfigMap cannot be read");
    assert!(told.len() == 1 && told[0].contains("add the key `files`"), "{told:?}");
    assert!(!log.with("wmco-state.json is damaged and counts as missing").is_empty());
}

/// `docs/contract/wicd.md`, WICD36.
#[tokio::test]
async fn two_nodes_with_its_address_stop_cleanup_unless_a_certificate_names_one() {
    let world = World::asked(&manifest(&[])).await;
    let running = world.configured().await;
    running.stop().await;
    let mut twin = super::world::node();
    twin["metadata"]["name"] = "twin".into();
    world.cluster.put(&twin).unwrap();
    world.host.remove_tree(&world.settings.certificates).unwrap();
    let before = world.host.snapshot();
    let error = clean(&world).await.unwrap_err();
    assert!(error.to_string().starts_with("nodes twin, win-1 all have an address"), "{error}");
    assert_eq!(world.host.snapshot(), before);
    world.put_kubelet_certificate(super::world::NODE);
    assert_eq!(clean(&world).await.unwrap(), (false, String::new()));
    assert_eq!(world.version(), None);
}
