use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::watcher::Event;
use kube_testserver::{Fault, TestServer};
use serde_json::json;
use tokio::time::{sleep, timeout};
use wmco_sim::machines::{definitions, machine_set};

use super::*;
use crate::kinds::{Missing, PROOFS, Seen};

/// Longest wait for anything; a machine under load needs most of it.
const PATIENCE: Duration = Duration::from_secs(120);

fn machine(name: &str, address: &str) -> Value {
    json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": {"name": name, "namespace": objects::MACHINE_API_NAMESPACE},
        "spec": {"providerSpec": {"value": {"userDataSecret": {"name": "windows-user-data"}}}},
        "status": {
            "phase": "Running",
            "addresses": [
                {"type": "InternalIP", "address": address},
                {"type": "InternalDNS", "address": format!("{name}.example.com")},
            ],
        },
    })
}

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

/// A follower without a cluster, and how often it told of a change.
#[derive(Clone)]
struct Follower(MachineWatch, Arc<AtomicUsize>);

impl Follower {
    fn new() -> Self {
        Self(MachineWatch::unknown(), Arc::default())
    }

    fn tell(&self) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }

    fn told(&self) -> usize {
        self.1.swap(0, Ordering::Relaxed)
    }

    fn machines(&self, seen: Seen) {
        self.0.update(&|| self.tell(), |kinds| enter(seen, &mut kinds.machines, MachineFacts::of));
    }

    fn apply(&self, machine: Value) {
        self.machines(Ok(Event::Apply(object(machine))));
    }

    fn list(&self, machines: impl IntoIterator<Item = Value>) {
        self.machines(Ok(Event::Init));
        for machine in machines {
            self.machines(Ok(Event::InitApply(object(machine))));
        }
        self.machines(Ok(Event::InitDone));
    }

    fn no_sets(&self) {
        let of = MachineSetFacts::of;
        self.0.update(&|| self.tell(), |kinds| enter(Err(Missing), &mut kinds.sets, of));
    }

    /// The names and first addresses.
    fn shown(&self) -> Option<String> {
        let inventory = self.0.inventory()?;
        let address = |it: &MachineFacts| it.addresses.first().map(|it| it.address.clone());
        let shown = inventory.machines.iter();
        let shown = shown.map(|it| format!("{} {}", it.name, address(it).unwrap_or_default()));
        Some(shown.collect::<Vec<_>>().join(", "))
    }

    /// A follower that has listed both kinds.
    fn filled() -> Self {
        let follower = Self::new();
        follower.no_sets();
        follower.list([machine("a", "10.0.128.1"), machine("b", "10.0.128.2")]);
        follower.told();
        follower
    }
}

#[test]
fn nothing_is_known_before_both_kinds_are_listed() {
    let follower = Follower::new();
    follower.list([machine("a", "10.0.128.1")]);
    assert_eq!((follower.shown(), follower.0.is_known()), (None, false));
    follower.no_sets();
    assert_eq!((follower.shown(), follower.0.is_known()), (Some("a 10.0.128.1".into()), true));
    // Another list has begun.
    follower.machines(Ok(Event::Init));
    assert_eq!((follower.shown(), follower.0.is_known()), (Some("a 10.0.128.1".into()), true));
}

#[test]
fn only_a_change_of_facts_is_told() {
    let follower = Follower::filled();
    let mut same = machine("a", "10.0.128.1");
    same["metadata"]["resourceVersion"] = json!("8");
    same["metadata"]["managedFields"] = json!([{"manager": "machine-controller"}]);
    same["status"]["lastUpdated"] = json!("2026-01-01T00:00:00Z");
    let before = follower.0.inventory().unwrap();
    follower.apply(same.clone());
    follower.list([machine("b", "10.0.128.2"), same]);
    assert_eq!(follower.told(), 0);
    assert!(Arc::ptr_eq(&before, &follower.0.inventory().unwrap()), "it is made once");

    follower.apply(machine("a", "10.0.128.9"));
    assert_eq!(
        (follower.told(), follower.shown().unwrap()),
        (1, "a 10.0.128.9, b 10.0.128.2".into())
    );
    follower.machines(Ok(Event::Delete(object(machine("a", "10.0.128.9")))));
    assert_eq!((follower.told(), follower.shown().unwrap()), (1, "b 10.0.128.2".into()));
    follower.list([]);
    assert_eq!((follower.told(), follower.shown().unwrap()), (1, String::new()));
}

#[test]
fn machines_are_not_forgotten_over_one_answer() {
    let follower = Follower::filled();
    for _ in 1..PROOFS {
        follower.machines(Err(Missing));
    }
    assert_eq!(
        (follower.told(), follower.shown().unwrap()),
        (0, "a 10.0.128.1, b 10.0.128.2".into())
    );
    follower.list([machine("b", "10.0.128.2")]);
    assert_eq!(follower.told(), 1);
    for _ in 1..PROOFS {
        follower.machines(Err(Missing));
    }
    assert_eq!((follower.told(), follower.shown().unwrap()), (0, "b 10.0.128.2".into()));
    follower.machines(Err(Missing));
    assert_eq!((follower.told(), follower.shown().unwrap()), (1, String::new()));
    follower.machines(Err(Missing));
    assert_eq!(follower.told(), 0);
}

