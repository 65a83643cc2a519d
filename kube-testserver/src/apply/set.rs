//! Sets of field paths, as `fieldsV1` of `metadata.managedFields` writes them.
//!
//! A path is a sequence of elements: `f:name` (a member), `k:{"type":"Ready"}` (the item of a list with these
//! keys), `v:"x"` (the item with this value).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// A set of paths.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct FieldSet {
    /// Elements that are in the set themselves.
    members: BTreeSet<String>,
    /// The set below each element. Never an empty set.
    children: BTreeMap<String, FieldSet>,
}

impl FieldSet {
    /// Reads `fieldsV1`.
    pub(super) fn parse(fields: &Value) -> Self {
        let mut set = Self::default();
        for (element, below) in fields.as_object().into_iter().flatten() {
            if element == "." {
                continue;
            }
            let below_members = below.as_object().map(Map::len).unwrap_or_default();
            if below_members == 0 || below.get(".").is_some() {
                set.members.insert(element.clone());
            }
            let child = Self::parse(below);
            if !child.is_empty() {
                set.children.insert(element.clone(), child);
            }
        }
        set
    }

    /// Writes `fieldsV1`.
    pub(super) fn to_fields(&self) -> Value {
        let mut out = Map::new();
        for element in self.elements() {
            let mut below = self.children.get(element).map_or_else(|| json!({}), Self::to_fields);
            let own = self.members.contains(element) && self.children.contains_key(element);
            if let (true, Some(below)) = (own, below.as_object_mut()) {
                below.insert(".".to_owned(), json!({}));
            }
            out.insert(element.to_owned(), below);
        }
        out.into()
    }

    /// The first elements of all paths.
    pub(super) fn elements(&self) -> BTreeSet<&str> {
        self.members.iter().chain(self.children.keys()).map(String::as_str).collect()
    }

    /// Whether the set has the element or something below it.
    pub(super) fn touches(&self, element: &str) -> bool {
        self.members.contains(element) || self.children.contains_key(element)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.is_empty()
    }

    pub(super) fn has(&self, element: &str) -> bool {
        self.members.contains(element)
    }

    pub(super) fn below(&self, element: &str) -> Option<&Self> {
        self.children.get(element)
    }

    pub(super) fn insert(&mut self, path: &[String]) {
        match path {
            [] => {}
            [last] => drop(self.members.insert(last.clone())),
            [first, rest @ ..] => self.children.entry(first.clone()).or_default().insert(rest),
        }
    }

    fn combine(&self, other: &Self, keep: fn(bool, bool) -> bool) -> Self {
        let none = Self::default();
        let mut out = Self::default();
        for element in self.elements().union(&other.elements()) {
            if keep(self.has(element), other.has(element)) {
                out.members.insert((*element).to_owned());
            }
            let (own, its) = (self.below(element), other.below(element));
            let child = own.unwrap_or(&none).combine(its.unwrap_or(&none), keep);
            if !child.is_empty() {
                out.children.insert((*element).to_owned(), child);
            }
        }
        out
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        self.combine(other, |own, its| own || its)
    }

    pub(super) fn intersection(&self, other: &Self) -> Self {
        self.combine(other, |own, its| own && its)
    }

    pub(super) fn difference(&self, other: &Self) -> Self {
        self.combine(other, |own, its| own && !its)
    }

    /// The set without the elements and everything below them.
    pub(super) fn without(mut self, elements: &[&str]) -> Self {
        for element in elements {
            self.members.remove(*element);
            self.children.remove(*element);
        }
        self
    }

    /// All paths in the form of messages: `.data.k`, `.status.conditions[type="Ready"]`.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut out = vec![];
        for element in &self.members {
            out.push(shown(element));
        }
        for (element, below) in &self.children {
            out.extend(below.paths().into_iter().map(|path| format!("{}{path}", shown(element))));
        }
        out
    }
}

fn shown(element: &str) -> String {
    match element.split_once(':') {
        Some(("f", name)) => format!(".{name}"),
        Some(("k", keys)) => {
            let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
            let keys: Vec<_> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("[{}]", keys.join(","))
        }
        Some(("v", value)) => format!("[={value}]"),
        _ => format!("[{element}]"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fields() -> Value {
        json!({
            "f:data": {".": {}, "f:k": {}},
            "f:status": {"f:conditions": {"k:{\"type\":\"Ready\"}": {".": {}, "f:status": {}}}},
        })
    }

    #[test]
    fn the_text_form_is_kept() {
        assert_eq!(FieldSet::parse(&fields()).to_fields(), fields());
    }

    #[test]
    fn paths_are_readable() {
        let expected = [
            ".data",
            ".data.k",
            ".status.conditions[type=\"Ready\"]",
            ".status.conditions[type=\"Ready\"].status",
        ];
        let mut paths = FieldSet::parse(&fields()).paths();
        paths.sort();
        assert_eq!(paths, expected);
    }

    fn any_set() -> impl Strategy<Value = FieldSet> {
        let path = prop::collection::vec("[a-c]".prop_map(|name| format!("f:{name}")), 1..4);
        prop::collection::vec(path, 0..8).prop_map(|paths| {
            let mut set = FieldSet::default();
            for path in &paths {
                set.insert(path);
            }
            set
        })
    }

    proptest! {
        /// The laws of sets hold, and the text form loses nothing.
        #[test]
        fn sets(a in any_set(), b in any_set()) {
            prop_assert_eq!(a.union(&b), b.union(&a));
            prop_assert_eq!(a.union(&b).difference(&b).intersection(&b), FieldSet::default());
            prop_assert_eq!(a.difference(&b).union(&a.intersection(&b)), a.clone());
            prop_assert_eq!(FieldSet::parse(&a.to_fields()), a);
        }
    }
}
