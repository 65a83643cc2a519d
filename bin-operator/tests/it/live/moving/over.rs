//! From the Go operator to ours: row by row what `docs/src/moving-over.md` says.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bin_operator::demo::Stage;
use bin_operator::progress::{Progress, ProgressEvent, ProgressKind};
use futures::FutureExt as _;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use wmco_core::authorized_key::AuthorizedKey;
use wmco_core::monitoring::exporter_monitor;
use wmco_core::names::monitoring::{EXPORTER, SERVICE_MONITOR, SERVICE_MONITORS};
use wmco_core::names::{self as wire, events, host, objects, platforms};
use wmco_core::protocol::{Access, ServiceRunState};
use wmco_core::render::user_data;
use wmco_services::windows::{ServiceName, Windows as _};
use wmco_sim::host::SimHost;

use super::gnupg;
use super::predecessor::{self, LEADER_ROLE, Member, hosts};
use super::scenery::{has_moved, install, patch_node, uids};
use crate::live::machines::observer::Observer;
use crate::live::machines::scenery::{Key, annotation, machines, name, names};
use crate::live::rights::allowed;
use crate::live::scenery::{
    addresses, admin, kept_keys, listed, nodes, notes, patch_config_map, until,
};
use crate::requests::scenery::{Asked, daemon_of, send, serving_of};

const REQUESTS: (&str, &str) = ("certificates.k8s.io", "certificatesigningrequests");
const RBAC: &str = "rbac.authorization.k8s.io";

/// What must be the same before and after.
#[derive(Debug, PartialEq)]
struct Kept {
    machines: Vec<String>,
    nodes: BTreeMap<String, Value>,
    secrets: BTreeMap<String, Value>,
    monitors: BTreeMap<String, Value>,
    bindings: BTreeMap<String, Value>,
    services: BTreeMap<String, Value>,
    instances: Value,
    trusted_ca: Value,
}

impl Kept {
    fn of(stage: &Stage, gone: &str) -> Self {
        let map = |name: &str| {
            let map = stage.cluster.object("", "configmaps", stage.namespace(), name).unwrap();
            map["data"].clone()
        };
        let mut nodes = uids(stage, "", "nodes");
        nodes.remove(&format!("/{gone}"));
        let theirs =
            |name: &String| name.ends_with(objects::WICD) || name.ends_with("system-wicd-nodes");
        let mut bindings = uids(stage, RBAC, "clusterrolebindings");
        bindings.extend(uids(stage, RBAC, "rolebindings"));
        // We bind certificates to the Role of the namespace, too.
        bindings.retain(|name, _| theirs(name) && !name.ends_with("/system-wicd-nodes"));
        Self {
            machines: names(&machines(stage)),
            nodes,
            secrets: uids(stage, "", "secrets"),
            monitors: uids(stage, SERVICE_MONITOR.0, SERVICE_MONITORS),
            bindings,
            services: uids(stage, "", "services"),
            instances: map(objects::INSTANCES_CONFIG_MAP),
            trusted_ca: map(objects::TRUSTED_CA_CONFIG_MAP),
        }
    }
}

fn services_map(stage: &Stage, version: &str) -> Option<Arc<Value>> {
    let name = format!("{}{version}", objects::SERVICES_CONFIG_MAP_PREFIX);
    stage.cluster.object("", "configmaps", stage.namespace(), &name)
}

fn carries(node: &Value, version: &str) -> bool {
    let versions = [wire::VERSION_ANNOTATION, wire::DESIRED_VERSION_ANNOTATION];
    versions.iter().any(|name| annotation(node, name) == version)
}

/// Holds up all work on hosts, so the first node that is empty, until somebody lets it go.
fn holding_the_first() -> (Progress, Arc<Semaphore>, Arc<Semaphore>) {
    let (held, go) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (told, waits) = (Arc::clone(&held), Arc::clone(&go));
    let gate = move |event: &ProgressEvent| {
        let begins =
            matches!(&event.kind, ProgressKind::Step { action, .. } if action.starts_with("apply"));
        if !begins {
            return std::future::ready(()).boxed();
        }
        told.add_permits(1);
        let waits = Arc::clone(&waits);
        // Those after the first find it open.
        async move { drop(waits.acquire().await) }.boxed()
    };
    (Progress::new().gated(Arc::new(gate)), held, go)
}

