//! What it costs to find the own Node, and that nobody gets taken for it by that.

use serde_json::{Value, json};
use wmco_core::names::{self, objects};
use wmco_services::limits;

use super::controller::Log;
use super::world::{NAMESPACE, NODE, World, manifest, node, until};

/// As many Windows Nodes beside the host's own.
const OTHERS: u32 = 2 * limits::NODE_PAGE + 50;

fn named(name: &str, address: &str) -> Value {
    let mut other = node();
    other["metadata"]["name"] = name.into();
    other["status"]["addresses"][0]["address"] = address.into();
    other
}

/// A cluster with many other Nodes, Linux ones among them.
async fn crowd() -> World {
    let world = World::asked(&manifest(&[])).await;
    for number in 0..OTHERS {
        let other =
            named(&format!("other-{number}"), &format!("10.1.{}.{}", number / 250, number % 250));
        world.cluster.put(&other).unwrap();
    }
    for number in 0..5 {
        let mut linux = named(&format!("linux-{number}"), "10.0.0.10");
        linux["metadata"]["labels"] = json!({(names::OS_LABEL): "linux"});
        world.cluster.put(&linux).unwrap();
    }
    world
}

/// What was asked about Nodes before there was a certificate: the name for a single one, the query else.
fn asked(world: &World) -> Vec<String> {
    let account = format!("system:serviceaccount:{NAMESPACE}:{}", objects::WICD);
    let requests = world.cluster.requests();
    let of_search = requests.iter().filter(|it| it.user == account && it.resource == "nodes");
    let what = of_search.map(|it| {
        let query = it.uri.split_once('?').map_or("", |(_, query)| query);
        format!("{} {}{query}", it.verb, it.name)
    });
    what.collect()
}

#[tokio::test]
async fn a_node_that_the_kubelets_certificate_names_is_one_request() {
    let world = crowd().await;
    world.put_kubelet_certificate(NODE);
    // Others may say what they like.
    world.cluster.put(&named("a-liar", "10.0.0.10")).unwrap();
    world.configured().await.stop().await;
    assert_eq!(asked(&world), [format!("get {NODE}")]);
    // Nor does the next start, with two certificates, ask for more.
    world.logged_in().await.stop().await;
    assert_eq!(asked(&world).len(), 2);
}

#[tokio::test]
async fn without_a_right_name_windows_nodes_come_in_pages() {
    let world = crowd().await;
    world.put_kubelet_certificate("gone");
    world.configured().await.stop().await;
    let asked = asked(&world);
    assert_eq!(asked.len(), 4, "{asked:?}");
    assert_eq!(asked[0], "get gone");
    for (page, query) in asked[1..].iter().enumerate() {
        assert!(query.contains(&format!("limit={}", limits::NODE_PAGE)), "{query}");
        assert!(query.contains("labelSelector=kubernetes.io%2Fos%3Dwindows"), "{query}");
        assert_eq!(query.contains("continue="), page > 0, "{query}");
    }
}

#[tokio::test]
async fn a_second_claim_on_the_last_page_is_not_overlooked() {
    let log = Log::default();
    let _kept = log.keep();
    let world = crowd().await;
    world.cluster.put(&named("zz-liar", "10.0.0.10")).unwrap();
    let running = world.start();
    until(|| !log.with("cannot find its node").is_empty()).await;
    let told = log.with("cannot find its node");
    assert!(told[0].contains("nodes win-1, zz-liar all have an address of this host"), "{told:?}");
    assert_eq!(running.times_ready(), 0);
    assert_eq!(world.requesters(), [""; 0]);
    running.stop().await;
}
