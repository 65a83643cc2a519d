//! Services.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::call::Call;
use crate::error::{FieldError, Result};
use crate::meta;
use crate::names::{dns1035_label, label_value, qualified_name};
use crate::resources::StorageKey;
use crate::store::Store;

use super::ages::age;
use super::labels;
use super::values::{invalid_for, items_mut, list, number, or, or_default, text};
use super::{Columns, NONE, NameRule, SelectableField, Strategy, TEXT, same_as_stored};

/// Services.
#[derive(Debug)]
pub(super) struct Services;

impl Strategy for Services {
    fn name_rule(&self) -> NameRule {
        dns1035_label
    }

    fn default(&self, object: &mut Value) {
        default(object);
    }

    fn prepare_create(&self, store: &Store, _call: &Call, object: &mut Value) {
        allocate(store, object);
    }

    fn prepare_update(&self, store: &Store, call: &Call, before: &Value, object: &mut Value) {
        if call.subresource.is_empty() {
            prepare_update(store, before, object);
        }
    }

    fn validate(&self, _call: &Call, object: &Value) -> Result<Vec<FieldError>> {
        Ok(service(object))
    }

    fn validate_update(
        &self,
        call: &Call,
        before: &Value,
        object: &Value,
    ) -> Result<Vec<FieldError>> {
        let own = if call.subresource.is_empty() { service(object) } else { vec![] };
        Ok([own, change(before, object)].concat())
    }

    fn warnings(&self, _before: Option<&Value>, object: &Value) -> Vec<String> {
        warnings(object)
    }

    fn columns(&self) -> Columns {
        &[
            ("Name", TEXT, 0),
            ("Type", TEXT, 0),
            ("Cluster-IP", TEXT, 0),
            ("External-IP", TEXT, 0),
            ("Port(s)", TEXT, 0),
            ("Age", TEXT, 0),
            ("Selector", TEXT, 1),
        ]
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        cells(object, now)
    }

    fn fields(&self) -> Option<Vec<SelectableField>> {
        Some(same_as_stored(&["spec.clusterIP", "spec.type"]))
    }
}

const IMMUTABLE_IP: &str = "may not change once set";
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
/// The service network is 10.96.0.0/12; users mostly choose low addresses.
const NETWORK: u32 = 0x0a60_0000;
const FIRST_HOST: u32 = 0x0001_0001;
const LAST_HOST: u32 = 0x000f_fffe;
const NODE_PORTS: RangeInclusive<i64> = 30_000..=32_767;
/// Members that only Services with a cluster IP have.
const OF_ADDRESSES: [&str; 5] =
    ["clusterIP", "clusterIPs", "internalTrafficPolicy", "ipFamilies", "ipFamilyPolicy"];

/// Fills in the defaults of a Service, except addresses.
fn default(service: &mut Value) {
    for port in items_mut(service, "/spec/ports") {
        or_default(port, "protocol", "TCP");
        let own = port.get("port").cloned().unwrap_or_default();
        // Decoding has set missing values to 0.
        if port.get("targetPort").is_none_or(|port| *port == json!(0) || port.is_null()) {
            port.insert("targetPort".to_owned(), own);
        }
    }
    let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) else { return };
    or_default(spec, "type", "ClusterIP");
    or_default(spec, "sessionAffinity", "None");
    let kind = spec.get("type").and_then(Value::as_str).unwrap_or("").to_owned();
    if kind != "ExternalName" {
        or_default(spec, "internalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        or_default(spec, "externalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        or_default(spec, "allocateLoadBalancerNodePorts", true);
    }
}

/// Whether Services of a type have node ports.
fn has_node_ports(kind: &str) -> bool {
    matches!(kind, "NodePort" | "LoadBalancer")
}

