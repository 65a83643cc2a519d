//! Vectors that are replayed, and where we answer otherwise.

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// One case of a file in `tests/vectors`.
#[derive(Deserialize)]
pub(crate) struct Case<I, E> {
    pub(crate) name: String,
    pub(crate) input: I,
    pub(crate) expect: E,
}

/// Cases where our answer differs on purpose, beyond those that the vectors mark as debatable or as
/// a fault of the original: file, case, reason.
pub(crate) const DEVIATIONS: [(&str, &str, &str); 0] = [];

/// The cases of one file that we answer as it says.
pub(crate) fn cases<I: DeserializeOwned, E: DeserializeOwned>(
    file: &str,
    text: &str,
) -> Vec<Case<I, E>> {
    let mut cases: Vec<Case<I, E>> = serde_json::from_str(text).unwrap();
    let all = cases.len();
    let ours = |name: &str| DEVIATIONS.iter().any(|(f, n, _)| *f == file && *n == name);
    cases.retain(|case| !ours(&case.name));
    let listed = DEVIATIONS.iter().filter(|(f, ..)| *f == file).count();
    assert_eq!(all - cases.len(), listed, "every deviation names a case");
    cases
}
