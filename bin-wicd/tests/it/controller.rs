//! What the controller does for the node, beside what [`scenarios`](crate::scenarios) ask of every
//! kind of host.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::DeleteParams;
use kube_testserver::{Fault as ApiFault, Request};
use wmco_core::digest::Sha256;
use wmco_core::names::{self, events};
use wmco_core::protocol::ServiceRunState;
use wmco_services::fake::{Call, Fault};
use wmco_services::manifest::{Manifest, Parts, PreScript};
use wmco_services::windows::ScriptOutput;

use super::world::{NODE, VERSION, World, manifest, node, service, until};

const RUNNING: ServiceRunState = ServiceRunState::Running;

#[tokio::test]
async fn a_node_is_brought_to_its_desired_version() {
    let world = World::new().await;
    world.put_manifest(VERSION, &manifest(&[]).render());
    let running = world.logged_in().await;
    assert_eq!(world.version(), None);
    world.annotate(names::DESIRED_VERSION_ANNOTATION, VERSION).await;
    until(|| world.version().as_deref() == Some(VERSION)).await;
    assert_eq!(world.service("kubelet"), Some(("kubelet --run".to_owned(), RUNNING)));
    let command = format!("overlay --node {NODE}");
    assert_eq!(world.service("overlay"), Some((command, RUNNING)));
    running.stop().await;
}

#[tokio::test]
async fn a_node_that_is_not_ready_is_marked_when_it_is() {
    let world = World::asked(&manifest(&[])).await;
    world.ready("False").await;
    let running = world.start();
    until(|| world.service("overlay").is_some_and(|(_, state)| state == RUNNING)).await;
    world.idle().await;
    assert_eq!(world.version(), None);
    world.ready("True").await;
    until(|| world.version().is_some()).await;
    running.stop().await;
}

#[tokio::test]
async fn a_node_that_changed_meanwhile_is_not_marked_for_what_it_was_asked_before() {
    /// Time to change the Node while its mark is on the way.
    const ON_THE_WAY: Duration = Duration::from_secs(3);
    let manifest = manifest(&[]);
    let world = World::asked(&manifest).await;
    let (sent, mut marks) = tokio::sync::mpsc::unbounded_channel();
    world.cluster.inject_faults(move |request| {
        let is_mark = request.verb == "patch" && request.resource == "nodes";
        (is_mark && sent.send(()).is_ok()).then_some(ApiFault::Delay(ON_THE_WAY))
    });
    let running = world.start();
    marks.recv().await.unwrap();
    // Whatever comes now is as fast as ever.
    world.cluster.clear_faults();
    world.annotate(names::SERVICES_ANNOTATION, "other content").await;
    let refused = |request: &Request| request.resource == "nodes" && request.code == 409;
    until(|| world.cluster.requests().iter().any(refused)).await;
    world.idle().await;
    assert_eq!(world.version(), None);
    world.annotate(names::SERVICES_ANNOTATION, manifest.render().digest().to_string()).await;
    until(|| world.version().is_some()).await;
    running.stop().await;
}

#[tokio::test]
async fn a_missing_config_map_is_awaited() {
    let world = World::new().await;
    world.annotate(names::DESIRED_VERSION_ANNOTATION, VERSION).await;
    let running = world.logged_in().await;
    world.idle().await;
    world.put_manifest(VERSION, &manifest(&[]).render());
    until(|| world.version().is_some()).await;
    running.stop().await;
}

#[tokio::test]
async fn a_host_whose_node_comes_later_waits_for_it() {
    let world = World::asked(&manifest(&[])).await;
    world.host.set_addresses(vec![[10, 9, 9, 9].into()]);
    let running = world.start();
    until(|| world.cluster.count("list", "nodes") > 0).await;
    world.host.set_addresses(vec![[10, 0, 0, 10].into()]);
    until(|| world.version().is_some()).await;
    running.stop().await;
}

/// `docs/contract/wicd.md`, WICD35.
#[tokio::test]
async fn a_host_with_new_addresses_is_known_by_its_kubelets_certificate() {
    let world = World::asked(&manifest(&[])).await;
    world.host.set_addresses(vec![[10, 9, 9, 9].into()]);
    world.put_kubelet_certificate(NODE);
    world.configured().await.stop().await;
}

#[tokio::test]
async fn a_certificate_of_a_former_name_is_reported_and_locks_nobody_out() {
    let log = Log::default();
    let _kept = log.keep();
    let world = World::asked(&manifest(&[])).await;
    let mut former = node();
    former["metadata"]["name"] = "former".into();
    former["status"]["addresses"][0]["address"] = "10.0.0.77".into();
    world.cluster.put(&former).unwrap();
    world.put_kubelet_certificate("former");
    world.configured().await.stop().await;
    let told = log.with("a certificate on this host is one of node former");
    assert_eq!(told.len(), 1, "{told:?}");
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
    let world = World::asked(&manifest(&[])).await;
    world.host.fail(Call::ServicesStart, "overlay", 2, Fault::Other);
    let running = world.configured().await;
    assert_eq!(world.service("overlay").unwrap().1, RUNNING);
    running.stop().await;
}

