//! What the controller does for the node.

use std::collections::BTreeSet;
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::Value;
use wmco_core::names::{self, events};
use wmco_core::protocol::ServiceRunState;
use wmco_services::fake::{Call, Fault};
use wmco_services::manifest::{Manifest, Parts, PreScript};
use wmco_services::windows::{Machine as _, ScriptOutput, ServiceConfig, StartType};

use super::world::{NODE, VERSION, World, manifest, node, service, until};

const RUNNING: ServiceRunState = ServiceRunState::Running;

#[tokio::test]
async fn a_node_is_brought_to_its_desired_version() {
    let world = World::new().await;
    world.put_manifest(VERSION, &manifest(&[]).render());
    let running = world.start();
    until(|| running.times_ready() == 1).await;
    assert_eq!(world.version(), None);
    world.annotate(names::DESIRED_VERSION_ANNOTATION, VERSION).await;
    until(|| world.version().as_deref() == Some(VERSION)).await;
    assert_eq!(world.service("kubelet"), Some(("kubelet --run".to_owned(), RUNNING)));
    let command = format!("overlay --node {NODE}");
    assert_eq!(world.service("overlay"), Some((command, RUNNING)));
    running.stop().await;
}

#[tokio::test]
async fn a_settled_node_costs_no_write_and_no_process() {
    let world = World::new().await;
    world.put_manifest(VERSION, &manifest(&[]).render());
    world.annotate(names::DESIRED_VERSION_ANNOTATION, VERSION).await;
    let running = world.start();
    until(|| world.version().is_some()).await;
    world.idle().await;
    world.host.clear_changes();
    let writes =
        || ["create", "patch", "update", "delete"].map(|verb| world.cluster.count(verb, "nodes"));
    let before = writes();
    let reads = world.cluster.count("get", "nodes");
    // A change that concerns the daemon, but asks for nothing.
    world.annotate("example.test/other", "1").await;
    until(|| world.cluster.count("get", "nodes") > reads).await;
    world.idle().await;
    assert_eq!(world.host.changes(), []);
    // The one patch is the test's own.
    assert_eq!(writes(), [before[0], before[1] + 1, before[2], before[3]]);
    running.stop().await;
}

#[tokio::test]
async fn a_changed_config_map_changes_only_what_differs() {
    let world = World::new().await;
    world.put_manifest(VERSION, &manifest(&[]).render());
    world.annotate(names::DESIRED_VERSION_ANNOTATION, VERSION).await;
    let running = world.start();
    until(|| world.version().is_some()).await;
    world.idle().await;
    world.host.clear_changes();
    let mut data = manifest(&[]).render();
    let services = data.0.get_mut("services").unwrap();
    *services = services.replace("--node NODE_NAME", "--node NODE_NAME --more");
    world.put_manifest(VERSION, &data);
    until(|| world.service("overlay").unwrap().0.ends_with("--more")).await;
    until(|| world.service("overlay").unwrap().1 == RUNNING).await;
    let changed = world.host.changes();
    let expected = [Call::ServicesStop, Call::ServicesConfigure, Call::ServicesStart];
    let expected = expected.map(|call| (call, "overlay".to_owned()));
    assert_eq!(changed, expected);
    running.stop().await;
}

#[tokio::test]
async fn a_changed_variable_asks_for_one_restart_before_anything_else() {
    let world = World::new().await;
    world.put_manifest(VERSION, &manifest(&[("HTTP_PROXY", "http://proxy:3128")]).render());
    world.annotate(names::DESIRED_VERSION_ANNOTATION, VERSION).await;
    let running = world.start();
    until(|| world.annotations().contains_key(names::REBOOT_ANNOTATION)).await;
    assert_eq!(world.service("kubelet"), None);
    // The operator restarts the host; its end is the end of the process.
    running.kill().await;
    world.host.restart().unwrap();
    let running = world.start();
    until(|| running.times_ready() == 1).await;
    world.idle().await;
    assert_eq!(world.service("kubelet"), None, "nothing is done while the request stands");
    world.annotate(names::REBOOT_ANNOTATION, Value::Null).await;
    until(|| world.version().is_some()).await;
    assert!(!world.annotations().contains_key(names::REBOOT_ANNOTATION));
    running.stop().await;
}

