//! Field selectors: which fields a kind offers, and their comparison.

use serde_json::Value;

use crate::cluster::resources::Resource;

/// All terms must hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct FieldSelector(Vec<Term>);

#[derive(Clone, Debug)]
struct Term {
    pointers: Vec<String>,
    equal: bool,
    value: String,
}

/// Fields besides name and namespace: the kind, and JSON pointers into the stored object.
fn offered(resource: &Resource) -> Option<Vec<(String, Vec<String>)>> {
    let plain: &[&str] = match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        ("", "nodes") => &["spec.unschedulable"],
        ("", "namespaces") => &["status.phase"],
        ("", "secrets") => &["type"],
        ("", "services") => &["spec.clusterIP", "spec.type"],
        ("certificates.k8s.io", "certificatesigningrequests") => &["spec.signerName"],
        ("" | "events.k8s.io", "events") => return Some(event_fields(&resource.group)),
        _ if resource.custom.is_some() => &[],
        _ => return None,
    };
    let pointer = |field: &str| format!("/{}", field.replace('.', "/"));
    let mut fields: Vec<(String, Vec<String>)> =
        plain.iter().map(|field| ((*field).to_owned(), vec![pointer(field)])).collect();
    if let Some(custom) = &resource.custom {
        fields.extend(custom.selectable.iter().map(|path| {
            let field = path.trim_start_matches('.').to_owned();
            (field.clone(), vec![pointer(&field)])
        }));
    }
    Some(fields)
}

/// Both Event APIs name the same stored members.
fn event_fields(group: &str) -> Vec<(String, Vec<String>)> {
    let (object, component) = if group.is_empty() {
        ("involvedObject", "reportingComponent")
    } else {
        ("regarding", "reportingController")
    };
    let mut fields = Vec::new();
    for member in ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"]
    {
        fields.push((format!("{object}.{member}"), vec![format!("/involvedObject/{member}")]));
    }
    let component = component.to_owned();
    fields.push((component, vec!["/reportingComponent".to_owned()]));
    fields.push(("reason".to_owned(), vec!["/reason".to_owned()]));
    fields.push(("type".to_owned(), vec!["/type".to_owned()]));
    let source = vec!["/source/component".to_owned(), "/reportingComponent".to_owned()];
    fields.push(("source".to_owned(), source));
    fields
}

impl FieldSelector {
    /// Parses a selector for objects of `resource`.
    ///
    /// # Errors
    /// The message of the 400 answer.
    pub(crate) fn parse(text: &str, resource: &Resource) -> Result<Self, String> {
        let mut terms = Vec::new();
        for term in split_terms(text) {
            if term.is_empty() {
                continue;
            }
            let operator = ["!=", "==", "="].into_iter().find_map(|operator| {
                term.split_once(operator).map(|(field, value)| (field, operator, value))
            });
            let Some((field, operator, value)) = operator else {
                return Err(format!("invalid selector: '{text}'; can't understand '{term}'"));
            };
            terms.push(Term {
                pointers: pointers(field, resource)?,
                equal: operator != "!=",
                value: unescape(value),
            });
        }
        Ok(Self(terms))
    }

    /// Whether the stored object fulfils all terms.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|term| (value_of(object, &term.pointers) == term.value) == term.equal)
    }

    /// Whether there is no term.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn pointers(field: &str, resource: &Resource) -> Result<Vec<String>, String> {
    if field == "metadata.name" || (field == "metadata.namespace" && resource.namespaced) {
        return Ok(vec![format!("/{}", field.replace('.', "/"))]);
    }
    let Some(offered) = offered(resource) else {
        if field == "metadata.namespace" {
            return Ok(vec!["/metadata/namespace".to_owned()]);
        }
        return Err(format!(
            "{field:?} is not a known field selector: only \"metadata.name\", \
             \"metadata.namespace\""
        ));
    };
    let found = offered.into_iter().find(|(name, _)| name == field);
    found.map(|(_, pointers)| pointers).ok_or(format!("field label not supported: {field}"))
}

/// The first member that is there, as text; absent booleans of specs are false.
fn value_of(object: &Value, pointers: &[String]) -> String {
    let found = pointers.iter().find_map(|pointer| match object.pointer(pointer)? {
        Value::Null => None,
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    });
    found.unwrap_or_else(|| {
        let flag = ["/spec/unschedulable", "/spec/hostNetwork"];
        let is_flag = pointers.iter().any(|pointer| flag.contains(&pointer.as_str()));
        if is_flag { "false".to_owned() } else { String::new() }
    })
}

/// Commas separate terms unless a backslash stands before them.
fn split_terms(text: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        match c {
            ',' if !escaped => terms.push(String::new()),
            _ => {
                if let Some(term) = terms.last_mut() {
                    term.push(c);
                }
            }
        }
        escaped = c == '\\' && !escaped;
    }
    terms
}

fn unescape(value: &str) -> String {
    let mut out = String::new();
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        out.push(if c == '\\' { chars.next().unwrap_or(c) } else { c });
    }
    out
}