#[tokio::test]
async fn an_api_that_hangs_up_is_asked_again() {
    let world = World::asked(&manifest(&[])).await;
    // The first of each kind of request about nodes: get, list, patch, watch.
    let hung_up = Mutex::new(BTreeSet::new());
    world.cluster.inject_faults(move |request| {
        let kind = (request.verb.clone(), request.resource.clone());
        let first = request.resource == "nodes" && hung_up.lock().unwrap().insert(kind);
        first.then_some(ApiFault::Hangup)
    });
    let running = world.configured().await;
    world.cluster.clear_faults();
    running.stop().await;
}

#[tokio::test]
async fn a_damaged_bundle_is_told_on_the_node_and_holds_nothing_back() {
    let world = World::asked(&manifest(&[])).await;
    let bundle = world.settings.ca_bundle.clone().unwrap();
    world.host.put_file(&bundle, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let running = world.configured().await;
    running.stop().await;
    assert_eq!(world.events(), [events::CERTIFICATE_READ_ERROR]);
}

#[tokio::test]
async fn a_root_that_windows_refuses_is_told_on_the_node_and_holds_nothing_back() {
    let world = World::asked(&manifest(&[])).await;
    let key = rcgen::KeyPair::generate().unwrap();
    let root = rcgen::CertificateParams::default().self_signed(&key).unwrap();
    world.host.refuse_root(Sha256::of(root.der()));
    let bundle = world.settings.ca_bundle.clone().unwrap();
    world.host.put_file(&bundle, root.pem());
    let running = world.configured().await;
    running.stop().await;
    assert_eq!(world.events(), [events::CERTIFICATE_READ_ERROR]);
    assert!(!world.annotations().contains_key(names::REBOOT_ANNOTATION));
}

#[tokio::test]
async fn roots_that_cannot_be_added_are_told_on_the_node_and_hold_the_mark_back() {
    let world = World::asked(&manifest(&[])).await;
    let key = rcgen::KeyPair::generate().unwrap();
    let root = rcgen::CertificateParams::default().self_signed(&key).unwrap();
    world.host.fail(Call::RootsAdd, "", usize::MAX, Fault::AccessDenied);
    world.host.put_file(&world.settings.ca_bundle.clone().unwrap(), root.pem());
    let running = world.start();
    until(|| world.events() == [events::CERTIFICATE_READ_ERROR]).await;
    assert_eq!(world.version(), None);
    assert!(!world.annotations().contains_key(names::REBOOT_ANNOTATION));
    running.stop().await;
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

/// What is logged on this thread.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// As long as the result lives. The second subscriber is there because with one alone, threads of other
    /// tests decide by themselves what is of no interest to any.
    pub(crate) fn keep(&self) -> (tracing::subscriber::DefaultGuard, tracing::Dispatch) {
        let log = self.clone();
        let writer = tracing_subscriber::fmt().with_ansi(false).with_writer(move || log.clone());
        let other = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::new());
        (tracing::subscriber::set_default(writer.finish()), other)
    }

    /// Lines with this part.
    pub(crate) fn with(&self, part: &str) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().filter(|line| line.contains(part)).map(str::to_owned).collect()
    }
}

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_node_that_is_gone_is_told_once_and_looked_for_at_long_intervals() {
    let log = Log::default();
    let _kept = log.keep();
    let world = World::asked(&manifest(&[])).await;
    world.host.set_addresses(vec![[10, 9, 9, 9].into()]);
    let running = world.start();
    let looked_for = || log.with("looking for the node, at growing intervals");
    until(|| !looked_for().is_empty()).await;
    assert!(looked_for()[0].contains("longest=15s"), "{:?}", looked_for());
    world.host.set_addresses(vec![[10, 0, 0, 10].into()]);
    until(|| world.version().is_some()).await;
    world.idle().await;
    let nodes: Api<Node> = Api::all(world.client.clone());
    nodes.delete(NODE, &DeleteParams::default()).await.unwrap();
    until(|| looked_for().len() == 2).await;
    let lists = world.cluster.count("list", "nodes");
    until(|| world.cluster.count("list", "nodes") >= lists + 2).await;
    let warnings = log.with("WARN");
    assert_eq!(looked_for().len(), 2, "{warnings:?}");
    assert!(looked_for()[1].contains("longest=180s"), "{warnings:?}");
    assert_eq!(log.with("the node is gone").len(), 1, "{warnings:?}");
    assert!(log.with("cannot find its node").is_empty(), "{warnings:?}");
    running.stop().await;
}

#[tokio::test]
async fn a_node_that_is_made_anew_is_brought_up_again() {
    let world = World::asked(&manifest(&[])).await;
    let running = world.configured().await;
    // So that nothing else wakes it.
    world.idle().await;
    let nodes: Api<Node> = Api::all(world.client.clone());
    let lists = world.cluster.count("list", "nodes");
    nodes.delete(NODE, &DeleteParams::default()).await.unwrap();
    until(|| world.cluster.count("list", "nodes") > lists).await;
    // Without a Node there is no desired version, so services keep running.
    assert_eq!(world.service("overlay").unwrap().1, RUNNING);
    world.cluster.put(&node()).unwrap();
    world.annotate(names::DESIRED_VERSION_ANNOTATION, VERSION).await;
    until(|| world.version().is_some()).await;
    running.stop().await;
}