#[test]
fn an_odd_machine_tells_less_and_hides_no_other() {
    let follower = Follower::filled();
    let mut odd = machine("odd", "10.0.128.3");
    odd["spec"] = json!("none");
    odd["status"]["addresses"] = json!([7, {"type": ["InternalIP"]}]);
    follower.apply(odd);
    let mut odder = machine("odder", "10.0.128.4");
    odder["status"] = json!([]);
    follower.apply(odder);
    let expected = "a 10.0.128.1, b 10.0.128.2, odd , odder ";
    assert_eq!((follower.told(), follower.shown().unwrap()), (2, expected.into()));
}

#[test]
fn what_is_large_is_left_out_and_no_fact() {
    let mut whole = machine("a", "10.0.128.1");
    whole["metadata"]["annotations"] = json!({"note": "x".repeat(1000)});
    whole["metadata"]["managedFields"] = json!([{"manager": "x".repeat(1000)}]);
    whole["metadata"]["labels"] = json!({"machine.openshift.io/os-id": "Windows"});
    whole["status"]["providerStatus"] = json!({"conditions": ["x".repeat(1000)]});
    whole["spec"]["taints"] = json!(["x".repeat(1000)]);
    let mut stripped = object(whole.clone());
    strip(&mut stripped);
    let stripped = serde_json::to_value(stripped).unwrap();
    assert!(stripped.to_string().len() < 500, "{stripped}");
    assert_eq!(MachineFacts::of(&stripped), MachineFacts::of(&whole));

    let set = machine_set("win", 3);
    let mut stripped = object(set.clone());
    strip(&mut stripped);
    let stripped = MachineSetFacts::of(&serde_json::to_value(stripped).unwrap());
    assert_eq!((stripped.replicas, stripped), (3, MachineSetFacts::of(&set)));
}

/// Against an API: what it shows, and how often it told of a change.
async fn against(cluster: &TestServer) -> Follower {
    let text = cluster.kubeconfig("admin", &["system:masters"]).unwrap();
    let kubeconfig = Kubeconfig::from_yaml(&text).unwrap();
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    let client = Client::try_from(config).unwrap();
    let told = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&told);
    let tell = move || {
        count.fetch_add(1, Ordering::Relaxed);
    };
    let tasks = TaskTracker::new();
    Follower(watch(&client, tell, &CancellationToken::new(), &tasks), told)
}

/// Gives the cluster a Machine API without a controller: the writer of a Machine writes its status.
fn define(cluster: &TestServer) {
    for mut definition in definitions() {
        if let Some(version) = definition.pointer_mut("/spec/versions/0") {
            version.as_object_mut().unwrap().remove("subresources");
        }
        cluster.put(&definition).unwrap();
    }
}

async fn until(follower: &Follower, shows: &str) {
    let waiting = async {
        while follower.shown().as_deref() != Some(shows) {
            sleep(Duration::from_millis(20)).await;
        }
    };
    let late = timeout(PATIENCE, waiting).await.is_err();
    assert!(!late, "{:?} instead of {shows}", follower.shown());
}

#[tokio::test]
async fn a_cluster_without_machine_api_has_none_until_it_gets_one() {
    let cluster = TestServer::start().await.unwrap();
    let follower = against(&cluster).await;
    timeout(PATIENCE, follower.0.known()).await.unwrap();
    assert_eq!(*follower.0.inventory().unwrap(), MachineInventory::default());
    define(&cluster);
    cluster.put(&machine("a", "10.0.128.1")).unwrap();
    cluster.put(&machine_set("win", 1)).unwrap();
    until(&follower, "a 10.0.128.1").await;
    cluster.put(&machine("a", "10.0.128.2")).unwrap();
    until(&follower, "a 10.0.128.2").await;
    let waiting = async {
        while follower.0.inventory().unwrap().sets.is_empty() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, waiting).await.unwrap();
}

#[tokio::test]
async fn a_failure_is_no_answer() {
    let cluster = TestServer::start().await.unwrap();
    define(&cluster);
    cluster.put(&machine("a", "10.0.128.1")).unwrap();
    // Of the one kind no list is answered.
    cluster.inject_faults(|request| (request.resource == "machinesets").then_some(Fault::Hangup));
    let follower = against(&cluster).await;
    timeout(Duration::from_secs(2), follower.0.known()).await.unwrap_err();
    assert_eq!(follower.shown(), None);
    // Of the other kind none any more.
    cluster.inject_faults(|request| (request.resource == "machines").then_some(Fault::Hangup));
    until(&follower, "a 10.0.128.1").await;
}