#[tokio::test]
async fn a_node_that_is_not_ready_is_marked_when_it_is() {
    let world = World::new().await;
    world.ready("False").await;
    world.put_manifest(VERSION, &manifest(&[]).render());
    world.annotate(names::DESIRED_VERSION_ANNOTATION, VERSION).await;
    let running = world.start();
    until(|| world.service("overlay").is_some_and(|(_, state)| state == RUNNING)).await;
    world.idle().await;
    assert_eq!(world.version(), None);
    world.ready("True").await;
    until(|| world.version().is_some()).await;
    running.stop().await;
}

#[tokio::test]
async fn a_missing_config_map_is_awaited() {
    let world = World::new().await;
    world.annotate(names::DESIRED_VERSION_ANNOTATION, VERSION).await;
    let running = world.start();
    until(|| running.times_ready() == 1).await;
    world.idle().await;
    world.put_manifest(VERSION, &manifest(&[]).render());
    until(|| world.version().is_some()).await;
    running.stop().await;
}

#[tokio::test]
async fn a_host_whose_node_comes_later_waits_for_it() {
    let world = World::new().await;
    world.host.set_addresses(vec![[10, 9, 9, 9].into()]);
    world.put_manifest(VERSION, &manifest(&[]).render());
    world.annotate(names::DESIRED_VERSION_ANNOTATION, VERSION).await;
    let running = world.start();
    until(|| world.cluster.count("list", "nodes") > 0).await;
    world.host.set_addresses(vec![[10, 0, 0, 10].into()]);
    until(|| world.version().is_some()).await;
    running.stop().await;
}

#[tokio::test]
async fn it_is_told_to_stop_before_it_can_reach_anything() {
    let world = World::new().await;
    world.host.put_file(&world.settings.cluster.kubeconfig, "nonsense");
    let running = world.start();
    tokio::task::yield_now().await;
    running.stop().await;
}

/// A manifest whose service has a script before it.
fn scripted(script: &str) -> Manifest {
    let mut kubelet = service("kubelet", "kubelet --ip ADDRESS", &[], 0);
    kubelet.powershell_pre_scripts = vec![PreScript {
        variable_name: "ADDRESS".to_owned(),
        path: script.to_owned(),
        node_args: Vec::new(),
    }];
    Manifest::new(Parts { services: vec![kubelet], ..Parts::default() }).unwrap()
}

#[tokio::test]
async fn told_to_stop_it_ends_after_the_step_it_is_at() {
    let world = World::new().await;
    let (entered, wait) = mpsc::channel();
    let (go, gate) = mpsc::channel::<()>();
    let (entered, gate) = (Mutex::new(entered), Mutex::new(gate));
    world.host.set_powershell(move |_| {
        entered.lock().unwrap().send(()).unwrap();
        // Ends when the test is over, too.
        let _ = gate.lock().unwrap().recv();
        ScriptOutput { stdout: "10.0.0.1".to_owned(), ..ScriptOutput::default() }
    });
    world.put_manifest(VERSION, &scripted("Get-Address").render());
    world.annotate(names::DESIRED_VERSION_ANNOTATION, VERSION).await;
    let running = world.start();
    tokio::task::spawn_blocking(move || wait.recv().unwrap()).await.unwrap();
    world.host.clear_changes();
    let stopping = tokio::spawn(running.stop());
    tokio::task::yield_now().await;
    go.send(()).unwrap();
    stopping.await.unwrap();
    // What the script gave is not used any more.
    assert_eq!(world.service("kubelet"), None);
    assert_eq!(world.version(), None);
}

#[tokio::test]
async fn a_service_that_fails_is_tried_again_and_holds_the_mark_back() {
    let world = World::new().await;
    world.host.fail(Call::ServicesStart, "overlay", 2, Fault::Other);
    world.put_manifest(VERSION, &manifest(&[]).render());
    world.annotate(names::DESIRED_VERSION_ANNOTATION, VERSION).await;
    let running = world.start();
    until(|| world.version().is_some()).await;
    assert_eq!(world.service("overlay").unwrap().1, RUNNING);
    running.stop().await;
}

/// Killed after each change of the host in turn, and started anew, it finishes what it began.
#[tokio::test]
async fn killed_at_any_change_it_converges_after_a_new_start() {
    for cut in 0..8 {
        let world = World::new().await;
        world.put_manifest(VERSION, &manifest(&[]).render());
        world.annotate(names::DESIRED_VERSION_ANNOTATION, VERSION).await;
        world.host.cut_after(cut);
        let running = world.start();
        let seen = Instant::now();
        // Until the cut, or until all is done when there are fewer changes.
        until(|| {
            world.host.is_cut()
                || world.version().is_some()
                || seen.elapsed() > Duration::from_secs(5)
        })
        .await;
        running.kill().await;
        world.host.heal();
        let running = world.start();
        until(|| world.version().as_deref() == Some(VERSION)).await;
        assert_eq!(world.service("overlay").unwrap().1, RUNNING, "{cut}");
        running.stop().await;
    }
}

