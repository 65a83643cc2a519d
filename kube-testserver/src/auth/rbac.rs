//! Role based access control: checks a request against the rules that are bound to a user.
//!
//! Source: Kubernetes documentation, "Using RBAC Authorization".

use std::sync::Arc;

use serde_json::Value;

use super::{Attributes, Decision};
use crate::identity::User;
use crate::meta;
use crate::resources::StorageKey;
use crate::store::Store;

/// The API group of roles and bindings.
pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";

/// Decides by the roles and bindings in the store.
pub(crate) fn authorize(store: &Store, user: &User, of: &Attributes<'_>) -> Decision {
    let mut missing = vec![];
    for grant in grants(store, user, of.namespace) {
        match grant.rules {
            Ok(rules) if allows(&rules, of) => {
                return Decision::Allow(format!("RBAC: allowed by {}", grant.by));
            }
            Ok(_) => {}
            Err(role) => missing.push(role),
        }
    }
    Decision::NoOpinion(match missing.as_slice() {
        [] => String::new(),
        [one] => format!("RBAC: {one}"),
        many => format!("RBAC: [{}]", many.join(", ")),
    })
}

/// Whether one of the rules (`PolicyRule` as JSON) allows the request.
pub(crate) fn allows(rules: &[Value], of: &Attributes<'_>) -> bool {
    rules.iter().any(|rule| rule_allows(rule, of))
}

/// All rules of a user in a namespace, including cluster-wide rules.
pub(crate) fn rules_of(store: &Store, user: &User, namespace: &str) -> Vec<Value> {
    grants(store, user, namespace).filter_map(|grant| grant.rules.ok()).flatten().collect()
}

/// The rules of the role that a binding refers to; otherwise the missing role.
pub(crate) fn role_rules(store: &Store, binding: &Value) -> Result<Vec<Value>, String> {
    let reference = |member| binding.pointer(member).and_then(Value::as_str).unwrap_or("");
    let (kind, name) = (reference("/roleRef/kind"), reference("/roleRef/name"));
    let role = if kind == "ClusterRole" {
        store.get(&place("clusterroles"), "", name)
    } else {
        store.get(&place("roles"), meta::namespace(binding), name)
    };
    role.map(|role| rules(role))
        .ok_or_else(|| format!("{}.{GROUP} {name:?} not found", kind.to_lowercase()))
}

/// The rules of a role.
pub(crate) fn rules(role: &Value) -> Vec<Value> {
    role.get("rules").and_then(Value::as_array).cloned().unwrap_or_default()
}

struct Grant {
    by: String,
    rules: Result<Vec<Value>, String>,
}

fn place(plural: &str) -> StorageKey {
    StorageKey::new(GROUP, plural)
}

fn grants<'a>(
    store: &'a Store,
    user: &'a User,
    namespace: &'a str,
) -> impl Iterator<Item = Grant> + 'a {
    let cluster = store.list(&place("clusterrolebindings"), "");
    let local = (!namespace.is_empty()).then(|| store.list(&place("rolebindings"), namespace));
    cluster.chain(local.into_iter().flatten()).filter_map(move |binding| {
        let subject = subjects(binding).into_iter().find(|subject| is(subject, user, binding))?;
        Some(Grant { by: describe(binding, subject), rules: role_rules(store, binding) })
    })
}

fn subjects(binding: &Arc<Value>) -> Vec<&Value> {
    binding.get("subjects").and_then(Value::as_array).into_iter().flatten().collect()
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value.get(member).and_then(Value::as_str).unwrap_or("")
}

fn subject_namespace<'a>(subject: &'a Value, binding: &'a Value) -> &'a str {
    match text(subject, "namespace") {
        "" => meta::namespace(binding),
        namespace => namespace,
    }
}

fn is(subject: &Value, user: &User, binding: &Value) -> bool {
    let name = text(subject, "name");
    match text(subject, "kind") {
        "User" => user.name == name,
        "Group" => user.in_group(name),
        "ServiceAccount" => {
            let namespace = subject_namespace(subject, binding);
            !namespace.is_empty()
                && user.name == format!("system:serviceaccount:{namespace}:{name}")
        }
        _ => false,
    }
}

fn describe(binding: &Value, subject: &Value) -> String {
    let role = |member| binding.pointer(member).and_then(Value::as_str).unwrap_or("");
    let (kind, name) = match meta::namespace(binding) {
        "" => ("ClusterRoleBinding", meta::name(binding).to_owned()),
        namespace => ("RoleBinding", format!("{}/{namespace}", meta::name(binding))),
    };
    let who = match text(subject, "kind") {
        "ServiceAccount" => {
            format!("{}/{}", text(subject, "name"), subject_namespace(subject, binding))
        }
        _ => text(subject, "name").to_owned(),
    };
    format!(
        "{kind} {name:?} of {} {:?} to {} {who:?}",
        role("/roleRef/kind"),
        role("/roleRef/name"),
        text(subject, "kind"),
    )
}

