//! Impersonation by `Impersonate-*` headers.
//!
//! A client needs either the old verb `impersonate` on the name, or (constrained impersonation)
//! `impersonate:<mode>` on the name and `impersonate-on:<mode>:<verb>` on the requested object. Source: Kubernetes
//! documentation, "User impersonation".

use std::collections::BTreeMap;

use axum::http::HeaderMap;

use super::{Attributes, decide, forbidden};
use crate::error::{ApiError, Result};
use crate::identity::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, User};
use crate::store::Store;

const ACCOUNT: &str = "system:serviceaccount:";
const NODE: &str = "system:node:";
const EXTRA: &str = "impersonate-extra-";

/// The user in the headers, if there is one and `user` may impersonate it.
///
/// # Errors
/// 400 for groups or extras without a user, 403 without the right.
pub(crate) fn apply(
    store: &Store,
    user: User,
    headers: &HeaderMap,
    of: &Attributes<'_>,
) -> Result<User> {
    let texts = |name: &str| -> Vec<String> {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.filter(|value| !value.is_empty()).map(ToOwned::to_owned).collect()
    };
    let name = texts("impersonate-user").into_iter().next().unwrap_or_default();
    let uid = texts("impersonate-uid").into_iter().next().unwrap_or_default();
    let groups = texts("impersonate-group");
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for header in headers.keys() {
        if let Some(key) = header.as_str().strip_prefix(EXTRA) {
            extra.insert(percent_decoded(key), texts(header.as_str()));
        }
    }
    if name.is_empty() {
        if uid.is_empty() && groups.is_empty() && extra.is_empty() {
            return Ok(user);
        }
        return Err(ApiError::bad_request(
            "impersonation without a user: add Impersonate-User to the other headers",
        ));
    }
    let wanted = User { name, uid, groups, extra };
    if !may(store, &user, &wanted, of) {
        let verb = format!("impersonate-on:{}:{}", mode(&wanted), of.verb);
        return Err(forbidden(&user, &Attributes { verb: &verb, ..*of }, ""));
    }
    Ok(complete(wanted))
}

/// The mode: the kind of the impersonated user.
fn mode(wanted: &User) -> &'static str {
    if wanted.name.starts_with(ACCOUNT) {
        "serviceaccount"
    } else if wanted.name.starts_with(NODE) {
        "arbitrary-node"
    } else {
        "user-info"
    }
}

fn may(store: &Store, user: &User, wanted: &User, of: &Attributes<'_>) -> bool {
    let mode = mode(wanted);
    let on = format!("impersonate-on:{mode}:{}", of.verb);
    let constrained = decide(store, user, &Attributes { verb: &on, ..*of }).is_allowed()
        && names(wanted).all(|(group, resource, sub, namespace, name)| {
            let group = if group.is_empty() { "authentication.k8s.io" } else { group };
            let verb = format!("impersonate:{mode}");
            let of = Attributes {
                verb: &verb,
                group,
                resource,
                subresource: &sub,
                namespace: &namespace,
                name: &name,
                ..Attributes::default()
            };
            decide(store, user, &of).is_allowed()
        });
    constrained
        || names(wanted).all(|(group, resource, sub, namespace, name)| {
            let of = Attributes {
                verb: "impersonate",
                group,
                resource,
                subresource: &sub,
                namespace: &namespace,
                name: &name,
                ..Attributes::default()
            };
            decide(store, user, &of).is_allowed()
        })
}

type Named = (&'static str, &'static str, String, String, String);

