//! kube and kube-runtime at the simulated cluster: what a controller relies on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::controller::{Action, Controller};
use kube::runtime::finalizer::{Event as Finalizing, finalizer};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Config, ResourceExt as _};
use kube_testserver::TestServer;
use serde_json::json;
use tokio::time::timeout;

/// Long enough for a busy machine; nothing here takes that long.
const LIMIT: Duration = Duration::from_secs(30);

async fn client(cluster: &TestServer) -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let text = cluster.kubeconfig("admin", &["system:masters"]).unwrap();
    let config = kube::config::Kubeconfig::from_yaml(&text).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    Client::try_from(Config::from_custom_kubeconfig(config, &options).await.unwrap()).unwrap()
}

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

/// Reads a watcher until it has shown these names, once each, and returns them in order.
async fn names_of(config: watcher::Config, late: &str) -> Vec<String> {
    let cluster = TestServer::start().await.unwrap();
    let api: Api<ConfigMap> = Api::default_namespaced(client(&cluster).await);
    api.create(&PostParams::default(), &config_map("early")).await.unwrap();
    let mut stream = watcher(api.clone(), config).boxed();
    let mut names = Vec::new();
    loop {
        match timeout(LIMIT, stream.try_next()).await.unwrap().unwrap().unwrap() {
            Event::InitApply(object) => names.push(object.name_any()),
            Event::InitDone => {
                api.create(&PostParams::default(), &config_map(late)).await.unwrap();
            }
            Event::Apply(object) => {
                names.push(object.name_any());
                return names;
            }
            Event::Init | Event::Delete(_) => {}
        }
    }
}

#[tokio::test]
async fn a_watcher_sees_what_is_there_and_what_comes() {
    assert_eq!(names_of(watcher::Config::default(), "late").await, ["early", "late"]);
}

#[tokio::test]
async fn a_streaming_list_sees_the_same() {
    let config = watcher::Config::default().streaming_lists();
    assert_eq!(names_of(config, "late").await, ["early", "late"]);
}

#[tokio::test]
async fn a_watch_from_expired_history_says_so_and_ends() {
    let cluster = TestServer::start().await.unwrap();
    let api: Api<ConfigMap> = Api::default_namespaced(client(&cluster).await);
    let old = api.create(&PostParams::default(), &config_map("a")).await.unwrap();
    cluster.expire_history();
    api.create(&PostParams::default(), &config_map("b")).await.unwrap();
    cluster.expire_history();
    let mut events =
        api.watch(&WatchParams::default(), &old.resource_version().unwrap()).await.unwrap().boxed();
    let event = timeout(LIMIT, events.try_next()).await.unwrap().unwrap().unwrap();
    assert!(matches!(event, WatchEvent::Error(status) if status.code == 410));
    assert!(timeout(LIMIT, events.next()).await.unwrap().is_none(), "the stream has to end");
}

#[tokio::test]
async fn metadata_is_watched_alone() {
    let cluster = TestServer::start().await.unwrap();
    let client = client(&cluster).await;
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    api.create(&PostParams::default(), &config_map("a")).await.unwrap();
    let api: Api<PartialObjectMeta<ConfigMap>> = Api::default_namespaced(client);
    let mut stream = watcher(api, watcher::Config::default()).applied_objects().boxed();
    let object = timeout(LIMIT, stream.try_next()).await.unwrap().unwrap().unwrap();
    assert_eq!(object.name_any(), "a");
}

/// Whatever is written while somebody lists and watches on from there is seen exactly once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_doubled_between_list_and_watch() {
    const WRITES: usize = 120;
    let cluster = TestServer::start().await.unwrap();
    let api: Api<ConfigMap> = Api::default_namespaced(client(&cluster).await);
    let writer = tokio::spawn({
        let api = api.clone();
        async move {
            for index in 0..WRITES {
                let name = format!("c{index}");
                api.create(&PostParams::default(), &config_map(&name)).await.unwrap();
            }
        }
    });
    let mut readers = Vec::new();
    for _ in 0..4 {
        let api = api.clone();
        readers.push(tokio::spawn(async move {
            let list = api.list(&ListParams::default()).await.unwrap();
            let mut seen: BTreeMap<String, usize> = BTreeMap::new();
            for object in &list.items {
                *seen.entry(object.name_any()).or_default() += 1;
            }
            let from = list.metadata.resource_version.unwrap();
            let mut events = api.watch(&WatchParams::default(), &from).await.unwrap().boxed();
            while seen.len() < WRITES {
                let event = timeout(LIMIT, events.try_next()).await.unwrap().unwrap().unwrap();
                if let WatchEvent::Added(object) = event {
                    *seen.entry(object.name_any()).or_default() += 1;
                }
            }
            seen
        }));
    }
    writer.await.unwrap();
    for reader in readers {
        let seen = reader.await.unwrap();
        assert_eq!(seen.len(), WRITES);
        assert!(seen.values().all(|count| *count == 1), "{seen:?}");
    }
}

