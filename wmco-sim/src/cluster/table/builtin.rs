//! Cells of the built-in kinds. Source: Kubernetes' `pkg/printers/internalversion`.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::cells::{age, age_of, human, list, number, or, size, text};
use crate::cluster::meta;
use crate::cluster::resources::Resource;

const NONE: &str = "<none>";
const UNKNOWN: &str = "<unknown>";

/// The cells of one row.
pub(super) fn cells(resource: &Resource, object: &Value, now: Timestamp) -> Vec<Value> {
    let name: Value = meta::name(object).into();
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "configmaps") => {
            let data = size(object, "/data") + size(object, "/binaryData");
            vec![name, data.into(), age(object, now)]
        }
        ("" | "events.k8s.io", "events") => event(object, now),
        ("", "namespaces") => vec![name, text(object, "/status/phase").into(), age(object, now)],
        ("", "nodes") => node(object, now),
        ("", "pods") => pod(object, now),
        ("", "secrets") => {
            let kind = text(object, "/type").into();
            vec![name, kind, size(object, "/data").into(), age(object, now)]
        }
        ("", "services") => service(object, now),
        ("apps", "deployments") => deployment(object, now),
        ("apps", "daemonsets") => daemon_set(object, now),
        ("policy", "poddisruptionbudgets") => {
            let limit = |pointer: &str| match object.pointer(pointer) {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Number(number)) => number.to_string(),
                _ => "N/A".to_owned(),
            };
            vec![
                name,
                limit("/spec/minAvailable").into(),
                limit("/spec/maxUnavailable").into(),
                number(object, "/status/disruptionsAllowed").into(),
                age(object, now),
            ]
        }
        ("coordination.k8s.io", "leases") => {
            vec![name, text(object, "/spec/holderIdentity").into(), age(object, now)]
        }
        ("certificates.k8s.io", _) => request(object, now),
        ("discovery.k8s.io", _) => {
            let ports = list(object, "/ports").iter().map(|port| {
                let number = number(port, "/port");
                if number == 0 { "*".to_owned() } else { number.to_string() }
            });
            let addresses = list(object, "/endpoints")
                .iter()
                .flat_map(|endpoint| list(endpoint, "/addresses"))
                .filter_map(Value::as_str)
                .map(str::to_owned);
            vec![
                name,
                text(object, "/addressType").into(),
                first_three(&ports.collect::<Vec<_>>(), "<unset>").into(),
                first_three(&addresses.collect::<Vec<_>>(), "<unset>").into(),
                age(object, now),
            ]
        }
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => {
            let role =
                format!("{}/{}", text(object, "/roleRef/kind"), text(object, "/roleRef/name"));
            let subjects = |kind: &str| -> Value {
                let chosen = list(object, "/subjects").iter().filter(|s| text(s, "/kind") == kind);
                let names = chosen.map(|subject| match kind {
                    "ServiceAccount" => {
                        format!("{}/{}", text(subject, "/namespace"), text(subject, "/name"))
                    }
                    _ => text(subject, "/name").to_owned(),
                });
                names.collect::<Vec<_>>().join(", ").into()
            };
            let age = age(object, now);
            let users = subjects("User");
            vec![name, role.into(), age, users, subjects("Group"), subjects("ServiceAccount")]
        }
        ("rbac.authorization.k8s.io" | "apiextensions.k8s.io", _) => {
            vec![name, meta::text(object, "creationTimestamp").into()]
        }
        _ => vec![name, age(object, now)],
    }
}

fn first_three(texts: &[String], none: &str) -> String {
    if texts.is_empty() {
        return none.to_owned();
    }
    let shown = texts.iter().take(3).cloned().collect::<Vec<_>>().join(",");
    match texts.len().saturating_sub(3) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}

fn event(object: &Value, now: Timestamp) -> Vec<Value> {
    let either = |core: &str, new: &str| or(text(object, core), text(object, new)).to_owned();
    let first = either("/firstTimestamp", "/deprecatedFirstTimestamp");
    let last = either("/lastTimestamp", "/deprecatedLastTimestamp");
    let first = or(&first, text(object, "/eventTime")).to_owned();
    let count = number(object, "/series/count").max(number(object, "/count")).max(1);
    let last = or(text(object, "/series/lastObservedTime"), or(&last, &first)).to_owned();
    let reference =
        if object.get("regarding").is_some() { "/regarding" } else { "/involvedObject" };
    let part = |member: &str| text(object, &format!("{reference}/{member}")).to_owned();
    let component = either("/reportingComponent", "/reportingController");
    let old =
        |member: &str| either(&format!("/source/{member}"), &format!("/deprecatedSource/{member}"));
    let host = or(&old("host"), text(object, "/reportingInstance")).to_owned();
    let source = or(&old("component"), &component).to_owned();
    let source = if host.is_empty() { source } else { format!("{source}, {host}") };
    vec![
        age_of(&last, now).into(),
        text(object, "/type").into(),
        text(object, "/reason").into(),
        format!("{}/{}", part("kind").to_lowercase(), part("name")).into(),
        part("fieldPath").into(),
        source.into(),
        either("/message", "/note").trim().into(),
        age_of(&first, now).into(),
        count.into(),
        meta::name(object).into(),
    ]
}

