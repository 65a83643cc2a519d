//! Text for places that take only so much of it.

/// The start of `text`, at most so many bytes.
///
/// ```
/// assert_eq!(wmco_core::text::cut("grün", 3), "gr");
/// ```
pub fn cut(text: &str, most_bytes: usize) -> &str {
    let end = (0..=most_bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(
            [cut("aä", 1), cut("aä", 2), cut("aä", 3), cut("aä", 9)],
            ["a", "a", "aä", "aä"]
        );
        assert_eq!((cut("ä", 1), cut("", 5)), ("", ""));
    }
}
