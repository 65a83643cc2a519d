//! What the Go operator would find, and which Machines it would make anew, by the rules of the contract.
//!
//! Nothing of ours reads here: neither the services ConfigMap nor keys, records and user names.
//!
//! Source: `docs/contract/nodes.md`; `docs/contract/machines.md`; `docs/contract/services.md`, SVC5 to SVC23;
//! `docs/contract/ssh.md`, SSH1 to SSH16; `docs/contract/wicd.md`, WICD80 to WICD83.

use std::collections::BTreeMap;

use bin_operator::demo::Stage;
use serde_json::Value;
use wmco_core::digest::Sha256;
use wmco_core::names::{self as wire, objects};
use wmco_services::windows::Windows as _;

use super::gnupg;
use super::predecessor::Member;
use super::predecessor::cluster::{user_data_secret, without_comment};
use super::predecessor::hosts::path;
use crate::live::machines::scenery::{Key, annotation, machines, names, node_of};

/// Everything that it could not go on with; nothing is best.
pub(super) fn problems(stage: &Stage, members: &[Member]) -> Vec<String> {
    let mut problems = problems_of_cluster(stage);
    for member in members {
        let node = stage.cluster.object("", "nodes", "", &member.node).unwrap();
        let (of_node, of_host) =
            (problems_of_node(stage, member, &node), problems_of_host(stage, member, &node));
        let all = of_node.into_iter().chain(of_host);
        problems.extend(all.map(|problem| format!("{}: {problem}", member.node)));
    }
    problems
}

/// Machines that it would delete once it runs, by name.
pub(super) fn replaced(stage: &Stage) -> Vec<String> {
    let (namespace, secret) = (objects::MACHINE_API_NAMESPACE, objects::USER_DATA_SECRET);
    let found = stage.cluster.object("", "secrets", namespace, secret);
    // Other bytes than its own clear the hash on all Nodes of Machines; a Secret that is not there is made.
    let key = objects::USER_DATA_KEY;
    if found.is_some_and(|found| found["data"][key] != user_data_secret(stage)["data"][key]) {
        return names(&machines(stage));
    }
    let is_of_another_key = |machine: &String| {
        let node = node_of(stage, machine);
        node.is_some_and(|node| {
            !annotation(&node, wire::VERSION_ANNOTATION).is_empty()
                && annotation(&node, wire::PUBLIC_KEY_HASH_ANNOTATION) != key_hash(stage)
        })
    };
    names(&machines(stage)).into_iter().filter(is_of_another_key).collect()
}

/// SHA-256 of the key as it stands in `authorized_keys`, without a comment.
fn key_hash(stage: &Stage) -> String {
    let line = without_comment(&Key::first(stage).public.to_openssh().unwrap());
    Sha256::of(line.as_bytes()).to_string()
}

fn says(problems: &mut Vec<String>, is_so: bool, problem: impl FnOnce() -> String) {
    if !is_so {
        problems.push(problem());
    }
}

fn problems_of_cluster(stage: &Stage) -> Vec<String> {
    let mut problems = Vec::new();
    let namespace = stage.namespace();
    let bindings = [("rolebindings", namespace), ("clusterrolebindings", "")];
    for (plural, namespace) in bindings {
        let group = "rbac.authorization.k8s.io";
        let found = stage.cluster.object(group, plural, namespace, objects::WICD).unwrap();
        let subjects = found["subjects"].as_array().unwrap();
        let is_right = found["roleRef"]["name"] == objects::WICD
            && subjects.len() == 1
            && subjects[0]["kind"] == "ServiceAccount"
            && subjects[0]["name"] == objects::WICD
            && subjects[0]["namespace"] == objects::DEFAULT_NAMESPACE;
        says(&mut problems, is_right, || format!("it would replace {plural} {found}"));
    }
    let token = stage.cluster.object("", "secrets", namespace, objects::WICD).unwrap();
    let account = annotation(&token, "kubernetes.io/service-account.name");
    let is_right = token["type"] == "kubernetes.io/service-account-token"
        && account == objects::WICD
        && ["ca.crt", "token"].iter().all(|key| token["data"][*key].is_string());
    says(&mut problems, is_right, || format!("its token Secret is {}", token["type"]));
    let list = objects::INSTANCES_CONFIG_MAP;
    let list = stage.cluster.object("", "configmaps", namespace, list).unwrap();
    for (address, value) in list["data"].as_object().unwrap() {
        let user = value.as_str().unwrap().split_once('=').filter(|(key, _)| *key == "username");
        let is_right = user.is_some_and(|(_, user)| !user.is_empty() && !user.contains('\n'));
        says(&mut problems, is_right, || format!("it cannot read entry {address}"));
    }
    problems
}

