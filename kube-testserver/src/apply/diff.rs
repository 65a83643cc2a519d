//! The fields of a configuration, the difference of two states, and the merge of one into the other.

use serde_json::{Map, Value};

use super::set::FieldSet;
use super::typed::{Node, Way, element, named};

/// Every field that a configuration sets.
pub(super) fn fields_of(node: Node<'_>, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    collect(node, value, &mut vec![], &mut set);
    set
}

fn collect(node: Node<'_>, value: &Value, path: &mut Vec<String>, set: &mut FieldSet) {
    match (node.way(value), value) {
        (Way::Map, Value::Object(members)) => {
            if members.is_empty() {
                set.insert(path);
            }
            for (name, value) in members {
                path.push(named(name));
                if value.is_null() || node.is_free_map() {
                    set.insert(path);
                }
                collect(node.member(name).unwrap_or(Node::Unknown), value, path, set);
                path.pop();
            }
        }
        (way @ (Way::Keyed(_) | Way::Set), Value::Array(items)) => {
            for item in items {
                path.push(element(&way, item));
                set.insert(path);
                collect(node.item(), item, path, set);
                path.pop();
            }
        }
        _ => set.insert(path),
    }
}

/// The difference between two states.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Difference {
    pub(super) added: FieldSet,
    pub(super) modified: FieldSet,
    pub(super) removed: FieldSet,
}

impl Difference {
    pub(super) fn is_same(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// Added or modified fields.
    pub(super) fn written(&self) -> FieldSet {
        self.added.union(&self.modified)
    }

    pub(super) fn without(self, elements: &[&str]) -> Self {
        Self {
            added: self.added.without(elements),
            modified: self.modified.without(elements),
            removed: self.removed.without(elements),
        }
    }
}

/// Compares two states.
pub(super) fn compare(node: Node<'_>, before: &Value, after: &Value) -> Difference {
    let mut difference = Difference::default();
    walk(node, Some(before), Some(after), &mut vec![], &mut difference);
    difference
}

fn walk(
    node: Node<'_>,
    before: Option<&Value>,
    after: Option<&Value>,
    path: &mut Vec<String>,
    out: &mut Difference,
) {
    let shown = after.filter(|value| !value.is_null()).or(before).unwrap_or(&Value::Null);
    let way = node.way(shown);
    let is_empty = |value: Option<&Value>| match value {
        Some(Value::Object(members)) => members.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Null) | None => true,
        Some(_) => false,
    };
    if way == Way::Atomic || (is_empty(before) && is_empty(after)) {
        match (before, after) {
            (None, Some(_)) => out.added.insert(path),
            (Some(_), None) => out.removed.insert(path),
            (Some(before), Some(after)) if before != after => out.modified.insert(path),
            _ => {}
        }
        return;
    }
    match way {
        Way::Map => {
            let (old, new) = (members(before), members(after));
            let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                path.push(named(name));
                let below = node.member(name).unwrap_or(Node::Unknown);
                walk(below, old.get(name), new.get(name), path, out);
                path.pop();
            }
        }
        way => {
            let (old, new) = (items(&way, before), items(&way, after));
            let mut elements: Vec<&String> =
                old.iter().chain(&new).map(|(element, _)| element).collect();
            elements.sort();
            elements.dedup();
            for element in elements {
                path.push(element.clone());
                walk(node.item(), find(&old, element), find(&new, element), path, out);
                path.pop();
            }
        }
    }
    match (before, after) {
        (None, _) => out.added.insert(path),
        (_, None) => out.removed.insert(path),
        _ => {}
    }
}

fn members(value: Option<&Value>) -> Map<String, Value> {
    value.and_then(Value::as_object).cloned().unwrap_or_default()
}

fn items<'a>(way: &Way, value: Option<&'a Value>) -> Vec<(String, &'a Value)> {
    let list = value.and_then(Value::as_array).into_iter().flatten();
    list.map(|item| (element(way, item), item)).collect()
}

fn find<'a>(items: &[(String, &'a Value)], element: &str) -> Option<&'a Value> {
    items.iter().find(|(own, _)| own == element).map(|(_, item)| *item)
}

/// Merges `configuration` into `live`; on conflicts `configuration` wins.
pub(super) fn merge(node: Node<'_>, live: &Value, configuration: &Value) -> Value {
    match (node.way(configuration), live, configuration) {
        (Way::Map, Value::Object(live), Value::Object(configuration)) => {
            let mut out = live.clone();
            for (name, value) in configuration {
                let below = node.member(name).unwrap_or(Node::Unknown);
                let merged = match live.get(name) {
                    Some(live) => merge(below, live, value),
                    None => value.clone(),
                };
                out.insert(name.clone(), merged);
            }
            out.into()
        }
        (way @ (Way::Keyed(_) | Way::Set), Value::Array(_), Value::Array(_)) => {
            merge_items(node, &way, live, configuration)
        }
        _ => configuration.clone(),
    }
}

