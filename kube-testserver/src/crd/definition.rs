//! Defaults and validation of CustomResourceDefinition objects themselves.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::error::{ApiError, FieldError, Result};
use crate::{meta, names};

use super::names as crd_names;
use super::{is_established, list, schema, text, version};

fn versions(definition: &Value) -> &[Value] {
    list(definition, "/spec/versions")
}

fn storage_versions(definition: &Value) -> Vec<&str> {
    let stored = versions(definition)
        .iter()
        .filter(|version| version.get("storage") == Some(&Value::Bool(true)));
    stored.map(|version| text(version, "/name")).collect()
}

/// Fills in the defaults of the API: names, the conversion strategy, the first status.
pub(crate) fn complete(definition: &mut Value, is_new: bool) {
    let kind = text(definition, "/spec/names/kind").to_owned();
    let stored: Vec<String> = storage_versions(definition).into_iter().map(str::to_owned).collect();
    let Some(spec) = meta::map_mut(definition, "spec") else { return };
    let conversion = spec.entry("conversion").or_insert_with(|| json!({}));
    if let Some(conversion) = conversion.as_object_mut() {
        conversion.entry("strategy").or_insert_with(|| "None".into());
    }
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let absent = |names: &Map<String, Value>, name: &str| {
            names.get(name).and_then(Value::as_str).unwrap_or("").is_empty()
        };
        if absent(names, "singular") && !kind.is_empty() {
            names.insert("singular".to_owned(), kind.to_lowercase().into());
        }
        if absent(names, "listKind") && !kind.is_empty() {
            names.insert("listKind".to_owned(), format!("{kind}List").into());
        }
    }
    if is_new && let Some(members) = definition.as_object_mut() {
        let status = json!({
            "conditions": null,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": if stored.is_empty() { Value::Null } else { stored.into() },
        });
        members.insert("status".to_owned(), status);
    }
}

/// Validation errors of a definition.
///
/// # Errors
/// 501 for features that the simulator does not support.
pub(crate) fn validate(definition: &Value) -> Result<Vec<FieldError>> {
    unsupported(definition)?;
    let mut errors = Vec::new();
    let (group, plural) = (text(definition, "/spec/group"), text(definition, "/spec/names/plural"));
    let name = meta::name(definition);
    if name != format!("{plural}.{group}") {
        let why = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", &name.into(), why));
    }
    errors.extend(group_errors(definition));
    let scope = text(definition, "/spec/scope");
    if scope.is_empty() {
        errors.push(FieldError::required("spec.scope", ""));
    } else if !matches!(scope, "Cluster" | "Namespaced") {
        let words = ["Cluster", "Namespaced"];
        errors.push(FieldError::not_supported("spec.scope", &scope.into(), &words));
    }
    if versions(definition).is_empty() {
        errors.push(FieldError::required("spec.versions", ""));
    }
    for (index, own) in versions(definition).iter().enumerate() {
        errors.extend(version::errors(own, &format!("spec.versions[{index}]")));
    }
    schemas(definition, &mut errors);
    let names: BTreeSet<&str> = versions(definition).iter().map(|own| text(own, "/name")).collect();
    if names.len() != versions(definition).len() {
        let shown: Vec<String> = versions(definition).iter().map(in_go).collect();
        let (shown, why) = (format!("[{}]", shown.join(",")), "must contain unique version names");
        errors.push(FieldError::invalid_text("spec.versions", &shown, why));
    }
    if storage_versions(definition).len() != 1 && !versions(definition).is_empty() {
        let shown: Vec<String> = versions(definition).iter().map(in_go).collect();
        let why = "must have exactly one version marked as storage version";
        let shown = format!("[{}]", shown.join(","));
        errors.push(FieldError::invalid_text("spec.versions", &shown, why));
    }
    errors.extend(crd_names::errors(definition));
    if definition.pointer("/spec/preserveUnknownFields") == Some(&Value::Bool(true)) {
        let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                   spec.versions[*].schema instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", &true.into(), why));
    }
    let strategy = text(definition, "/spec/conversion/strategy");
    if !strategy.is_empty() && !matches!(strategy, "None" | "Webhook") {
        let known = ["None", "Webhook"];
        let field = "spec.conversion.strategy";
        errors.push(FieldError::not_supported(field, &strategy.into(), &known));
    }
    if definition.pointer("/spec/conversion/webhook").is_some_and(Value::is_object) {
        let why = "should not be set when strategy is not set to Webhook";
        errors.push(FieldError::forbidden("spec.conversion.webhook", why));
    }
    errors.extend(stored_errors(definition));
    Ok(errors)
}

