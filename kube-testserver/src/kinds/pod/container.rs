//! Containers of Pods.

use serde_json::Value;

use crate::error::FieldError;
use crate::golang::quantity;

use super::super::values::{list, text};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];

/// Validation errors of the container at `path`; `shares_network` means the network of its Node.
pub(super) fn errors(path: &str, container: &Value, shares_network: bool) -> Vec<FieldError> {
    let mut errors = vec![];
    for (index, port) in list(container, "/ports").iter().enumerate() {
        let field = |member: &str| format!("{path}.ports[{index}].{member}");
        let number = |member: &str| port.get(member).and_then(Value::as_i64).unwrap_or(0);
        let (own, of_host) = (number("containerPort"), number("hostPort"));
        if own == 0 {
            errors.push(FieldError::required(&field("containerPort"), ""));
        } else if !(1..=65535).contains(&own) {
            let why = "must be between 1 and 65535, inclusive";
            errors.push(FieldError::invalid(&field("containerPort"), &own.into(), why));
        }
        if shares_network && of_host != 0 && own != of_host {
            let why = "must match `containerPort` when `hostNetwork` is true";
            errors.push(FieldError::invalid(&field("hostPort"), &of_host.into(), why));
        }
        let protocol = text(port, "/protocol");
        if !protocol.is_empty() && !PROTOCOLS.contains(&protocol) {
            errors.push(FieldError::not_supported(
                &field("protocol"),
                &protocol.into(),
                &PROTOCOLS,
            ));
        }
    }
    for (index, variable) in list(container, "/env").iter().enumerate() {
        if text(variable, "/name").is_empty() {
            errors.push(FieldError::required(&format!("{path}.env[{index}].name"), ""));
        }
    }
    errors.extend(requests(path, container));
    let policy = text(container, "/imagePullPolicy");
    if !policy.is_empty() && !PULL_POLICIES.contains(&policy) {
        let field = format!("{path}.imagePullPolicy");
        errors.push(FieldError::not_supported(&field, &policy.into(), &PULL_POLICIES));
    }
    errors
}

/// Checks that a container requests no more than its limits.
fn requests(path: &str, container: &Value) -> Vec<FieldError> {
    let requests = container.pointer("/resources/requests").and_then(Value::as_object);
    let above = requests.into_iter().flatten().filter_map(|(name, request)| {
        let limit = container.pointer("/resources/limits")?.get(name)?;
        let is_above =
            quantity::nanos(request.as_str()?).ok()? > quantity::nanos(limit.as_str()?).ok()?;
        let why = format!("must be less than or equal to {name} limit of {}", limit.as_str()?);
        let field = format!("{path}.resources.requests");
        is_above.then(|| FieldError::invalid(&field, request, &why))
    });
    above.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::values::texts;
    use super::*;

    #[test]
    fn what_is_wrong_is_named() {
        let container = json!({
            "ports": [{"containerPort": 80, "hostPort": 80}, {"containerPort": 81}, {"containerPort": 82, "hostPort": 83, "protocol": "Foo"}, {}],
            "env": [{"name": ""}],
            "resources": {
                "requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "1500m", "memory": "1Gi"},
            },
            "imagePullPolicy": "Now",
        });
        let expected = [
            "c.ports[2].hostPort: Invalid value: 83: must match `containerPort` when `hostNetwork` is \
             true",
            "c.ports[2].protocol: Unsupported value: \"Foo\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
            "c.ports[3].containerPort: Required value",
            "c.env[0].name: Required value",
            "c.resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of \
             1500m",
            "c.imagePullPolicy: Unsupported value: \"Now\": supported values: \"Always\", \
             \"IfNotPresent\", \"Never\"",
        ];
        assert_eq!(texts(&errors("c", &container, true)), expected);
        assert_eq!(errors("c", &container, false).len(), 5);
    }
}
