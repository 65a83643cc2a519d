//! Test cases from the files in `tests/vectors`, for unit tests.

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A test case of a file.
#[derive(Deserialize)]
pub(crate) struct Case<I, E> {
    pub(crate) name: String,
    pub(crate) input: I,
    pub(crate) expect: E,
}

/// The `count` test cases in `text`.
#[track_caller]
pub(crate) fn cases<I, E>(text: &str, count: usize) -> Vec<Case<I, E>>
where
    I: DeserializeOwned,
    E: DeserializeOwned,
{
    let cases: Vec<Case<I, E>> = serde_json::from_str(text).unwrap();
    assert_eq!(cases.len(), count);
    cases
}
