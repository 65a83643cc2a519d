//! Finds unfilled placeholders of a sample, such as `<infrastructure_id>`.

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

/// The first placeholder in `text`: a word in angle brackets.
fn blank(mut text: &str) -> Option<&str> {
    let spelled = |letter: char| letter.is_ascii_alphanumeric() || "_- ".contains(letter);
    loop {
        let (word, after) = text.split_once('<')?.1.split_once('>')?;
        if !word.is_empty() && word.chars().all(spelled) {
            return Some(word);
        }
        text = after;
    }
}
