//! Defaults of a Pod, or of a Pod template.

use serde_json::{Map, Value, json};

use super::super::values::{items_mut, or_default};

const READABLE: i64 = 0o644;

/// Fills in the defaults of a Pod. On the network of its Node a port is one of the Node; in a template that stays
/// open.
pub(super) fn pod(pod: &mut Value) {
    spec_of(pod);
    if pod.pointer("/spec/hostNetwork") == Some(&true.into()) {
        for list in ["/spec/containers", "/spec/initContainers"] {
            items_mut(pod, list).for_each(host_ports);
        }
    }
    addresses(pod);
    if let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) {
        or_default(spec, "enableServiceLinks", true);
    }
}

/// Fills in the defaults of the template at `pointer`.
pub(crate) fn template(object: &mut Value, pointer: &str) {
    if let Some(template) = object.pointer_mut(pointer) {
        spec_of(template);
    }
}

fn host_ports(container: &mut Map<String, Value>) {
    let ports = container.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        if let Some(own) = port.get("containerPort").cloned() {
            or_default(port, "hostPort", own);
        }
    }
}

/// Synchronizes the two members for the Pod's addresses; the older one wins.
fn addresses(pod: &mut Value) {
    let Some(status) = pod.get_mut("status").and_then(Value::as_object_mut) else { return };
    for (one, all) in [("podIP", "podIPs"), ("hostIP", "hostIPs")] {
        let single = status.get(one).and_then(Value::as_str).unwrap_or("").to_owned();
        let first = status.get(all).and_then(|all| all.pointer("/0/ip")).and_then(Value::as_str);
        let first = first.unwrap_or("").to_owned();
        if one == "podIP" && single.is_empty() && !first.is_empty() {
            status.insert(one.to_owned(), first.into());
        } else if !single.is_empty() && single != first {
            status.insert(all.to_owned(), json!([{"ip": single}]));
        }
    }
}

fn spec_of(pod: &mut Value) {
    for list in ["/spec/containers", "/spec/initContainers"] {
        for container in items_mut(pod, list) {
            self::container(container);
        }
    }
    for volume in items_mut(pod, "/spec/volumes") {
        self::volume(volume);
    }
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return };
    or_default(spec, "restartPolicy", "Always");
    or_default(spec, "terminationGracePeriodSeconds", 30);
    or_default(spec, "dnsPolicy", "ClusterFirst");
    or_default(spec, "securityContext", json!({}));
    or_default(spec, "schedulerName", "default-scheduler");
    // Two names for the same member.
    if let Some(account) = spec.get("serviceAccountName").cloned() {
        spec.insert("serviceAccount".to_owned(), account);
    } else if let Some(account) = spec.get("serviceAccount").cloned() {
        spec.insert("serviceAccountName".to_owned(), account);
    }
}

fn container(container: &mut Map<String, Value>) {
    or_default(container, "terminationMessagePath", "/dev/termination-log");
    or_default(container, "terminationMessagePolicy", "File");
    let image = container.get("image").and_then(Value::as_str).unwrap_or("");
    if !image.is_empty() {
        let policy = if is_latest(image) { "Always" } else { "IfNotPresent" };
        or_default(container, "imagePullPolicy", policy);
    }
    let limits = container.get("resources").and_then(|resources| resources.get("limits")).cloned();
    if let (Some(Value::Object(limits)), Some(resources)) =
        (limits, container.get_mut("resources").and_then(Value::as_object_mut))
    {
        let requests = resources.entry("requests").or_insert_with(|| json!({}));
        if let Some(requests) = requests.as_object_mut() {
            for (name, limit) in limits {
                requests.entry(name).or_insert(limit);
            }
        }
    }
    let ports = container.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        or_default(port, "protocol", "TCP");
    }
    let env = container.get_mut("env").and_then(Value::as_array_mut);
    for variable in env.into_iter().flatten() {
        if let Some(field) = variable.pointer_mut("/valueFrom/fieldRef")
            && let Some(field) = field.as_object_mut()
        {
            or_default(field, "apiVersion", "v1");
        }
        if let Some(field) = variable.pointer_mut("/valueFrom/resourceFieldRef")
            && let Some(field) = field.as_object_mut()
        {
            or_default(field, "divisor", "0");
        }
    }
    for hook in ["postStart", "preStop"] {
        let get =
            container.get_mut("lifecycle").and_then(|own| own.get_mut(hook)?.get_mut("httpGet"));
        if let Some(get) = get.and_then(Value::as_object_mut) {
            http_get(get);
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(name).and_then(Value::as_object_mut) {
            self::probe(probe);
        }
    }
}

