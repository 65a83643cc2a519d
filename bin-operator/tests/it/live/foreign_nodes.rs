//! Nodes that show or say what is another host's, or what nobody can use.

use std::sync::Arc;
use std::time::Duration;

use bin_operator::demo::Stage;
use serde_json::{Value, json};
use wmco_core::names;
use wmco_sim::host::SimHostBuilder;

use super::scenery::{
    addresses, change_node, configure, is_finished, kept_keys, listed, nodes, notes,
    operate_until_settled, stage, until,
};

/// A Windows Node that carries our label, as every daemon may write it.
fn add_node(stage: &Stage, name: &str, addresses: &[&str], annotations: &Value) {
    let shown = |address: &&str| json!({ "type": "InternalIP", "address": address });
    let labels = json!({ names::OS_LABEL: names::OS_WINDOWS, names::BYOH_LABEL: names::TRUE });
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": name, "labels": labels, "annotations": annotations },
        "status": { "addresses": addresses.iter().map(shown).collect::<Value>() },
    });
    stage.cluster.put(&node).unwrap();
}

/// Starts a pass of the running operator, and waits for its report of an entry that
/// is wrong.
async fn another_pass(stage: &Stage, all: &[String], turn: usize) {
    let wrong = format!("10.9.7.{turn}");
    let mut list = listed(all);
    list.insert(wrong.clone(), "user=Administrator".to_owned());
    stage.list(&list).unwrap();
    until(|| {
        let told = notes(stage, names::events::INSTANCE_SETUP_FAILURE);
        told.iter().any(|note| note.contains(&format!("`{wrong}`"))).then_some(())
    })
    .await;
}

/// That each host was looked at once and its Node is as it was.
fn assert_nothing_was_done(stage: &Stage, all: &[String]) {
    for counts in stage.hosts.counts() {
        assert_eq!(counts.executions.len(), 1, "a look and nothing else: {counts:#?}");
    }
    let is_of_host = |node: &&Arc<Value>| {
        let made_from = &node["metadata"]["annotations"][names::INSTANCE_ANNOTATION];
        all.iter().any(|address| *made_from == **address)
    };
    let nodes = nodes(stage);
    let of_hosts: Vec<_> = nodes.iter().filter(is_of_host).collect();
    assert_eq!(of_hosts.len(), all.len(), "{nodes:#?}");
    assert!(of_hosts.iter().all(|node| is_finished(node)), "{of_hosts:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_named_as_an_entry_has_no_listed_host_cleaned() {
    let all = addresses(3);
    // Names that come before those of the foreign ones, which thus have the last word in a pass.
    let named = |number, host: SimHostBuilder| host.host_name(format!("1-win-{number}"));
    let stage = Stage::start(&listed(&all), named).await.unwrap();
    configure(&stage, &all).await;
    stage.hosts.reset_counts();
    let running = operate_until_settled(&stage, &all).await;
    let known_user = json!({ names::USERNAME_ANNOTATION: "sealed" });
    let made_elsewhere = json!({
        names::USERNAME_ANNOTATION: "sealed", names::INSTANCE_ANNOTATION: "10.9.6.1",
    });
    // One shows nothing, one shows another host's address, one says that it is nobody's.
    add_node(&stage, &all[0], &[], &known_user);
    add_node(&stage, &all[1], &[&all[0]], &known_user);
    add_node(&stage, &all[2], &[&all[1], &all[0]], &made_elsewhere);
    for turn in 1..=3 {
        another_pass(&stage, &all, turn).await;
    }
    // As long as a removal takes to begin.
    tokio::time::sleep(Duration::from_secs(1)).await;
    running.stop().await.unwrap();
    assert_nothing_was_done(&stage, &all);
    assert_eq!(nodes(&stage).len(), 6, "the foreign ones stay as well");
    assert_eq!(notes(&stage, names::events::INSTANCE_TEARDOWN), Vec::<String>::new());
    assert_eq!(kept_keys(&stage).len(), 6, "key and record of each host stay");
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_host_keeps_its_worker_from_pass_to_pass() {
    let (all, stage) = (addresses(2), stage(2).await);
    configure(&stage, &all).await;
    // What a pass decides about this one has the address of a listed host.
    add_node(&stage, "stranger", &[&all[0]], &json!({}));
    stage.hosts.reset_counts();
    let running = operate_until_settled(&stage, &all).await;
    for turn in 1..=10 {
        change_node(&stage, "stranger", |node| {
            node["metadata"]["annotations"]["example.test/turn"] = turn.to_string().into();
        });
        another_pass(&stage, &all, turn).await;
    }
    // As long as a new worker takes to look at its host.
    tokio::time::sleep(Duration::from_secs(1)).await;
    running.stop().await.unwrap();
    assert_nothing_was_done(&stage, &all);
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_annotation_that_is_no_key_keeps_no_host_off_the_record() {
    let (all, stage) = (addresses(2), stage(2).await);
    let long = "a".repeat(300);
    let origins = ["a b", "../a/b", long.as_str()];
    for (number, origin) in origins.into_iter().enumerate() {
        let annotations = json!({
            names::INSTANCE_ANNOTATION: origin, names::USERNAME_ANNOTATION: "sealed",
        });
        let address = format!("10.9.6.{}", number + 1);
        add_node(&stage, &format!("stranger-{number}"), &[&address], &annotations);
    }
    let running = operate_until_settled(&stage, &all).await;
    until(|| {
        let finished = nodes(&stage).iter().filter(|node| is_finished(node)).count();
        (finished == all.len()).then_some(())
    })
    .await;
    running.stop().await.unwrap();
    assert_eq!(nodes(&stage).len(), all.len() + origins.len(), "the foreign ones stay");
    let of_hosts = |key: &String| all.iter().any(|address| key.starts_with(address));
    assert!(kept_keys(&stage).keys().all(of_hosts), "{:#?}", kept_keys(&stage));
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_with_an_endless_name_holds_up_nobody() {
    let all = addresses(2);
    let endless = |number, host: SimHostBuilder| match number {
        0 => host.host_name("a".repeat(4_000_000)),
        _ => host,
    };
    let stage = Stage::start(&listed(&all), endless).await.unwrap();
    let running = operate_until_settled(&stage, &all[1..]).await;
    let kept = kept_keys(&stage);
    assert!(kept.values().all(|value| value.len() < 1_000), "{:?}", kept.keys());
    running.stop().await.unwrap();
    stage.shutdown().await;
}
