//! OpenAPI documents: only the parts by which clients see that the server validates fields.
//!
//! kubectl looks for a `patch` operation of the kind with the parameter `fieldValidation` and then
//! leaves validation to the server. Schemas of built-in kinds are not listed.

use serde_json::{Map, Value, json};

use crate::registry::{Known, Registry};
use crate::resources::{Resource, join_api_version};

/// Title and version of all documents.
const INFO: [&str; 2] = ["Kubernetes", "v1.36.0"];
/// The version of the format of [`openapi_v2`].
const SWAGGER: &str = "2.0";

/// Media type by which clients ask for [`openapi_v2_protobuf`], and the one of the answer, as kube-openapi has them.
pub(crate) const OPENAPI_V2_PROTOBUF_ASKED: &str =
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
pub(crate) const OPENAPI_V2_PROTOBUF: &str =
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

fn info() -> Value {
    let [title, version] = INFO;
    json!({"title": title, "version": version})
}

fn group_path(group: &str, version: &str) -> String {
    let root = if group.is_empty() { "api" } else { "apis" };
    format!("{root}/{}", join_api_version(group, version))
}

/// `/openapi/v3`: the list of documents.
pub(crate) fn openapi_v3_root(registry: &Registry) -> Value {
    let mut paths = Map::new();
    for resource in registry.all() {
        let path = group_path(&resource.group, &resource.version);
        // The hash must change only when the document changes.
        let url = format!("/openapi/v3/{path}?hash={}", hash(registry, resource));
        paths.insert(path, json!({"serverRelativeURL": url}));
    }
    json!({"paths": paths})
}

fn hash(registry: &Registry, of: &Resource) -> String {
    let own = registry.all().filter(|r| r.group == of.group && r.version == of.version);
    let names = own.map(|resource| resource.plural.clone()).collect::<Vec<_>>().join(",");
    let sum = names.bytes().fold(0_u64, |sum, byte| sum.rotate_left(5) ^ u64::from(byte));
    format!("{sum:016X}")
}

/// `/openapi/v3/apis/{group}/{version}`; `None` without such a version.
pub(crate) fn openapi_v3(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    if registry.knows(group, version) != Known::Version {
        return None;
    }
    let mut paths = Map::new();
    let mut schemas = Map::new();
    for resource in registry.all().filter(|r| r.group == group && r.version == version) {
        let namespace = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
        let base = format!("/{}{namespace}/{}", group_path(group, version), resource.plural);
        if !resource.rules.virtual_only {
            paths
                .insert(format!("{base}/{{name}}"), operations(resource, &["get", "patch", "put"]));
        }
        paths.insert(base, operations(resource, &["post"]));
        if let Some(custom) = &resource.custom {
            let mut schema = custom.schema.clone();
            if let Some(members) = schema.as_object_mut() {
                let kind = kind_of(resource);
                members.insert("x-kubernetes-group-version-kind".to_owned(), json!([kind]));
            }
            schemas.insert(format!("{group}.{version}.{}", resource.kind), schema);
        }
    }
    Some(json!({
        "openapi": "3.0.0", "info": info(), "paths": paths, "components": {"schemas": schemas},
    }))
}

fn kind_of(resource: &Resource) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": resource.kind})
}

fn operations(resource: &Resource, methods: &[&str]) -> Value {
    let query = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    let parameters = [query("dryRun"), query("fieldManager"), query("fieldValidation")];
    let operations = methods.iter().map(|method| {
        let operation = json!({
            "parameters": parameters,
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-group-version-kind": kind_of(resource),
        });
        ((*method).to_owned(), operation)
    });
    operations.collect::<Map<_, _>>().into()
}

/// `/openapi/v2`: an empty document.
pub(crate) fn openapi_v2() -> Value {
    json!({"swagger": SWAGGER, "info": info(), "paths": {}, "definitions": {}})
}

/// The same as a message `Document`. Source: gnostic, `openapiv2/OpenAPIv2.proto`.
pub(crate) fn openapi_v2_protobuf() -> Vec<u8> {
    let [title, version] = INFO;
    let info = [member(1, title.as_bytes()), member(2, version.as_bytes())].concat();
    let (paths, definitions) = (member(8, &[]), member(9, &[]));
    [member(1, SWAGGER.as_bytes()), member(2, &info), paths, definitions].concat()
}

/// A member of a message, with a value of less than 128 bytes, so that its length is one byte.
fn member(number: u8, value: &[u8]) -> Vec<u8> {
    const LENGTH_DELIMITED: u8 = 2;
    let length = u8::try_from(value.len()).unwrap_or(u8::MAX);
    debug_assert!(length < 0x80 && number < 16);
    [&[(number << 3) | LENGTH_DELIMITED, length], value].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_the_empty_document_say_the_same() {
        let bytes = openapi_v2_protobuf();
        assert_eq!(bytes, b"\n\x032.0\x12\x15\n\nKubernetes\x12\x07v1.36.0B\0J\0");
        assert_eq!(openapi_v2()["info"]["version"], "v1.36.0");
    }
}
