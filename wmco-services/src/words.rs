//! Placeholders in command lines and scripts.
//!
//! A placeholder counts only as a whole word: what stands before and after it is neither a letter,
//! a digit nor an underscore. All are replaced in one pass, the longest first, so that no value is
//! ever searched for placeholders. Source: `spec/services.md`, section 15, row 1.

use std::collections::BTreeMap;

/// Whether `placeholder` occurs in `text` as a word.
pub(crate) fn occurs(text: &str, placeholder: &str) -> bool {
    let values = BTreeMap::from([(placeholder, "")]);
    let mut found = false;
    replace_each(text, &values, |_| found = true);
    found
}

/// `text` with every placeholder in `values` replaced by its value.
pub(crate) fn replace(text: &str, values: &BTreeMap<&str, &str>) -> String {
    replace_each(text, values, |_| {})
}

fn replace_each<'a>(
    text: &str,
    values: &BTreeMap<&'a str, &str>,
    mut hit: impl FnMut(&'a str),
) -> String {
    let mut longest_first: Vec<(&'a str, &str)> =
        values.iter().map(|(name, value)| (*name, *value)).filter(|(n, _)| !n.is_empty()).collect();
    longest_first.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = None;
    while let Some(c) = rest.chars().next() {
        let here = longest_first.iter().find(|(name, _)| {
            rest.strip_prefix(name).is_some_and(|after| {
                stands_apart(before, name.chars().next())
                    && stands_apart(name.chars().next_back(), after.chars().next())
            })
        });
        let taken = if let Some((name, value)) = here {
            hit(name);
            out.push_str(value);
            before = name.chars().next_back();
            name.len()
        } else {
            out.push(c);
            before = Some(c);
            c.len_utf8()
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    out
}

/// Whether two neighbours do not belong to one word.
fn stands_apart(left: Option<char>, right: Option<char>) -> bool {
    let in_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    !(in_word(left) && in_word(right))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_whole_words_are_replaced() {
        let values = BTreeMap::from([("NODE", "x"), ("NODE_NAME", "NODE"), ("IP", "1")]);
        let out = replace("--a=NODE_NAME --b NODE, NODES SKIP IP", &values);
        assert_eq!(out, "--a=NODE --b x, NODES SKIP 1");
        assert!(!occurs("HOSTNAME", "NAME"));
    }

    proptest! {
        /// Values are never searched again, whatever they hold.
        #[test]
        fn one_pass(a in "[AB ]{0,9}", b in "[AB ]{0,9}") {
            let values = BTreeMap::from([("A", a.as_str()), ("B", b.as_str())]);
            prop_assert_eq!(replace("A-B.C", &values), format!("{a}-{b}.C"));
        }
    }
}
