//! Prevents users from granting rights that they do not hold.
//!
//! Source: Kubernetes documentation, "Using RBAC Authorization", privilege escalation prevention.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Attributes, decide, rbac};
use crate::call::{Call, Operation};
use crate::error::{ApiError, Result};
use crate::identity::MASTERS;
use crate::store::Store;

/// Checks a role or binding that is about to be written.
///
/// # Errors
/// 403 with the list of rights that the user lacks.
pub(crate) fn admit(
    store: &Store,
    call: &Call,
    operation: Operation,
    before: Option<&Value>,
    object: Option<&Value>,
) -> Result<()> {
    let (Some(object), rbac::GROUP) = (object, call.resource.group.as_str()) else { return Ok(()) };
    if operation == Operation::Delete || call.user.in_group(MASTERS) {
        return Ok(());
    }
    let role = matches!(call.resource.plural.as_str(), "roles" | "clusterroles");
    let part = |object: &Value| {
        let members: &[&str] = if role { &["rules", "aggregationRule"] } else { &["subjects"] };
        members.iter().map(|member| object.get(member).cloned()).collect::<Vec<_>>()
    };
    if before.is_some_and(|before| part(before) == part(object)) {
        return Ok(());
    }
    let granted = if role { rbac::rules(object) } else { bound(store, call, object)? };
    if exempt(store, call, role, object) {
        return Ok(());
    }
    let missing = missing(store, call, &granted);
    if missing.is_empty() {
        return Ok(());
    }
    let groups: Vec<_> = call.user.groups.iter().map(|group| format!("{group:?}")).collect();
    let why = format!(
        "user {:?} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}",
        call.user.name,
        groups.join(" "),
        missing.join("\n"),
    );
    Err(ApiError::forbidden(call.subject(), &why))
}

fn bound(store: &Store, call: &Call, binding: &Value) -> Result<Vec<Value>> {
    rbac::role_rules(store, binding).map_err(|_| {
        let name = |member| binding.pointer(member).and_then(Value::as_str).unwrap_or("");
        let kind = format!("{}s", name("/roleRef/kind").to_lowercase());
        let of = crate::error::Subject {
            group: &call.resource.group,
            kind: &kind,
            name: name("/roleRef/name"),
        };
        ApiError::not_found(of)
    })
}

/// Whether the verb `escalate` (for roles) or `bind` (for the role of a binding) lifts the check.
fn exempt(store: &Store, call: &Call, role: bool, object: &Value) -> bool {
    let reference = |member| object.pointer(member).and_then(Value::as_str).unwrap_or("");
    let (verb, resource, name) = if role {
        ("escalate", call.resource.plural.as_str(), call.name.as_str())
    } else {
        let kind = reference("/roleRef/kind");
        let plural = if kind == "ClusterRole" { "clusterroles" } else { "roles" };
        ("bind", plural, reference("/roleRef/name"))
    };
    let of = Attributes {
        verb,
        group: rbac::GROUP,
        resource,
        namespace: &call.namespace,
        name,
        ..Attributes::default()
    };
    decide(store, &call.user, &of).is_allowed()
}

fn words<'a>(rule: &'a Value, member: &str) -> Vec<&'a str> {
    let list = rule.get(member).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// A single right: the object (group, resource, name, or a path) and the verb.
type Right = ((Vec<String>, Vec<String>, Vec<String>, Vec<String>), String);

/// Splits a rule into single rights.
fn rights(rule: &Value) -> Vec<Right> {
    let one = |text: &str| vec![text.to_owned()];
    let verbs = words(rule, "verbs");
    let names: Vec<Vec<String>> = match words(rule, "resourceNames") {
        names if names.is_empty() => vec![vec![]],
        names => names.into_iter().map(one).collect(),
    };
    let mut out = vec![];
    for verb in verbs {
        for group in words(rule, "apiGroups") {
            for resource in words(rule, "resources") {
                for name in &names {
                    out.push(((one(group), one(resource), name.clone(), vec![]), verb.to_owned()));
                }
            }
        }
        for url in words(rule, "nonResourceURLs") {
            out.push(((vec![], vec![], vec![], one(url)), verb.to_owned()));
        }
    }
    out
}

