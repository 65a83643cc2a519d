//! Mirrors of registries reach nodes that run, and disturb none.
//!
//! Source: `docs/contract/registries.md`, REG16 to REG19.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bin_operator::demo::Stage;
use bin_operator::progress::Progress;
use kube_testserver::Request;
use serde_json::{Value, json};
use wmco_core::names::registries::{
    CONFIG_GROUP, DOCKER_CONFIG_KEY, PULL_SECRET, PULL_SECRET_NAMESPACE,
};
use wmco_core::names::{self, host, objects};
use wmco_core::protocol::Access;
use wmco_core::winpath::WindowsPath;
use wmco_services::fake::Call;
use wmco_services::windows::Windows as _;
use wmco_sim::host::{Fault, SimHost};

use super::scenery::{
    addresses, configure, is_finished, listed, nodes, notes, operate_until_settled, stage, until,
};

fn tag_mirrors(name: &str, entries: &[(&str, &str)]) -> Value {
    let entry = |(source, mirror): &(&str, &str)| json!({"source": source, "mirrors": [mirror]});
    let entries: Vec<Value> = entries.iter().map(entry).collect();
    json!({
        "apiVersion": "config.openshift.io/v1", "kind": "ImageTagMirrorSet",
        "metadata": {"name": name},
        "spec": {"imageTagMirrors": entries},
    })
}

/// Gives the cluster a pull secret; returns what of it is in a file.
fn give_pull_secret(stage: &Stage, registry: &str) -> String {
    let auth = BASE64_STANDARD.encode("bob:hush");
    let auths = json!({"auths": {registry: {"auth": auth}}}).to_string();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": PULL_SECRET, "namespace": PULL_SECRET_NAMESPACE},
        "data": {DOCKER_CONFIG_KEY: BASE64_STANDARD.encode(auths)},
    });
    stage.cluster.put(&secret).unwrap();
    auth
}

fn file(folder: &str) -> WindowsPath {
    format!(r"{}\{folder}\hosts.toml", host::REGISTRIES).parse().unwrap()
}

/// What a host's containerd reads for a registry.
fn read(host: &SimHost, folder: &str) -> Option<String> {
    host.model().file(&file(folder)).map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
}

/// How many hosts have a file with this in it.
fn having(stage: &Stage, folder: &str, part: &str) -> usize {
    let texts = stage.hosts.iter().filter_map(|(_, host)| read(host, folder));
    texts.filter(|text| text.contains(part)).count()
}

/// What must not change: how each host runs, and what its Node shows.
fn state(stage: &Stage) -> Vec<Value> {
    let hosts = stage.hosts.iter().map(|(address, host)| {
        let services = host.model().snapshot().services;
        json!([address, host.counts().restarts, format!("{services:?}")])
    });
    let nodes = nodes(stage).into_iter().map(|node: Arc<Value>| {
        assert!(is_finished(&node), "{node:#}");
        json!([node["metadata"]["labels"], node["metadata"]["annotations"], node["spec"]])
    });
    hosts.chain(nodes).collect()
}

/// All that disturbed nodes since `first` requests: writes of the operator to Nodes, among them each cordon, evictions,
/// and what changed on hosts besides files.
fn disturbances(stage: &Stage, first: usize) -> Vec<String> {
    let requests = stage.cluster.requests();
    assert!(requests.len() < 10_000, "the server forgets older ones");
    let operator = format!("system:serviceaccount:{}:{}", stage.namespace(), objects::OPERATOR);
    let disturbs = |request: &&Request| {
        let writes = !matches!(request.verb.as_str(), "get" | "list" | "watch");
        writes
            && (request.resource == "pods/eviction"
                || (request.resource == "nodes" && request.user == operator))
    };
    let requests = requests.iter().skip(first).filter(disturbs).map(|it| format!("{it:?}"));
    let changes = stage.hosts.iter().flat_map(|(address, host)| {
        let changes = host.model().changes().into_iter().filter(|(call, _)| !is_about_files(*call));
        changes.map(move |(call, object)| format!("{address}: {call:?} {object}"))
    });
    requests.chain(changes).collect()
}

/// Whether a call leaves services, variables, roots and the machine alone.
fn is_about_files(call: Call) -> bool {
    let name = format!("{call:?}");
    ["Files", "Logs"].iter().any(|part| name.starts_with(part))
}

