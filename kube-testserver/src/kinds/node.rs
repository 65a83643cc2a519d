//! Nodes.

use std::collections::BTreeSet;
use std::net::IpAddr;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::call::Call;
use crate::error::{FieldError, Result};
use crate::meta;
use crate::names::{label_value, qualified_name};

use super::ages::age;
use super::values::{invalid_for, list, or, text};
use super::{Columns, NONE, SelectableField, Strategy, TEXT, UNKNOWN, same_as_stored};

/// Nodes.
#[derive(Debug)]
pub(super) struct Nodes;

impl Strategy for Nodes {
    fn default(&self, object: &mut Value) {
        default(object);
    }

    fn validate(&self, _call: &Call, object: &Value) -> Result<Vec<FieldError>> {
        Ok(node(object))
    }

    fn validate_update(
        &self,
        call: &Call,
        before: &Value,
        object: &Value,
    ) -> Result<Vec<FieldError>> {
        // Both the general and the update check of Nodes look at the taints.
        let once = if call.subresource.is_empty() { node(object) } else { vec![] };
        Ok([once.clone(), once, change(before, object)].concat())
    }

    fn warnings(&self, _before: Option<&Value>, object: &Value) -> Vec<String> {
        warnings(object)
    }

    fn columns(&self) -> Columns {
        &[
            ("Name", TEXT, 0),
            ("Status", TEXT, 0),
            ("Roles", TEXT, 0),
            ("Age", TEXT, 0),
            ("Version", TEXT, 0),
            ("Internal-IP", TEXT, 1),
            ("External-IP", TEXT, 1),
            ("OS-Image", TEXT, 1),
            ("Kernel-Version", TEXT, 1),
            ("Container-Runtime", TEXT, 1),
        ]
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        cells(object, now)
    }

    fn fields(&self) -> Option<Vec<SelectableField>> {
        Some(same_as_stored(&["spec.unschedulable"]))
    }
}

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
/// Key of the taint of a Node that is not ready.
pub(crate) const NOT_READY_TAINT: &str = "node.kubernetes.io/not-ready";

/// Synchronizes the two members for the Pod network, of which the older one wins; all of a Node is allocatable
/// unless it says otherwise.
fn default(node: &mut Value) {
    if let Some(status) = node.get_mut("status").and_then(Value::as_object_mut)
        && !status.contains_key("allocatable")
        && let Some(capacity) = status.get("capacity").cloned()
    {
        status.insert("allocatable".to_owned(), capacity);
    }
    let Some(spec) = node.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let single = spec.get("podCIDR").and_then(Value::as_str).unwrap_or("").to_owned();
    let first = spec.get("podCIDRs").and_then(|all| all.pointer("/0")).and_then(Value::as_str);
    let first = first.unwrap_or("").to_owned();
    if single.is_empty() && !first.is_empty() {
        spec.insert("podCIDR".to_owned(), first.into());
    } else if !single.is_empty() && single != first {
        spec.insert("podCIDRs".to_owned(), json!([single]));
    }
}

fn networks(node: &Value) -> Vec<FieldError> {
    const FIELD: &str = "spec.podCIDRs";
    let networks = list(node, "/spec/podCIDRs");
    let mut errors = vec![];
    let mut families = vec![];
    for (index, network) in networks.iter().enumerate() {
        let read =
            network.as_str().and_then(|text| text.split_once('/')).and_then(|(address, length)| {
                let address: IpAddr = address.parse().ok()?;
                let length: u8 = length.parse().ok()?;
                (length <= if address.is_ipv4() { 32 } else { 128 }).then_some(address)
            });
        if let Some(address) = read {
            families.push(address.is_ipv4());
        } else {
            let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
            errors.push(FieldError::invalid(&format!("{FIELD}[{index}]"), network, why));
        }
    }
    if matches!(families.as_slice(), [first, rest @ ..] if rest.contains(first) || rest.len() > 1) {
        let why = "may specify no more than one CIDR for each IP family";
        errors.push(FieldError::invalid(FIELD, &networks.into(), why));
    }
    errors
}