fn problems_of_node(stage: &Stage, member: &Member, node: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let labels = &node["metadata"]["labels"];
    let listed = if member.machine.is_none() { Value::from("true") } else { Value::Null };
    let worker = if member.machine.is_none() { Value::from("") } else { Value::Null };
    for (label, expected) in [
        (wire::OS_LABEL, "windows".into()),
        (wire::OS_ID_LABEL, "Windows".into()),
        (wire::BYOH_LABEL, listed),
        (wire::WORKER_LABEL, worker),
        (wire::UPGRADING_LABEL, Value::Null),
    ] {
        says(&mut problems, labels[label] == expected, || {
            format!("label {label} is {}", labels[label])
        });
    }
    let of = |name: &str| annotation(node, name);
    let is_at_rest = of(wire::VERSION_ANNOTATION) == of(wire::DESIRED_VERSION_ANNOTATION)
        && node["metadata"]["annotations"][wire::REBOOT_ANNOTATION].is_null()
        && node["spec"]["unschedulable"].is_null();
    says(&mut problems, is_at_rest, || "it is in the middle of something".to_owned());
    let is_right = of(wire::PUBLIC_KEY_HASH_ANNOTATION) == key_hash(stage);
    says(&mut problems, is_right, || "the hash is of another key".to_owned());
    let user = gnupg::decrypt(of(wire::USERNAME_ANNOTATION), stage.key.expose());
    let is_right = user.as_deref() == Some(&*member.user);
    says(&mut problems, is_right, || format!("the user name is read as {user:?}"));
    let is_right = of(wire::HOST_KEY_ANNOTATION) == member.host_key()
        && of(wire::HOST_KEY_TYPE_ANNOTATION) == member.key.algorithm().as_str();
    says(&mut problems, is_right, || "another host key is pinned".to_owned());
    let map = objects::HOST_KEYS_CONFIG_MAP;
    let map = stage.cluster.object("", "configmaps", stage.namespace(), map);
    let pinned = map.map_or(Value::Null, |map| map["data"][&member.address].clone());
    let is_right = pinned.is_null() || pinned == member.host_key();
    says(&mut problems, is_right, || format!("the ConfigMap pins {pinned}"));
    let addresses = node["status"]["addresses"].as_array().unwrap();
    let internal =
        |address: &&Value| ["InternalIP", "InternalDNS"].iter().any(|t| address["type"] == *t);
    let usable = addresses.iter().find(internal).map(|address| address["address"].clone());
    let is_right = usable == Some(Value::from(member.address.clone()));
    says(&mut problems, is_right, || format!("it would connect to {usable:?}"));
    problems
}

