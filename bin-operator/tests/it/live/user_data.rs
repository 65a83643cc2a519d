//! The operator restores the Secret with the user data of new machines, in each of its namespaces,
//! after any deletion or change, and otherwise leaves it alone.
//!
//! Source: `docs/contract/user-data.md`.

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bin_operator::demo::{Running, Stage};
use bin_operator::progress::Progress;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use rcgen::KeyPair;
use serde_json::{Value, json};
use wmco_core::authorized_key::AuthorizedKey;
use wmco_core::manifests::{self, Installation};
use wmco_core::names::{events, objects, platforms};
use wmco_core::render::{user_data, user_data_keys};
use wmco_core::secret::Secret as Hidden;
use wmco_ssh::PrivateKey;

use super::scenery::{admin, listed, notes, until};

const MACHINES: &str = objects::MACHINE_API_NAMESPACE;
const CLUSTERS: &str = objects::CLUSTER_API_NAMESPACE;

fn secret(stage: &Stage, namespace: &str) -> Option<Arc<Value>> {
    stage.cluster.object("", "secrets", namespace, objects::USER_DATA_SECRET)
}

fn text(secret: &Value) -> String {
    let text = secret["data"][objects::USER_DATA_KEY].as_str().unwrap();
    String::from_utf8(BASE64_STANDARD.decode(text).unwrap()).unwrap()
}

fn public(pem: &[u8]) -> AuthorizedKey {
    let key = PrivateKey::parse(&Hidden::new(pem)).unwrap();
    key.public().authorized_key().parse().unwrap()
}

/// The text that the operator gives to machines that are to let in the key of the stage.
fn ours(stage: &Stage) -> String {
    user_data(platforms::NONE, &public(stage.key.expose()), None)
}

async fn until_ours(stage: &Stage, namespace: &str) -> Arc<Value> {
    until(|| secret(stage, namespace).filter(|secret| text(secret) == ours(stage))).await
}

fn another_key() -> String {
    KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap().serialize_pem()
}

fn version(secret: &Value) -> &Value {
    &secret["metadata"]["resourceVersion"]
}

async fn secrets(stage: &Stage) -> Api<Secret> {
    Api::namespaced(admin(stage).await, MACHINES)
}

async fn delete(stage: &Stage) {
    let secrets = secrets(stage).await;
    secrets.delete(objects::USER_DATA_SECRET, &DeleteParams::default()).await.unwrap();
}

async fn change(stage: &Stage, patch: &Value) {
    let patch = Patch::Merge(patch);
    let secrets = secrets(stage).await;
    secrets.patch(objects::USER_DATA_SECRET, &PatchParams::default(), &patch).await.unwrap();
}

/// Puts a Secret there that somebody else made.
fn put(stage: &Stage, text: &str, more: &Value) {
    stage.cluster.put(&others(MACHINES, text, more)).unwrap();
}

/// The Secret as somebody else made it.
fn others(namespace: &str, text: &str, more: &Value) -> Value {
    let mut secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": objects::USER_DATA_SECRET, "namespace": namespace},
        "data": {"userData": BASE64_STANDARD.encode(text), "mine": BASE64_STANDARD.encode("kept")},
    });
    secret.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    secret
}

/// Waits until the operator has looked at its own objects again.
async fn looked_again(stage: &Stage) {
    let name = objects::services_name("0.0.1");
    // Once for what a pass that has begun did not see.
    for _ in 0..2 {
        let of_no_node = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": stage.namespace()},
        });
        stage.cluster.put(&of_no_node).unwrap();
        let found = || stage.cluster.object("", "configmaps", stage.namespace(), &name);
        until(|| found().is_none().then_some(())).await;
    }
}

async fn stage() -> Stage {
    Stage::start(&listed(&[]), |_, host| host).await.unwrap()
}

async fn operating() -> (Stage, Running) {
    let stage = stage().await;
    let running = stage.operate(Progress::new()).unwrap();
    until_ours(&stage, MACHINES).await;
    (stage, running)
}

async fn end(stage: Stage, running: Running) {
    running.stop().await.unwrap();
    stage.shutdown().await;
}