/// Validation errors of a Node's resources and addresses.
fn status(node: &Value) -> Vec<FieldError> {
    let mut errors = vec![];
    for member in ["capacity", "allocatable"] {
        let of = node.pointer(&format!("/status/{member}")).and_then(Value::as_object);
        for (name, quantity) in of.into_iter().flatten() {
            let text = quantity.as_str().unwrap_or("");
            let field = format!("status.{member}.{name}");
            if text.starts_with('-') {
                let why = "must be greater than or equal to 0";
                errors.push(FieldError::invalid(&field, quantity, why));
            } else if name == "pods" && text.ends_with(['m', 'u', 'n']) {
                errors.push(FieldError::invalid(&field, quantity, "must be an integer"));
            }
        }
    }
    let addresses = list(node, "/status/addresses");
    for (index, address) in addresses.iter().enumerate() {
        if addresses.iter().take(index).any(|other| other == address) {
            let json = |member: &str| Value::from(text(address, member));
            let shown = format!("{{\"Type\":{},\"Address\":{}}}", json("/type"), json("/address"));
            errors.push(FieldError {
                reason: "FieldValueDuplicate",
                message: format!("Duplicate value: {shown}"),
                field: format!("status.addresses[{index}]"),
            });
        }
    }
    errors
}

/// Validation errors of a Node.
fn node(node: &Value) -> Vec<FieldError> {
    let mut errors = vec![];
    let mut seen: Vec<(&str, &str)> = vec![];
    for (index, taint) in list(node, "/spec/taints").iter().enumerate() {
        // The real path is `spec.taints`; the server reports this one.
        let path = format!("metadata.taints[{index}]");
        let (key, value, effect) =
            (text(taint, "/key"), text(taint, "/value"), text(taint, "/effect"));
        errors.extend(invalid_for(&format!("{path}.key"), key, &qualified_name(key)));
        let wrong = label_value(value);
        if !wrong.is_empty() {
            let field = format!("{path}.value");
            errors.push(FieldError::invalid(&field, &value.into(), &wrong.join(";")));
        }
        if effect.is_empty() {
            errors.push(FieldError::required(&format!("{path}.effect"), ""));
        } else if !EFFECTS.contains(&effect) {
            let field = format!("{path}.effect");
            errors.push(FieldError::not_supported(&field, &effect.into(), &EFFECTS));
        }
        if seen.contains(&(key, effect)) {
            errors.push(duplicate(&path, taint));
        }
        seen.push((key, effect));
    }
    errors.extend(networks(node));
    errors
}

fn duplicate(path: &str, taint: &Value) -> FieldError {
    let json = |member: &str| Value::from(text(taint, member));
    let added = taint.get("timeAdded").unwrap_or(&Value::Null);
    let (key, value, effect) = (json("/key"), json("/value"), json("/effect"));
    FieldError {
        reason: "FieldValueDuplicate",
        message: format!(
            "Duplicate value: {{\"Key\":{key},\"Value\":{value},\"Effect\":{effect},\
             \"TimeAdded\":{added}}}: taints must be unique by key and effect pair"
        ),
        field: path.to_owned(),
    }
}

/// Validation errors of a change, also of `/status`: write-once members, and the status.
fn change(before: &Value, node: &Value) -> Vec<FieldError> {
    let mut errors = status(node);
    let changed = |pointer: &str| {
        let old = before.pointer(pointer);
        old.is_some() && old != node.pointer(pointer)
    };
    if changed("/spec/podCIDRs") {
        let why = "node updates may not change podCIDR except from \"\" to valid";
        errors.push(FieldError::forbidden("spec.podCIDRs", why));
    }
    if changed("/spec/providerID") {
        let why = "node updates may not change providerID except from \"\" to valid";
        errors.push(FieldError::forbidden("spec.providerID", why));
    }
    errors
}

/// Adds the taints of a new Node, which has not been reported as ready.
pub(crate) fn new_taints(node: &mut Value) {
    let mut taints = list(node, "/spec/taints").to_vec();
    let there = |taint: &Value| {
        text(taint, "/key") == NOT_READY_TAINT && text(taint, "/effect") == "NoSchedule"
    };
    if !taints.iter().any(there) {
        taints.push(json!({"key": NOT_READY_TAINT, "effect": "NoSchedule"}));
    }
    let mut spec = node.get("spec").cloned().unwrap_or_else(|| json!({}));
    super::put(&mut spec, "taints", taints.into());
    super::put(node, "spec", spec);
}