/// What its cleanup would not find, or would leave.
fn problems_of_host(stage: &Stage, member: &Member, node: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let version = annotation(node, wire::VERSION_ANNOTATION);
    let map = format!("windows-services-{version}");
    let Some(map) = stage.cluster.object("", "configmaps", stage.namespace(), &map) else {
        return vec![format!("there is no ConfigMap {map}")];
    };
    let services = match manifest(&map) {
        Ok(services) => services,
        Err(problem) => return vec![problem],
    };
    let found: BTreeMap<String, String> = member
        .model
        .services()
        .list()
        .unwrap()
        .into_iter()
        .map(|service| (service.name.to_string(), service.config.description))
        .collect();
    let tag = |service: &str| format!("OpenShift managed {service}");
    for service in services.iter().map(String::as_str).chain([objects::WICD]) {
        let is_right = found.get(service) == Some(&tag(service));
        says(&mut problems, is_right, || format!("service {service} is {:?}", found.get(service)));
    }
    for (service, description) in &found {
        let is_known = services.contains(service) || service == objects::WICD;
        let is_tagged = description.contains("OpenShift managed");
        says(&mut problems, is_known || !is_tagged, || format!("no ConfigMap names {service}"));
    }
    for file in [
        r"C:\k\windows-instance-config-daemon.exe",
        r"C:\k\kubeconfig",
        r"C:\var\lib\kubelet\pki\kubelet-client-current.pem",
        r"C:\k\wicd-certs\wicd-client-current.pem",
    ] {
        says(&mut problems, member.model.file(&path(file)).is_some(), || {
            format!("{file} is missing")
        });
    }
    let keys = member.model.file(&path(r"C:\ProgramData\ssh\administrators_authorized_keys"));
    let keys = String::from_utf8(keys.unwrap().to_vec()).unwrap();
    let key = Key::first(stage).public.to_openssh().unwrap();
    let lets_in = keys.lines().any(|line| without_comment(line) == without_comment(&key));
    says(&mut problems, lets_in, || "its key opens nothing".to_owned());
    problems
}

/// Names of the services of a ConfigMap, in their order; an error when it would refuse it.
fn manifest(map: &Value) -> Result<Vec<String>, String> {
    let data = map["data"].as_object().ok_or("no data")?;
    if map["immutable"] != true || !(2..=4).contains(&data.len()) {
        return Err(format!("{} keys", data.len()));
    }
    let value = |key: &str| -> Result<Value, String> {
        let text = data.get(key).and_then(Value::as_str).ok_or(format!("no key {key}"))?;
        serde_json::from_str(text).map_err(|error| format!("{key}: {error}"))
    };
    if !value("files")?.is_array() {
        return Err("files is no list".to_owned());
    }
    let is_texts =
        |list: &Value| list.as_array().is_some_and(|all| all.iter().all(Value::is_string));
    if data.contains_key("watchedEnvironmentVars") && !is_texts(&value("watchedEnvironmentVars")?) {
        return Err("watchedEnvironmentVars is no list of texts".to_owned());
    }
    let mut services = value("services")?.as_array().ok_or("services is no list")?.clone();
    services.sort_by_key(|service| service["priority"].as_u64());
    let bootstrap: Vec<bool> = services.iter().map(|it| it["bootstrap"] == true).collect();
    let is_parted = bootstrap.is_sorted_by(|before, after| before >= after);
    let last = services.iter().rfind(|it| it["bootstrap"] == true).map(|it| &it["priority"]);
    let overlaps =
        services.iter().any(|it| it["bootstrap"] == false && Some(&it["priority"]) == last);
    if !is_parted || overlaps {
        return Err("services of the bootstrap do not come first".to_owned());
    }
    for service in &services {
        let scripts = service["powershellPreScripts"].as_array();
        let is_right = service["name"].is_string()
            && service["path"].is_string()
            && service["bootstrap"].is_boolean()
            && service["priority"].is_u64()
            && (service["dependencies"].is_null() || is_texts(&service["dependencies"]))
            && scripts.into_iter().flatten().all(|script| {
                // The name of this field has capitals, and it is never left out.
                let arguments = script.get("NodeArgs");
                script["path"].is_string()
                    && arguments.is_some_and(|it| it.is_null() || it.is_array())
            });
        if !is_right {
            return Err(format!("it cannot read service {service}"));
        }
    }
    Ok(services.iter().map(name_of_service).collect())
}

fn name_of_service(service: &Value) -> String {
    service["name"].as_str().unwrap_or_default().to_owned()
}
