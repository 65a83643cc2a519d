//! Mistakes that people made with other operators, as they reported them, and what the operator tells of each.

use bin_operator::demo::Stage;
use bin_operator::progress::Progress;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::DeleteParams;
use kube_testserver::Fault;
use kube_testserver::error::ApiError;
use serde_json::{Value, json};
use wmco_core::names::{self, objects};
use wmco_sim::host::Fault as HostFault;

use super::bad_input::FAILURE;
use super::scenery::{
    addresses, admin, ask_restart, change_node, configure, delete_node, is_finished, listed, name,
    node, nodes, notes, operate_until_settled, settled, stage, times_told, told, until,
    until_metrics, wants_restart,
};

/// A Node with these labels.
fn add_node(stage: &Stage, name: &str, labels: &Value) {
    let metadata = json!({ "name": name, "labels": labels });
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": metadata });
    stage.cluster.put(&node).unwrap();
}

/// Source: <https://github.com/kubernetes/kubectl/issues/172>.
#[tokio::test(flavor = "multi_thread")]
async fn right_that_was_taken_away_is_told_in_one_sentence() {
    const SAID: &str = "the operator may not patch nodes";
    let stage = stage(1).await;
    configure(&stage, &addresses(1)).await;
    stage.cluster.inject_faults(|request| {
        let is_it = request.resource == "nodes" && request.verb == "patch";
        is_it.then(|| Fault::Answer(ApiError::forbidden_path(SAID)))
    });
    change_node(&stage, &name(&nodes(&stage)[0]), |node| {
        node["metadata"]["labels"][names::BYOH_LABEL] = Value::Null;
    });
    let running = stage.operate(Progress::new()).unwrap();
    let note = told(&stage, FAILURE, SAID).await;
    assert_eq!((note.matches(SAID).count(), note.matches("403").count()), (1, 1), "{note}");
    assert!(note.contains("apply the rights in the operator's deployment again"), "{note}");
    assert!(!note.contains("Status") && !note.contains("Some("), "{note}");
    running.stop().await.unwrap();
    stage.shutdown().await;
}

/// Source: <https://github.com/openshift/windows-machine-config-operator/pull/446>.
#[tokio::test(flavor = "multi_thread")]
async fn file_pasted_as_a_user_name_is_told_by_its_entry() {
    let all = addresses(2);
    let stage = stage(2).await;
    let mut list = listed(&all[..1]);
    list.insert(all[1].clone(), format!("username={}", "A".repeat(900_000)));
    stage.list(&list).unwrap();
    let running = operate_until_settled(&stage, &all[..1]).await;
    let note = told(&stage, FAILURE, &all[1]).await;
    assert!(note.contains("username") && note.contains("256"), "{note}");
    assert!(!note.contains("AAAA") && note.len() < 500, "{note}");
    assert!(nodes(&stage).iter().all(|node| is_finished(node)));
    running.stop().await.unwrap();
    stage.shutdown().await;
}

/// Source: <https://github.com/openshift/windows-machine-config-operator/pull/323>.
#[tokio::test(flavor = "multi_thread")]
async fn label_on_a_linux_node_takes_no_slot() {
    let stage = stage(1).await;
    let labels = json!({ (names::OS_LABEL): "linux", (names::UPGRADING_LABEL): "true" });
    add_node(&stage, "linux-9", &labels);
    let running = operate_until_settled(&stage, &addresses(1)).await;
    let all = nodes(&stage).into_iter();
    let win = all.map(|node| name(&node)).find(|name| name != "linux-9").unwrap();
    ask_restart(&stage, &win);
    let win = || node(&stage, &win);
    until(|| (!wants_restart(&win()) && is_finished(&win())).then_some(())).await;
    until_metrics(&stage, &running, |text| text.contains("wmco_disrupted_nodes 0\n")).await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}

/// Source: <https://github.com/kubereboot/kured/issues/137>.
#[tokio::test(flavor = "multi_thread")]
async fn node_without_a_host_that_keeps_the_slot_is_told_and_lets_go_when_it_is_deleted() {
    let stage = stage(1).await;
    let running = operate_until_settled(&stage, &addresses(1)).await;
    let win = name(&nodes(&stage)[0]);
    let labels = json!({
        (names::OS_LABEL): names::OS_WINDOWS, (names::BYOH_LABEL): "true", (names::UPGRADING_LABEL): "true",
    });
    add_node(&stage, "ghost-1", &labels);
    let note = told(&stage, FAILURE, "ghost-1").await;
    assert!(note.contains("disruption slot"), "{note}");
    ask_restart(&stage, &win);
    let waits = |text: &str| text.contains("wmco_waiting_nodes 1\n");
    until_metrics(&stage, &running, waits).await;
    assert!(wants_restart(&node(&stage, &win)) && is_finished(&node(&stage, &win)));
    delete_node(&stage, "ghost-1").await;
    let restarted = |node: &Value| !wants_restart(node) && is_finished(node);
    until(|| restarted(&node(&stage, &win)).then_some(())).await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}

