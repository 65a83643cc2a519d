//! Text for places that take only so much of it.

use std::error::Error;
use std::fmt::Write as _;

/// The start of `text`, at most so many bytes.
///
/// ```
/// assert_eq!(wmco_core::text::cut("grün", 3), "gr");
/// ```
pub fn cut(text: &str, most_bytes: usize) -> &str {
    let end = (0..=most_bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

/// An error with its causes, on one line.
///
/// ```
/// use std::io::Error;
///
/// let error = Error::other(Error::other("no\n  route"));
/// assert_eq!(wmco_core::text::chain(&error), "no route");
/// ```
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the host\n  is lost")]
    struct Lost(#[source] std::fmt::Error);

    #[test]
    fn causes_follow_on_the_same_line() {
        let cause = std::fmt::Error;
        assert_eq!(chain(&Lost(cause)), format!("the host is lost: {cause}"));
        assert_eq!(chain(&cause), cause.to_string());
    }

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(
            [cut("aä", 1), cut("aä", 2), cut("aä", 3), cut("aä", 9)],
            ["a", "a", "aä", "aä"]
        );
        assert_eq!((cut("ä", 1), cut("", 5)), ("", ""));
    }
}
