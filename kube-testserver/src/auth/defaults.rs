//! The roles and bindings that every cluster has from the start.
//!
//! Source: Kubernetes documentation, "Using RBAC Authorization", default roles and role bindings; only those for
//! resources that are served here. `admin`, `edit` and `view` are complete roles, because no controller aggregates
//! them.

use serde_json::{Value, json};

use super::rbac::GROUP;

const ROLES: &str = include_str!("roles.json");

/// The ClusterRoles, then the ClusterRoleBindings to groups.
pub(crate) fn objects() -> Vec<(&'static str, Value)> {
    let roles: Vec<Value> = serde_json::from_str(ROLES).unwrap_or_default();
    let metadata = |role: &Value| {
        json!({
            "name": role.get("name"),
            "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        })
    };
    let api_version = format!("{GROUP}/v1");
    let mut out = vec![];
    for role in &roles {
        out.push((
            "clusterroles",
            json!({
                "kind": "ClusterRole", "apiVersion": api_version, "metadata": metadata(role),
                "rules": role.get("rules"),
            }),
        ));
    }
    for role in &roles {
        let groups = role.get("groups").and_then(Value::as_array);
        let subject = |name| json!({"kind": "Group", "apiGroup": GROUP, "name": name});
        if let Some(groups) = groups {
            out.push((
                "clusterrolebindings",
                json!({
                    "kind": "ClusterRoleBinding", "apiVersion": api_version,
                    "metadata": metadata(role),
                    "roleRef":
                        {"apiGroup": GROUP, "kind": "ClusterRole", "name": role.get("name")},
                    "subjects": groups.iter().map(subject).collect::<Vec<_>>(),
                }),
            ));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{Attributes, decide};
    use crate::identity::User;
    use crate::resources::StorageKey;
    use crate::store::Store;

    fn store() -> Store {
        let mut store = Store::default();
        for (plural, object) in objects() {
            store.put(&StorageKey::new(GROUP, plural), object);
        }
        store
    }

    #[track_caller]
    fn check(user: &User, path: &str, expected: bool) {
        let of = Attributes { verb: "get", path, ..Attributes::default() };
        assert_eq!(decide(&store(), user, &of).is_allowed(), expected, "{path}");
    }

    #[test]
    fn anybody_may_see_version_and_health_only() {
        check(&User::anonymous(), "/version", true);
        check(&User::anonymous(), "/healthz", true);
        check(&User::anonymous(), "/api", false);
    }

    #[test]
    fn users_may_discover() {
        let user = User::authenticated("bob", &[]);
        check(&user, "/apis/apps/v1", true);
        check(&user, "/metrics", false);
    }
}
