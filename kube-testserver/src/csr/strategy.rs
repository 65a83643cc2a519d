//! Create, update, approval and status of requests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::auth::{Attributes, decide};
use crate::call::{Call, Operation};
use crate::error::{ApiError, FieldError, Result};
use crate::identity::{MASTERS, User};
use crate::names::{dns1123_label, dns1123_subdomain};
use crate::store::{Store, rfc3339};

use super::{APPROVED, CLIENT_SIGNER, DENIED, FAILED, condition, conditions, kind, text, usages};

const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];
const SHORTEST_S: i64 = 600;

/// Writes the requester into the spec and drops fields that only the server may write.
pub(crate) fn prepare_create(user: &User, request: &mut Value) {
    let Some(members) = request.as_object_mut() else { return };
    members.insert("status".to_owned(), json!({}));
    let Some(spec) = members.get_mut("spec").and_then(Value::as_object_mut) else { return };
    spec.insert("username".to_owned(), user.name.clone().into());
    spec.insert("uid".to_owned(), user.uid.clone().into());
    spec.insert("groups".to_owned(), user.groups.clone().into());
    spec.insert("extra".to_owned(), json!(user.extra));
}

/// Keeps the fields that a path may not write: the main path neither spec nor status, `/approval` only conditions,
/// `/status` not the approval.
pub(crate) fn prepare_update(call: &Call, before: &Value, request: &mut Value) {
    let mut wanted = conditions(request).to_vec();
    let certificate = request.pointer("/status/certificate").cloned();
    let Some(members) = request.as_object_mut() else { return };
    members.insert("spec".to_owned(), before.get("spec").cloned().unwrap_or_default());
    let mut status = before.get("status").cloned().unwrap_or_else(|| json!({}));
    if let Some(status) = status.as_object_mut()
        && !call.subresource.is_empty()
    {
        if call.subresource == "status" {
            preserve_approval(before, &mut wanted);
            match certificate {
                Some(certificate) => drop(status.insert("certificate".to_owned(), certificate)),
                None => drop(status.remove("certificate")),
            }
        }
        stamp(before, &mut wanted, &rfc3339(call.now));
        status.insert("conditions".to_owned(), wanted.into());
    }
    members.insert("status".to_owned(), status);
}

/// Restores the conditions of an approval or denial. If a condition was added or removed, nothing is restored:
/// validation refuses that.
fn preserve_approval(before: &Value, wanted: &mut [Value]) {
    for of in [APPROVED, DENIED] {
        let old: Vec<&Value> = conditions(before).iter().filter(|own| kind(own) == of).collect();
        let new = || (0..).zip(wanted.iter()).filter(|(_, own)| kind(own) == of);
        if new().count() != old.len() {
            continue;
        }
        let places: Vec<usize> = new().map(|(place, _)| place).collect();
        for (place, old) in places.into_iter().zip(old) {
            if let Some(own) = wanted.get_mut(place) {
                *own = old.clone();
            }
        }
    }
}

/// Fills in missing times.
fn stamp(before: &Value, wanted: &mut [Value], now: &str) {
    for wanted in wanted {
        let old = condition(before, kind(wanted));
        let same = |members: &[&str]| {
            old.filter(|old| members.iter().all(|m| text(old, m) == text(wanted, m)))
        };
        let updated = same(&["status", "reason", "message"]).map(|old| text(old, "lastUpdateTime"));
        let moved = same(&["status"]).map(|old| text(old, "lastTransitionTime"));
        let times = [("lastUpdateTime", updated), ("lastTransitionTime", moved)];
        let times: Vec<_> = times
            .into_iter()
            .filter(|(member, _)| text(wanted, member).is_empty())
            .map(|(member, old)| (member, old.unwrap_or(now).to_owned()))
            .collect();
        if let Some(wanted) = wanted.as_object_mut() {
            wanted.extend(times.into_iter().map(|(member, time)| (member.to_owned(), time.into())));
        }
    }
}

/// Validation errors of a request; `before` is `None` for a new one.
pub(crate) fn validate(call: &Call, before: Option<&Value>, request: &Value) -> Vec<FieldError> {
    let mut errors = validate_spec(request);
    errors.extend(validate_conditions(request));
    let Some(before) = before else { return errors };
    let count =
        |request: &Value, of: &str| conditions(request).iter().filter(|c| kind(c) == of).count();
    let mut forbid = |what: &str, of: &str| {
        let why = format!("updates may not {what} a condition of type {of:?}");
        errors.push(FieldError::forbidden("status.conditions", &why));
    };
    for of in [APPROVED, DENIED, FAILED] {
        if count(request, of) < count(before, of) {
            forbid("remove", of);
        }
    }
    if call.subresource == "status" {
        for of in [APPROVED, DENIED] {
            if count(request, of) > count(before, of) {
                forbid("add", of);
            }
        }
    }
    let certificate = |of: &Value| of.pointer("/status/certificate").cloned();
    if certificate(before).is_some() && certificate(before) != certificate(request) {
        let why = "updates may not modify existing certificate content";
        errors.push(FieldError::forbidden("status.certificate", why));
    } else if call.subresource == "status"
        && certificate(request).is_some_and(|certificate| !is_certificate(&certificate))
    {
        let why = "must contain one or more PEM blocks";
        let error = FieldError::invalid_text("status.certificate", "<certificate data>", why);
        errors.push(error);
    }
    errors
}