/// A fleet at rest, before a change that must not disturb it.
struct AtRest {
    state: Vec<Value>,
    /// How many requests there were.
    requests: usize,
}

impl AtRest {
    /// Nothing was disturbed since, not even for a moment.
    #[track_caller]
    fn assert_undisturbed(&self, stage: &Stage) {
        assert_eq!(disturbances(stage, self.requests), [""; 0]);
        assert_eq!(state(stage), self.state);
    }
}

/// Forgets what hosts were asked; then nothing but what follows is counted.
async fn rest(stage: &Stage) -> AtRest {
    let seen = disturbances(stage, 0);
    for part in ["ServicesStart", "\"nodes\""] {
        assert!(seen.iter().any(|it| it.contains(part)), "a configuration disturbs: {seen:#?}");
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    stage.hosts.reset_counts();
    for (_, host) in stage.hosts.iter() {
        host.model().clear_changes();
    }
    AtRest { state: state(stage), requests: stage.cluster.requests().len() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_reaches_all_nodes_and_disturbs_none() {
    let stage = stage(3).await;
    let running = operate_until_settled(&stage, &addresses(3)).await;
    let before = rest(&stage).await;

    let auth = give_pull_secret(&stage, "cache.example");
    stage.cluster.put(&tag_mirrors("a", &[("quay.io:5000", "cache.example")])).unwrap();
    until(|| (having(&stage, "quay.io_5000_", &auth) == 3).then_some(())).await;
    for (_, host) in stage.hosts.iter() {
        // It holds a password.
        let access = host.model().files().access(&file("quay.io_5000_")).unwrap();
        assert_eq!(access, Access::Administrators);
    }

    // Each is swapped for another one, and what nobody wants goes with its folder.
    let two = [("quay.io:5000", "other.example"), ("docker.io", "cache.example")];
    stage.cluster.put(&tag_mirrors("a", &two)).unwrap();
    until(|| (having(&stage, "docker.io", "cache.example") == 3).then_some(())).await;
    until(|| (having(&stage, "quay.io_5000_", "other.example") == 3).then_some(())).await;
    stage.cluster.put(&tag_mirrors("a", &two[1..])).unwrap();
    let folder: WindowsPath = format!(r"{}\quay.io_5000_", host::REGISTRIES).parse().unwrap();
    let gone = |(_, host): (&str, &SimHost)| host.model().files().kind(&folder).unwrap().is_none();
    until(|| stage.hosts.iter().all(gone).then_some(())).await;
    assert_eq!(having(&stage, "docker.io", "cache.example"), 3);

    before.assert_undisturbed(&stage);
    running.stop().await.unwrap();
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_object_changes_nothing_and_is_told_on_it() {
    let stage = stage(2).await;
    give_pull_secret(&stage, "other.example");
    stage.cluster.put(&tag_mirrors("good", &[("quay.io", "cache.example")])).unwrap();
    let running = operate_until_settled(&stage, &addresses(2)).await;
    let before = rest(&stage).await;
    let broken =
        [("*.example", "cache.example"), ("https://", "x"), ("b.example/x", "c.example/y")];
    stage.cluster.put(&tag_mirrors("broken", &broken)).unwrap();
    let serious = names::events::REGISTRY_NOT_APPLIED;
    let told = until(|| Some(notes(&stage, serious)).filter(|told| told.len() == 3)).await;
    for field in ["imageTagMirrors[0].source", "imageTagMirrors[1].source", "[2].mirrors[0]"] {
        assert!(told.iter().any(|note| note.contains(field)), "{field}: {told:#?}");
    }
    let mut events = stage.cluster.objects("", "events", "default");
    events.retain(|event| event["reason"] == serious);
    assert_eq!(events.len(), 3);
    for event in &events {
        let on = &event["involvedObject"];
        assert_eq!((&on["kind"], &on["name"]), (&json!("ImageTagMirrorSet"), &json!("broken")));
        let object =
            stage.cluster.object(CONFIG_GROUP, "imagetagmirrorsets", "", "broken").unwrap();
        assert_eq!(on["uid"], object["metadata"]["uid"]);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    for counts in stage.hosts.counts() {
        assert!(counts.executions.is_empty(), "nobody looks at a host for it: {counts:#?}");
    }
    assert_eq!(having(&stage, "quay.io", "cache.example"), 2);
    before.assert_undisturbed(&stage);
    running.stop().await.unwrap();
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_secret_that_is_broken_again_is_told_again() {
    let stage = stage(1).await;
    let broken = || {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": PULL_SECRET, "namespace": PULL_SECRET_NAMESPACE},
            "data": {DOCKER_CONFIG_KEY: BASE64_STANDARD.encode(r#"{"auths": {"quay.io": {"auth": "?"}}}"#)},
        });
        stage.cluster.put(&secret).unwrap();
    };
    let told = || {
        let events = stage.cluster.objects("", "events", PULL_SECRET_NAMESPACE);
        let mut about = events.into_iter().filter(|it| it["involvedObject"]["name"] == PULL_SECRET);
        let first = about.next();
        assert!(about.next().is_none(), "one Event counts them");
        first
    };
    broken();
    stage.cluster.put(&tag_mirrors("good", &[("quay.io", "cache.example")])).unwrap();
    let running = operate_until_settled(&stage, &addresses(1)).await;
    let event = until(told).await;
    assert_eq!(event["series"], Value::Null);
    give_pull_secret(&stage, "cache.example");
    // Long enough for a pass that finds nothing wrong.
    tokio::time::sleep(Duration::from_secs(2)).await;
    broken();
    until(|| told().filter(|event| event["series"]["count"] == 2)).await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_away_gets_them_when_it_is_back() {
    let stage = stage(2).await;
    configure(&stage, &addresses(2)).await;
    let (_, away) = stage.hosts.iter().last().unwrap();
    away.set_fault(Fault::RefuseConnections);
    let running = stage.operate(Progress::new()).unwrap();
    stage.cluster.put(&tag_mirrors("a", &[("quay.io", "first.example")])).unwrap();
    until(|| (having(&stage, "quay.io", "first.example") == 1).then_some(())).await;
    stage.cluster.put(&tag_mirrors("a", &[("quay.io", "second.example")])).unwrap();
    until(|| (having(&stage, "quay.io", "second.example") == 1).then_some(())).await;
    assert_eq!(read(away, "quay.io"), None);
    away.clear_faults();
    until(|| (having(&stage, "quay.io", "second.example") == 2).then_some(())).await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}

/// How many commands each host had run when all had their file. None answers before all were asked: they are asked side
/// by side.
async fn asked(count: u8) -> Vec<usize> {
    let at = addresses(count);
    let stage = Stage::start(&listed(&at), |_, host| host).await.unwrap();
    let running = operate_until_settled(&stage, &at).await;
    let before = rest(&stage).await;
    for (_, host) in stage.hosts.iter() {
        host.set_fault(Fault::AgentHangs);
    }
    stage.cluster.put(&tag_mirrors("a", &[("quay.io", "cache.example")])).unwrap();
    let is_asked = |(_, host): (_, &SimHost)| !host.counts().executions.is_empty();
    until(|| stage.hosts.iter().all(is_asked).then_some(())).await;
    assert_eq!(having(&stage, "quay.io", "cache.example"), 0);
    for (_, host) in stage.hosts.iter() {
        host.clear_faults();
    }
    until(|| (having(&stage, "quay.io", "cache.example") == usize::from(count)).then_some(()))
        .await;
    // A broken object beside it changes nothing anywhere.
    stage.cluster.put(&tag_mirrors("broken", &[("*.example", "cache.example")])).unwrap();
    until(|| notes(&stage, names::events::REGISTRY_NOT_APPLIED).pop()).await;
    assert_eq!(having(&stage, "quay.io", "cache.example"), usize::from(count));
    before.assert_undisturbed(&stage);
    let commands = stage.hosts.counts().iter().map(|counts| counts.executions.len()).collect();
    running.stop().await.unwrap();
    stage.shutdown().await;
    commands
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_nodes_get_them_side_by_side() {
    let (one, all) = (asked(1).await, asked(20).await);
    println!("one node: {one:?} commands; twenty: {all:?}");
    // None waits for another, so that none is asked more often than one alone, but for a look when its Node changed.
    let most = one.iter().max().unwrap() + 2;
    assert!(all.iter().all(|commands| *commands <= most), "{all:?} against {one:?}");
}
