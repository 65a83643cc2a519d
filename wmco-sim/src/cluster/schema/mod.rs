//! What the server knows about the members of built-in kinds.
//!
//! One table serves everything that must know types: checking and canonising JSON bodies
//! ([`shape`]), protobuf, server-side apply and strategic merge. The table is text under
//! `tables/`, one message per paragraph:
//!
//! ```text
//! kinds policy/v1: PodDisruptionBudget Eviction
//! Message: member=number type flags; member=number type flags
//! ```
//!
//! Types are `str i32 i64 bool f64 bytes time microtime quantity intstr fields raw extra any`, another
//! message, `[list]` or `{map}`; `+member` is inlined in JSON. Flags: `!` is written even when
//! empty, `nil` is written as null when absent, `*` keeps zero values (a pointer in Go), `map(keys)`
//! and `set` say how a list merges under apply, `merge(key)` and `merge` under strategic merge,
//! `atomic` (of a member or a whole message) that apply owns it as one.
//! Numbers and flags are those of the Kubernetes API definitions, version 1.35.

mod table;

pub(crate) mod shape;

use std::collections::HashMap;
use std::sync::LazyLock;

pub(crate) use table::{Field, ListKind, Merge, Message, Presence, Type};

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::parse(&[
        include_str!("tables/meta.txt"),
        include_str!("tables/core.txt"),
        include_str!("tables/pod.txt"),
        include_str!("tables/apps.txt"),
        include_str!("tables/groups.txt"),
        include_str!("tables/access.txt"),
    ])
});

/// All messages and which kinds they stand for.
#[derive(Debug)]
pub(crate) struct Schema {
    messages: HashMap<&'static str, Message>,
    kinds: HashMap<(&'static str, &'static str), &'static str>,
}

impl Schema {
    fn parse(tables: &[&'static str]) -> Self {
        let mut schema = Self { messages: HashMap::new(), kinds: HashMap::new() };
        for paragraph in tables.iter().flat_map(|text| table::paragraphs(text)) {
            match paragraph {
                table::Paragraph::Kinds { api_version, names } => {
                    for name in names {
                        let kind = name.rsplit('.').next().unwrap_or(name);
                        schema.kinds.insert((api_version, kind), name);
                    }
                }
                table::Paragraph::Message(message) => {
                    schema.messages.insert(message.name, message);
                }
            }
        }
        schema
    }
}

/// The message of a kind, for example of `("policy/v1", "Eviction")`; none for custom resources.
pub(crate) fn kind(api_version: &str, kind: &str) -> Option<&'static Message> {
    // These two are the same in every group.
    let api_version = if matches!(kind, "DeleteOptions" | "Status") { "v1" } else { api_version };
    let found = SCHEMA.kinds.iter().find(|((v, k), _)| *v == api_version && *k == kind);
    found.and_then(|(_, name)| message(name))
}

/// A message by its name in the tables.
pub(crate) fn message(name: &str) -> Option<&'static Message> {
    SCHEMA.messages.get(name)
}

/// The member of a message as JSON shows it, those of inlined messages included.
pub(crate) fn member(of: &'static Message, json: &str) -> Option<&'static Field> {
    members(of).into_iter().find(|field| field.json == json)
}

/// All members of a message as JSON shows them.
pub(crate) fn members(of: &'static Message) -> Vec<&'static Field> {
    let mut out = Vec::with_capacity(of.fields.len());
    for field in &of.fields {
        match (&field.ty, field.inline) {
            (Type::Message(name), true) => {
                out.extend(message(name).into_iter().flat_map(members));
            }
            _ => out.push(field),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(ty: &Type) -> Vec<&'static str> {
        match ty {
            Type::Message(name) => vec![name],
            Type::List(inner) | Type::Map(inner) => names(inner),
            _ => vec![],
        }
    }

    #[test]
    fn every_message_that_is_named_exists() {
        for message in SCHEMA.messages.values() {
            for name in message.fields.iter().flat_map(|field| names(&field.ty)) {
                assert!(super::message(name).is_some(), "{name} in {}", message.name);
            }
        }
        for name in SCHEMA.kinds.values() {
            assert!(message(name).is_some(), "{name}");
        }
    }

    #[test]
    fn numbers_and_members_are_unique_in_a_message() {
        for message in SCHEMA.messages.values() {
            let mut numbers: Vec<_> = message.fields.iter().map(|field| field.number).collect();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), message.fields.len(), "{}", message.name);
            let mut json: Vec<_> = members(message).into_iter().map(|field| field.json).collect();
            let all = json.len();
            json.sort_unstable();
            json.dedup();
            assert_eq!(json.len(), all, "{}", message.name);
        }
    }

    #[test]
    fn map_keys_are_members_of_the_items() {
        for message in SCHEMA.messages.values() {
            for field in &message.fields {
                let (ListKind::Map(keys), Type::List(item)) = (&field.list, &field.ty) else {
                    continue;
                };
                let Type::Message(item) = item.as_ref() else { continue };
                for key in keys {
                    let item = super::message(item).unwrap();
                    assert!(member(item, key).is_some(), "{key} of {}", field.json);
                }
            }
        }
    }

    #[test]
    fn inlined_members_are_found() {
        let volume = message("Volume").unwrap();
        assert_eq!(member(volume, "configMap").unwrap().number, 19);
    }
}