fn is_certificate(pem: &Value) -> bool {
    let bytes = STANDARD.decode(pem.as_str().unwrap_or("")).unwrap_or_default();
    x509_parser::pem::parse_x509_pem(&bytes).is_ok_and(|(_, pem)| pem.parse_x509().is_ok())
}

fn validate_spec(request: &Value) -> Vec<FieldError> {
    let mut errors = vec![];
    let spec = request.get("spec").unwrap_or(&Value::Null);
    if let Err(why) = super::signer::parse(spec) {
        let given = spec.get("request").unwrap_or(&Value::Null);
        errors.push(FieldError::invalid("spec.request", given, &why.to_string()));
    }
    let usages = usages(request);
    if usages.is_empty() {
        errors.push(FieldError::required("spec.usages", ""));
    }
    for (index, usage) in usages.iter().enumerate() {
        if !USAGES.contains(usage) {
            let field = format!("spec.usages[{index}]");
            errors.push(FieldError::not_supported(&field, &(*usage).into(), &USAGES));
        }
    }
    for (index, usage) in usages.iter().enumerate() {
        if usages.iter().take(index).any(|earlier| earlier == usage) {
            let field = format!("spec.usages[{index}]");
            errors.push(FieldError::duplicate(&field, &(*usage).into()));
        }
    }
    errors.extend(validate_signer(text(spec, "signerName")));
    let seconds = spec.get("expirationSeconds").and_then(Value::as_i64);
    if let Some(seconds) = seconds.filter(|seconds| *seconds < SHORTEST_S) {
        let why = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.push(FieldError::invalid("spec.expirationSeconds", &seconds.into(), why));
    }
    errors
}

fn validate_signer(name: &str) -> Vec<FieldError> {
    const FIELD: &str = "spec.signerName";
    let invalid = |value: &str, why: &str| FieldError::invalid(FIELD, &value.into(), why);
    if name.is_empty() {
        return vec![FieldError::required(FIELD, "")];
    }
    if name == "kubernetes.io/legacy-unknown" {
        return vec![invalid(name, "the legacy signerName is not allowed via this API version")];
    }
    let parts: Vec<&str> = name.split('/').collect();
    let [domain, path] = parts.as_slice() else {
        let form = "\"example.com/signer-name\"";
        let why = format!("must be a fully qualified domain and path of the form {form}");
        return vec![invalid(name, &why)];
    };
    let mut errors = vec![];
    for (part, rule) in [
        (domain, dns1123_label as fn(&str) -> Vec<String>),
        (path, dns1123_subdomain as fn(&str) -> Vec<String>),
    ] {
        for label in part.split('.') {
            for why in rule(label) {
                errors.push(invalid(part, &format!("validating label {label:?}: {why}")));
            }
        }
        if part == domain && !domain.contains('.') {
            let why = "should be a domain with at least two segments separated by dots";
            errors.push(invalid(domain, why));
        }
    }
    errors
}

fn validate_conditions(request: &Value) -> Vec<FieldError> {
    let mut errors = vec![];
    let mut seen: Vec<&str> = vec![];
    for (index, condition) in conditions(request).iter().enumerate() {
        let field = |member: &str| format!("status.conditions[{index}].{member}");
        let (of, status) = (kind(condition), text(condition, "status"));
        if of.is_empty() {
            errors.push(FieldError::required(&field("type"), ""));
        }
        let allowed: &[&str] = if [APPROVED, DENIED, FAILED].contains(&of) {
            &["True"]
        } else {
            &["False", "True", "Unknown"]
        };
        if status.is_empty() {
            errors.push(FieldError::required(&field("status"), ""));
        } else if !allowed.contains(&status) {
            errors.push(FieldError::not_supported(&field("status"), &status.into(), allowed));
        }
        let other = match of {
            APPROVED => Some(DENIED),
            DENIED => Some(APPROVED),
            _ => None,
        };
        if other.is_some_and(|other| seen.contains(&other)) {
            let why = "Approved and Denied conditions are mutually exclusive";
            errors.push(FieldError::invalid("status.conditions", &of.into(), why));
        }
        if seen.contains(&of) {
            errors.push(FieldError::duplicate(&field("type"), &of.into()));
        }
        seen.push(of);
    }
    errors
}

