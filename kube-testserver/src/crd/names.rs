//! Names of kinds: their form, and which definition of a group has them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::error::FieldError;
use crate::names::dns1035_label;

use super::{list, text};

/// Complaints about `spec.names`.
pub(super) fn errors(definition: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let names = definition.pointer("/spec/names").unwrap_or(&Value::Null);
    for name in ["plural", "singular", "kind", "listKind"] {
        if text(names, &format!("/{name}")).is_empty() {
            errors.push(FieldError::required(&format!("spec.names.{name}"), ""));
        }
    }
    for (name, is_kind) in
        [("plural", false), ("singular", false), ("kind", true), ("listKind", true)]
    {
        let found = text(names, &format!("/{name}"));
        let wrong = dns1035_label(&found.to_lowercase());
        let wrong = if is_kind { wrong } else { dns1035_label(found) };
        if found.is_empty() || wrong.is_empty() {
            continue;
        }
        let start = if is_kind { "may have mixed case, but should otherwise match: " } else { "" };
        let why = format!("{start}{}", wrong.join(","));
        errors.push(FieldError::invalid(&format!("spec.names.{name}"), &found.into(), &why));
    }
    for (member, complain_after) in [("shortNames", true), ("categories", false)] {
        for (index, name) in list(names, &format!("/{member}")).iter().enumerate() {
            let wrong = dns1035_label(name.as_str().unwrap_or(""));
            if !wrong.is_empty() {
                let field = format!("spec.names.{member}[{index}]");
                errors.push(FieldError::invalid(&field, name, &wrong.join(",")));
            }
        }
        let (kind, list_kind) = (text(names, "/kind"), text(names, "/listKind"));
        if complain_after && !kind.is_empty() && kind == list_kind {
            let why = "kind and listKind may not be the same";
            errors.push(FieldError::invalid("spec.names.listKind", &list_kind.into(), why));
        }
    }
    errors
}

/// The names that a definition gets, beside those of others of its group; the error is reason and message of the
/// condition. A name that was accepted before stays.
pub(super) fn accepted<'a>(
    definition: &Value,
    others: impl Iterator<Item = &'a Value>,
) -> (Value, Result<(), (&'static str, String)>) {
    let (mut resources, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    for other in others {
        let names = other.pointer("/status/acceptedNames").unwrap_or(&Value::Null);
        resources.extend([text(names, "/plural"), text(names, "/singular")]);
        resources.extend(list(names, "/shortNames").iter().filter_map(Value::as_str));
        kinds.extend([text(names, "/kind"), text(names, "/listKind")]);
    }
    let wanted = definition.pointer("/spec/names").cloned().unwrap_or_default();
    let before = definition.pointer("/status/acceptedNames");
    let mut names = before.filter(|names| names.is_object()).cloned().unwrap_or_else(|| json!({}));
    let mut problem = Ok(());
    for (member, reason, taken) in [
        ("plural", "PluralConflict", &resources),
        ("singular", "SingularConflict", &resources),
        ("shortNames", "ShortNamesConflict", &resources),
        ("kind", "KindConflict", &kinds),
        ("listKind", "ListKindConflict", &kinds),
    ] {
        let all = match wanted.get(member) {
            Some(Value::String(name)) => vec![name.as_str()],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => vec![],
        };
        match all.iter().find(|name| taken.contains(*name)) {
            Some(name) => problem = Err((reason, format!("{name:?} is already in use"))),
            None => replace(&mut names, &wanted, member),
        }
    }
    replace(&mut names, &wanted, "categories");
    (names, problem)
}

fn replace(names: &mut Value, wanted: &Value, member: &str) {
    let Some(names) = names.as_object_mut() else { return };
    match wanted.get(member) {
        Some(value) => drop(names.insert(member.to_owned(), value.clone())),
        None => drop(names.remove(member)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_belongs_to_the_first() {
        let first = json!({"status": {"acceptedNames": {"plural": "foos", "singular": "foo",
            "kind": "Foo", "listKind": "FooList", "shortNames": ["fo"]}}});
        let of = |names: Value| accepted(&json!({"spec": {"names": names}}), [&first].into_iter());
        let (names, problem) = of(json!({"plural": "foo2s", "singular": "foo2", "kind": "Foo",
            "listKind": "Foo2List"}));
        assert_eq!(problem, Err(("KindConflict", "\"Foo\" is already in use".to_owned())));
        assert_eq!(names, json!({"plural": "foo2s", "singular": "foo2", "listKind": "Foo2List"}));
        let (_, problem) = of(json!({"plural": "bars", "shortNames": ["b", "fo"], "kind": "Bar"}));
        assert_eq!(problem.unwrap_err().0, "ShortNamesConflict");
        assert_eq!(of(json!({"plural": "bars", "kind": "Bar"})).1, Ok(()));
    }

    #[test]
    fn names_have_a_form() {
        let fields = |names: Value| -> Vec<String> {
            let errors = errors(&json!({"spec": {"names": names}}));
            errors.into_iter().map(|error| error.field).collect()
        };
        let good =
            json!({"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"});
        assert_eq!(fields(good), Vec::<String>::new());
        assert_eq!(
            fields(json!({"plural": "Foos", "singular": "foo", "kind": "F_oo", "listKind": "F_oo",
                "shortNames": ["f!"], "categories": ["All"]})),
            [
                "spec.names.plural",
                "spec.names.kind",
                "spec.names.listKind",
                "spec.names.shortNames[0]",
                "spec.names.listKind",
                "spec.names.categories[0]"
            ]
        );
    }
}