fn words<'a>(rule: &'a Value, member: &str) -> Vec<&'a str> {
    let list = rule.get(member).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn has(words: &[&str], word: &str) -> bool {
    words.iter().any(|own| *own == "*" || *own == word)
}

fn rule_allows(rule: &Value, of: &Attributes<'_>) -> bool {
    if !has(&words(rule, "verbs"), of.verb) {
        return false;
    }
    if of.resource.is_empty() {
        return words(rule, "nonResourceURLs").into_iter().any(|url| url_matches(url, of.path));
    }
    let names = words(rule, "resourceNames");
    has(&words(rule, "apiGroups"), of.group)
        && words(rule, "resources").into_iter().any(|resource| resource_matches(resource, of))
        && (names.is_empty() || names.contains(&of.name))
}

fn url_matches(url: &str, path: &str) -> bool {
    match url.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => path == url,
    }
}

fn resource_matches(own: &str, of: &Attributes<'_>) -> bool {
    match own.split_once('/') {
        None if own == "*" => true,
        None => of.subresource.is_empty() && own == of.resource,
        Some((resource, sub)) => {
            sub == of.subresource && (resource == "*" || resource == of.resource)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of<'a>(verb: &'a str, resource: &'a str, sub: &'a str, name: &'a str) -> Attributes<'a> {
        Attributes { verb, resource, subresource: sub, name, ..Attributes::default() }
    }

    #[track_caller]
    fn check(rule: Value, attributes: &Attributes<'_>, expected: bool) {
        assert_eq!(allows(&[rule], attributes), expected);
    }

    #[test]
    fn names_limit() {
        let rule = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"],
            "resourceNames": ["ok"]});
        check(rule.clone(), &of("get", "configmaps", "", "ok"), true);
        check(rule.clone(), &of("get", "configmaps", "", "other"), false);
        check(rule, &of("list", "configmaps", "", "ok"), false);
    }

    #[test]
    fn subresources_are_apart() {
        let rule =
            |resource: &str| json!({"verbs": ["*"], "apiGroups": ["*"], "resources": [resource]});
        check(rule("pods"), &of("get", "pods", "status", ""), false);
        check(rule("pods/status"), &of("get", "pods", "status", ""), true);
        check(rule("*/status"), &of("get", "pods", "status", ""), true);
        check(rule("*/status"), &of("get", "pods", "", ""), false);
        check(rule("*"), &of("get", "pods", "status", ""), true);
    }

    #[test]
    fn paths_match_by_prefix() {
        let rule = json!({"verbs": ["get"], "nonResourceURLs": ["/healthz", "/api/*"]});
        let path = |path| Attributes { verb: "get", path, ..Attributes::default() };
        check(rule.clone(), &path("/healthz"), true);
        check(rule.clone(), &path("/api/v1"), true);
        check(rule, &path("/metrics"), false);
    }

    #[test]
    fn a_binding_is_named_and_a_missing_role_too() {
        let mut store = Store::default();
        let binding = |name: &str, role: &str| {
            json!({"metadata": {"name": name, "namespace": "n"},
                "roleRef": {"kind": "Role", "name": role},
                "subjects": [{"kind": "Group", "name": "team"}]})
        };
        store.put(&place("rolebindings"), binding("a", "none"));
        let user = User { groups: vec!["team".to_owned()], ..User::default() };
        let get = Attributes { namespace: "n", ..of("get", "configmaps", "", "x") };
        let decision = authorize(&store, &user, &get);
        let missing = "RBAC: role.rbac.authorization.k8s.io \"none\" not found";
        assert_eq!(decision, Decision::NoOpinion(missing.to_owned()));

        store.put(&place("rolebindings"), binding("rb", "r"));
        store.put(
            &place("roles"),
            json!({"metadata": {"name": "r", "namespace": "n"}, "rules":
                [{"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]}]}),
        );
        let allowed = "RBAC: allowed by RoleBinding \"rb/n\" of Role \"r\" to Group \"team\"";
        assert_eq!(authorize(&store, &user, &get), Decision::Allow(allowed.to_owned()));
        let elsewhere = Attributes { namespace: "m", ..get };
        assert_eq!(authorize(&store, &user, &elsewhere), Decision::NoOpinion(String::new()));
    }
}
