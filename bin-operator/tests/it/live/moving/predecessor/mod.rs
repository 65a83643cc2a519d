//! A cluster as the Go operator leaves it: see the page of [`super`] for what is not its own.

mod approver;
pub(super) mod cluster;
pub(super) mod hosts;
mod services;
mod user_data;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bin_operator::demo::Stage;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject};
use russh::keys::PublicKey;
use serde_json::{Value, json};
use wmco_core::names::{self as wire, objects, platforms};
use wmco_services::fake::FakeWindows;
use wmco_sim::host::SimHost;

use super::scenery::{manifests, patch_node};
use crate::live::machines::scenery::{SET, annotation, hosts as hosts_of_machines, machines, name};
use crate::live::scenery::{addresses, admin, listed, nodes, until};

/// The version that it is at first.
pub(super) const VERSION: &str = "10.19.0-3d7a1b2";

/// Name of its Pod.
pub(super) const POD: &str = "windows-machine-config-operator-6c9b5d7f4-x2x7k";

/// Name of the Role with which it asks for its lock, and here of the binding to it.
pub(super) const LEADER_ROLE: &str = "leader-election-role";

/// One of its nodes.
pub(super) struct Member {
    pub(super) node: String,
    pub(super) address: String,
    pub(super) user: String,
    /// Name of its Machine; none: people listed its host.
    pub(super) machine: Option<String>,
    pub(super) model: FakeWindows,
    pub(super) key: PublicKey,
}

impl Member {
    fn of(host: &SimHost, machine: Option<String>, node: String, address: String) -> Self {
        Self {
            node,
            address,
            user: host.user().to_owned(),
            machine,
            model: host.model().clone(),
            key: host.host_keys().remove(0),
        }
    }

    /// The key of its host as the Go operator pins it.
    pub(super) fn host_key(&self) -> String {
        BASE64_STANDARD.encode(self.key.to_bytes().unwrap())
    }

    /// Whether a program or a script of the Go operator is where it put it.
    pub(super) fn has_theirs(&self, at: &str) -> bool {
        let theirs = hosts::content(at).into_bytes();
        self.model.file(&hosts::path(at)).is_some_and(|found| *found == theirs)
    }

    /// Whether all its programs and scripts are there, or none.
    pub(super) fn has_all_or_none(&self) -> Option<bool> {
        let found: Vec<bool> =
            hosts::PROGRAMS.iter().chain(&hosts::SCRIPTS).map(|at| self.has_theirs(at)).collect();
        let all = *found.first().unwrap();
        found.iter().all(|one| *one == all).then_some(all)
    }
}

/// A cloud on AWS with so many Machines, and so many listed hosts beside them, all of them nodes of the Go
/// operator, which runs.
pub(super) async fn left(entries: u8, of_machines: u32) -> (Stage, Vec<Member>) {
    let listed = listed(&addresses(entries));
    let stage = Stage::start_on(platforms::AWS, &listed, |_, host| host).await.unwrap();
    remove_rights_of_ours(&stage).await;
    cluster::install(&stage, VERSION);
    cluster::install_inputs(&stage);
    stage.start_machines(|machines| machines).await.unwrap();
    stage.scale(SET, of_machines).unwrap();
    let expected = usize::try_from(of_machines).unwrap();
    until(|| (hosts_of_machines(&stage).len() == expected).then_some(())).await;
    let (namespace, token) = (stage.namespace(), objects::TOKEN_KEY);
    until(|| {
        let secret = stage.cluster.object("", "secrets", namespace, objects::WICD)?;
        secret["data"][token].is_string().then_some(())
    })
    .await;
    let members = until(|| members(&stage)).await;
    configure(&stage, &members, VERSION).await;
    (stage, members)
}

/// All hosts, listed ones first, once all Machines tell their addresses.
fn members(stage: &Stage) -> Option<Vec<Member>> {
    let mut members: Vec<Member> = stage
        .hosts
        .iter()
        .enumerate()
        .map(|(number, (address, host))| {
            Member::of(host, None, format!("win-{}", number + 1), address.to_owned())
        })
        .collect();
    let all = machines(stage);
    for (machine, host) in hosts_of_machines(stage) {
        let found = all.iter().find(|found| name(found) == machine)?;
        let shown = found["status"]["addresses"].as_array()?;
        let of_type = |wanted: &str| {
            let address = shown.iter().find(|address| address["type"] == wanted)?;
            Some(address["address"].as_str()?.to_owned())
        };
        let (node, address) = (of_type("InternalDNS")?, of_type("InternalIP")?);
        members.push(Member::of(&host, Some(machine), node, address));
    }
    Some(members)
}