/// Validation errors of a change; one of the status looks at nothing else.
///
/// # Errors
/// 501 for features that the simulator does not support.
pub(crate) fn validate_update(
    subresource: &str,
    before: &Value,
    definition: &Value,
) -> Result<Vec<FieldError>> {
    if subresource == "status" {
        return Ok(stored_errors(definition));
    }
    let mut errors = validate(definition)?;
    let fixed = if is_established(before) { &["scope", "names/kind"][..] } else { &[] };
    for member in fixed.iter().chain(&["group", "names/plural"]) {
        let pointer = format!("/spec/{member}");
        let new = text(definition, &pointer);
        if new != text(before, &pointer) {
            let field = pointer.trim_start_matches('/').replace('/', ".");
            errors.push(FieldError::invalid(&field, &new.into(), "field is immutable"));
        }
    }
    Ok(errors)
}

/// The version that objects are stored in is one of those that they ever were stored in, which stay among the versions.
fn stored_errors(definition: &Value) -> Vec<FieldError> {
    let field = "status.storedVersions";
    let given = definition.pointer("/status/storedVersions").unwrap_or(&Value::Null);
    let stored = list(definition, "/status/storedVersions");
    if stored.is_empty() {
        return vec![FieldError::invalid(field, given, "must have at least one stored version")];
    }
    let mut errors = Vec::new();
    for name in storage_versions(definition) {
        if !stored.contains(&name.into()) {
            let why = format!("must have the storage version {name}");
            errors.push(FieldError::invalid(field, given, &why));
        }
    }
    for (index, name) in stored.iter().enumerate() {
        let is_there = versions(definition).iter().any(|version| version.get("name") == Some(name));
        if !is_there {
            let v = name.as_str().unwrap_or("");
            let why = format!(
                "missing from spec.versions; {v} was previously a storage version, and must remain in \
                 spec.versions until a storage migration ensures no data remains persisted in {v} and \
                 removes {v} from status.storedVersions"
            );
            errors.push(FieldError::invalid(&format!("{field}[{index}]"), name, &why));
        }
    }
    errors
}

/// Adds the version that objects are stored in from now on to those that they ever were stored in.
pub(crate) fn note_storage(definition: &mut Value) {
    let names: Vec<Value> =
        storage_versions(definition).into_iter().map(|name| name.to_owned().into()).collect();
    let stored = definition.pointer_mut("/status/storedVersions").and_then(Value::as_array_mut);
    if let Some(stored) = stored {
        for name in names {
            if !stored.contains(&name) {
                stored.push(name);
            }
        }
    }
}

/// Refuses features that the simulator does not support.
///
/// # Errors
/// 501 with the name of the feature.
fn unsupported(definition: &Value) -> Result<()> {
    if text(definition, "/spec/conversion/strategy") == "Webhook" {
        return Err(ApiError::not_implemented("conversion webhooks"));
    }
    if uses(definition.pointer("/spec/versions"), "x-kubernetes-validations") {
        return Err(ApiError::not_implemented("CEL rules (x-kubernetes-validations) of a schema"));
    }
    Ok(())
}

fn uses(value: Option<&Value>, keyword: &str) -> bool {
    match value {
        Some(Value::Object(members)) => {
            members.iter().any(|(name, member)| name == keyword || uses(Some(member), keyword))
        }
        Some(Value::Array(items)) => items.iter().any(|item| uses(Some(item), keyword)),
        _ => false,
    }
}

