//! Discovery documents, which list the served resources.

mod openapi;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::registry::{Known, Registry};
use super::resources::{Resource, join_api_version};

pub(crate) use openapi::{
    OPENAPI_V2_PROTOBUF, OPENAPI_V2_PROTOBUF_ASKED, openapi_v2, openapi_v2_protobuf, openapi_v3,
    openapi_v3_root,
};

/// The Content-Type of the aggregated document for all groups.
pub(crate) const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// `/version`.
pub(crate) fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "emulationMajor": "1", "emulationMinor": "36",
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
        "gitVersion": "v1.36.0+simulated", "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "gc",
        "platform": "linux/amd64",
    })
}

/// `/api`.
pub(crate) fn core_versions(address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    })
}

/// Groups in order of appearance, each with its versions.
fn groups(registry: &Registry) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for resource in registry.all().filter(|resource| !resource.group.is_empty()) {
        match groups.iter_mut().find(|(group, _)| *group == resource.group) {
            Some((_, versions)) if versions.contains(&resource.version) => {}
            Some((_, versions)) => versions.push(resource.version.clone()),
            None => groups.push((resource.group.clone(), vec![resource.version.clone()])),
        }
    }
    for (_, versions) in &mut groups {
        versions.sort_by_key(|version| std::cmp::Reverse(priority(version)));
    }
    groups
}

/// `v2` before `v1`, `v1` before `v1beta2`, `beta` before `alpha`, anything else last.
fn priority(version: &str) -> (u8, u64, u64) {
    let Some(rest) = version.strip_prefix('v') else { return (0, 0, 0) };
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, stage) = rest.split_at(end);
    let Ok(major) = major.parse() else { return (0, 0, 0) };
    let minor = |stage: &str, word: &str| stage.strip_prefix(word).and_then(|n| n.parse().ok());
    match (stage, minor(stage, "beta"), minor(stage, "alpha")) {
        ("", _, _) => (3, major, 0),
        (_, Some(beta), _) => (2, major, beta),
        (_, _, Some(alpha)) => (1, major, alpha),
        _ => (0, 0, 0),
    }
}

fn group_object(group: &str, versions: &[String]) -> Map<String, Value> {
    let of = |version: &String| json!({"groupVersion": join_api_version(group, version), "version": version});
    let mut object = Map::new();
    object.insert("name".to_owned(), group.into());
    object.insert("versions".to_owned(), versions.iter().map(of).collect());
    let preferred = versions.first().map(of).unwrap_or_default();
    object.insert("preferredVersion".to_owned(), preferred);
    object
}

/// `/apis`.
pub(crate) fn group_list(registry: &Registry) -> Value {
    let groups = groups(registry);
    let groups = groups.iter().map(|(group, versions)| Value::from(group_object(group, versions)));
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups.collect::<Vec<_>>()})
}

/// `/apis/{group}`; `None` without such a group.
pub(crate) fn group(registry: &Registry, name: &str) -> Option<Value> {
    let groups = groups(registry);
    let (_, versions) = groups.iter().find(|(group, _)| group == name)?;
    let mut object = group_object(name, versions);
    object.insert("kind".to_owned(), "APIGroup".into());
    object.insert("apiVersion".to_owned(), "v1".into());
    Some(object.into())
}

/// `/api/v1` and `/apis/{group}/{version}`; `None` without such a version.
pub(crate) fn resource_list(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    if registry.knows(group, version) != Known::Version {
        return None;
    }
    let own = registry.all().filter(|r| r.group == group && r.version == version);
    let resources: Vec<Value> = own.flat_map(|resource| entries(resource)).collect();
    Some(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": join_api_version(group, version),
        "resources": resources,
    }))
}

fn entries(resource: &Resource) -> Vec<Value> {
    let mut main = json!({
        "name": resource.plural, "singularName": resource.singular,
        "namespaced": resource.namespaced, "kind": resource.kind, "verbs": resource.verbs,
    });
    if let Some(members) = main.as_object_mut() {
        words(members, "shortNames", &resource.short_names);
        words(members, "categories", &resource.categories);
    }
    let mut entries = vec![main];
    for sub in &resource.subresources {
        let mut entry = json!({
            "name": format!("{}/{}", resource.plural, sub.name), "singularName": "",
            "namespaced": resource.namespaced, "kind": sub.kind, "verbs": sub.verbs,
        });
        if let (Some((group, version)), Some(members)) = (sub.foreign, entry.as_object_mut()) {
            members.insert("group".to_owned(), group.into());
            members.insert("version".to_owned(), version.into());
        }
        entries.push(entry);
    }
    entries
}

fn words(members: &mut Map<String, Value>, name: &str, words: &[String]) {
    if !words.is_empty() {
        members.insert(name.to_owned(), words.to_vec().into());
    }
}

/// The aggregated document for all groups (`core`: only the core group).
pub(crate) fn aggregated(registry: &Registry, core: bool) -> Value {
    let all = if core { vec![(String::new(), vec!["v1".to_owned()])] } else { groups(registry) };
    let items: Vec<Value> = all
        .iter()
        .map(|(group, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|version| {
                    let own = registry.all().filter(|r| r.group == *group && r.version == *version);
                    json!({
                        "version": version,
                        "resources": own.map(|r| aggregated_entry(r)).collect::<Vec<_>>(),
                        "freshness": "Current",
                    })
                })
                .collect();
            let mut meta = Map::new();
            if !group.is_empty() {
                meta.insert("name".to_owned(), group.clone().into());
            }
            json!({"metadata": meta, "versions": versions})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {}, "items": items,
    })
}

/// Kinds of the resource's own group and version are listed without them, except custom ones.
fn response_kind(resource: &Resource, foreign: Option<(&str, &str)>, kind: &str) -> Value {
    let own = (resource.group.as_str(), resource.version.as_str());
    let shown = if resource.custom.is_some() { own } else { ("", "") };
    let (group, version) = foreign.unwrap_or(shown);
    json!({"group": group, "version": version, "kind": kind})
}

fn aggregated_entry(resource: &Resource) -> Value {
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": response_kind(resource, None, &resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    let subs: Vec<Value> = resource
        .subresources
        .iter()
        .map(|sub| {
            json!({
                "subresource": sub.name,
                "responseKind": response_kind(resource, sub.foreign, &sub.kind),
                "verbs": sub.verbs,
            })
        })
        .collect();
    if let Some(members) = entry.as_object_mut() {
        words(members, "shortNames", &resource.short_names);
        words(members, "categories", &resource.categories);
        if !subs.is_empty() {
            members.insert("subresources".to_owned(), subs.into());
        }
    }
    entry
}

/// `{"paths": [...]}`, the answer to `/`.
pub(crate) fn root(registry: &Registry) -> Value {
    let fixed = [
        "/api",
        "/api/v1",
        "/apis",
        "/healthz",
        "/livez",
        "/openapi/v2",
        "/openapi/v3",
        "/readyz",
        "/version",
    ];
    let mut paths: BTreeSet<String> = fixed.into_iter().map(str::to_owned).collect();
    for (group, versions) in groups(registry) {
        paths.insert(format!("/apis/{group}"));
        paths.extend(versions.iter().map(|version| format!("/apis/{group}/{version}")));
    }
    json!({"paths": paths})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_maturity() {
        let mut versions = ["v1alpha1", "v1", "v2beta1", "foo", "v2", "v1beta3"];
        versions.sort_by_key(|version| std::cmp::Reverse(priority(version)));
        assert_eq!(versions, ["v2", "v1", "v2beta1", "v1beta3", "v1alpha1", "foo"]);
    }
}