/// Makes hosts nodes, or has them be nodes of another version; a Node that is there stays.
pub(super) async fn configure(stage: &Stage, members: &[Member], version: &str) {
    let approver = approver::start(admin(stage).await);
    for member in members {
        hosts::bootstrap(stage, member);
    }
    for member in members {
        until(|| stage.cluster.object("", "nodes", "", &member.node)).await;
        hosts::mark(stage, member, version, true).await;
        hosts::start_daemon(member);
    }
    until(|| {
        let nodes = nodes(stage);
        let done =
            nodes.iter().filter(|node| annotation(node, wire::VERSION_ANNOTATION) == version);
        let ready = done.filter(|node| {
            let conditions = node["status"]["conditions"].as_array();
            conditions.is_some_and(|all| {
                all.iter().any(|it| it["type"] == "Ready" && it["status"] == "True")
            })
        });
        (ready.count() == members.len()).then_some(())
    })
    .await;
    // Their serving certificates are asked for beside all that.
    until(|| approver::has_approved(stage, 3 * members.len()).then_some(())).await;
    approver.abort();
    for member in members {
        hosts::remove_traces_of_ours(member);
    }
    if let Some(first) = members.first() {
        hosts::hand_over_to_certificate(stage, first);
    }
}

/// It is there again, with another version, and has upgraded all nodes: host by host what was there is gone, and
/// its own things are in the place of it; the Nodes stay what they are.
pub(super) async fn come_back(stage: &Stage, members: &[Member], version: &str) {
    cluster::install(stage, version);
    // Marks of ours mean nothing to its daemon, but they do to the one that runs in its place here.
    let marks = [wire::SERVICES_ANNOTATION, wire::ROOTS_ANNOTATION];
    let mut former = Vec::new();
    for member in members {
        hosts::deconfigure(member);
        let node = stage.cluster.object("", "nodes", "", &member.node).unwrap();
        let found = marks.map(|mark| (mark, node["metadata"]["annotations"][mark].clone()));
        assert!(found.iter().any(|(_, value)| value.is_string()), "{node:#}");
        let patch = |value: &dyn Fn(&Value) -> Value| {
            let annotations: serde_json::Map<String, Value> =
                found.iter().map(|(mark, former)| ((*mark).to_owned(), value(former))).collect();
            json!({"metadata": {"annotations": annotations}})
        };
        patch_node(stage, &member.node, &patch(&|_| Value::Null)).await;
        former.push((member, patch(&Value::clone)));
    }
    configure(stage, members, version).await;
    for (member, patch) in former {
        patch_node(stage, &member.node, &patch).await;
    }
    let ours = services::config_map(stage.namespace(), bin_operator::VERSION, "");
    delete(&admin(stage).await, &ours).await;
}

/// Stops it as people do: its Pod goes, and what the Pod owns.
pub(super) async fn stop(stage: &Stage) {
    let pods: Api<k8s_openapi::api::core::v1::Pod> =
        Api::namespaced(admin(stage).await, stage.namespace());
    pods.delete(POD, &DeleteParams::default().grace_period(0)).await.unwrap();
    until(|| stage.cluster.object("", "pods", stage.namespace(), POD).is_none().then_some(()))
        .await;
}

/// The stage has them, but nobody has installed us yet.
async fn remove_rights_of_ours(stage: &Stage) {
    let client = admin(stage).await;
    for object in manifests() {
        if !object["apiVersion"].as_str().unwrap().starts_with("rbac") {
            continue;
        }
        delete(&client, &object).await;
    }
}

async fn delete(client: &kube::Client, object: &Value) {
    let (api, name) = api_of(client, object);
    match api.delete(&name, &DeleteParams::default()).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.is_not_found() => {}
        Err(error) => panic!("{name}: {error}"),
    }
}

/// Where to find an object, and its name.
pub(super) fn api_of(client: &kube::Client, object: &Value) -> (Api<DynamicObject>, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let version = text(&object["apiVersion"]);
    let (group, version) = version.rsplit_once('/').unwrap_or(("", &version));
    let kind = kube::api::GroupVersionKind::gvk(group, version, &text(&object["kind"]));
    let resource = ApiResource::from_gvk(&kind);
    let api = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    (api, text(&object["metadata"]["name"]))
}