fn held(own: &[Value], right: &Right) -> bool {
    let ((groups, resources, names, urls), verb) = right;
    let first = |list: &[String]| list.first().map_or("", String::as_str).to_owned();
    let (group, resource, name, url) = (first(groups), first(resources), first(names), first(urls));
    own.iter().any(|rule| {
        let has =
            |member, word: &str| words(rule, member).iter().any(|own| *own == "*" || *own == word);
        if !has("verbs", verb) {
            return false;
        }
        if !url.is_empty() {
            return words(rule, "nonResourceURLs").iter().any(|own| {
                *own == url || own.strip_suffix('*').is_some_and(|start| url.starts_with(start))
            });
        }
        let any_sub = resource.split_once('/').map(|(_, sub)| format!("*/{sub}"));
        let own_names = words(rule, "resourceNames");
        has("apiGroups", &group)
            && (has("resources", &resource) || any_sub.is_some_and(|any| has("resources", &any)))
            && (own_names.is_empty() || (!name.is_empty() && own_names.contains(&name.as_str())))
    })
}

/// The rights that the user lacks, with rights to the same object in one line.
fn missing(store: &Store, call: &Call, granted: &[Value]) -> Vec<String> {
    let own = rbac::rules_of(store, &call.user, &call.namespace);
    let mut lacking: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for right in granted.iter().flat_map(rights).filter(|right| !held(&own, right)) {
        let verbs = lacking.entry(right.0).or_default();
        if !verbs.contains(&right.1) {
            verbs.push(right.1);
        }
    }
    let show = |(groups, resources, names, urls): &(Vec<_>, Vec<_>, Vec<_>, Vec<_>), verbs| {
        let members: [(&str, &Vec<String>); 5] = [
            ("APIGroups", groups),
            ("Resources", resources),
            ("ResourceNames", names),
            ("NonResourceURLs", urls),
            ("Verbs", verbs),
        ];
        let shown: Vec<String> = members
            .iter()
            .filter(|(_, list)| !list.is_empty())
            .map(|(name, list)| {
                let list: Vec<_> = list.iter().map(|text| format!("{text:?}")).collect();
                format!("{name}:[{}]", list.join(" "))
            })
            .collect();
        format!("{{{}}}", shown.join(", "))
    };
    let mut lines: Vec<_> = lacking.iter().map(|(what, verbs)| show(what, verbs)).collect();
    lines.sort();
    lines
}

/// Rules in the form of `SelfSubjectRulesReview`: those on resources and those on paths.
pub(crate) fn review_rules(rules: Vec<Value>) -> (Vec<Value>, Vec<Value>) {
    let (paths, resources): (Vec<_>, Vec<_>) =
        rules.into_iter().partition(|rule| rule.get("nonResourceURLs").is_some());
    let path = |rule: &Value| json!({"verbs": rule.get("verbs"), "nonResourceURLs": rule.get("nonResourceURLs")});
    (resources, paths.iter().map(path).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets() -> Right {
        let rule = json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]});
        rights(&rule).remove(0)
    }

    #[test]
    fn a_wildcard_holds_all() {
        let own = [json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]})];
        assert!(held(&own, &secrets()));
    }

    #[test]
    fn a_right_to_one_name_is_not_the_right_to_all() {
        let own = [json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"],
            "resourceNames": ["a"]})];
        assert!(!held(&own, &secrets()));
        let one = rights(&own[0]).remove(0);
        assert!(held(&own, &one));
    }

    #[test]
    fn paths_are_covered_by_prefix() {
        let own = [json!({"nonResourceURLs": ["/metrics*"], "verbs": ["get"]})];
        let asked = json!({"nonResourceURLs": ["/metrics/cadvisor"], "verbs": ["get"]});
        assert!(held(&own, &rights(&asked)[0]));
    }
}
