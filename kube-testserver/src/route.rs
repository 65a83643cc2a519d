//! Maps path and method to verb, resource, namespace, name and sub-resource.

use axum::http::Method;

/// The target of a path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Target {
    /// Objects of a resource, which may not exist.
    Resource(ResourcePath),
    /// Any other path, for example `/healthz` or `/apis`.
    Other,
}

/// The parts of a path of objects.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct ResourcePath {
    /// Empty for core.
    pub group: String,
    /// For example `v1`.
    pub version: String,
    /// Empty for cluster scope and all namespaces.
    pub namespace: String,
    /// Plural.
    pub plural: String,
    /// Empty for collections.
    pub name: String,
    /// Empty for the object itself.
    pub subresource: String,
    /// Whether more segments follow the sub-resource; no such path is valid.
    pub too_long: bool,
    /// Whether the path has the deprecated `/watch/` prefix.
    pub is_watch: bool,
}

/// Splits a path.
pub(crate) fn target(path: &str) -> Target {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (group, version, mut rest) = match parts.as_slice() {
        ["api", version, rest @ ..] if !rest.is_empty() => ("", *version, rest),
        ["apis", group, version, rest @ ..] if !rest.is_empty() => (*group, *version, rest),
        _ => return Target::Other,
    };
    let is_watch = rest.first() == Some(&"watch") && rest.len() > 1;
    if let (true, [_, others @ ..]) = (is_watch, rest) {
        rest = others;
    }
    let owned = |text: &str| text.to_owned();
    let mut path = ResourcePath {
        group: owned(group),
        version: owned(version),
        is_watch,
        ..ResourcePath::default()
    };
    // Sub-resources of namespaces look like resources in a namespace.
    let rest = match rest {
        ["namespaces", namespace, inner @ ..]
            if !inner.is_empty() && !matches!(inner, ["status" | "finalize"]) =>
        {
            path.namespace = owned(namespace);
            inner
        }
        other => other,
    };
    let mut segments = rest.iter();
    let mut next = || segments.next().map_or_else(String::new, |text| owned(text));
    path.plural = next();
    path.name = next();
    path.subresource = next();
    path.too_long = segments.next().is_some();
    if path.group.is_empty() && path.plural == "namespaces" {
        path.namespace.clear();
    }
    Target::Resource(path)
}

/// The verb of the request for the authorizer; `None` for an unknown method.
pub(crate) fn verb(method: &Method, is_named: bool, is_watch: bool) -> Option<&'static str> {
    Some(match (method.as_str(), is_named) {
        ("GET" | "HEAD", false) if is_watch => "watch",
        ("GET" | "HEAD", false) => "list",
        ("GET" | "HEAD", true) => "get",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", true) => "delete",
        ("DELETE", false) => "deletecollection",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: [&str; 6]) {
        let Target::Resource(found) = target(path) else { panic!("{path} is no resource") };
        let found = [
            found.group,
            found.version,
            found.namespace,
            found.plural,
            found.name,
            found.subresource,
        ];
        assert_eq!(found, expected.map(str::to_owned));
    }

    #[test]
    fn paths_of_objects_are_understood() {
        check("/api/v1/nodes/n/status", ["", "v1", "", "nodes", "n", "status"]);
        check("/api/v1/namespaces/a/pods", ["", "v1", "a", "pods", "", ""]);
        check("/api/v1/namespaces/a", ["", "v1", "", "namespaces", "a", ""]);
        check("/api/v1/namespaces/a/finalize", ["", "v1", "", "namespaces", "a", "finalize"]);
        check("/apis/apps/v1/namespaces/a/x/y/z", ["apps", "v1", "a", "x", "y", "z"]);
        check("/api/v1/watch/namespaces/a/pods", ["", "v1", "a", "pods", "", ""]);
    }

    #[test]
    fn other_paths_are_not() {
        for path in ["/api/v1", "/apis", "/apis/apps/v1", "/healthz", "/openapi/v3/apis/apps/v1"] {
            assert_eq!(target(path), Target::Other, "{path}");
        }
    }
}
