//! YAML documents as JSON values, however they were meant.
//!
//! # Guarantees
//! - Aliases (`*NAME`) add at most [`limits::YAML_ALIAS_BYTES`] to what a file says without them, in
//!   all its documents together, and repeat at most [`limits::YAML_ALIAS_NODES`] nodes in each. So
//!   work and memory are in proportion to the size of the file.

use serde_json::Value;
use serde_saphyr::SnippetMode;
use serde_saphyr::budget::BudgetBreach;
use wmco_core::limits;

/// How deep documents may nest. Cluster objects stay well below; twice as much overflowed the stack
/// of a thread in a debug build.
const NESTING: usize = 64;

/// Why a document cannot be used.
#[derive(Debug)]
pub(super) enum YamlError {
    /// Aliases repeat too much.
    Aliases,
    /// It is no YAML, for this reason.
    Syntax(String),
}

/// The documents in `text`, without empty ones; none after one that cannot be used.
pub(super) fn documents(text: &str) -> Result<Vec<Value>, (usize, YamlError)> {
    // A node takes two bytes at least, so without aliases this is more than the file can hold.
    let mut left = 2 * text.len() + limits::YAML_ALIAS_BYTES;
    let mut documents = Vec::new();
    // Even a key may be one of those that nobody should see.
    let conceal = text.contains("Secret");
    let mut bytes = text.as_bytes();
    for document in serde_saphyr::read_with_options(&mut bytes, options(text.len())) {
        let document =
            document.map_err(|error| (documents.len(), YamlError::of(&error, conceal)))?;
        left = left.checked_sub(size(&document)).ok_or((documents.len(), YamlError::Aliases))?;
        documents.push(document);
    }
    Ok(documents)
}

/// What one document may hold. People's own files may be as big as they like.
fn options(bytes: usize) -> serde_saphyr::Options {
    let budget = serde_saphyr::budget! {
        enforce_alias_anchor_ratio: false,
        max_depth: NESTING,
        max_documents: usize::MAX,
        max_events: usize::MAX,
        max_nodes: usize::MAX,
        max_reader_input_bytes: None,
        max_recorded_anchor_bytes: bytes + limits::YAML_ALIAS_BYTES,
        max_recorded_anchor_events: bytes + limits::YAML_ALIAS_NODES,
        max_total_scalar_bytes: bytes + limits::YAML_ALIAS_BYTES,
    };
    let alias_limits =
        serde_saphyr::alias_limits! { max_total_replayed_events: limits::YAML_ALIAS_NODES };
    serde_saphyr::options! { budget: budget, alias_limits: alias_limits, with_snippet: false }
}

/// Nodes of a document and bytes of its texts.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        Value::String(text) => 1 + text.len(),
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(members) => {
            1 + members.iter().map(|(key, value)| key.len() + size(value)).sum::<usize>()
        }
    }
}

impl YamlError {
    fn of(error: &serde_saphyr::Error, conceal: bool) -> Self {
        use serde_saphyr::Error;
        let mut cause = error;
        while let Error::AliasError { error, .. } | Error::WithSnippet { error, .. } = cause {
            cause = error;
        }
        let aliases = matches!(
            cause,
            Error::AliasReplayLimitExceeded { .. }
                | Error::AliasReplayStackDepthExceeded { .. }
                | Error::Budget {
                    breach: BudgetBreach::Aliases { .. }
                        | BudgetBreach::Anchors { .. }
                        | BudgetBreach::RecordedAnchorBytes { .. }
                        | BudgetBreach::RecordedAnchorEvents { .. }
                        | BudgetBreach::ScalarBytes { .. },
                    ..
                }
        );
        if aliases { Self::Aliases } else { Self::Syntax(words(cause, conceal)) }
    }
}

/// What is wrong, and where; without words for people who write programs with the parser.
fn words(error: &serde_saphyr::Error, conceal: bool) -> String {
    use serde_saphyr::Error;
    let what = match error {
        Error::DuplicateMappingKey { key: Some(key), .. } if !conceal => {
            format!("key `{}` stands twice, leave one", key.escape_debug())
        }
        Error::DuplicateMappingKey { .. } => "a key stands twice, leave one".to_owned(),
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => {
            format!("it nests more than {NESTING} deep")
        }
        Error::NullIntoString { .. } => "a key has to be a text".to_owned(),
        other => {
            let plain = SnippetMode::Off;
            let text = other.render_with_options(serde_saphyr::render_options! { snippets: plain });
            let text = text.split(" at line ").next().unwrap_or_default();
            text.split("; use ").next().unwrap_or_default().to_owned()
        }
    };
    match error.location() {
        Some(at) => format!("line {}, column {}: {what}", at.line(), at.column()),
        None => what,
    }
}