/// Merges the items of both: those of the configuration in its order, those only in `live` at their places.
fn merge_items(node: Node<'_>, way: &Way, live: &Value, configuration: &Value) -> Value {
    let (old, new) = (items(way, Some(live)), items(way, Some(configuration)));
    let merged = |element: &str, value: &Value| match find(&old, element) {
        Some(live) => merge(node.item(), live, value),
        None => value.clone(),
    };
    let mut out = vec![];
    let mut done: Vec<&String> = vec![];
    let mut rest = new.iter().peekable();
    for (element, item) in &old {
        if done.contains(&element) {
            continue;
        }
        if find(&new, element).is_none() {
            out.push((*item).clone());
            continue;
        }
        // Everything of the configuration up to this item comes first.
        for (next, value) in rest.by_ref() {
            out.push(merged(next, value));
            done.push(next);
            if next == element {
                break;
            }
        }
    }
    out.extend(rest.map(|(next, value)| merged(next, value)));
    out.into()
}

/// Removes the fields in `owned` from `value` that are not in `kept`.
pub(super) fn prune(node: Node<'_>, value: &mut Value, owned: &FieldSet, kept: &FieldSet) {
    let way = node.way(value);
    match (way, value) {
        (Way::Map, Value::Object(members)) => {
            let counts = if node.is_free_map() { FieldSet::has } else { FieldSet::touches };
            for name in owned.elements() {
                let Some(name) = name.strip_prefix("f:") else { continue };
                let below = node.member(name).unwrap_or(Node::Unknown);
                let gone = members.get_mut(name).is_some_and(|member| {
                    prune_one(below, member, &named(name), (owned, kept), counts)
                });
                if gone {
                    members.remove(name);
                }
            }
        }
        (way @ (Way::Keyed(_) | Way::Set), Value::Array(items)) => {
            items.retain_mut(|item| {
                let own = element(&way, item);
                !prune_one(node.item(), item, &own, (owned, kept), FieldSet::has)
            });
        }
        _ => {}
    }
}

/// Prunes below one element; returns whether the whole element is to be removed. `counts` tells whether a set owns
/// the element: a named field belongs to everyone who owns a part of it, an item or a free key only as such.
fn prune_one(
    node: Node<'_>,
    value: &mut Value,
    element: &str,
    (owned, kept): (&FieldSet, &FieldSet),
    counts: fn(&FieldSet, &str) -> bool,
) -> bool {
    if counts(owned, element) && !counts(kept, element) {
        return true;
    }
    if let Some(below) = owned.below(element) {
        let nothing = FieldSet::default();
        prune(node, value, below, kept.below(element).unwrap_or(&nothing));
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::schema;
    use super::*;

    fn node() -> Node<'static> {
        Node::Message(schema::kind("v1", "Node").unwrap())
    }

    fn ready(status: &str) -> Value {
        json!({"status": {"conditions": [{"type": "Ready", "status": status}]}})
    }

    #[test]
    fn a_configuration_names_its_leaves() {
        let set = fields_of(
            node(),
            &json!({"metadata": {"labels": {"x": "1"}},
            "spec": {"taints": [{"key": "os"}]}}),
        );
        assert_eq!(
            set.to_fields(),
            json!({"f:metadata": {"f:labels": {"f:x": {}}}, "f:spec": {"f:taints": {}}})
        );
        let map = Node::Message(schema::kind("v1", "ConfigMap").unwrap());
        assert_eq!(fields_of(map, &json!({"data": {}})).to_fields(), json!({"f:data": {}}));
    }

    #[test]
    fn a_new_map_is_added_itself() {
        let map = Node::Message(schema::kind("v1", "ConfigMap").unwrap());
        let added = compare(map, &json!({}), &json!({"data": {"k": "v"}})).added;
        assert_eq!(added.to_fields(), json!({"f:data": {".": {}, "f:k": {}}}));
    }

    #[test]
    fn items_are_compared_by_key() {
        let both = compare(node(), &ready("True"), &ready("False"));
        assert_eq!(both.modified.paths(), [".status.conditions[type=\"Ready\"].status"]);
        assert!(both.added.is_empty() && both.removed.is_empty());
        assert!(compare(node(), &ready("True"), &ready("True")).is_same());
    }

    #[test]
    fn items_merge_by_key_in_order() {
        let live = json!({"status": {"conditions": [
            {"type": "A", "status": "1"}, {"type": "B", "status": "1"}]}});
        let new = json!({"status": {"conditions": [
            {"type": "C", "status": "2"}, {"type": "B", "reason": "r"}]}});
        let merged = merge(node(), &live, &new);
        let types: Vec<_> = merged["status"]["conditions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|condition| condition["type"].as_str().unwrap())
            .collect();
        assert_eq!(types, ["A", "C", "B"]);
        assert_eq!(merged["status"]["conditions"][2]["status"], "1");
    }

    #[test]
    fn what_others_keep_stays() {
        let mut object = json!({"data": {"k": "v", "l": "w"}, "metadata": {"labels": {"x": "1"}}});
        let map = Node::Message(schema::kind("v1", "ConfigMap").unwrap());
        let owned = fields_of(map, &object);
        let kept = FieldSet::parse(&json!({"f:data": {"f:k": {}}}));
        prune(map, &mut object, &owned, &kept);
        assert_eq!(object, json!({"data": {"k": "v"}}));
    }
}
