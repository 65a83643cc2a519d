//! Objects as YAML with comments.

use std::fmt::Write as _;

use serde_json::Value;

/// A manifest file, or a kustomize file.
#[derive(Clone, Debug)]
pub struct File {
    /// Path, relative to the folder of the installation.
    pub path: &'static str,
    /// Purpose of the file; lines without comment signs.
    pub comment: &'static str,
    /// Content of the file.
    pub documents: Vec<Document>,
}

/// An object with its comments.
#[derive(Clone, Debug)]
pub struct Document {
    /// The object.
    pub object: Value,
    /// A comment for each of its rules; empty for an object without rules.
    pub rule_comments: Vec<String>,
}

impl Document {
    /// Makes a document without comments.
    pub(crate) const fn of(object: Value) -> Self {
        Self { object, rule_comments: Vec::new() }
    }

    fn write(&self, text: &mut String) {
        let mut object = self.object.clone();
        let rules = match object.get_mut("rules") {
            Some(Value::Array(rules)) if !self.rule_comments.is_empty() => std::mem::take(rules),
            _ => Vec::new(),
        };
        if rules.is_empty() {
            text.push_str(&yaml(&object));
            return;
        }
        if let Some(fields) = object.as_object_mut() {
            fields.remove("rules");
        }
        text.push_str(&yaml(&object));
        text.push_str("rules:\n");
        for (rule, comment) in rules.iter().zip(&self.rule_comments) {
            push_comment(text, "  ", comment);
            for (n, field) in ["apiGroups", "resources", "resourceNames", "verbs"]
                .into_iter()
                .filter(|field| rule.get(field).is_some())
                .enumerate()
            {
                let begin = if n == 0 { "-" } else { " " };
                // Writing to a string does not fail.
                let _ = writeln!(text, "  {begin} {field}: [{}]", list(&rule[field]));
            }
        }
    }
}

impl File {
    pub(crate) fn new(
        path: &'static str,
        comment: &'static str,
        documents: impl IntoIterator<Item = Document>,
    ) -> Self {
        Self { path, comment, documents: documents.into_iter().collect() }
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        let mut text = String::new();
        push_comment(&mut text, "", self.comment);
        for (n, document) in self.documents.iter().enumerate() {
            if n > 0 {
                text.push_str("---\n");
            }
            document.write(&mut text);
        }
        text
    }
}

/// The items of a list in JSON notation, which is valid YAML, too.
fn list(items: &Value) -> String {
    let items = items.as_array().into_iter().flatten();
    items.map(Value::to_string).collect::<Vec<_>>().join(", ")
}

fn push_comment(text: &mut String, indent: &str, comment: &str) {
    for line in comment.lines() {
        let _ = writeln!(text, "{indent}# {line}");
    }
}

fn yaml(object: &Value) -> String {
    // Every JSON value has a form in YAML.
    serde_saphyr::to_string(object).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::{Installation, files};
    use super::*;

    #[test]
    fn comments_change_nothing() {
        for file in files(&Installation::default()) {
            let read: Vec<Value> = serde_saphyr::from_multiple(&file.text()).unwrap();
            let written: Vec<Value> = file.documents.into_iter().map(|it| it.object).collect();
            assert_eq!(read, written, "{}", file.path);
        }
    }

    #[test]
    fn every_rule_of_the_operator_says_who_needs_it() {
        for file in files(&Installation::default()) {
            let names = |object: &Value| object["metadata"]["name"].to_string();
            let operators = |it: &&Document| names(&it.object).contains("machine-config-operator");
            for document in file.documents.iter().filter(operators) {
                let rules = document.object["rules"].as_array().map_or(0, Vec::len);
                assert_eq!(document.rule_comments.len(), rules, "{}", document.object);
            }
            for comment in file.documents.iter().flat_map(|it| &it.rule_comments) {
                assert!(
                    file.text().contains(&format!("  # {comment}\n  - apiGroups: ")),
                    "{comment}"
                );
                assert!(comment.len() <= 110, "{comment}");
            }
        }
    }
}