/// Certificates that a node of the Go operator asks for while it waits for its turn.
fn renewals(member: &Member) -> Vec<Asked> {
    let mut daemon = daemon_of(&member.node);
    daemon.name += "-again";
    daemon.user = format!("{}{}", wire::WICD_USER_PREFIX, member.node);
    daemon.groups = vec![wire::WICD_NODES_GROUP];
    // With its token, as after a certificate that ran out.
    let mut all = vec![daemon, daemon_of(&member.node)];
    if member.machine.is_none() {
        all.push(serving_of(&member.node));
    }
    all
}

async fn approved(stage: &Stage, asked: &Asked) -> String {
    until(|| {
        let request = stage.cluster.object(REQUESTS.0, REQUESTS.1, "", &asked.name)?;
        let condition = request["status"]["conditions"].get(0)?.clone();
        assert_eq!(condition["type"], "Approved", "{}", asked.name);
        Some(condition["reason"].as_str().unwrap().to_owned())
    })
    .await
}

/// What WICD's two identities may do outside the operator's namespace.
async fn rights_elsewhere(stage: &Stage) -> [String; 2] {
    let account = format!("system:serviceaccount:{}:{}", stage.namespace(), objects::WICD);
    let certificate = format!("{}win-1", wire::WICD_USER_PREFIX);
    [
        allowed(stage, &account, &["system:serviceaccounts"], "").await,
        allowed(stage, &certificate, &[wire::WICD_NODES_GROUP], "").await,
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_of_the_go_operator_moves_over() {
    let (stage, members) = predecessor::left(3, 2).await;
    let (leaving, staying): (Vec<_>, Vec<_>) =
        members.into_iter().partition(|member| member.node == "win-3");
    // What people did, and what only the Node of an older version lacks: its key is in the ConfigMap alone.
    let rack = json!({"metadata": {"labels": {"example.com/rack": "7"}, "annotations": {"example.com/by": "me"}}});
    patch_node(&stage, "win-1", &rack).await;
    patch_node(&stage, "win-2", &json!({"spec": {"unschedulable": true}})).await;
    let unpinned = json!({
        wire::HOST_KEY_ANNOTATION: null, wire::HOST_KEY_TYPE_ANNOTATION: null,
    });
    patch_node(&stage, "win-2", &json!({"metadata": {"annotations": unpinned}})).await;
    let pin = json!({"data": {staying[1].address.as_str(): staying[1].host_key()}});
    patch_config_map(&stage, objects::HOST_KEYS_CONFIG_MAP, &pin).await;
    let tool = hosts::path(r"C:\k\tool.exe");
    staying[0].model.put_file(&tool, "somebody's");
    // While nobody runs, an entry goes: who logs in there, and with which key, tells its Node alone.
    predecessor::stop(&stage).await;
    until(|| lock(&stage).is_none().then_some(())).await;
    stage.list(&listed(&addresses(2))).unwrap();

    let wide = rights_elsewhere(&stage).await;
    assert!(wide.iter().all(|rights| rights.contains("/configmaps/: get list")), "{wide:?}");
    let certificates: Vec<_> = staying.iter().map(certificate).collect();
    let (before, users) = (Kept::of(&stage, "win-3"), users(&stage));
    install(&stage).await;
    let narrow = rights_elsewhere(&stage).await;
    assert!(narrow.iter().all(|rights| !rights.contains("configmaps")), "{narrow:?}");
    let role = stage.cluster.object(RBAC, "roles", stage.namespace(), LEADER_ROLE);
    assert!(role.is_some(), "a person removes it");

    let observer = Observer::start(&stage, 1).await;
    let (progress, held, go) = holding_the_first();
    let running = stage.operate(progress).unwrap();
    drop(tokio::time::timeout(crate::live::scenery::PATIENCE, held.acquire()).await.unwrap());

    // In the middle: everybody waits, nothing has changed for the nodes, and their requests are answered.
    let client = admin(&stage).await;
    for member in &staying {
        for asked in renewals(member) {
            send(&client, &asked, &asked.pem()).await;
            let reason = approved(&stage, &asked).await;
            let is_daemon = asked.common_name.starts_with(wire::WICD_USER_PREFIX);
            let expected =
                if is_daemon { wire::WICD_APPROVAL_REASON } else { wire::KUBELET_APPROVAL_REASON };
            assert_eq!(reason, expected, "{}", asked.name);
        }
    }
    let theirs = nodes(&stage).iter().filter(|it| carries(it, predecessor::VERSION)).count();
    assert!(theirs >= staying.len(), "{theirs} nodes wait");
    for member in &staying {
        assert_eq!(member.has_all_or_none(), Some(true), "{}: not before its turn", member.node);
        assert!(command(member, host::KUBELET_SERVICE).contains("--v=4"), "{}", member.node);
    }
    for member in &staying {
        let is_closed = || {
            let root = member.model.snapshot().files[&hosts::path(host::ROOT)].access;
            (root == Access::Administrators).then_some(())
        };
        until(is_closed).await;
        let certificate = member.model.file(&hosts::path(host::WICD_CURRENT_CERTIFICATE));
        assert!(certificate.is_some(), "{}: its daemon works on", member.node);
    }
    go.add_permits(1);

    until(|| {
        let is_gone = services_map(&stage, predecessor::VERSION).is_none();
        let nodes = nodes(&stage);
        let needs = |node: &Arc<Value>| carries(node, predecessor::VERSION);
        assert!(!(is_gone && nodes.iter().any(needs)), "nodes need the services of their version");
        (nodes.len() == staying.len() && nodes.iter().all(|node| has_moved(node))).then_some(())
    })
    .await;
    until(|| services_map(&stage, predecessor::VERSION).is_none().then_some(())).await;
    until(|| (kept_keys(&stage).len() == 2 * staying.len()).then_some(())).await;
    running.stop().await.unwrap();
    let findings = observer.finish(&stage).await;
    assert_eq!((findings.deleted, findings.most_disrupted), (Vec::new(), 1));

    assert_eq!(Kept::of(&stage, "win-3"), before);
    check_nodes(&stage, &staying, &users);
    check_cluster(&stage);
    assert_eq!(staying.iter().map(certificate).collect::<Vec<_>>(), certificates);
    assert!(stage.hosts.counts().iter().all(|host| host.restarts == 0));
    for member in &staying {
        check_host(&stage, member);
    }
    check_left(&leaving[0]);
    assert!(staying[0].model.file(&tool).is_none(), "it is in quarantine");
    let told = notes(&stage, events::QUARANTINED);
    assert!(told.len() == 1 && told[0].contains("moved 1 files"), "{told:?}");
    stage.shutdown().await;
}

fn lock(stage: &Stage) -> Option<Arc<Value>> {
    stage.cluster.object("", "configmaps", stage.namespace(), objects::LEADER_LEASE)
}

fn command(member: &Member, service: &str) -> String {
    let name: ServiceName = service.parse().unwrap();
    member.model.services().query(&name).unwrap().unwrap().config.command
}

/// The kubelet's.
fn certificate(member: &Member) -> Vec<u8> {
    let file = member.model.file(&hosts::path(host::KUBELET_CLIENT_CERTIFICATE));
    file.unwrap().to_vec()
}

/// Encrypted user names, by Node.
fn users(stage: &Stage) -> BTreeMap<String, String> {
    let user = |node: &Arc<Value>| annotation(node, wire::USERNAME_ANNOTATION).to_owned();
    nodes(stage).iter().map(|node| (name(node), user(node))).collect()
}

/// Marks of Nodes, keys and user names.
fn check_nodes(stage: &Stage, staying: &[Member], users: &BTreeMap<String, String>) {
    let node = |name: &str| stage.cluster.object("", "nodes", "", name).unwrap();
    assert_eq!(node("win-1")["metadata"]["labels"]["example.com/rack"], "7");
    assert_eq!(node("win-1")["metadata"]["annotations"]["example.com/by"], "me");
    for member in staying {
        let node = node(&member.node);
        let is_cordoned = node["spec"]["unschedulable"] == true;
        assert_eq!(is_cordoned, member.node == "win-2", "a person's cordon stays, and no other");
        let user = annotation(&node, wire::USERNAME_ANNOTATION);
        assert_eq!(gnupg::decrypt(user, stage.key.expose()).as_deref(), Some(&*member.user));
        // That of a listed host is what its record has, in the same form.
        assert_eq!(user == users[&member.node], member.machine.is_some(), "{}", member.node);
        assert_eq!(annotation(&node, wire::HOST_KEY_ANNOTATION), member.host_key());
    }
    let kept = kept_keys(stage);
    let pins: Vec<&String> = kept.values().filter(|value| !value.starts_with('{')).collect();
    let mut expected: Vec<String> = staying.iter().map(Member::host_key).collect();
    let mut pins: Vec<String> = pins.into_iter().cloned().collect();
    pins.sort();
    expected.sort();
    assert_eq!(pins, expected);
    // Nobody was met for the first time, and nobody was refused.
    assert_eq!(notes(stage, events::HOST_KEY_PINNED), Vec::<String>::new());
    assert_eq!(notes(stage, events::HOST_KEY_MISMATCH), Vec::<String>::new());
}

/// Objects that are put right where they are.
fn check_cluster(stage: &Stage) {
    let (namespace, name) = (objects::MACHINE_API_NAMESPACE, objects::USER_DATA_SECRET);
    let secret = stage.cluster.object("", "secrets", namespace, name).unwrap();
    let text = BASE64_STANDARD.decode(secret["data"][objects::USER_DATA_KEY].as_str().unwrap());
    let key: AuthorizedKey = Key::first(stage).public.to_openssh().unwrap().parse().unwrap();
    let ours = user_data(platforms::AWS, &key, None);
    assert_eq!(String::from_utf8(text.unwrap()).unwrap(), ours);
    let (group, _, _) = SERVICE_MONITOR;
    let monitor = stage.cluster.object(group, SERVICE_MONITORS, stage.namespace(), EXPORTER);
    assert_eq!(monitor.unwrap()["spec"], exporter_monitor(stage.namespace())["spec"]);
    let lease = ("coordination.k8s.io", "leases");
    let lease = stage.cluster.object(lease.0, lease.1, stage.namespace(), objects::LEADER_LEASE);
    assert!(lease.is_some() && lock(stage).is_none(), "ours is a Lease of that name");
    let operator = format!("system:serviceaccount:{}:{}", stage.namespace(), objects::OPERATOR);
    let requests = stage.cluster.requests();
    let refused = requests.iter().filter(|it| it.user == operator && it.code == 403);
    assert_eq!(refused.count(), 0, "our rights replace theirs, and are enough");
}

/// A host that was upgraded.
fn check_host(stage: &Stage, member: &Member) {
    let name = &member.node;
    assert_eq!(member.has_all_or_none(), Some(false), "{name}: everything of theirs is replaced");
    let snapshot = member.model.snapshot();
    let path = hosts::path;
    let agent = member.model.file(&path(host::AGENT)).unwrap();
    assert_eq!(*agent, SimHost::agent_binary(bin_operator::VERSION), "{name}");
    assert!(member.model.file(&path(hosts::MINE)).is_some(), "{name}: files of others stay");
    assert_eq!(snapshot.files[&path(host::ROOT)].access, Access::Administrators, "{name}");

    let manifest = services_map(stage, bin_operator::VERSION).unwrap();
    let manifest: Vec<Value> =
        serde_json::from_str(manifest["data"]["services"].as_str().unwrap()).unwrap();
    let mut services: Vec<&str> = manifest.iter().map(|it| it["name"].as_str().unwrap()).collect();
    services.push(objects::WICD);
    for service in services {
        let found = member.model.services().query(&service.parse().unwrap()).unwrap();
        let found = found.unwrap_or_else(|| panic!("{name}: {service} is missing"));
        assert_eq!(found.state, ServiceRunState::Running, "{name}: {service}");
        let command = &found.config.command;
        assert!(!command.contains("debug") && !command.contains("--v=4"), "{name}: {command}");
    }
    assert!(!command(member, "hybrid-overlay-node").contains("--loglevel"), "{name}");
}

/// A host whose entry went: it was known by what its Node said of it.
fn check_left(member: &Member) {
    let services = member.model.services().list().unwrap().into_iter();
    let tagged = services.filter(|it| it.config.description.contains(host::SERVICE_TAG));
    assert_eq!(tagged.map(|it| it.name).collect::<Vec<_>>(), []);
    assert_eq!(member.has_all_or_none(), Some(false));
    assert!(member.model.file(&hosts::path(hosts::MINE)).is_some());
}