fn schemas(definition: &Value, errors: &mut Vec<FieldError>) {
    let list = versions(definition);
    for (index, version) in list.iter().enumerate() {
        let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
        let Some(schema) = version.pointer("/schema/openAPIV3Schema") else {
            errors.push(FieldError::required(&field, ""));
            continue;
        };
        // A single version is reported under the name that its schema had in v1beta1.
        let field = if list.len() == 1 { "spec.validation.openAPIV3Schema" } else { &field };
        errors.extend(schema::errors(schema, field));
    }
}

/// Annotation by which a definition of a group of Kubernetes is approved.
const APPROVED: &str = "api-approved.kubernetes.io";

fn group_errors(definition: &Value) -> Vec<FieldError> {
    let group = text(definition, "/spec/group");
    let mut errors = Vec::new();
    let wrong = names::dns1123_subdomain(group);
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else if !wrong.is_empty() {
        errors.push(FieldError::invalid("spec.group", &group.into(), &wrong.join(",")));
    } else if !group.contains('.') {
        let why = "should be a domain with at least one dot";
        errors.push(FieldError::invalid("spec.group", &group.into(), why));
    }
    let is_protected = ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        group.strip_suffix(domain).is_some_and(|start| start.is_empty() || start.ends_with('.'))
    });
    let approval = meta::annotation(definition, APPROVED).unwrap_or("");
    let is_url = approval.split_once("://").is_some_and(|(scheme, host)| {
        !scheme.is_empty() && !host.is_empty() && !host.starts_with('/')
    });
    if is_protected && !approval.starts_with("unapproved") && !is_url {
        let field = format!("metadata.annotations[{APPROVED}]");
        let see = "see https://github.com/kubernetes/enhancements/pull/1111";
        errors.push(if approval.is_empty() {
            let why = format!("protected groups must have approval annotation {APPROVED:?}, {see}");
            FieldError::required(&field, &why)
        } else {
            let why = format!(
                "protected groups must have approval annotation {APPROVED:?} with either a URL or a \
                 reason starting with \"unapproved\", {see}"
            );
            FieldError::invalid(&field, &approval.into(), &why)
        });
    }
    errors
}

/// A version in the form in which Go prints the internal struct; a single version has its parts elsewhere.
fn in_go(version: &Value) -> String {
    let flag = |name: &str| version.get(name) == Some(&Value::Bool(true));
    format!(
        "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":null,\
         \"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\
         \"SelectableFields\":null}}",
        Value::from(text(version, "/name")),
        flag("served"),
        flag("storage"),
        flag("deprecated"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition() -> Value {
        json!({
            "spec": {"group": "example.com", "scope": "Cluster",
                "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}}}]},
            "metadata": {"name": "foos.example.com"},
            "status": {"storedVersions": ["v1"],
                "conditions": [{"type": "Established", "status": "True"}]},
        })
    }

    fn fields(after: &Value) -> Vec<String> {
        let errors = validate_update("", &definition(), after).unwrap();
        errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn what_is_served_keeps_scope_and_kind() {
        let mut after = definition();
        assert_eq!(fields(&after), Vec::<String>::new());
        after["spec"]["scope"] = "Namespaced".into();
        after["spec"]["names"]["kind"] = "Bar".into();
        assert_eq!(fields(&after), ["spec.scope", "spec.names.kind"]);
    }

    #[test]
    fn versions_that_objects_were_stored_in_stay() {
        let mut after = definition();
        after["spec"]["versions"][0]["name"] = "v2".into();
        note_storage(&mut after);
        assert_eq!(after["status"]["storedVersions"], json!(["v1", "v2"]));
        assert_eq!(fields(&after), ["status.storedVersions[0]"]);
    }

    #[test]
    fn protected_groups_are_approved() {
        let mut after = definition();
        after["spec"]["group"] = "x.k8s.io".into();
        after["metadata"]["name"] = "foos.x.k8s.io".into();
        let protected = "metadata.annotations[api-approved.kubernetes.io]";
        assert_eq!(fields(&after), [protected, "spec.group"]);
        for (approval, is_enough) in
            [("https://example.com/1", true), ("unapproved, a test", true), ("yes", false)]
        {
            after["metadata"]["annotations"] = json!({APPROVED: approval});
            assert_eq!(!fields(&after).contains(&protected.to_owned()), is_enough, "{approval}");
        }
    }
}