/// Source: <https://github.com/openshift/windows-machine-config-operator/pull/686>.
#[tokio::test(flavor = "multi_thread")]
async fn name_that_is_being_looked_up_is_no_warning() {
    const NAME: &str = "win-1.corp.example.com";
    let stage = stage(1).await;
    let running = operate_until_settled(&stage, &addresses(1)).await;
    let before = nodes(&stage).remove(0);
    stage.list(&listed(&[NAME.to_owned()])).unwrap();
    // Events leave in the order in which they were made.
    let note = told(&stage, FAILURE, NAME).await;
    assert!(note.contains("check the DNS"), "{note}");
    let about_it = |note: &String| note.contains(NAME);
    assert_eq!(notes(&stage, FAILURE).into_iter().filter(about_it).count(), 1);
    let after = node(&stage, &name(&before));
    assert!(is_finished(&after) && after["metadata"]["uid"] == before["metadata"]["uid"]);
    running.stop().await.unwrap();
    stage.shutdown().await;
}

/// Each mistake with the key is told as what it is, and nothing is torn down for it.
///
/// Source: <https://github.com/openshift/windows-machine-config-operator/pull/1946>.
#[tokio::test(flavor = "multi_thread")]
async fn mistakes_with_the_private_key_are_told_and_no_node_suffers() {
    let all = addresses(1);
    let stage = stage(1).await;
    let good = stage.key.expose().to_vec();
    let progress = Progress::new();
    let joined = settled(&progress, &all);
    let running = stage.operate(progress.clone()).unwrap();
    joined.await;
    let before = nodes(&stage).remove(0);
    let openssh = russh::keys::PrivateKey::from_openssh(&good).unwrap();
    let public = openssh.public_key().to_openssh().unwrap();
    let certificate = rcgen::generate_simple_self_signed(["win.test".to_owned()]).unwrap();
    let other = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let encrypted = other.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    for (key, said) in [
        ("what is this", "no private key in PEM form"),
        (include_str!("../../keys/encrypted-ed25519"), "ssh-keygen -p -N ''"),
        (encrypted.as_str(), "openssl pkey -in FILE"),
        (public.as_str(), "a public key"),
        (certificate.cert.pem().as_str(), "a certificate"),
        ("", "no private key in PEM form"),
    ] {
        stage.give_key(key.as_bytes()).unwrap();
        let note = told(&stage, FAILURE, said).await;
        assert!(note.contains(objects::PRIVATE_KEY_SECRET), "{note}");
    }
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": objects::PRIVATE_KEY_SECRET, "namespace": stage.namespace() },
        "stringData": { "id_rsa": other },
    });
    stage.cluster.put(&secret).unwrap();
    told(&stage, FAILURE, "has no key private-key.pem").await;
    let secrets: Api<Secret> = Api::namespaced(admin(&stage).await, stage.namespace());
    secrets.delete(objects::PRIVATE_KEY_SECRET, &DeleteParams::default()).await.unwrap();
    told(&stage, FAILURE, "secret cloud-private-key is absent, create it").await;
    stage.give_key(other.as_bytes()).unwrap();
    told(&stage, FAILURE, "refused the private key (").await;
    let after = node(&stage, &name(&before));
    assert!(is_finished(&after) && after["metadata"]["uid"] == before["metadata"]["uid"]);

    let kept = settled(&progress, &all);
    stage.give_key(&good).unwrap();
    kept.await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}

/// A step that fails is tried after pauses that double, whatever succeeds before it.
///
/// Source: <https://github.com/Azure/acs-engine/issues/2015>.
#[tokio::test(flavor = "multi_thread")]
async fn pauses_grow_however_much_succeeds_before_what_fails() {
    let full = HostFault::DiskFull { after_bytes: 1_500_000 };
    let list = listed(&addresses(1));
    let stage = Stage::start(&list, |_, host| host.fault(full)).await.unwrap();
    let running = stage.operate(Progress::new()).unwrap();
    until(|| (times_told(&stage, FAILURE) >= 4).then_some(())).await;
    let (_, host) = stage.hosts.iter().next().unwrap();
    let contacts = host.counts().authentications;
    assert!(contacts <= 5, "{contacts} logins for 4 attempts and the one under way");
    running.stop().await.unwrap();
    stage.shutdown().await;
}