/// Checks who may create requests for, approve for and sign as a signer.
///
/// # Errors
/// 403.
pub(crate) fn admit(
    store: &Store,
    call: &Call,
    operation: Operation,
    before: Option<&Value>,
    request: Option<&Value>,
) -> Result<()> {
    let Some(request) = request else { return Ok(()) };
    let signer = request.pointer("/spec/signerName").and_then(Value::as_str).unwrap_or("");
    let verb = match (operation, call.subresource.as_str()) {
        (Operation::Create, _) => return restricted_subject(call, signer, request),
        (Operation::Update, "approval") => "approve",
        (Operation::Update, "status") if signs(before, request) => "sign",
        _ => return Ok(()),
    };
    let domain = signer.split_once('/').map_or(signer, |(domain, _)| domain);
    let may = [signer.to_owned(), format!("{domain}/*")].iter().any(|name| {
        let of = Attributes {
            verb,
            group: "certificates.k8s.io",
            resource: "signers",
            name,
            ..Attributes::default()
        };
        decide(store, &call.user, &of).is_allowed()
    });
    if may {
        return Ok(());
    }
    let why = format!("user not permitted to {verb} requests with signerName {signer:?}");
    Err(ApiError::forbidden(call.subject(), &why))
}

fn signs(before: Option<&Value>, request: &Value) -> bool {
    let part =
        |of: &Value| (of.pointer("/status/certificate").cloned(), condition(of, FAILED).cloned());
    before.is_none_or(|before| part(before) != part(request))
}

fn restricted_subject(call: &Call, signer: &str, request: &Value) -> Result<()> {
    if signer != CLIENT_SIGNER {
        return Ok(());
    }
    let spec = request.get("spec").unwrap_or(&Value::Null);
    let masters = super::signer::parse(spec)
        .is_ok_and(|parsed| parsed.organizations.iter().any(|own| own == MASTERS));
    if !masters {
        return Ok(());
    }
    let why = format!("use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed");
    Err(ApiError::forbidden(call.subject(), &why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(conditions: &Value, expected: &[&str]) {
        let request = json!({"status": {"conditions": conditions}});
        let errors = validate_conditions(&request);
        let texts: Vec<_> =
            errors.iter().map(|error| format!("{}: {}", error.field, error.message)).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn approved_and_denied_exclude_each_other() {
        check(
            &json!([{"type": "Approved", "status": "True"}, {"type": "Denied", "status": "True"}]),
            &["status.conditions: Invalid value: \"Denied\": Approved and Denied conditions are \
               mutually exclusive"],
        );
    }

    #[test]
    fn an_approval_is_true() {
        check(
            &json!([{"type": "Approved", "status": "False"}]),
            &["status.conditions[0].status: Unsupported value: \"False\": supported values: \
               \"True\""],
        );
        check(&json!([{"type": "Approved"}]), &["status.conditions[0].status: Required value"]);
        check(&json!([{"type": "Other", "status": "False"}]), &[]);
    }

    #[test]
    fn times_of_an_unchanged_condition_stay() {
        let old = json!({"type": "Approved", "status": "True", "reason": "r",
            "lastUpdateTime": "t0", "lastTransitionTime": "t0"});
        let before = json!({"status": {"conditions": [old]}});
        let mut wanted = [json!({"type": "Approved", "status": "True", "reason": "r"})];
        stamp(&before, &mut wanted, "t1");
        assert_eq!(wanted[0], old);
        let mut wanted = [json!({"type": "Approved", "status": "True", "reason": "other"})];
        stamp(&before, &mut wanted, "t1");
        assert_eq!(wanted[0]["lastUpdateTime"], "t1");
        assert_eq!(wanted[0]["lastTransitionTime"], "t0");
    }

    #[test]
    fn signers_have_a_domain_and_a_path() {
        assert!(validate_signer("example.test/signer").is_empty());
        assert_eq!(validate_signer("").len(), 1);
        assert_eq!(validate_signer("example.test").len(), 1);
        assert_eq!(
            validate_signer("example/signer")[0].message,
            "Invalid value: \"example\": should be a domain with at least two segments separated by \
             dots"
        );
    }

    #[test]
    fn the_requester_is_written_over_what_was_sent() {
        let mut request = json!({"spec": {"username": "x", "groups": ["y"], "uid": "z"},
            "status": {"certificate": "YQ=="}});
        prepare_create(&User::authenticated("me", &[]), &mut request);
        assert_eq!(request["spec"]["username"], "me");
        assert_eq!(request["spec"]["uid"], "");
        assert_eq!(request["status"], json!({}));
    }
}
