//! Field selectors: the selectable fields of each kind, and their comparison.

use serde_json::Value;

/// A field selector; all terms must hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct FieldSelector(Vec<Term>);

#[derive(Clone, Debug)]
struct Term {
    pointers: Vec<String>,
    equal: bool,
    value: String,
}

/// Name of a field, and JSON pointers.
type Selectable = (String, Vec<String>);

impl FieldSelector {
    /// Parses a selector for objects of a resource that offers these fields besides name and namespace, each with
    /// JSON pointers into the stored object.
    ///
    /// # Errors
    /// The message of the 400 answer.
    pub(crate) fn parse(
        text: &str,
        namespaced: bool,
        offered: Option<&[Selectable]>,
    ) -> Result<Self, String> {
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
                pointers: pointers(field, namespaced, offered)?,
                equal: operator != "!=",
                value: unescape(value),
            });
        }
        Ok(Self(terms))
    }

    /// Whether the stored object matches all terms.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|term| (value_of(object, &term.pointers) == term.value) == term.equal)
    }

    /// Whether the selector has no terms.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The equality terms of a field selector, on which an authorizer may rely.
pub(crate) fn equality_terms(selector: &str) -> Vec<(String, String)> {
    let terms = selector.split(',').filter(|term| !term.contains("!="));
    let terms = terms.filter_map(|term| term.split_once('='));
    terms
        .map(|(field, value)| (field.to_owned(), value.trim_start_matches('=').to_owned()))
        .collect()
}

fn pointers(
    field: &str,
    namespaced: bool,
    offered: Option<&[Selectable]>,
) -> Result<Vec<String>, String> {
    if field == "metadata.name" || (field == "metadata.namespace" && namespaced) {
        return Ok(vec![format!("/{}", field.replace('.', "/"))]);
    }
    let Some(offered) = offered else {
        if field == "metadata.namespace" {
            return Ok(vec!["/metadata/namespace".to_owned()]);
        }
        return Err(format!(
            "{field:?} is not a known field selector: only \"metadata.name\", \
             \"metadata.namespace\""
        ));
    };
    let found = offered.iter().find(|(name, _)| name == field);
    found.map(|(_, pointers)| pointers.clone()).ok_or(format!("field label not supported: {field}"))
}

/// The first existing member as text; absent booleans in specs are false.
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

/// Splits terms at commas, except after a backslash.
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
