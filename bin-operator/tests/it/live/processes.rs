//! Several processes of the operator, stopped, continued and killed, and clients that are in no hurry:
//! one leads at most, and the next one is not kept waiting.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bin_operator::demo::Stage;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::DeleteParams;
use kube_testserver::{Fault, Request};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use wmco_core::names::objects::{self, services_name};

use super::https;
use super::process::{LEASE, Process};
use super::scenery::{PATIENCE, admin, listed, until};

/// A lease that nobody loses, however slow the machine is.
const FOR_LONG: [(&str, &str); 3] = [
    ("LEADER_ELECT_LEASE_DURATION", "3000s"),
    ("LEADER_ELECT_RENEW_DEADLINE", "2000s"),
    ("LEADER_ELECT_RETRY_PERIOD", "1000s"),
];

async fn stage() -> Stage {
    Stage::start(&listed(&[]), |_, host| host).await.unwrap()
}

/// Who holds the Lease; empty when it was given back.
fn holder(stage: &Stage) -> Option<String> {
    let leases = stage.cluster.objects("coordination.k8s.io", "leases", stage.namespace());
    Some(leases.first()?["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned())
}

/// Waits until a process holds the Lease whose identity begins with `pod`.
async fn leads(stage: &Stage, pod: &str) {
    until(|| holder(stage).filter(|holder| holder.starts_with(pod))).await;
}

/// When the Lease was renewed by the process whose identity begins with `pod`.
fn renewed(stage: &Stage, pod: &str) -> Option<Timestamp> {
    let leases = stage.cluster.objects("coordination.k8s.io", "leases", stage.namespace());
    let spec = &leases.first()?["spec"];
    spec["holderIdentity"].as_str()?.starts_with(pod).then_some(())?;
    spec["renewTime"].as_str()?.parse().ok()
}

/// Waits until a process has asked for the Lease.
async fn asks(stage: &Stage, process: &Process) {
    let asked = || process.requests(stage, 0).iter().any(|request| request.resource == "leases");
    until(|| asked().then_some(())).await;
}

/// This version's services ConfigMap, which a leader makes first.
fn services(stage: &Stage) -> Option<Arc<Value>> {
    let name = services_name(bin_operator::VERSION);
    stage.cluster.object("", "configmaps", stage.namespace(), &name)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_process_that_goes_on_after_its_lease_writes_nothing() {
    let stage = stage().await;
    let mut first = Process::start(&stage, "first", &[("POD_NAME", "first")]);
    leads(&stage, "first").await;
    until(|| services(&stage)).await;
    let second = Process::start(&stage, "second", &[("POD_NAME", "second")]);
    asks(&stage, &second).await;
    first.signal(Signal::STOP);
    // What the processes say themselves, since this test may be held up.
    let mut respected = None;
    let taken = until(|| {
        respected = renewed(&stage, "first").or(respected);
        renewed(&stage, "second")
    })
    .await;
    let left_alone = taken.duration_since(respected.unwrap());
    assert!(left_alone.unsigned_abs() >= LEASE, "{left_alone}");
    // Now there is work that nobody else does, and answers about the Lease are slow.
    second.signal(Signal::STOP);
    stage.cluster.inject_faults(|request| {
        let lease = request.resource == "leases";
        lease.then_some(Fault::Delay(Duration::from_secs(1)))
    });
    let maps: Api<ConfigMap> = Api::namespaced(admin(&stage).await, stage.namespace());
    maps.delete(&services_name(bin_operator::VERSION), &DeleteParams::default()).await.unwrap();
    let instances = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": objects::INSTANCES_CONFIG_MAP, "namespace": stage.namespace() },
        "data": { "10.9.8.7": "nonsense" },
    });
    stage.cluster.put(&instances).unwrap();
    let before = stage.cluster.requests().len();
    first.signal(Signal::CONT);
    let status = first.ended().await;
    assert_eq!(first.writes(&stage, before), [], "{}", first.log());
    assert_eq!(status.code(), Some(2), "{}", first.log());
    assert!(first.log().contains("lost the leadership"), "{}", first.log());
    drop((first, second));
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_without_a_pod_name_are_two() {
    let stage = stage().await;
    let first = Process::start(&stage, "first", &FOR_LONG);
    let identity = until(|| holder(&stage)).await;
    let second = Process::start(&stage, "second", &FOR_LONG);
    let waits = || second.log().contains("another process leads");
    until(|| waits().then_some(())).await;
    assert_eq!(second.writes(&stage, 0), [], "{}", second.log());
    assert_eq!(holder(&stage), Some(identity));
    drop((first, second));
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_sent_request_delays_neither_release_nor_end() {
    let stage = stage().await;
    let mut process = Process::start(&stage, "first", &[("POD_NAME", "first")]);
    leads(&stage, "first").await;
    let mut half = https::connect(process.http().await).await;
    half.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX-Slow: ").await.unwrap();
    let mut silent = TcpStream::connect(process.http().await).await.unwrap();
    process.signal(Signal::TERM);
    // Neither is finished or closed by this side; how long each may take is tested with the server itself.
    until(|| holder(&stage).filter(String::is_empty)).await;
    let status = process.ended().await;
    assert_eq!(status.code(), Some(0), "{}", process.log());
    // Closed or reset, whatever there was.
    let _ = half.read_to_end(&mut Vec::new()).await;
    let _ = silent.read_to_end(&mut Vec::new()).await;
    stage.shutdown().await;
}

/// The status line that a probe gets.
async fn probe(process: &Process) -> String {
    let asked = https::get(process.http().await, "/healthz", None);
    let text = timeout(PATIENCE, asked).await;
    let text = text.expect("a probe is answered").unwrap();
    text.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_keep_no_probe_out_and_end() {
    let stage = stage().await;
    let process = Process::start_with_descriptors(&stage, "first", 200);
    until(|| holder(&stage)).await;
    let http = process.http().await;
    assert_eq!(probe(&process).await, "HTTP/1.1 200 OK");
    let mut idle = Vec::new();
    for number in 0..400 {
        // A server that closes it at once is right as well.
        let Ok(mut connection) = TcpStream::connect(http).await else { continue };
        if number % 2 == 0 {
            let begun: [u8; 4] = [22, 3, 1, 2];
            let _ = connection.write_all(&begun).await;
        }
        idle.push(connection);
    }
    assert_eq!(probe(&process).await, "HTTP/1.1 200 OK");
    for mut connection in idle {
        let mut rest = Vec::new();
        let _ = timeout(PATIENCE, connection.read_to_end(&mut rest)).await.expect("it is closed");
    }
    drop(process);
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_successor_takes_a_released_lease_at_once() {
    let stage = stage().await;
    // No attempt is due before the test gives up: only the watch can tell of the release.
    let start = |pod| {
        let variables = [&FOR_LONG[..], &[("POD_NAME", pod)]].concat();
        Process::start(&stage, pod, &variables)
    };
    let mut first = start("first");
    leads(&stage, "first").await;
    let second = start("second");
    until(|| {
        let requests = second.requests(&stage, 0);
        let watches = |asked: &Request| asked.resource == "leases" && asked.verb == "watch";
        requests.iter().any(watches).then_some(())
    })
    .await;
    first.signal(Signal::TERM);
    leads(&stage, "second").await;
    assert_eq!(first.ended().await.code(), Some(0));
    drop(second);
    stage.shutdown().await;
}

/// The kubeconfig of an administrator, with these fields of its cluster and of its user changed.
fn kubeconfig(stage: &Stage, cluster: &Value, user: &Value) -> String {
    let text = stage.cluster.kubeconfig("admin", &["system:masters"]).unwrap();
    let mut kubeconfig: Value = serde_json::from_str(&text).unwrap();
    for (at, changes) in [("/clusters/0/cluster", cluster), ("/users/0/user", user)] {
        let fields = kubeconfig.pointer_mut(at).unwrap().as_object_mut().unwrap();
        fields.extend(changes.as_object().unwrap().clone());
    }
    kubeconfig.to_string()
}

/// Exit code and words of `check cluster --live`.
fn check(kubeconfig: &Path, variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wmco-operator"));
    let command = command.args(["check", "cluster", "--live"]).env("KUBECONFIG", kubeconfig);
    let done = command.envs(variables.iter().copied()).output().unwrap();
    (done.status.code(), String::from_utf8(done.stderr).unwrap())
}

/// One that the environment names and that is away, with a password in its text.
#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_of_the_environment_is_used_and_named_without_its_password() {
    let stage = stage().await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let proxy = format!("http://user:hush@{closed}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    // A server on this host would be reached without the proxy.
    let named = json!({"server": "https://api.test:6443", "tls-server-name": "localhost"});
    fs::write(&path, kubeconfig(&stage, &named, &json!({}))).unwrap();
    let odd = [
        ("HTTPS_PROXY", proxy.as_str()),
        ("NO_PROXY", "<local>,a.test/"),
        ("KUBECONFIG", path.to_str().unwrap()),
    ];
    let away = Process::start(&stage, "away", &odd);
    let named = format!("the cluster does not answer through the proxy {closed}");
    until(|| away.log().contains(&named).then_some(())).await;
    assert!(!away.log().contains("hush"), "{}", away.log());

    let (code, told) = check(&path, &odd[..1]);
    assert!(code == Some(2) && told.contains(&named) && !told.contains("hush"), "{code:?} {told}");
    let (code, told) = check(&path, &[("HTTPS_PROXY", "ftp://user:hush@p.test")]);
    let named = "variable HTTPS_PROXY names no proxy";
    assert!(code == Some(2) && told.contains(named) && !told.contains("hush"), "{code:?} {told}");
    stage.cluster.write_kubeconfig(&path, "admin", &["system:masters"]).unwrap();
    assert_eq!(check(&path, &odd[..1]).0, Some(0), "the cluster is on this host");
}

/// Neither what is in a kubeconfig is told, nor what its plug-in gets and prints.
#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_that_cannot_be_used_is_told_without_its_contents() {
    let stage = stage().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    let plug_in = |script: &str| {
        json!({"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "command": "sh",
            "args": ["-c", script, "hush"], "env": [{"name": "A", "value": "hush"}],
            "interactiveMode": "Never", "provideClusterInfo": true,
        }})
    };
    let server = json!({"proxy-url": "http://u:hush@p.test:1"});
    let none = json!({});
    // The second token, which would be asked for with the first request, is not given.
    let once = folder.path().join("once");
    let once = format!(
        "[ -e {once} ] && exit 3; [ -e {once}.1 ] && touch {once}; touch {once}.1; \
         echo '{{\"status\":{{\"token\":\"hush\",\"expirationTimestamp\":\"2001-01-01T00:00:00Z\"}}}}'",
        once = once.display(),
    );
    for (text, expected) in [
        (kubeconfig(&stage, &server, &plug_in("echo hush; exit 3")), "plug-in `sh` ended with"),
        (kubeconfig(&stage, &none, &plug_in(&once)), "plug-in `sh` ended with"),
        (
            kubeconfig(&stage, &none, &json!({"token": "hush\n"})),
            "user admin: correct field `token`",
        ),
        (kubeconfig(&stage, &json!({"server": "https://hush:1x"}), &none), "field `server`"),
        ("users: [{user: {token: [hush]}}]".to_owned(), "it is no kubeconfig, see line 1"),
    ] {
        fs::write(&path, text).unwrap();
        let (code, told) = check(&path, &[]);
        assert!(code == Some(2) && told.contains(expected), "{code:?} {told}");
        assert!(!told.contains("hush"), "{told}");
    }
    let missing = folder.path().join("missing");
    let (code, told) = check(&missing, &[]);
    assert!(code == Some(2) && told.contains(missing.to_str().unwrap()), "{code:?} {told}");
    let host = stage.cluster.url().replace("https://", "");
    fs::write(&path, kubeconfig(&stage, &json!({"server": host}), &none)).unwrap();
    let both = std::env::join_paths([&missing, &path]).unwrap();
    assert_eq!(check(Path::new(&both), &[]).0, Some(0), "a missing file is skipped");
}
