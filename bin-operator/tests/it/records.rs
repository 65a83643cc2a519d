//! The writer of the ConfigMap of host keys, beside others who write.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bin_operator::instance::{Edit, HostRecords, StepError};
use bin_operator::leader::Leadership;
use futures::FutureExt as _;
use futures::future::join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, DeleteParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube_testserver::error::ApiError;
use kube_testserver::{Fault, TestServer};
use serde_json::{Value, json};
use tokio::time::timeout;
use wmco_core::host_record::{KnownHosts, ListedHost, RecordChange, RecordRefused};
use wmco_core::names::objects;

const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

async fn scene() -> (TestServer, HostRecords) {
    let cluster = TestServer::start().await.unwrap();
    let text = cluster.kubeconfig("admin", &["system:masters"]).unwrap();
    let kubeconfig = Kubeconfig::from_yaml(&text).unwrap();
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    let client = Client::try_from(config).unwrap();
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": objects::DEFAULT_NAMESPACE },
    });
    cluster.put(&namespace).unwrap();
    let records = HostRecords::new(client, objects::DEFAULT_NAMESPACE, Leadership::unchallenged());
    (cluster, records)
}

fn data(cluster: &TestServer) -> BTreeMap<String, String> {
    let (namespace, name) = (objects::DEFAULT_NAMESPACE, objects::HOST_KEYS_CONFIG_MAP);
    let map = cluster.object("", "configmaps", namespace, name);
    let data = map.map(|map| map["data"].clone()).unwrap_or_default();
    serde_json::from_value(data).unwrap_or_default()
}

fn listed(host: u8) -> Edit {
    Edit::Host(
        address(host),
        RecordChange::Listed(ListedHost {
            ipv4: [10, 0, 0, host].into(),
            username: Some("sealed".into()),
            machine: None,
            port: 22,
            via: None,
            node: None,
            host_name: None,
            formerly: Vec::new(),
        }),
    )
}

fn pinned(host: u8) -> Edit {
    Edit::Host(address(host), RecordChange::Pinned { key: KEY.parse().unwrap(), jump: None })
}

fn address(host: u8) -> String {
    format!("10.0.0.{host}")
}

#[tokio::test]
async fn what_many_learn_at_once_is_kept_by_few_writes() {
    let (cluster, records) = scene().await;
    records.edit((0..100).map(listed).collect()).await.unwrap();
    let before = cluster.count("patch", "configmaps");
    let all = join_all((0..100).map(|host| records.edit(vec![pinned(host)]))).await;
    assert!(all.iter().all(Result::is_ok), "{all:?}");
    let known = data(&cluster);
    let known = KnownHosts::read(&known);
    let kept = (0..100).map(address).filter(|address| {
        known.pin(address) == Some(KEY) && known.record(address).unwrap().pinned.is_some()
    });
    assert_eq!(kept.count(), 100);
    // The first one alone, all others together.
    assert_eq!(cluster.count("patch", "configmaps") - before, 2);
    assert_eq!(cluster.count("get", "configmaps"), 1);
}

#[tokio::test]
async fn what_a_person_wrote_meanwhile_stays() {
    let (cluster, records) = scene().await;
    records.edit(vec![listed(1), listed(2)]).await.unwrap();
    let (namespace, name) = (objects::DEFAULT_NAMESPACE, objects::HOST_KEYS_CONFIG_MAP);
    let mut map = cluster.object("", "configmaps", namespace, name).unwrap().as_ref().clone();
    map["data"]["10.0.0.1_host"] = r#"{"node": "win-1"}"#.into();
    map["data"]["10.0.0.2_host"] = "{".into();
    map["data"]["10.0.0.9"] = "a person's".into();
    cluster.put(&map).unwrap();
    let refused = records.edit(vec![pinned(2), pinned(1)]).await;
    assert!(matches!(refused, Err(StepError::Record(RecordRefused::Damaged))), "{refused:?}");
    let after = data(&cluster);
    let known = KnownHosts::read(&after);
    let record = known.record("10.0.0.1").unwrap();
    assert_eq!((record.node.as_deref(), record.pinned.is_some()), (Some("win-1"), true));
    assert_eq!(after["10.0.0.2_host"], "{");
    assert_eq!(after["10.0.0.9"], "a person's");
}

#[tokio::test]
async fn a_map_that_is_deleted_is_made_again() {
    let (cluster, records) = scene().await;
    let refused = records.edit(vec![pinned(1)]).await;
    assert!(matches!(refused, Err(StepError::Record(RecordRefused::Gone))), "{refused:?}");
    assert_eq!(data(&cluster), BTreeMap::new());
    records.edit(vec![listed(1)]).await.unwrap();
    records.edit(vec![Edit::Forget(["10.0.0.1_host".to_owned()].into())]).await.unwrap();
    assert_eq!(data(&cluster), BTreeMap::new());
    records.edit(vec![listed(1), pinned(1)]).await.unwrap();
    assert_eq!(data(&cluster).len(), 2);
}

