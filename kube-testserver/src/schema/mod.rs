//! The server's schema of built-in kinds.
//!
//! One table serves all code that must know types: validation and normalization of JSON bodies ([`shape`]),
//! protobuf, server-side apply and strategic merge. The tables are texts under `tables/`, one message per
//! paragraph:
//!
//! ```text
//! kinds policy/v1: PodDisruptionBudget Eviction
//! Message: member=number type flags; member=number type flags
//! ```
//!
//! Types are `str i32 i64 bool f64 bytes time microtime quantity intstr fields raw extra any`, another
//! message, `[list]` or `{map}`; `+member` is inlined in JSON. Flags: `!` is written even when
//! empty, `nil` is written as null when absent, `*` keeps zero values (a pointer in Go), `map(keys)`
//! (`key=DEFAULT` where an item may lack the key) and `set` say how a list merges under apply, `merge(key)`, `merge` and `replace` under
//! strategic merge, `atomic` (of a member or a whole message) that apply owns it as one.
//! Numbers and flags are those of the Kubernetes API definitions, version 1.35. A paragraph that
//! cannot be read fails the build (`build.rs`); names and types are compared with the schemas of
//! k8s-openapi in the tests.

mod table;

pub(crate) mod shape;

use std::collections::HashMap;
use std::sync::LazyLock;

pub(crate) use table::{Field, Merge, Message, Presence, Type};
#[cfg(any(test, feature = "server-side-apply"))]
pub(crate) use table::{ListKind, MapKey};

static SCHEMA: LazyLock<Schema> = LazyLock::new(Schema::read);

/// All messages, and the kinds that they define.
#[derive(Debug)]
pub(crate) struct Schema {
    messages: HashMap<&'static str, Message>,
    kinds: HashMap<(&'static str, &'static str), &'static str>,
}

impl Schema {
    /// Reads the tables. The build has read them with the same code and fails on errors.
    fn read() -> Self {
        let mut schema = Self { messages: HashMap::new(), kinds: HashMap::new() };
        let paragraphs = table::TABLES.iter().flat_map(|(_, text)| table::paragraphs(text));
        for paragraph in paragraphs.filter_map(Result::ok) {
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

/// The message of a kind, for example of `("policy/v1", "Eviction")`; `None` for custom resources.
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

/// The member of a message by its JSON name, including members of inlined messages.
pub(crate) fn member(of: &'static Message, json: &str) -> Option<&'static Field> {
    members(of).into_iter().find(|field| field.json == json)
}

/// All members of a message in JSON, including those of inlined messages.
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
mod tests;