fn warnings(node: &Value) -> Vec<String> {
    let mut all = Vec::new();
    if node.pointer("/spec/configSource").is_some_and(|source| !source.is_null()) {
        all.push("spec.configSource: the feature is removed".to_owned());
    }
    if !text(node, "/spec/externalID").is_empty() {
        let why = "this field is deprecated, and is unused by Kubernetes";
        all.push(format!("spec.externalID: {why}"));
    }
    all
}

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
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

#[cfg(test)]
mod tests {
    use super::super::values::texts;
    use super::*;

    #[track_caller]
    fn check(taints: &Value, expected: &[&str]) {
        assert_eq!(texts(&node(&json!({"spec": {"taints": taints}}))), expected);
    }

    #[test]
    fn effects_are_known_words() {
        check(
            &json!([{"key": "os", "effect": "Wrong"}]),
            &["metadata.taints[0].effect: Unsupported value: \"Wrong\": supported values: \
               \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\""],
        );
        check(&json!([{"key": "os"}]), &["metadata.taints[0].effect: Required value"]);
    }

    #[test]
    fn key_and_effect_are_unique() {
        let taint = json!({"key": "os", "value": "Windows", "effect": "NoSchedule"});
        check(
            &json!([taint, taint]),
            &["metadata.taints[1]: Duplicate value: {\"Key\":\"os\",\"Value\":\"Windows\",\
               \"Effect\":\"NoSchedule\",\"TimeAdded\":null}: taints must be unique by key and \
               effect pair"],
        );
    }

    #[test]
    fn the_provider_id_stays() {
        let with = |id: &str| json!({"spec": {"providerID": id}});
        assert_eq!(change(&with("a"), &with("b")).len(), 1);
        assert!(change(&json!({"spec": {}}), &with("b")).is_empty());
    }

    #[test]
    fn the_pod_network_is_said_twice_and_stays() {
        let with = |spec: Value| {
            let mut node = json!({ "spec": spec });
            default(&mut node);
            node
        };
        let (one, other) = (json!(["10.0.0.0/24"]), json!(["10.1.0.0/24"]));
        let both = with(json!({"podCIDR": "10.0.0.0/24", "podCIDRs": one}));
        assert_eq!(with(json!({"podCIDR": "10.0.0.0/24"})), both);
        assert_eq!(with(json!({"podCIDRs": one})), both);
        assert_eq!(with(json!({"podCIDR": "10.0.0.0/24", "podCIDRs": other})), both);
        assert_eq!(
            texts(&change(&both, &with(json!({"podCIDRs": other})))),
            ["spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \"\" to \
              valid"]
        );
        assert_eq!(texts(&node(&both)), [""; 0]);
        assert_eq!(
            texts(&node(&with(json!({"podCIDR": "10.0.0.0/33"})))),
            ["spec.podCIDRs[0]: Invalid value: \"10.0.0.0/33\": must be a valid CIDR value, \
              (e.g. 10.9.8.0/24 or 2001:db8::/64)"]
        );
        assert_eq!(
            texts(&node(&with(json!({"podCIDRs": ["10.0.0.0/24", "10.1.0.0/24"]})))),
            [
                "spec.podCIDRs: Invalid value: [\"10.0.0.0/24\",\"10.1.0.0/24\"]: may specify no more \
              than one CIDR for each IP family"
            ]
        );
        assert!(node(&with(json!({"podCIDRs": ["10.0.0.0/24", "fd00::/64"]}))).is_empty());
    }

    #[test]
    fn the_status_has_each_address_once_and_no_negative_quantity() {
        let address = json!({"type": "InternalIP", "address": "10.0.0.1"});
        let node = json!({"status": {
            "addresses": [address, address],
            "capacity": {"cpu": "-1", "memory": "1Gi"},
            "allocatable": {"pods": "500m"},
        }});
        assert_eq!(
            texts(&change(&json!({}), &node)),
            [
                "status.capacity.cpu: Invalid value: \"-1\": must be greater than or equal to 0",
                "status.allocatable.pods: Invalid value: \"500m\": must be an integer",
                "status.addresses[1]: Duplicate value: \
                 {\"Type\":\"InternalIP\",\"Address\":\"10.0.0.1\"}",
            ]
        );
    }

    #[test]
    fn a_new_node_is_tainted_once() {
        let mut node = json!({"spec": {"taints": [{"key": "os", "effect": "NoSchedule"}]}});
        new_taints(&mut node);
        new_taints(&mut node);
        assert_eq!(list(&node, "/spec/taints").len(), 2);
    }
}