fn node(object: &Value, now: Timestamp) -> Vec<Value> {
    let ready = list(object, "/status/conditions")
        .iter()
        .find(|condition| text(condition, "/type") == "Ready")
        .map(|condition| text(condition, "/status"));
    let mut status = match ready {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if object.pointer("/spec/unschedulable") == Some(&Value::Bool(true)) {
        status.push_str(",SchedulingDisabled");
    }
    let mut roles = BTreeSet::new();
    for (key, value) in meta::get(object, "labels").and_then(Value::as_object).into_iter().flatten()
    {
        if let Some(role) = key.strip_prefix("node-role.kubernetes.io/") {
            roles.insert(role.to_owned());
        } else if key == "kubernetes.io/role" {
            roles.insert(value.as_str().unwrap_or("").to_owned());
        }
    }
    roles.remove("");
    let roles = roles.into_iter().collect::<Vec<_>>().join(",");
    let address = |kind: &str| {
        let found = list(object, "/status/addresses").iter().find(|a| text(a, "/type") == kind);
        Value::from(found.map_or(NONE, |found| text(found, "/address")))
    };
    let info = |member: &str| text(object, &format!("/status/nodeInfo/{member}")).to_owned();
    let mut kernel = info("kernelVersion");
    let architecture = info("architecture");
    if kernel.is_empty() {
        UNKNOWN.clone_into(&mut kernel);
    } else if !architecture.is_empty() {
        kernel = format!("{kernel} ({architecture})");
    }
    vec![
        meta::name(object).into(),
        status.into(),
        or(&roles, NONE).into(),
        age(object, now),
        info("kubeletVersion").into(),
        address("InternalIP"),
        address("ExternalIP"),
        or(&info("osImage"), UNKNOWN).into(),
        kernel.into(),
        or(&info("containerRuntimeVersion"), UNKNOWN).into(),
    ]
}

fn pod(object: &Value, now: Timestamp) -> Vec<Value> {
    let total = size(object, "/spec/containers");
    let mut ready = 0;
    let mut restarts = 0;
    let mut last_restart = None;
    let phase = text(object, "/status/phase");
    let mut reason = or(text(object, "/status/reason"), phase).to_owned();
    let mut running = false;
    for container in list(object, "/status/containerStatuses").iter().rev() {
        restarts += number(container, "/restartCount");
        let ended: Option<Timestamp> =
            text(container, "/lastState/terminated/finishedAt").parse().ok();
        last_restart = last_restart.max(ended);
        let waiting = text(container, "/state/waiting/reason");
        let terminated = text(container, "/state/terminated/reason");
        if !waiting.is_empty() {
            waiting.clone_into(&mut reason);
        } else if !terminated.is_empty() {
            terminated.clone_into(&mut reason);
        } else if container.pointer("/state/terminated").is_some() {
            let code = number(container, "/state/terminated/exitCode");
            let signal = number(container, "/state/terminated/signal");
            reason =
                if signal == 0 { format!("ExitCode:{code}") } else { format!("Signal:{signal}") };
        } else if container.get("ready") == Some(&Value::Bool(true))
            && container.pointer("/state/running").is_some()
        {
            running = true;
            ready += 1;
        }
    }
    if reason == "Completed" && running {
        "Running".clone_into(&mut reason);
    }
    if meta::is_deleting(object) {
        let lost = text(object, "/status/reason") == "NodeLost";
        let ended = matches!(phase, "Failed" | "Succeeded");
        if lost {
            "Unknown".clone_into(&mut reason);
        } else if !ended {
            "Terminating".clone_into(&mut reason);
        }
    }
    let gates = size(object, "/spec/readinessGates");
    let passed = list(object, "/spec/readinessGates").iter().filter(|gate| {
        list(object, "/status/conditions").iter().any(|condition| {
            text(condition, "/type") == text(gate, "/conditionType")
                && text(condition, "/status") == "True"
        })
    });
    let gates = if gates == 0 { NONE.to_owned() } else { format!("{}/{gates}", passed.count()) };
    vec![
        meta::name(object).into(),
        format!("{ready}/{total}").into(),
        reason.into(),
        restarted(restarts, last_restart, now).into(),
        age(object, now),
        or(text(object, "/status/podIP"), NONE).into(),
        or(text(object, "/spec/nodeName"), NONE).into(),
        or(text(object, "/status/nominatedNodeName"), NONE).into(),
        gates.into(),
    ]
}

/// `2`, or `2 (5m ago)` when it is known when the last one was.
fn restarted(count: i64, last: Option<Timestamp>, now: Timestamp) -> String {
    match last {
        Some(last) if count > 0 => {
            format!("{count} ({} ago)", human(now.as_second() - last.as_second()))
        }
        _ => count.to_string(),
    }
}

fn labels(object: &Value, pointer: &str) -> String {
    let map = object.pointer(pointer).and_then(Value::as_object);
    let pairs = map.into_iter().flatten();
    let pairs = pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or("")));
    let text = pairs.collect::<Vec<_>>().join(",");
    if text.is_empty() { NONE.to_owned() } else { text }
}

