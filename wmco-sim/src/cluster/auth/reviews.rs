//! Questions about rights and identities: objects that are answered and never stored.
//!
//! Source: Kubernetes API, groups `authorization.k8s.io` and `authentication.k8s.io`.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Attributes, Decision, decide, escalation, rbac};
use crate::cluster::error::{ApiError, FieldError, Result, Subject};
use crate::cluster::identity::{AUTHENTICATED, User};
use crate::cluster::store::{Store, rfc3339};
use crate::cluster::tokens::{self, TokenIssuer};

/// What a review may look at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    /// The objects.
    pub(crate) store: &'a Store,
    /// Who issued our tokens.
    pub(crate) issuer: &'a TokenIssuer,
    /// Who asks.
    pub(crate) user: &'a User,
    /// The namespace of the URL.
    pub(crate) namespace: &'a str,
    /// When.
    pub(crate) now: Timestamp,
}

/// Answers a review of that plural resource; the body has been decoded into its kind.
///
/// # Errors
/// 400 and 422 for incomplete reviews.
pub(crate) fn answer(context: Context<'_>, plural: &str, mut review: Value) -> Result<Value> {
    let status = match plural {
        "selfsubjectaccessreviews" => access(context, context.user, &review)?,
        "subjectaccessreviews" | "localsubjectaccessreviews" => {
            access(context, &subject(&review), with_namespace(context, plural, &review)?)?
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

fn with_namespace<'a>(context: Context<'_>, plural: &str, review: &'a Value) -> Result<&'a Value> {
    let stated = review.pointer("/spec/resourceAttributes/namespace").and_then(Value::as_str);
    if plural.starts_with("local") && stated.unwrap_or("") != context.namespace {
        return Err(ApiError::bad_request(format!(
            "spec.resourceAttributes.namespace must match namespace: {}",
            context.namespace
        )));
    }
    Ok(review)
}

fn access(context: Context<'_>, user: &User, review: &Value) -> Result<Value> {
    let spec = review.get("spec").unwrap_or(&Value::Null);
    let resource = spec.get("resourceAttributes");
    let path = spec.get("nonResourceAttributes");
    let mut errors = vec![];
    match (resource, path) {
        (Some(_), Some(path)) => errors.push(FieldError::invalid(
            "spec.nonResourceAttributes",
            path,
            "cannot be specified in combination with resourceAttributes",
        )),
        (None, None) => errors.push(FieldError::invalid(
            "spec.resourceAttributes",
            &Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
        _ => {}
    }
    if user.name.is_empty() && user.groups.is_empty() {
        errors.push(FieldError::invalid(
            "spec.user",
            &"".into(),
            "at least one of user or group must be specified",
        ));
    }
    if !errors.is_empty() {
        let of = Subject { group: "authorization.k8s.io", kind: "", name: "" };
        return Err(ApiError::invalid(of, &errors));
    }
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
    let (allowed, reason) = match decide(context.store, user, &of) {
        Decision::Allow(reason) => (true, reason),
        Decision::NoOpinion(reason) => (false, reason),
    };
    let mut status = json!({"allowed": allowed});
    if !reason.is_empty() {
        set(&mut status, "reason", reason.into());
    }
    Ok(status)
}

/// The equalities of a field selector given as requirements.
fn selected(asked: &Value) -> Vec<(String, String)> {
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
    // Token authenticators leave this group to the one who asks; the server adds it last.
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
