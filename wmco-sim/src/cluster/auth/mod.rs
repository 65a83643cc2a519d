//! Who sent a request and who may do what: credentials, impersonation, authorizers, escalation
//! checks, reviews.

mod credentials;
pub(crate) mod defaults;
pub(crate) mod escalation;
mod impersonation;
pub(crate) mod node;
pub(crate) mod rbac;
pub(crate) mod reviews;

pub(crate) use credentials::Credentials;

use jiff::Timestamp;

use super::error::{ApiError, Result, Subject};
use super::identity::{MASTERS, User};
use super::store::Store;
use super::tokens::TokenIssuer;

/// What is to be allowed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attributes<'a> {
    /// For example `list`; lower-case HTTP method for paths.
    pub verb: &'a str,
    /// API group.
    pub group: &'a str,
    /// Plural; empty when `path` is asked for.
    pub resource: &'a str,
    /// For example `status`.
    pub subresource: &'a str,
    /// Empty for cluster scope.
    pub namespace: &'a str,
    /// Empty for collections.
    pub name: &'a str,
    /// The URL path.
    pub path: &'a str,
    /// What the field selector demands to be equal.
    pub fields: &'a [(String, String)],
}

/// What an authorizer says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Decision {
    /// Yes, and why (may be empty).
    Allow(String),
    /// Ask the next one; why not (may be empty).
    NoOpinion(String),
}

impl Decision {
    /// Yes, without saying why.
    pub(crate) fn allow() -> Self {
        Self::Allow(String::new())
    }

    /// No opinion, without saying why.
    pub(crate) fn none() -> Self {
        Self::NoOpinion(String::new())
    }

    /// Whether it is yes.
    pub(crate) fn is_allowed(&self) -> bool {
        matches!(self, Self::Allow(_))
    }
}

/// Who sent the request: whoever the credentials prove, or whom the headers ask to be instead.
///
/// # Errors
/// 401 when what was sent proves nothing, 403 when impersonation is refused.
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

/// Asks every authorizer in turn.
pub(crate) fn decide(store: &Store, user: &User, of: &Attributes<'_>) -> Decision {
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

/// Nothing if the user may do it.
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