/// Allocates a node port for each port, if the type has them.
fn allocate_node_ports(store: &Store, service: &mut Value) {
    if !has_node_ports(text(service, "/spec/type"))
        || service.pointer("/spec/allocateLoadBalancerNodePorts") == Some(&json!(false))
    {
        return;
    }
    let number = |port: &Value| port.get("nodePort").and_then(Value::as_i64);
    let of_others = store.list(&StorageKey::new("", "services"), "");
    let mut used: BTreeSet<i64> =
        of_others.flat_map(|other| list(other, "/spec/ports")).filter_map(number).collect();
    used.extend(list(service, "/spec/ports").iter().filter_map(number));
    for port in items_mut(service, "/spec/ports") {
        if port.get("nodePort").is_none_or(|own| *own == json!(0))
            && let Some(free) = NODE_PORTS.clone().find(|free| used.insert(*free))
        {
            port.insert("nodePort".to_owned(), free.into());
        }
    }
}

/// Allocates the address and ports of a new Service, and sets its IP families.
fn allocate(store: &Store, service: &mut Value) {
    allocate_node_ports(store, service);
    let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if spec.get("type").and_then(Value::as_str) == Some("ExternalName") {
        return;
    }
    let headless = spec.get("clusterIP").and_then(Value::as_str) == Some("None");
    let dual = headless && !spec.contains_key("selector");
    let address = match spec.get("clusterIP").and_then(Value::as_str).unwrap_or("") {
        "" => free_address(store),
        stated => stated.to_owned(),
    };
    or_default(spec, "clusterIPs", json!([address]));
    spec.insert("clusterIP".to_owned(), address.into());
    let (families, policy) = if dual {
        (json!(["IPv4", "IPv6"]), "RequireDualStack")
    } else {
        (json!(["IPv4"]), "SingleStack")
    };
    or_default(spec, "ipFamilies", families);
    or_default(spec, "ipFamilyPolicy", policy);
}

fn free_address(store: &Store) -> String {
    let used: BTreeSet<&str> = store
        .list(&StorageKey::new("", "services"), "")
        .map(|service| text(service, "/spec/clusterIP"))
        .collect();
    let mut hosts = (FIRST_HOST..LAST_HOST).map(|host| Ipv4Addr::from(NETWORK + host).to_string());
    hosts.find(|address| !used.contains(address.as_str())).unwrap_or_default()
}

/// Drops members that belong to the former type, unless the client changed them.
fn drop_of_old_type(before: &Value, service: &mut Value) {
    let (old, new) = (text(before, "/spec/type"), text(service, "/spec/type").to_owned());
    let mut dropped: Vec<&str> = vec![];
    if old != "ExternalName" && new == "ExternalName" {
        dropped.extend(OF_ADDRESSES);
    }
    if old == "LoadBalancer" && new != "LoadBalancer" {
        dropped.push("allocateLoadBalancerNodePorts");
    }
    if has_node_ports(old) && !has_node_ports(&new) {
        dropped.push("externalTrafficPolicy");
        let olds = list(before, "/spec/ports").iter().filter_map(|port| port.get("nodePort"));
        let olds: Vec<_> = olds.cloned().collect();
        for port in items_mut(service, "/spec/ports") {
            if port.get("nodePort").is_some_and(|own| olds.contains(own)) {
                port.remove("nodePort");
            }
        }
    }
    let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) else { return };
    spec.retain(|member, value| {
        let unchanged = before.pointer(&format!("/spec/{member}")) == Some(value);
        !(unchanged && dropped.contains(&member.as_str()))
    });
}

/// Keeps addresses and node ports that a replacement leaves out.
fn prepare_update(store: &Store, before: &Value, service: &mut Value) {
    drop_of_old_type(before, service);
    if has_node_ports(text(before, "/spec/type")) && has_node_ports(text(service, "/spec/type")) {
        let key = |port: &Value| (port.get("port").cloned(), text(port, "/protocol").to_owned());
        for port in items_mut(service, "/spec/ports") {
            let own = key(&Value::Object(port.clone()));
            let old = list(before, "/spec/ports").iter().find(|old| key(old) == own);
            if let Some(number) = old.and_then(|old| old.get("nodePort")) {
                or_default(port, "nodePort", number.clone());
            }
        }
    }
    allocate_node_ports(store, service);
    let same = text(before, "/spec/type") == text(service, "/spec/type");
    let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if same {
        for member in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            let old = before.pointer(&format!("/spec/{member}"));
            if let (None, Some(old)) = (spec.get(member), old) {
                spec.insert(member.to_owned(), old.clone());
            }
        }
    }
    // Only the old member was changed: update the list.
    let single = spec.get("clusterIP").cloned();
    let changed = single.as_ref() != before.pointer("/spec/clusterIP");
    if let (true, Some(single), Some(Value::Array(all))) =
        (changed, single, spec.get_mut("clusterIPs"))
        && let Some(first) = all.first_mut()
    {
        *first = single;
    }
}