fn service(object: &Value, now: Timestamp) -> Vec<Value> {
    let kind = text(object, "/spec/type");
    let ingress = list(object, "/status/loadBalancer/ingress").iter();
    let ingress = ingress.map(|at| or(text(at, "/ip"), text(at, "/hostname")).to_owned());
    let ingress: Vec<String> = ingress.collect();
    let external = list(object, "/spec/externalIPs").iter().filter_map(Value::as_str);
    let external: Vec<String> = external.map(str::to_owned).chain(ingress).collect();
    let external = match kind {
        "ExternalName" => text(object, "/spec/externalName").to_owned(),
        "LoadBalancer" if external.is_empty() => "<pending>".to_owned(),
        _ if external.is_empty() => NONE.to_owned(),
        _ => external.join(","),
    };
    let ports = list(object, "/spec/ports").iter().map(|port| {
        let protocol = text(port, "/protocol");
        match number(port, "/nodePort") {
            0 => format!("{}/{protocol}", number(port, "/port")),
            node => format!("{}:{node}/{protocol}", number(port, "/port")),
        }
    });
    let ports = ports.collect::<Vec<_>>().join(",");
    vec![
        meta::name(object).into(),
        kind.into(),
        or(text(object, "/spec/clusterIP"), NONE).into(),
        external.into(),
        or(&ports, NONE).into(),
        age(object, now),
        labels(object, "/spec/selector").into(),
    ]
}

/// Names and images of the containers of a template, and the selector.
fn template(object: &Value) -> [Value; 3] {
    let joined = |member: &str| {
        let containers = list(object, "/spec/template/spec/containers").iter();
        containers.map(|container| text(container, member)).collect::<Vec<_>>().join(",")
    };
    let selector = labels(object, "/spec/selector/matchLabels");
    [joined("/name").into(), joined("/image").into(), selector.into()]
}

fn deployment(object: &Value, now: Timestamp) -> Vec<Value> {
    let wanted = object.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    let ready = number(object, "/status/readyReplicas");
    let mut row: Vec<Value> = vec![
        meta::name(object).into(),
        format!("{ready}/{wanted}").into(),
        number(object, "/status/updatedReplicas").into(),
        number(object, "/status/availableReplicas").into(),
        age(object, now),
    ];
    row.extend(template(object));
    row
}

fn daemon_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let status = |member: &str| Value::from(number(object, &format!("/status/{member}")));
    let mut row: Vec<Value> = vec![
        meta::name(object).into(),
        status("desiredNumberScheduled"),
        status("currentNumberScheduled"),
        status("numberReady"),
        status("updatedNumberScheduled"),
        status("numberAvailable"),
        labels(object, "/spec/template/spec/nodeSelector").into(),
        age(object, now),
    ];
    row.extend(template(object));
    row
}

fn request(object: &Value, now: Timestamp) -> Vec<Value> {
    let has = |kind: &str| {
        let mut conditions = list(object, "/status/conditions").iter();
        conditions.any(|condition| text(condition, "/type") == kind)
    };
    let mut condition = if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    }
    .to_owned();
    if has("Failed") {
        condition.push_str(",Failed");
    }
    if !text(object, "/status/certificate").is_empty() {
        condition.push_str(",Issued");
    }
    let duration = object.pointer("/spec/expirationSeconds").and_then(Value::as_i64);
    vec![
        meta::name(object).into(),
        age(object, now),
        or(text(object, "/spec/signerName"), NONE).into(),
        text(object, "/spec/username").into(),
        duration.map_or_else(|| NONE.to_owned(), human).into(),
        condition.into(),
    ]
}
