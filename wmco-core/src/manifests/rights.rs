//! Roles and bindings of the operator, made from its [`GRANTS`].

use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::{Value, json};

use super::grant::{Grant, Place};
use super::grants::{EVENTS_NAMESPACE, GRANTS};
use super::text::{Document, File};
use crate::names::objects::{
    BOOTSTRAPPER_NAMESPACE, CLUSTER_API_NAMESPACE, MACHINE_API_NAMESPACE, OPERATOR,
};
use crate::names::registries::PULL_SECRET_NAMESPACE;

const GROUP: &str = "rbac.authorization.k8s.io";

/// The ServiceAccount, and all rights except those in the namespaces of Machines.
pub(super) fn of_operator(namespace: &str) -> File {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": OPERATOR, "namespace": namespace},
    });
    let places = [
        Place::Cluster,
        Place::Own,
        Place::Elsewhere(EVENTS_NAMESPACE),
        Place::Elsewhere(BOOTSTRAPPER_NAMESPACE),
        Place::Elsewhere(PULL_SECRET_NAMESPACE),
    ];
    let roles = places.into_iter().flat_map(|place| in_place(place, namespace));
    File::new(
        "operator-rights.yaml",
        "What the operator may do. Each rule says which parts of its program need it; what none needs is not\n\
         here.",
        [Document::of(account)].into_iter().chain(roles),
    )
}

/// The rights in the namespace of the Machine API.
pub(super) fn beside_machines(namespace: &str) -> File {
    File::new(
        "machine-api-rights.yaml",
        "What the operator may do beside the Machine API, in its namespace. A cluster without the Machine API\n\
         has no such namespace: take this file out of kustomization.yaml there.",
        in_place(Place::Elsewhere(MACHINE_API_NAMESPACE), namespace),
    )
}

/// The rights in the namespace of the Cluster API.
pub(super) fn beside_cluster_api(namespace: &str) -> [Document; 2] {
    in_place(Place::Elsewhere(CLUSTER_API_NAMESPACE), namespace)
}

/// The rules of the scopes that `holds` accepts, each once.
pub(crate) fn rules(namespace: &str, holds: impl Fn(Place) -> bool) -> Vec<PolicyRule> {
    let mut rules: Vec<PolicyRule> = Vec::new();
    for grant in GRANTS.iter().filter(|grant| holds(grant.place)) {
        let rule = grant.rule(namespace);
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    rules
}

/// The role of a scope, and its binding.
fn in_place(place: Place, namespace: &str) -> [Document; 2] {
    let (kind, suffix, of) = match place {
        Place::Cluster => ("ClusterRole", "", None),
        Place::Own => ("Role", "", Some(namespace)),
        Place::Elsewhere(there) => ("Role", suffix(there), Some(there)),
    };
    let name = format!("{OPERATOR}{suffix}");
    let metadata = of.map_or_else(
        || json!({"name": name}),
        |namespace| json!({"name": name, "namespace": namespace}),
    );
    let here: Vec<&Grant> = GRANTS.iter().filter(|grant| grant.place == place).collect();
    let role = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": metadata,
        "rules": here.iter().map(|grant| grant.rule(namespace)).collect::<Vec<_>>(),
    });
    let binding: Value = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": format!("{kind}Binding"), "metadata": metadata,
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": OPERATOR, "namespace": namespace}],
    });
    let rule_comments = here.iter().map(|grant| grant.because()).collect();
    [Document { object: role, rule_comments }, Document::of(binding)]
}

/// Suffix of the name of a role, which tells its purpose.
fn suffix(namespace: &str) -> &'static str {
    match namespace {
        EVENTS_NAMESPACE => "-events",
        BOOTSTRAPPER_NAMESPACE => "-bootstrapper",
        PULL_SECRET_NAMESPACE => "-pull-secret",
        _ => "-machines",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::manifests::{Installation, files};

    #[test]
    fn every_grant_is_in_a_role_of_its_place() {
        let files = files(&Installation::new("ns", "wmco").unwrap());
        let roles: Vec<&Value> = files
            .iter()
            .flat_map(|file| &file.documents)
            .map(|document| &document.object)
            .filter(|object| object["rules"].is_array())
            .collect();
        for grant in GRANTS {
            let there = match grant.place {
                Place::Cluster => Value::Null,
                Place::Own => "ns".into(),
                Place::Elsewhere(namespace) => namespace.into(),
            };
            let rule = json!(grant.rule("ns"));
            let has = |role: &&&Value| {
                let is_ours = role["metadata"]["name"]
                    .as_str()
                    .is_some_and(|name| name.starts_with(OPERATOR));
                is_ours
                    && role["metadata"]["namespace"] == there
                    && role["rules"].as_array().is_some_and(|rules| rules.contains(&rule))
            };
            assert_eq!(roles.iter().filter(has).count(), 1, "{grant:?}");
        }
    }

    #[test]
    fn no_grant_is_wider_than_a_list_of_verbs() {
        for grant in GRANTS {
            let all = [&[grant.group], grant.resources, grant.verbs].concat();
            assert!(!all.contains(&"*"), "{grant:?}");
            assert!(
                !["escalate", "impersonate"].iter().any(|verb| grant.verbs.contains(verb)),
                "{grant:?}"
            );
            let mut sorted = grant.verbs.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, grant.verbs, "in order: {grant:?}");
        }
    }

    #[test]
    fn a_right_is_given_once() {
        let mut seen = BTreeSet::new();
        for grant in GRANTS {
            for (resource, verb) in
                grant.resources.iter().flat_map(|it| grant.verbs.iter().map(move |verb| (it, verb)))
            {
                let names = format!("{:?}", grant.names);
                let right = (grant.place, grant.group, resource, verb, names);
                assert!(seen.insert(right), "{grant:?}: {verb}");
            }
        }
    }
}