#[tokio::test]
async fn an_api_that_hangs_up_is_asked_again() {
    let world = World::new().await;
    world.put_manifest(VERSION, &manifest(&[]).render());
    world.annotate(names::DESIRED_VERSION_ANNOTATION, VERSION).await;
    // The first of each kind of request about nodes: get, list, patch, watch.
    let hung_up = Mutex::new(BTreeSet::new());
    world.cluster.inject_faults(move |request| {
        let kind = (request.verb.clone(), request.resource.clone());
        let first = request.resource == "nodes" && hung_up.lock().unwrap().insert(kind);
        first.then_some(wmco_sim::cluster::Fault::Hangup)
    });
    let running = world.start();
    until(|| world.version().is_some()).await;
    world.cluster.clear_faults();
    running.stop().await;
}

#[tokio::test]
async fn a_service_that_stops_or_goes_behind_its_back_comes_back() {
    let world = World::new().await;
    world.put_manifest(VERSION, &manifest(&[]).render());
    world.annotate(names::DESIRED_VERSION_ANNOTATION, VERSION).await;
    let running = world.start();
    until(|| world.version().is_some()).await;
    world.idle().await;
    world.host.set_service_state(&"overlay".parse().unwrap(), ServiceRunState::Stopped);
    until(|| world.service("overlay").unwrap().1 == RUNNING).await;
    running.stop().await;
}

#[tokio::test]
async fn a_foreign_service_with_our_tag_goes() {
    let world = World::new().await;
    world.put_manifest(VERSION, &manifest(&[]).render());
    world.annotate(names::DESIRED_VERSION_ANNOTATION, VERSION).await;
    let running = world.start();
    until(|| world.version().is_some()).await;
    world.idle().await;
    let config = ServiceConfig {
        command: "x".to_owned(),
        description: "OpenShift managed leftover".to_owned(),
        dependencies: Vec::new(),
        start: StartType::Manual,
        recovery: None,
    };
    world.host.add_service(&"leftover".parse().unwrap(), &config, RUNNING);
    until(|| world.service("leftover").is_none()).await;
    running.stop().await;
}

#[tokio::test]
async fn a_damaged_bundle_is_told_on_the_node_and_holds_nothing_back() {
    let world = World::new().await;
    let bundle = world.settings.ca_bundle.clone().unwrap();
    world.host.put_file(&bundle, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    world.put_manifest(VERSION, &manifest(&[]).render());
    world.annotate(names::DESIRED_VERSION_ANNOTATION, VERSION).await;
    let running = world.start();
    until(|| world.version().is_some()).await;
    running.stop().await;
    assert_eq!(world.events(), [events::CERTIFICATE_READ_ERROR]);
}

#[tokio::test]
async fn a_config_map_that_is_refused_is_told_on_the_node() {
    let world = World::new().await;
    let mut data = manifest(&[]).render();
    data.0.insert("services".to_owned(), "[{}]".to_owned());
    world.put_manifest(VERSION, &data);
    world.annotate(names::DESIRED_VERSION_ANNOTATION, VERSION).await;
    let running = world.start();
    until(|| world.events() == [events::SERVICES_REFUSED]).await;
    assert_eq!(world.service("kubelet"), None);
    running.stop().await;
}

#[tokio::test]
async fn a_node_that_is_made_anew_is_brought_up_again() {
    let world = World::new().await;
    world.put_manifest(VERSION, &manifest(&[]).render());
    world.annotate(names::DESIRED_VERSION_ANNOTATION, VERSION).await;
    let running = world.start();
    until(|| world.version().is_some()).await;
    // So that nothing else wakes it.
    world.idle().await;
    let nodes: Api<Node> = Api::all(world.client.clone());
    let lists = world.cluster.count("list", "nodes");
    nodes.delete(NODE, &DeleteParams::default()).await.unwrap();
    until(|| world.cluster.count("list", "nodes") > lists).await;
    // Without a node nobody says what shall run, so all goes on as it is.
    assert_eq!(world.service("overlay").unwrap().1, RUNNING);
    world.cluster.apply(&node()).unwrap();
    world.annotate(names::DESIRED_VERSION_ANNOTATION, VERSION).await;
    until(|| world.version().is_some()).await;
    running.stop().await;
}
