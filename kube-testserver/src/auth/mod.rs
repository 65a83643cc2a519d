//! Authentication and authorization: credentials, impersonation, authorizers, escalation checks, reviews.

mod credentials;
pub(crate) mod defaults;
pub(crate) mod escalation;
mod impersonation;
pub(crate) mod node;
pub(crate) mod rbac;
mod review_validation;
pub(crate) mod reviews;

pub(crate) use credentials::Credentials;

use jiff::Timestamp;

use super::access_log::AccessDecision;
use super::error::{ApiError, Result, Subject};
use super::identity::{MASTERS, User};
use super::store::Store;
use super::tokens::TokenIssuer;

/// The request to authorize.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attributes<'a> {
    /// For example `list`; lower-case HTTP method for paths.
    pub verb: &'a str,
    /// API group.
    pub group: &'a str,
    /// Plural; empty for a request of `path`.
    pub resource: &'a str,
    /// For example `status`.
    pub subresource: &'a str,
    /// Empty for cluster scope.
    pub namespace: &'a str,
    /// Empty for collections.
    pub name: &'a str,
    /// The URL path.
    pub path: &'a str,
    /// The equality terms of the field selector.
    pub fields: &'a [(String, String)],
}

/// The answer of an authorizer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Decision {
    /// Allowed, with the reason (may be empty).
    Allow(String),
    /// No opinion, so the next authorizer is asked; with the reason (may be empty).
    NoOpinion(String),
}

impl Decision {
    /// Allowed, without a reason.
    pub(crate) fn allow() -> Self {
        Self::Allow(String::new())
    }

    /// No opinion, without a reason.
    pub(crate) fn none() -> Self {
        Self::NoOpinion(String::new())
    }

    /// Whether it is allowed.
    pub(crate) fn is_allowed(&self) -> bool {
        matches!(self, Self::Allow(_))
    }
}

/// Returns the user of the request: from the credentials, or from impersonation headers.
///
/// # Errors
/// 401 for invalid credentials, 403 if impersonation is refused.
pub(crate) fn authenticate(
    store: &Store,
    issuer: &TokenIssuer,
    credentials: Credentials<'_>,
    of: &Attributes<'_>,
    now: Timestamp,
) -> Result<User> {
    let user = credentials::identify(store, issuer, credentials, now)?;
    impersonation::apply(store, user, credentials.headers, of)
}

/// Asks every authorizer in turn about a user's request, and records the decision.
pub(crate) fn decide(store: &Store, user: &User, of: &Attributes<'_>) -> Decision {
    let decision = judge(store, user, of);
    // Paths outside of resources are not recorded.
    if !of.resource.is_empty() {
        store.access.record(access_decision(user, of, decision.is_allowed()));
    }
    decision
}

fn access_decision(user: &User, of: &Attributes<'_>, allowed: bool) -> AccessDecision {
    let resource = match of.subresource {
        "" => of.resource.to_owned(),
        sub => format!("{}/{sub}", of.resource),
    };
    AccessDecision {
        user: user.name.clone(),
        verb: of.verb.to_owned(),
        group: of.group.to_owned(),
        resource,
        namespace: of.namespace.to_owned(),
        name: of.name.to_owned(),
        allowed,
    }
}

/// Asks every authorizer in turn about a possible request.
fn judge(store: &Store, user: &User, of: &Attributes<'_>) -> Decision {
    if user.in_group(MASTERS) {
        return Decision::allow();
    }
    let mut reasons = vec![];
    for authorizer in [node::authorize, rbac::authorize] {
        match authorizer(store, user, of) {
            Decision::NoOpinion(reason) if reason.is_empty() => {}
            Decision::NoOpinion(reason) => reasons.push(reason),
            allow @ Decision::Allow(_) => return allow,
        }
    }
    Decision::NoOpinion(reasons.join("\n"))
}

/// Succeeds if the user may do it.
///
/// # Errors
/// 403 in the words of the API server.
pub(crate) fn require(store: &Store, user: &User, of: &Attributes<'_>) -> Result<()> {
    match decide(store, user, of) {
        Decision::Allow(_) => Ok(()),
        Decision::NoOpinion(reason) => Err(forbidden(user, of, &reason)),
    }
}

/// 403: the user may not do it.
pub(crate) fn forbidden(user: &User, of: &Attributes<'_>, reason: &str) -> ApiError {
    let Attributes { verb, group, resource, namespace, path, .. } = of;
    let name = &user.name;
    let mut why = if resource.is_empty() {
        format!("User {name:?} cannot {verb} path {path:?}")
    } else {
        let sub = match of.subresource {
            "" => String::new(),
            sub => format!("/{sub}"),
        };
        let scope = match *namespace {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {namespace:?}"),
        };
        format!(
            "User {name:?} cannot {verb} resource \"{resource}{sub}\" in API group {group:?} {scope}"
        )
    };
    if !reason.is_empty() {
        why = format!("{why}: {reason}");
    }
    if resource.is_empty() {
        return ApiError::forbidden_path(&why);
    }
    ApiError::forbidden(Subject { group, kind: resource, name: of.name }, &why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masters_may_do_all() {
        let user = User::authenticated("admin", &[MASTERS.to_owned()]);
        assert!(decide(&Store::default(), &user, &Attributes::default()).is_allowed());
    }

    #[test]
    fn refusals_name_user_verb_and_scope() {
        let of = Attributes {
            verb: "patch",
            group: "certificates.k8s.io",
            resource: "certificatesigningrequests",
            subresource: "approval",
            name: "a",
            ..Attributes::default()
        };
        let error = require(&Store::default(), &User::anonymous(), &of).unwrap_err();
        assert_eq!(
            error.message,
            "certificatesigningrequests.certificates.k8s.io \"a\" is forbidden: User \
             \"system:anonymous\" cannot patch resource \"certificatesigningrequests/approval\" in \
             API group \"certificates.k8s.io\" at the cluster scope"
        );
        let of = Attributes { verb: "get", path: "/api", ..Attributes::default() };
        let error = require(&Store::default(), &User::anonymous(), &of).unwrap_err();
        assert_eq!(error.message, "forbidden: User \"system:anonymous\" cannot get path \"/api\"");
    }
}