/// Validation errors of a Service.
fn service(service: &Value) -> Vec<FieldError> {
    let mut errors = vec![];
    let spec = service.get("spec").unwrap_or(&Value::Null);
    let ports = list(spec, "/ports");
    let kind = text(spec, "/type");
    if ports.is_empty() && kind != "ExternalName" && text(spec, "/clusterIP") != "None" {
        errors.push(FieldError::required("spec.ports", ""));
    }
    let mut names: Vec<&str> = vec![];
    let mut pairs: Vec<(&str, Option<i64>)> = vec![];
    for (index, port) in ports.iter().enumerate() {
        let field = |member: &str| format!("spec.ports[{index}].{member}");
        let name = text(port, "/name");
        if name.is_empty() && ports.len() > 1 {
            errors.push(FieldError::required(&field("name"), ""));
        } else if !name.is_empty() && names.contains(&name) {
            errors.push(FieldError::duplicate(&field("name"), &name.into()));
        }
        names.push(name);
        let number = port.get("port").and_then(Value::as_i64);
        errors.extend(port_range(&field("port"), number));
        let protocol = text(port, "/protocol");
        if !PROTOCOLS.contains(&protocol) {
            let field = field("protocol");
            errors.push(FieldError::not_supported(&field, &protocol.into(), &PROTOCOLS));
        }
        if pairs.contains(&(protocol, number)) {
            let value = json!({"protocol": protocol, "port": number});
            errors.push(FieldError::duplicate(&format!("spec.ports[{index}]"), &value));
        }
        pairs.push((protocol, number));
        let on_nodes = port.get("nodePort").and_then(Value::as_i64).unwrap_or(0);
        let field = field("nodePort");
        if on_nodes != 0 && !has_node_ports(kind) {
            let why = format!("may not be used when `type` is '{kind}'");
            errors.push(FieldError::forbidden(&field, &why));
        } else if on_nodes != 0 && !NODE_PORTS.contains(&on_nodes) {
            let (first, last) = (NODE_PORTS.start(), NODE_PORTS.end());
            let why = format!(
                "provided port is not in the valid range. The range of valid ports is {first}-{last}"
            );
            errors.push(FieldError::invalid(&field, &on_nodes.into(), &why));
        }
    }
    errors.extend(traffic(spec, kind));
    let kinds = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    if !kinds.contains(&kind) {
        errors.push(FieldError::not_supported("spec.type", &kind.into(), &kinds));
    }
    if kind == "ExternalName" && text(spec, "/externalName").is_empty() {
        errors.push(FieldError::required("spec.externalName", ""));
    }
    errors
}