/// The first write hangs and its caller ends; the second takes the third along, hangs and ends, too.
/// What was written last is no proof that it is still there: the same once more writes what somebody took off.
#[tokio::test]
async fn what_was_taken_off_is_written_by_the_same_change_again() {
    let (cluster, records) = scene().await;
    let name = objects::HOST_KEYS_CONFIG_MAP;
    records.edit(vec![listed(1), listed(2)]).await.unwrap();
    let maps: Api<ConfigMap> =
        Api::namespaced(cluster.client().unwrap(), objects::DEFAULT_NAMESPACE);
    maps.delete(name, &DeleteParams::default()).await.unwrap();
    records.edit(vec![listed(1)]).await.unwrap();
    assert_eq!(data(&cluster).keys().collect::<Vec<_>>(), ["10.0.0.1_host"]);
    records.edit(vec![listed(2)]).await.unwrap();
    let put = |change: fn(&mut Value)| {
        let map = cluster.object("", "configmaps", objects::DEFAULT_NAMESPACE, name).unwrap();
        let mut map = map.as_ref().clone();
        change(&mut map["data"]);
        cluster.put(&map).unwrap();
    };
    put(|data| drop(data.as_object_mut().unwrap().remove("10.0.0.2_host")));
    records.edit(vec![listed(2)]).await.unwrap();
    assert_eq!(data(&cluster).len(), 2);
    // Nor does it refuse for what is another by now.
    put(|data| data["10.0.0.3_host"] = "{}".into());
    let pinned = records.edit(vec![pinned(3)]).await;
    assert!(pinned.is_ok(), "{pinned:?}");
}

#[tokio::test]
async fn a_caller_that_ends_takes_nobodys_change_along() {
    let (cluster, records) = scene().await;
    records.edit((0..4).map(listed).collect()).await.unwrap();
    let hangs = Arc::new(AtomicUsize::new(2));
    let left = Arc::clone(&hangs);
    cluster.inject_faults(move |request| {
        let is_write = request.verb == "patch" && request.resource == "configmaps";
        let fewer = |left: usize| left.checked_sub(1);
        let hangs =
            is_write && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer).is_ok();
        hangs.then_some(Fault::Delay(Duration::from_secs(600)))
    });
    let edit = |host| {
        let records = records.clone();
        async move { records.edit(vec![pinned(host)]).await }.boxed()
    };
    let (mut first, mut second, mut third) = (edit(1), edit(2), edit(3));
    let until_sent = |left: usize| {
        let hangs = Arc::clone(&hangs);
        async move {
            while hangs.load(Ordering::SeqCst) > left {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    };
    tokio::select! { _ = &mut first => panic!("it hangs"), () = until_sent(1) => {} }
    assert!((&mut second).now_or_never().is_none());
    assert!((&mut third).now_or_never().is_none());
    drop(first);
    tokio::select! { _ = &mut second => panic!("it hangs"), () = until_sent(0) => {} }
    drop(second);
    timeout(Duration::from_secs(60), third).await.unwrap().unwrap();
    assert_eq!(data(&cluster).get("10.0.0.3").map(String::as_str), Some(KEY));
}

#[tokio::test]
async fn what_is_too_much_holds_up_no_other_and_costs_no_write() {
    let (cluster, records) = scene().await;
    records.edit(vec![listed(1)]).await.unwrap();
    let endless = Edit::Host(
        address(2),
        RecordChange::Adopted {
            ipv4: [10, 0, 0, 2].into(),
            node: "win-2".into(),
            username: "x".repeat(4 << 20),
        },
    );
    let written = writes(&cluster);
    for _ in 0..3 {
        let edits = vec![endless.clone(), pinned(1), listed(3)];
        let refused = records.edit(edits).await;
        assert!(matches!(refused, Err(StepError::Record(RecordRefused::Full))), "{refused:?}");
        let kept: Vec<String> = data(&cluster).into_keys().collect();
        assert_eq!(kept, ["10.0.0.1", "10.0.0.1_host"], "only what is on record goes on");
    }
    // What is refused costs nothing, however often it is asked for.
    assert_eq!(writes(&cluster) - written, 1);
}

/// Nothing is begun of a list that was pasted by mistake, and its correction counts at once.
#[tokio::test]
async fn a_list_that_is_too_long_begins_nothing() {
    let (cluster, records) = scene().await;
    records.edit(vec![listed(1)]).await.unwrap();
    let pasted = (0..12_000_u16).map(|host| {
        let Edit::Host(_, RecordChange::Listed(one)) = listed(0) else { unreachable!() };
        let [high, low] = host.to_be_bytes();
        // As long as an encrypted name is.
        let username = Some("x".repeat(400));
        let change = RecordChange::Listed(ListedHost { username, ..one });
        Edit::Host(format!("10.1.{high}.{low}"), change)
    });
    let refused = records.edit(pasted.collect()).await;
    assert!(matches!(refused, Err(StepError::Record(RecordRefused::Full))), "{refused:?}");
    assert_eq!(data(&cluster).into_keys().collect::<Vec<_>>(), ["10.0.0.1_host"]);
    records.edit(vec![listed(2)]).await.unwrap();
    assert_eq!(data(&cluster).len(), 2);
}

/// Somebody else, such as a webhook, refuses what would fit.
#[tokio::test]
async fn what_others_refuse_holds_up_no_other() {
    let (cluster, records) = scene().await;
    records.edit(vec![listed(1)]).await.unwrap();
    // The first write has all three, the second the first alone.
    let left = AtomicUsize::new(2);
    cluster.inject_faults(move |request| {
        let is_write = request.verb == "patch" && request.resource == "configmaps";
        let fewer = |left: usize| left.checked_sub(1);
        let is_refused =
            is_write && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer).is_ok();
        is_refused.then(|| Fault::Answer(ApiError::too_large("configmaps")))
    });
    let refused = records.edit(vec![listed(2), pinned(1), listed(3)]).await;
    assert!(matches!(refused, Err(StepError::Record(RecordRefused::NotTaken))), "{refused:?}");
    let kept: Vec<String> = data(&cluster).into_keys().collect();
    assert_eq!(kept, ["10.0.0.1", "10.0.0.1_host", "10.0.0.3_host"]);
}

/// Writes of ConfigMaps so far.
fn writes(cluster: &TestServer) -> u64 {
    ["create", "patch", "update"].iter().map(|verb| cluster.count(verb, "configmaps")).sum()
}