/// Gives the operator its rights in a namespace.
fn give_rights(stage: &Stage, namespace: &str) {
    let path = match namespace {
        MACHINES => "machine-api-rights.yaml",
        _ => "cluster-api/rights.yaml",
    };
    let files = manifests::files(&Installation::default());
    let rights = files.into_iter().find(|file| file.path == path).unwrap();
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace},
    });
    stage.cluster.put(&namespace).unwrap();
    for document in rights.documents {
        stage.cluster.put(&document.object).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_deleted_or_edited_is_put_back() {
    let (stage, running) = operating().await;
    let first = secret(&stage, MACHINES).unwrap();
    assert_eq!(first["type"], "Opaque");
    delete(&stage).await;
    let other = |secret: &Arc<Value>| secret["metadata"]["uid"] != first["metadata"]["uid"];
    let second = until(|| secret(&stage, MACHINES).filter(other)).await;
    assert_eq!(second["data"], first["data"]);

    let edited = BASE64_STANDARD.encode(ours(&stage) + "# mine");
    change(&stage, &json!({"data": {"userData": edited, "mine": "a2VwdA=="}})).await;
    let third = until_ours(&stage, MACHINES).await;
    assert_eq!(third["data"]["mine"], "a2VwdA==", "what else is in it is not ours");
    change(&stage, &json!({"data": {"userData": null}})).await;
    let there = |secret: &Arc<Value>| secret["data"]["userData"].is_string();
    until(|| secret(&stage, MACHINES).filter(there)).await;
    assert_eq!(text(&secret(&stage, MACHINES).unwrap()), ours(&stage));
    end(stage, running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_right_is_not_written() {
    let stage = stage().await;
    put(&stage, &ours(&stage), &json!({"immutable": true}));
    let before = secret(&stage, MACHINES).unwrap();
    let running = stage.operate(Progress::new()).unwrap();
    looked_again(&stage).await;
    assert_eq!(version(&secret(&stage, MACHINES).unwrap()), version(&before));
    end(stage, running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_cannot_be_changed_is_replaced() {
    for more in [json!({"immutable": true}), json!({"type": "example.com/mine"})] {
        let stage = stage().await;
        put(&stage, "other", &more);
        let running = stage.operate(Progress::new()).unwrap();
        let found = until_ours(&stage, MACHINES).await;
        let told = || {
            let mut notes = notes(&stage, events::OWNED_OBJECT_PUT_RIGHT).into_iter();
            notes.find(|note| note.contains("replace-user-data openshift-machine-api"))
        };
        until(told).await;
        assert_eq!((&found["type"], &found["immutable"]), (&json!("Opaque"), &Value::Null));
        assert_eq!(found["data"]["mine"], BASE64_STANDARD.encode("kept"));
        end(stage, running).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn its_keys_are_those_of_the_operator() {
    let (stage, running) = operating().await;
    let (key, next) = (another_key(), another_key());
    let keys = |keys: &[&String]| -> BTreeSet<AuthorizedKey> {
        keys.iter().map(|pem| public(pem.as_bytes())).collect()
    };
    let carries = |keys: &BTreeSet<AuthorizedKey>| {
        secret(&stage, MACHINES).filter(|secret| user_data_keys(&text(secret)) == *keys)
    };
    stage.give_key(key.as_bytes()).unwrap();
    until(|| carries(&keys(&[&key]))).await;

    let private = |pems: &[(&str, &str)]| {
        let data = pems.iter().map(|(name, pem)| ((*name).to_owned(), (*pem).into()));
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": objects::PRIVATE_KEY_SECRET, "namespace": stage.namespace()},
            "stringData": data.collect::<serde_json::Map<_, Value>>(),
        });
        stage.cluster.put(&secret).unwrap();
    };
    let (own, coming) = (objects::PRIVATE_KEY_KEY, objects::NEXT_PRIVATE_KEY_KEY);
    private(&[(own, &key), (coming, &next)]);
    let both = until(|| carries(&keys(&[&key, &next]))).await;

    // Without a key that can be read nothing is known of what machines should let in.
    for unreadable in ["", "no key", "-----BEGIN OPENSSH PRIVATE KEY-----\n"] {
        private(&[(own, unreadable), (coming, &next)]);
        looked_again(&stage).await;
        assert_eq!(version(&secret(&stage, MACHINES).unwrap()), version(&both), "{unreadable}");
    }
    // The next one alone does not hold up what is sure.
    private(&[(own, &next), (coming, "no key")]);
    until(|| carries(&keys(&[&next]))).await;
    end(stage, running).await;
}

/// A program that applies what stands in a repository writes it back as soon as it is corrected.
#[tokio::test(flavor = "multi_thread")]
async fn another_writer_is_told_by_its_name_and_not_fought() {
    let (stage, running) = operating().await;
    let other = tokio_util::sync::CancellationToken::new();
    let (secrets, stopped) = (secrets(&stage).await, other.clone());
    let fights = tokio::spawn(async move {
        let params = PatchParams { field_manager: Some("gitops".into()), ..PatchParams::default() };
        let theirs = Patch::Merge(json!({"data": {"userData": BASE64_STANDARD.encode("theirs")}}));
        let mut writes = 0;
        while !stopped.is_cancelled() {
            let found = secrets.get(objects::USER_DATA_SECRET).await.unwrap();
            if found.data.unwrap()[objects::USER_DATA_KEY].0 != b"theirs" {
                secrets.patch(objects::USER_DATA_SECRET, &params, &theirs).await.unwrap();
                writes += 1;
            }
        }
        writes
    });
    let note = until(|| notes(&stage, events::OWNED_OBJECT_FAILURE).pop()).await;
    other.cancel();
    assert!(
        note.starts_with("`gitops` changes or deletes Secret openshift-machine-api/"),
        "{note}"
    );
    // Three at once, one after the first pause, and before the next one is due this ends.
    assert!((3..=5).contains(&fights.await.unwrap()));
    // They stop, and it is corrected for good.
    until_ours(&stage, MACHINES).await;
    assert_eq!(notes(&stage, events::OWNED_OBJECT_FAILURE).len(), 1);
    end(stage, running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_comes_later_gets_it() {
    let (stage, running) = operating().await;
    give_rights(&stage, CLUSTERS);
    let found = until_ours(&stage, CLUSTERS).await;
    assert_eq!(found["data"], secret(&stage, MACHINES).unwrap()["data"]);
    let secrets: Api<Secret> = Api::namespaced(admin(&stage).await, CLUSTERS);
    secrets.delete(objects::USER_DATA_SECRET, &DeleteParams::default()).await.unwrap();
    until_ours(&stage, CLUSTERS).await;
    stage.cluster.put(&others(CLUSTERS, "other", &json!({"immutable": true}))).unwrap();
    until_ours(&stage, CLUSTERS).await;
    end(stage, running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_missing_is_told_once_and_holds_up_nothing() {
    let (stage, running) = operating().await;
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CLUSTERS},
    });
    stage.cluster.put(&namespace).unwrap();
    let told = || notes(&stage, events::OWNED_OBJECT_FAILURE);
    let note = until(|| told().into_iter().next()).await;
    assert!(note.contains("add the component `cluster-api`"), "{note}");
    // Meanwhile the other one is put right at once, and nothing is asked again because of that.
    let refused = || {
        let requests = stage.cluster.requests();
        requests.iter().filter(|request| request.code == 403).count()
    };
    let before = refused();
    for _ in 0..2 {
        delete(&stage).await;
        until_ours(&stage, MACHINES).await;
    }
    assert!(refused() <= before + 1, "{} after {before}", refused());
    assert_eq!(told(), [note]);
    give_rights(&stage, CLUSTERS);
    until_ours(&stage, CLUSTERS).await;
    end(stage, running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_machine_api_is_served() {
    let stage = stage().await;
    let namespaces: Api<Namespace> = Api::all(admin(&stage).await);
    namespaces.delete(MACHINES, &DeleteParams::default()).await.unwrap();
    let gone = || stage.cluster.object("", "namespaces", "", MACHINES).is_none().then_some(());
    until(gone).await;
    let running = stage.operate(Progress::new()).unwrap();
    looked_again(&stage).await;
    let writes = |request: &kube_testserver::Request| {
        request.namespace == MACHINES && !["list", "watch"].contains(&request.verb.as_str())
    };
    let requests = stage.cluster.requests();
    let operator = format!("system:serviceaccount:{}:{}", stage.namespace(), objects::OPERATOR);
    let mut ours = requests.iter().filter(|request| request.user == operator);
    assert!(ours.clone().all(|request| request.code != 403), "{requests:#?}");
    assert!(!ours.any(writes), "{requests:#?}");

    give_rights(&stage, MACHINES);
    until_ours(&stage, MACHINES).await;
    end(stage, running).await;
}
