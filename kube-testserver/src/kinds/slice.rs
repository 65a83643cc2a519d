//! EndpointSlices.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use jiff::Timestamp;
use serde_json::Value;

use crate::call::Call;
use crate::error::{FieldError, Result};
use crate::meta;

use super::ages::age;
use super::values::{immutable, items_mut, list, number, or_default, text};
use super::{Columns, Strategy, TEXT};

/// EndpointSlices.
#[derive(Debug)]
pub(super) struct EndpointSlices;

impl Strategy for EndpointSlices {
    fn default(&self, object: &mut Value) {
        default(object);
    }

    fn generation_counts(&self) -> Option<&'static str> {
        Some("labels")
    }

    fn validate(&self, _call: &Call, object: &Value) -> Result<Vec<FieldError>> {
        Ok(slice(object))
    }

    fn validate_update(
        &self,
        _call: &Call,
        before: &Value,
        object: &Value,
    ) -> Result<Vec<FieldError>> {
        Ok(change(before, object))
    }

    fn columns(&self) -> Columns {
        &[
            ("Name", TEXT, 0),
            ("AddressType", TEXT, 0),
            ("Ports", TEXT, 0),
            ("Endpoints", TEXT, 0),
            ("Age", TEXT, 0),
        ]
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
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
            meta::name(object).into(),
            text(object, "/addressType").into(),
            first_three(&ports.collect::<Vec<_>>(), "<unset>").into(),
            first_three(&addresses.collect::<Vec<_>>(), "<unset>").into(),
            age(object, now),
        ]
    }
}

/// Fills in name and protocol of ports.
fn default(slice: &mut Value) {
    for port in items_mut(slice, "/ports") {
        or_default(port, "name", "");
        or_default(port, "protocol", "TCP");
    }
}

/// Validation errors of an EndpointSlice.
fn slice(slice: &Value) -> Vec<FieldError> {
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

/// Validation errors of a change of an EndpointSlice: unchanged members are not validated again.
fn change(before: &Value, object: &Value) -> Vec<FieldError> {
    if let Some(error) = immutable(before, object, "/addressType", "addressType") {
        return vec![error];
    }
    if before.get("endpoints") == object.get("endpoints") { vec![] } else { slice(object) }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::values::texts;
    use super::*;

    #[test]
    fn slices_keep_their_family() {
        let with = |family: &str| json!({"addressType": family, "endpoints": [{"addresses": ["10.1.2.3"]}]});
        assert!(slice(&with("IPv4")).is_empty());
        assert_eq!(slice(&with("IPv6")).len(), 1);
        let expected = ["addressType: Invalid value: \"IPv6\": field is immutable"];
        assert_eq!(texts(&change(&with("IPv4"), &with("IPv6"))), expected);
    }
}
