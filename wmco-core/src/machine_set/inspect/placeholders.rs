//! Finds unfilled placeholders of samples and templates, such as `<infrastructure_id>`, `${NAME}` and `CHANGE_ME`.

use std::fmt::Write as _;

use serde_json::Value;

use super::Inspection;

pub(super) fn check(machine_set: &Value, found: &mut Inspection) {
    search(machine_set, &mut String::new(), found);
}

/// Searches `value`, whose path is `at`. The reader of the file has limited the depth.
fn search(value: &Value, at: &mut String, found: &mut Inspection) {
    let length = at.len();
    match value {
        Value::String(text) => {
            if let Some(blank) = blank(text) {
                found.problem(at.as_str(), format!("fill in {blank:?}"));
            }
        }
        Value::Array(items) => {
            for (item, index) in items.iter().zip(0..) {
                // Writing to a string does not fail.
                let _ = write!(at, "[{index}]");
                search(item, at, found);
                at.truncate(length);
            }
        }
        Value::Object(members) => {
            for (member, value) in members {
                if length > 0 {
                    at.push('.');
                }
                at.extend(member.escape_debug());
                search(value, at, found);
                at.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The first placeholder in `text`. No cloud takes braces, `$` or angle brackets in such texts.
pub(super) fn blank(text: &str) -> Option<&str> {
    /// What people write where others are to fill in.
    const WORDS: [&str; 4] = ["CHANGEME", "CHANGE_ME", "REPLACEME", "REPLACE_ME"];
    let is_word = |word: &str| {
        let word = word.replace('-', "_");
        WORDS.iter().any(|known| known.eq_ignore_ascii_case(&word))
    };
    let between = |opens: &str, closes: &str| {
        let (start, (_, after)) = (text.find(opens)?, text.split_once(opens)?);
        let end = start + opens.len() + after.find(closes)? + closes.len();
        text.get(start..end)
    };
    bracketed(text)
        .or_else(|| between("${", "}"))
        .or_else(|| between("$(", ")"))
        .or_else(|| between("{{", "}}"))
        .or_else(|| Some(text).filter(|text| is_word(text)))
}

/// The first word in angle brackets.
fn bracketed(mut text: &str) -> Option<&str> {
    let spelled = |letter: char| letter.is_ascii_alphanumeric() || "_- ".contains(letter);
    loop {
        let (word, after) = text.split_once('<')?.1.split_once('>')?;
        if !word.is_empty() && word.chars().all(spelled) {
            return Some(word);
        }
        text = after;
    }
}