#[tokio::test]
async fn a_write_that_changes_nothing_keeps_the_version() {
    let cluster = TestServer::start().await.unwrap();
    let api: Api<Node> = Api::all(client(&cluster).await);
    let node = serde_json::from_value(json!({"metadata": {"name": "n"}})).unwrap();
    let first: Node = api.create(&PostParams::default(), &node).await.unwrap();
    let again = api.replace("n", &PostParams::default(), &first).await.unwrap();
    assert_eq!(again.resource_version(), first.resource_version());
    let status = json!({"status": {"phase": "Running"}});
    let changed = api.patch_status("n", &PatchParams::default(), &Patch::Merge(&status)).await;
    let changed = changed.unwrap().resource_version();
    assert_ne!(changed, first.resource_version());
    let same = api.patch_status("n", &PatchParams::default(), &Patch::Merge(&status)).await;
    assert_eq!(same.unwrap().resource_version(), changed);
}

#[tokio::test]
async fn the_second_of_two_stale_writers_gets_a_conflict() {
    let cluster = TestServer::start().await.unwrap();
    let api: Api<Lease> = Api::namespaced(client(&cluster).await, "kube-system");
    let lease = serde_json::from_value(
        json!({"metadata": {"name": "leader"}, "spec": {"holderIdentity": "nobody"}}),
    );
    let seen: Lease = api.create(&PostParams::default(), &lease.unwrap()).await.unwrap();
    let with = |holder: &str| {
        let mut lease = seen.clone();
        lease.spec.as_mut().unwrap().holder_identity = Some(holder.to_owned());
        lease
    };
    api.replace("leader", &PostParams::default(), &with("a")).await.unwrap();
    let lost = api.replace("leader", &PostParams::default(), &with("b")).await.unwrap_err();
    assert!(matches!(lost, kube::Error::Api(status) if status.code == 409));
}

/// A controller with a finalizer: the object goes through apply and cleanup.
#[tokio::test]
async fn a_controller_adds_and_removes_its_finalizer() {
    #[derive(Debug, thiserror::Error)]
    #[error("reconcile")]
    struct Failed(#[from] kube::runtime::finalizer::Error<std::convert::Infallible>);

    async fn reconcile(object: Arc<ConfigMap>, api: Arc<Api<ConfigMap>>) -> Result<Action, Failed> {
        let done = finalizer(&api, "example.test/hold", object, |event| async move {
            match event {
                Finalizing::Apply(_) | Finalizing::Cleanup(_) => Ok(Action::await_change()),
            }
        });
        Ok(done.await?)
    }

    let cluster = TestServer::start().await.unwrap();
    let api: Api<ConfigMap> = Api::default_namespaced(client(&cluster).await);
    let controller = Controller::new(api.clone(), watcher::Config::default()).run(
        reconcile,
        |_, _, _| Action::requeue(Duration::from_millis(50)),
        Arc::new(api.clone()),
    );
    let running = tokio::spawn(controller.for_each(|_| futures::future::ready(())));
    api.create(&PostParams::default(), &config_map("a")).await.unwrap();
    let held =
        kube::runtime::wait::await_condition(api.clone(), "a", |object: Option<&ConfigMap>| {
            object
                .is_some_and(|object| object.finalizers().contains(&"example.test/hold".to_owned()))
        });
    timeout(LIMIT, held).await.unwrap().unwrap();
    api.delete("a", &kube::api::DeleteParams::default()).await.unwrap();
    let gone = kube::runtime::wait::await_condition(api, "a", |object: Option<&ConfigMap>| {
        object.is_none()
    });
    timeout(LIMIT, gone).await.unwrap().unwrap();
    running.abort();
}

#[tokio::test]
async fn faults_are_injected_and_requests_are_counted() {
    use kube_testserver::{Fault, error::ApiError};

    let cluster = TestServer::start().await.unwrap();
    let api: Api<Node> = Api::all(client(&cluster).await);
    cluster.inject_faults(|request| {
        (request.verb == "list" && request.resource == "nodes")
            .then(|| Fault::Answer(ApiError::internal("on purpose")))
    });
    let failed = api.list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(failed, kube::Error::Api(status) if status.code == 500));
    cluster.clear_faults();
    api.list(&ListParams::default()).await.unwrap();
    assert_eq!(cluster.count("list", "nodes"), 2);
    let codes: Vec<u16> = cluster.requests().iter().map(|request| request.code).collect();
    assert_eq!(codes, [500, 200]);
    cluster.inject_faults(|_| Some(Fault::Hangup));
    assert!(api.list(&ListParams::default()).await.is_err());
}

/// Someone who connects and says nothing does not keep others waiting.
#[tokio::test]
async fn a_silent_connection_blocks_nobody() {
    let cluster = TestServer::start().await.unwrap();
    let silent = tokio::net::TcpStream::connect(cluster.address()).await.unwrap();
    let api: Api<Node> = Api::all(client(&cluster).await);
    timeout(Duration::from_secs(8), api.list(&ListParams::default())).await.unwrap().unwrap();
    drop(silent);
}

#[tokio::test]
async fn stopping_ends_watches() {
    let cluster = TestServer::start().await.unwrap();
    let api: Api<Node> = Api::all(client(&cluster).await);
    let mut events = api.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    timeout(LIMIT, cluster.stop()).await.unwrap();
    assert!(timeout(LIMIT, events.next()).await.unwrap().is_none_or(|event| event.is_err()));
}