/// The parts of the impersonated user that need a permission: group, resource, sub-resource, namespace, name.
fn names(wanted: &User) -> impl Iterator<Item = Named> + '_ {
    let none = String::new;
    let user = match wanted.name.strip_prefix(ACCOUNT).and_then(|rest| rest.split_once(':')) {
        Some((namespace, name)) => {
            ("", "serviceaccounts", none(), namespace.to_owned(), name.to_owned())
        }
        None => ("", "users", none(), none(), wanted.name.clone()),
    };
    let uid = (!wanted.uid.is_empty())
        .then(|| ("authentication.k8s.io", "uids", none(), none(), wanted.uid.clone()));
    let groups =
        wanted.groups.iter().map(move |group| ("", "groups", none(), none(), group.clone()));
    let extra = wanted.extra.iter().flat_map(move |(key, values)| {
        values.iter().map(move |value| {
            ("authentication.k8s.io", "userextras", key.clone(), none(), value.clone())
        })
    });
    std::iter::once(user).chain(uid).chain(groups).chain(extra)
}

/// Adds the groups that the name implies.
fn complete(mut user: User) -> User {
    if user.groups.is_empty()
        && let Some((namespace, _)) =
            user.name.strip_prefix(ACCOUNT).and_then(|rest| rest.split_once(':'))
    {
        user.groups = vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
        ];
    }
    let everybody = if user.name == ANONYMOUS { UNAUTHENTICATED } else { AUTHENTICATED };
    if !user.in_group(AUTHENTICATED) && !user.in_group(UNAUTHENTICATED) {
        user.groups.push(everybody.to_owned());
    }
    user
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = vec![];
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let escaped = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        if let Some(byte) = escaped.filter(|_| *first == b'%') {
            bytes.push(byte);
            rest = after.get(2..).unwrap_or_default();
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::identity::MASTERS;
    use crate::resources::StorageKey;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    fn list() -> Attributes<'static> {
        Attributes { verb: "list", resource: "pods", namespace: "n", ..Attributes::default() }
    }

    fn admin() -> User {
        User::authenticated("admin", &[MASTERS.to_owned()])
    }

    #[test]
    fn without_headers_nothing_changes() {
        let user = apply(&Store::default(), admin(), &headers(&[]), &list()).unwrap();
        assert_eq!(user, admin());
    }

    #[test]
    fn user_groups_and_extra_are_taken() {
        let headers = headers(&[
            ("impersonate-user", "someone"),
            ("impersonate-group", "g1"),
            ("impersonate-extra-a%2fb", "x"),
        ]);
        let user = apply(&Store::default(), admin(), &headers, &list()).unwrap();
        assert_eq!(user.groups, ["g1", AUTHENTICATED]);
        assert_eq!(user.extra["a/b"], ["x"]);
    }

    #[test]
    fn service_accounts_get_their_groups() {
        let headers = headers(&[("impersonate-user", "system:serviceaccount:n:x")]);
        let user = apply(&Store::default(), admin(), &headers, &list()).unwrap();
        let groups = ["system:serviceaccounts", "system:serviceaccounts:n", AUTHENTICATED];
        assert_eq!(user.groups, groups);
    }

    #[test]
    fn a_group_alone_is_a_bad_request() {
        let headers = headers(&[("impersonate-group", "g")]);
        assert_eq!(apply(&Store::default(), admin(), &headers, &list()).unwrap_err().code, 400);
    }

    #[test]
    fn the_right_is_needed() {
        let eve = User::authenticated("eve", &[]);
        let headers = headers(&[("impersonate-user", "admin")]);
        let error = apply(&Store::default(), eve.clone(), &headers, &list()).unwrap_err();
        assert_eq!(error.code, 403);
        assert!(error.message.contains("cannot impersonate-on:user-info:list resource \"pods\""));

        let mut store = Store::default();
        let place = |plural| StorageKey::new(super::super::rbac::GROUP, plural);
        store.put(
            &place("clusterroles"),
            json!({"metadata": {"name": "r"}, "rules": [{"verbs": ["impersonate"],
                "apiGroups": [""], "resources": ["users"], "resourceNames": ["admin"]}]}),
        );
        store.put(
            &place("clusterrolebindings"),
            json!({"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "r"},
                "subjects": [{"kind": "User", "name": "eve"}]}),
        );
        assert_eq!(apply(&store, eve, &headers, &list()).unwrap().name, "admin");
    }
}