/// Validation errors of the members that route traffic to the Pods.
fn traffic(spec: &Value, kind: &str) -> Vec<FieldError> {
    let mut errors = vec![];
    let affinity = text(spec, "/sessionAffinity");
    let affinities = ["ClientIP", "None"];
    if !affinities.contains(&affinity) {
        let field = "spec.sessionAffinity";
        errors.push(FieldError::not_supported(field, &affinity.into(), &affinities));
    }
    for (key, value) in spec.get("selector").and_then(Value::as_object).into_iter().flatten() {
        let value = value.as_str().unwrap_or("");
        errors.extend(invalid_for("spec.selector", key, &qualified_name(key)));
        errors.extend(invalid_for("spec.selector", value, &label_value(value)));
    }
    for (index, address) in list(spec, "/clusterIPs").iter().enumerate() {
        let stated = address.as_str().unwrap_or("");
        if !(index == 0 && stated == "None") && stated.parse::<IpAddr>().is_err() {
            let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            errors.push(FieldError::invalid(&format!("spec.clusterIPs[{index}]"), address, why));
        }
    }
    let policies = ["Cluster", "Local"];
    let internal = text(spec, "/internalTrafficPolicy");
    if kind != "ExternalName" && !policies.contains(&internal) {
        let field = "spec.internalTrafficPolicy";
        errors.push(FieldError::not_supported(field, &internal.into(), &policies));
    }
    let external = text(spec, "/externalTrafficPolicy");
    let field = "spec.externalTrafficPolicy";
    if !external.is_empty() && !has_node_ports(kind) {
        let why = "may only be set for externally-accessible services";
        errors.push(FieldError::invalid(field, &external.into(), why));
    } else if has_node_ports(kind) && !policies.contains(&external) {
        errors.push(FieldError::not_supported(field, &external.into(), &policies));
    }
    errors
}

fn port_range(field: &str, number: Option<i64>) -> Option<FieldError> {
    let number = number.unwrap_or(0);
    (!(1..=65535).contains(&number)).then(|| {
        FieldError::invalid(field, &number.into(), "must be between 1 and 65535, inclusive")
    })
}

/// Validation errors of a changed address under the same type.
fn change(before: &Value, service: &Value) -> Vec<FieldError> {
    let (old, new) = (text(before, "/spec/clusterIP"), text(service, "/spec/clusterIP"));
    if old.is_empty() || old == new || text(service, "/spec/type") == "ExternalName" {
        return vec![];
    }
    let all = service.pointer("/spec/clusterIPs").unwrap_or(&Value::Null);
    vec![FieldError::invalid("spec.clusterIPs[0]", all, IMMUTABLE_IP)]
}

