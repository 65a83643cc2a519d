//! Reviews of rights and identities: objects that are answered and never stored.
//!
//! Source: Kubernetes API, groups `authorization.k8s.io` and `authentication.k8s.io`.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Attributes, Decision, escalation, judge, rbac, review_validation};
use crate::error::{ApiError, Result};
use crate::identity::{AUTHENTICATED, User};
use crate::selectors::equality_terms;
use crate::store::{Store, rfc3339};
use crate::tokens::{self, TokenIssuer};

/// Inputs of a review.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    /// The objects.
    pub(crate) store: &'a Store,
    /// The issuer of service account tokens.
    pub(crate) issuer: &'a TokenIssuer,
    /// The requesting user.
    pub(crate) user: &'a User,
    /// The present time.
    pub(crate) now: Timestamp,
}

/// Answers a review of that plural resource; the body has been decoded into its kind.
///
/// # Errors
/// 400 and 422 for incomplete reviews.
pub(crate) fn answer(context: Context<'_>, plural: &str, mut review: Value) -> Result<Value> {
    let status = match plural {
        "selfsubjectaccessreviews" => {
            review_validation::check(plural, &review)?;
            access(context, context.user, &review)
        }
        "subjectaccessreviews" | "localsubjectaccessreviews" => {
            review_validation::check(plural, &review)?;
            access(context, &subject(&review), &review)
        }
        "selfsubjectrulesreviews" => rules(context, &review)?,
        "selfsubjectreviews" => {
            let time = rfc3339(context.now);
            set(&mut review, "metadata", json!({"creationTimestamp": time}));
            json!({"userInfo": user_info(context.user)})
        }
        "tokenreviews" => token(context, &review)?,
        other => return Err(ApiError::not_implemented(other)),
    };
    set(&mut review, "status", status);
    Ok(review)
}

fn set(object: &mut Value, member: &str, value: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert(member.to_owned(), value);
    }
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let list = value.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

fn subject(review: &Value) -> User {
    let spec = |member| review.pointer(&format!("/spec/{member}"));
    let text = |member| spec(member).and_then(Value::as_str).unwrap_or("").to_owned();
    let extra = spec("extra").and_then(Value::as_object).into_iter().flatten();
    User {
        name: text("user"),
        uid: text("uid"),
        groups: texts(spec("groups")),
        extra: extra.map(|(key, values)| (key.clone(), texts(Some(values)))).collect(),
    }
}

fn access(context: Context<'_>, user: &User, review: &Value) -> Value {
    let spec = review.get("spec").unwrap_or(&Value::Null);
    let resource = spec.get("resourceAttributes");
    let path = spec.get("nonResourceAttributes");
    let asked = resource.or(path).unwrap_or(&Value::Null);
    let text = |member| asked.get(member).and_then(Value::as_str).unwrap_or("");
    let fields = selected(asked);
    let of = Attributes {
        verb: text("verb"),
        group: text("group"),
        resource: text("resource"),
        subresource: text("subresource"),
        namespace: text("namespace"),
        name: text("name"),
        path: text("path"),
        fields: &fields,
    };
    let (allowed, reason) = match judge(context.store, user, &of) {
        Decision::Allow(reason) => (true, reason),
        Decision::NoOpinion(reason) => (false, reason),
    };
    let mut status = json!({"allowed": allowed});
    if !reason.is_empty() {
        set(&mut status, "reason", reason.into());
    }
    status
}

/// The equality terms of a review's field selector, which is a text or a list of requirements.
fn selected(asked: &Value) -> Vec<(String, String)> {
    let raw = asked.pointer("/fieldSelector/rawSelector").and_then(Value::as_str);
    if let Some(raw) = raw.filter(|raw| !raw.is_empty()) {
        return equality_terms(raw);
    }
    let list = asked.pointer("/fieldSelector/requirements").and_then(Value::as_array);
    let equal = |requirement: &Value| {
        let operator = requirement.get("operator")?.as_str()?;
        let values = texts(requirement.get("values"));
        match (operator, values.as_slice()) {
            ("In", [value]) => Some((requirement.get("key")?.as_str()?.to_owned(), value.clone())),
            _ => None,
        }
    };
    list.into_iter().flatten().filter_map(equal).collect()
}

fn rules(context: Context<'_>, review: &Value) -> Result<Value> {
    let namespace = review.pointer("/spec/namespace").and_then(Value::as_str).unwrap_or("");
    if namespace.is_empty() {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    let held = rbac::rules_of(context.store, context.user, namespace);
    let (resources, paths) = escalation::review_rules(held);
    Ok(json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false}))
}

fn token(context: Context<'_>, review: &Value) -> Result<Value> {
    let given = review.pointer("/spec/token").and_then(Value::as_str).unwrap_or("");
    if given.is_empty() {
        return Err(ApiError::bad_request("token is required for TokenReview in authentication"));
    }
    let wanted = texts(review.pointer("/spec/audiences"));
    let wanted = if wanted.is_empty() { vec![tokens::AUDIENCE.to_owned()] } else { wanted };
    let found = context.issuer.authenticate(context.store, given, &wanted, context.now);
    Ok(match found {
        Some(found) => json!({
            "authenticated": true,
            "user": user_info(&found.user),
            "audiences": found.audiences,
        }),
        None => json!({"user": {}, "error": "invalid bearer token"}),
    })
}

/// A user as `UserInfo`.
pub(crate) fn user_info(user: &User) -> Value {
    let mut groups = user.groups.clone();
    // Token authenticators do not add this group; the server adds it last.
    if groups.iter().any(|group| group == AUTHENTICATED) {
        groups.retain(|group| group != AUTHENTICATED);
        groups.push(AUTHENTICATED.to_owned());
    }
    let mut info = Map::new();
    info.insert("username".to_owned(), user.name.clone().into());
    if !user.uid.is_empty() {
        info.insert("uid".to_owned(), user.uid.clone().into());
    }
    if !groups.is_empty() {
        info.insert("groups".to_owned(), groups.into());
    }
    if !user.extra.is_empty() {
        info.insert("extra".to_owned(), json!(user.extra));
    }
    info.into()
}
