//! Services and EndpointSlices.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};

use crate::cluster::error::FieldError;
use crate::cluster::resources::StorageKey;
use crate::cluster::store::Store;

use super::{immutable, items_mut, list, or_default, text};

const IMMUTABLE_IP: &str = "may not change once set";
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
/// The service network is 10.96.0.0/12; addresses that people choose are mostly low ones.
const NETWORK: u32 = 0x0a60_0000;
const FIRST_HOST: u32 = 0x0001_0001;
const LAST_HOST: u32 = 0x000f_fffe;

/// Fills in what a Service leaves out, addresses apart.
pub(super) fn default_service(service: &mut Value) {
    for port in items_mut(service, "/spec/ports") {
        or_default(port, "protocol", "TCP");
        let own = port.get("port").cloned().unwrap_or_default();
        // Decoding has put 0 where there was nothing.
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

/// Gives a new Service its address, and tells the families.
pub(super) fn allocate(store: &Store, service: &mut Value) {
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

/// A replacement without addresses keeps those that it had.
pub(super) fn prepare_service(before: &Value, service: &mut Value) {
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
    // The old member alone was changed: the list follows.
    let single = spec.get("clusterIP").cloned();
    let changed = single.as_ref() != before.pointer("/spec/clusterIP");
    if let (true, Some(single), Some(Value::Array(all))) =
        (changed, single, spec.get_mut("clusterIPs"))
        && let Some(first) = all.first_mut()
    {
        *first = single;
    }
}

/// Complaints about a Service.
pub(super) fn service(service: &Value) -> Vec<FieldError> {
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
    }
    let kinds = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    if !kinds.contains(&kind) {
        errors.push(FieldError::not_supported("spec.type", &kind.into(), &kinds));
    }
    if kind == "ExternalName" && text(spec, "/externalName").is_empty() {
        errors.push(FieldError::required("spec.externalName", ""));
    }
    errors
}

fn port_range(field: &str, number: Option<i64>) -> Option<FieldError> {
    let number = number.unwrap_or(0);
    (!(1..=65535).contains(&number)).then(|| {
        FieldError::invalid(field, &number.into(), "must be between 1 and 65535, inclusive")
    })
}

/// The address stays while the type does.
pub(super) fn service_change(before: &Value, service: &Value) -> Vec<FieldError> {
    let (old, new) = (text(before, "/spec/clusterIP"), text(service, "/spec/clusterIP"));
    if old.is_empty() || old == new || text(service, "/spec/type") == "ExternalName" {
        return vec![];
    }
    let all = service.pointer("/spec/clusterIPs").unwrap_or(&Value::Null);
    vec![FieldError::invalid("spec.clusterIPs[0]", all, IMMUTABLE_IP)]
}

/// Ports have a name and a protocol.
pub(super) fn default_slice(slice: &mut Value) {
    for port in items_mut(slice, "/ports") {
        or_default(port, "name", "");
        or_default(port, "protocol", "TCP");
    }
}

/// Complaints about an EndpointSlice.
pub(super) fn slice(slice: &Value) -> Vec<FieldError> {
    let mut errors = vec![];
    let family = text(slice, "/addressType");
    let families = ["FQDN", "IPv4", "IPv6"];
    if family.is_empty() {
        errors.push(FieldError::required("addressType", ""));
    } else if !families.contains(&family) {
        errors.push(FieldError::not_supported("addressType", &family.into(), &families));
    }
    for (index, endpoint) in list(slice, "/endpoints").iter().enumerate() {
        let field = format!("endpoints[{index}].addresses");
        let addresses = list(endpoint, "/addresses");
        if addresses.is_empty() {
            errors.push(FieldError::required(&field, "must contain at least 1 address"));
        }
        for (at, address) in addresses.iter().enumerate() {
            let why = match (family, address.as_str().unwrap_or("").parse::<IpAddr>()) {
                ("IPv4", Ok(IpAddr::V4(ip))) => reserved(ip.into()),
                ("IPv6", Ok(IpAddr::V6(ip))) => reserved(ip.into()),
                ("IPv4" | "IPv6", _) => Some("must be a valid address of the slice's family"),
                _ => None,
            };
            if let Some(why) = why {
                errors.push(FieldError::invalid(&format!("{field}[{at}]"), address, why));
            }
        }
    }
    errors
}

fn reserved(ip: IpAddr) -> Option<&'static str> {
    if ip == IpAddr::V4(Ipv4Addr::UNSPECIFIED) || ip == IpAddr::V6(Ipv6Addr::UNSPECIFIED) {
        Some("may not be unspecified (0.0.0.0 or ::)")
    } else if ip.is_loopback() {
        Some("may not be in the loopback range (127.0.0.0/8, ::1/128)")
    } else {
        None
    }
}

/// Complaints about a change of an EndpointSlice: what did not change is not looked at again.
pub(super) fn slice_change(before: &Value, object: &Value) -> Vec<FieldError> {
    if let Some(error) = immutable(before, object, "/addressType", "addressType") {
        return vec![error];
    }
    if before.get("endpoints") == object.get("endpoints") { vec![] } else { slice(object) }
}

#[cfg(test)]
mod tests {
    use super::super::texts;
    use super::*;

    #[test]
    fn addresses_are_given_out_once() {
        let mut store = Store::default();
        let mut first = json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}});
        default_service(&mut first);
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
        prepare_service(&before, &mut after);
        assert!(service_change(&before, &after).is_empty());
        after["spec"]["clusterIP"] = "10.96.1.1".into();
        prepare_service(&before, &mut after);
        let expected =
            ["spec.clusterIPs[0]: Invalid value: [\"10.96.1.1\"]: may not change once set"];
        assert_eq!(texts(&service_change(&before, &after)), expected);
    }

    #[test]
    fn several_ports_have_names() {
        let many = json!({"spec": {"type": "ClusterIP", "ports": [
            {"port": 1, "protocol": "TCP"}, {"port": 70000, "protocol": "TCP", "name": "x"}]}});
        assert_eq!(
            texts(&service(&many)),
            [
                "spec.ports[0].name: Required value",
                "spec.ports[1].port: Invalid value: 70000: must be between 1 and 65535, inclusive",
            ]
        );
    }

    #[test]
    fn slices_keep_their_family() {
        let with = |family: &str| json!({"addressType": family, "endpoints": [{"addresses": ["10.1.2.3"]}]});
        assert!(slice(&with("IPv4")).is_empty());
        assert_eq!(slice(&with("IPv6")).len(), 1);
        let expected = ["addressType: Invalid value: \"IPv6\": field is immutable"];
        assert_eq!(texts(&slice_change(&with("IPv4"), &with("IPv6"))), expected);
    }
}
