//! Behavior of Go's libraries that is visible in answers of the API: errors of base64, JSON and times, and
//! quantities.

pub(crate) mod base64;
pub(crate) mod json;
pub(crate) mod quantity;
pub(crate) mod time;

/// The text in double quotes as Go's `%q` writes it.
fn quoted(text: &str) -> String {
    format!("{text:?}")
}