fn probe(probe: &mut Map<String, Value>) {
    or_default(probe, "timeoutSeconds", 1);
    or_default(probe, "periodSeconds", 10);
    or_default(probe, "successThreshold", 1);
    or_default(probe, "failureThreshold", 3);
    if let Some(get) = probe.get_mut("httpGet").and_then(Value::as_object_mut) {
        http_get(get);
    }
}

fn http_get(get: &mut Map<String, Value>) {
    or_default(get, "path", "/");
    or_default(get, "scheme", "HTTP");
}

/// Whether an image has neither tag nor digest, or the tag `latest`.
fn is_latest(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    let name = image.rsplit('/').next().unwrap_or(image);
    name.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

fn volume(volume: &mut Map<String, Value>) {
    if volume.keys().all(|key| key == "name") {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    for source in ["secret", "configMap", "projected", "downwardAPI"] {
        if let Some(source) = volume.get_mut(source).and_then(Value::as_object_mut) {
            or_default(source, "defaultMode", READABLE);
        }
    }
    if let Some(path) = volume.get_mut("hostPath").and_then(Value::as_object_mut) {
        or_default(path, "type", "");
    }
    let sources = volume.get_mut("projected").and_then(|projected| projected.get_mut("sources"));
    for source in sources.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(token) = source.get_mut("serviceAccountToken").and_then(Value::as_object_mut) {
            or_default(token, "expirationSeconds", 3600);
        }
        for item in items_mut(source, "/downwardAPI/items") {
            if let Some(field) = item.get_mut("fieldRef").and_then(Value::as_object_mut) {
                or_default(field, "apiVersion", "v1");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_images_are_always_pulled() {
        assert!(is_latest("registry.example:5000/pause"));
        assert!(is_latest("pause:latest"));
        assert!(!is_latest("registry.example/pause:1"));
        assert!(!is_latest("pause@sha256:00"));
    }

    #[test]
    fn defaults_do_not_replace() {
        let mut given = json!({"spec": {"restartPolicy": "Never",
            "containers": [{"name": "c", "image": "a:1", "imagePullPolicy": "Never"}],
            "volumes": [{"name": "v"}, {"name": "s", "secret": {"secretName": "x"}}]}});
        pod(&mut given);
        assert_eq!(given["spec"]["restartPolicy"], "Never");
        assert_eq!(given["spec"]["containers"][0]["imagePullPolicy"], "Never");
        assert_eq!(given["spec"]["volumes"][0]["emptyDir"], json!({}));
        assert_eq!(given["spec"]["volumes"][1]["secret"]["defaultMode"], 420);
        let again = given.clone();
        pod(&mut given);
        assert_eq!(given, again);
    }

    #[test]
    fn limits_are_requests_too() {
        let mut given = json!({"spec": {"containers": [
            {"name": "c", "resources": {"limits": {"memory": "1Gi", "cpu": "1"},
                "requests": {"cpu": "100m"}}}]}});
        pod(&mut given);
        let requests = &given["spec"]["containers"][0]["resources"]["requests"];
        assert_eq!(requests, &json!({"memory": "1Gi", "cpu": "100m"}));
    }
}