fn warnings(service: &Value) -> Vec<String> {
    let kind = text(service, "/spec/type");
    let external = !list(service, "/spec/externalIPs").is_empty();
    let mut all = Vec::new();
    let old = "service.kubernetes.io/topology-aware-hints";
    if meta::annotation(service, old).is_some() {
        let new = "service.kubernetes.io/topology-mode";
        all.push(format!("annotation {old} is deprecated, please use {new} instead"));
    }
    if kind == "ClusterIP" && text(service, "/spec/clusterIP") == "None" {
        let affinity = text(service, "/spec/sessionAffinity") != "None";
        let balancer = !text(service, "/spec/loadBalancerIP").is_empty();
        for (set, member) in
            [(balancer, "loadBalancerIP"), (external, "externalIPs"), (affinity, "SessionAffinity")]
        {
            if set {
                all.push(format!("spec.{member} is ignored for headless services"));
            }
        }
    }
    if kind == "ExternalName" && external {
        all.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if kind != "ExternalName" && !text(service, "/spec/externalName").is_empty() {
        all.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    all
}

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
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

#[cfg(test)]
mod tests {
    use super::super::values::texts;
    use super::*;

    #[test]
    fn addresses_are_given_out_once() {
        let mut store = Store::default();
        let mut first = json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}});
        default(&mut first);
        allocate(&store, &mut first);
        assert_eq!(first["spec"]["clusterIP"], "10.97.0.1");
        assert_eq!(
            first["spec"]["ports"][0],
            json!({"port": 80, "protocol": "TCP", "targetPort": 80})
        );
        store.put(&StorageKey::new("", "services"), first);
        let mut second = json!({"spec": {}});
        allocate(&store, &mut second);
        assert_eq!(second["spec"]["clusterIP"], "10.97.0.2");
    }

    #[test]
    fn headless_services_without_selector_are_of_both_families() {
        let mut service = json!({"spec": {"clusterIP": "None"}});
        allocate(&Store::default(), &mut service);
        assert_eq!(service["spec"]["ipFamilyPolicy"], "RequireDualStack");
    }

    #[test]
    fn the_address_stays() {
        let before = json!({"spec": {"clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"]}});
        let mut after = json!({"spec": {}});
        prepare_update(&Store::default(), &before, &mut after);
        assert!(change(&before, &after).is_empty());
        after["spec"]["clusterIP"] = "10.96.1.1".into();
        prepare_update(&Store::default(), &before, &mut after);
        let expected =
            ["spec.clusterIPs[0]: Invalid value: [\"10.96.1.1\"]: may not change once set"];
        assert_eq!(texts(&change(&before, &after)), expected);
    }

    #[test]
    fn several_ports_have_names() {
        let ports = json!([{"port": 1}, {"port": 70000, "name": "x"}]);
        let many = kept(&Store::default(), "ClusterIP", &ports);
        assert_eq!(
            texts(&service(&many)),
            [
                "spec.ports[0].name: Required value",
                "spec.ports[1].port: Invalid value: 70000: must be between 1 and 65535, inclusive",
            ]
        );
    }

    /// A Service of this type in its stored form.
    fn kept(store: &Store, kind: &str, ports: &Value) -> Value {
        let mut service =
            json!({"metadata": {"name": kind}, "spec": {"type": kind, "ports": ports}});
        default(&mut service);
        allocate(store, &mut service);
        service
    }

    #[test]
    fn ports_of_nodes_come_and_go_with_the_type() {
        let store = Store::default();
        let ports =
            json!([{"name": "a", "port": 80}, {"name": "b", "port": 81, "nodePort": 30000}]);
        let before = kept(&store, "NodePort", &ports);
        assert_eq!(before["spec"]["ports"][0]["nodePort"], 30001);
        assert!(service(&before).is_empty());

        let mut again = before.clone();
        again["spec"]["ports"][0].as_object_mut().unwrap().remove("nodePort");
        prepare_update(&store, &before, &mut again);
        assert_eq!(again, before);

        let mut after = before.clone();
        after["spec"]["type"] = "ClusterIP".into();
        prepare_update(&store, &before, &mut after);
        assert_eq!(after["spec"]["ports"][1].get("nodePort"), None);
        assert_eq!(after["spec"].get("externalTrafficPolicy"), None);
        assert_eq!(after["spec"]["clusterIP"], before["spec"]["clusterIP"]);

        after["spec"]["type"] = "ExternalName".into();
        prepare_update(&store, &before, &mut after);
        assert_eq!(after["spec"].get("clusterIP"), None);
        assert_eq!(after["spec"].get("ipFamilies"), None);
    }

    #[test]
    fn a_service_says_only_what_its_type_has() {
        let with = |kind: &str, member: &str, value: Value| {
            let mut own = kept(&Store::default(), kind, &json!([{"port": 80}]));
            *own["spec"].pointer_mut(member).unwrap() = value;
            texts(&service(&own))
        };
        let mut cluster =
            kept(&Store::default(), "ClusterIP", &json!([{"port": 80, "nodePort": 30000}]));
        cluster["spec"]["externalTrafficPolicy"] = "Local".into();
        assert_eq!(
            texts(&service(&cluster)),
            [
                "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
                "spec.externalTrafficPolicy: Invalid value: \"Local\": may only be set for \
                 externally-accessible services",
            ]
        );
        assert_eq!(
            with("NodePort", "/ports/0/nodePort", json!(1)),
            ["spec.ports[0].nodePort: Invalid value: 1: provided port is not in the valid range. \
              The range of valid ports is 30000-32767"]
        );
        assert_eq!(
            with("ClusterIP", "/sessionAffinity", json!("X")),
            [
                "spec.sessionAffinity: Unsupported value: \"X\": supported values: \"ClientIP\", \"None\""
            ]
        );
        assert_eq!(
            with("ClusterIP", "/clusterIPs/0", json!("1.2.3")),
            ["spec.clusterIPs[0]: Invalid value: \"1.2.3\": must be a valid IP address, (e.g. \
              10.9.8.7 or 2001:db8::ffff)"]
        );
        assert_eq!(
            with("ClusterIP", "/internalTrafficPolicy", json!("X")),
            [
                "spec.internalTrafficPolicy: Unsupported value: \"X\": supported values: \"Cluster\", \
              \"Local\""
            ]
        );
    }
}
