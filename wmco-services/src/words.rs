//! Placeholders in command lines and scripts.
//!
//! A placeholder counts only as a whole word: the characters around it are no letter, digit or underscore. All are
//! replaced in one pass, the longest first, so values are never searched for placeholders. Source:
//! `docs/contract/services.md`, SVC31.

use std::collections::BTreeMap;

/// Whether `placeholder` occurs in `text` as a word.
pub(crate) fn occurs(text: &str, placeholder: &str) -> bool {
    let values = BTreeMap::from([(placeholder, "")]);
    let mut found = false;
    replace_each(text, &values, |_| found = true);
    found
}

/// Returns `text` with every placeholder in `values` replaced by its value.
pub(crate) fn replace(text: &str, values: &BTreeMap<&str, &str>) -> String {
    replace_each(text, values, |_| {})
}

/// Recovers a placeholder's value from a filled command line; `None` unless exactly one word matches. The word in
/// `template` must have a prefix that names the value, such as `--name=PLACEHOLDER`.
pub(crate) fn recover<'a>(template: &str, placeholder: &str, filled: &'a str) -> Option<&'a str> {
    let word = template.split_whitespace().find(|word| occurs(word, placeholder))?;
    let (before, after) = word.split_once(placeholder)?;
    let value = |word: &'a str| word.strip_prefix(before)?.strip_suffix(after);
    let mut values = filled.split_whitespace().filter_map(value);
    let only = values.next().filter(|value| !before.is_empty() && !value.is_empty());
    only.filter(|_| values.next().is_none())
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

/// Whether two neighbouring characters do not belong to one word.
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

    #[test]
    fn a_value_is_recalled_from_the_word_that_names_it() {
        let recalled = |filled| recover("run --name=NAME --ip NAME", "NAME", filled);
        assert_eq!(recalled("other --v --name=a.b"), Some("a.b"));
        for filled in ["", "run", "run --name= --ip x", "run --name x", "--name=a --name=b"] {
            assert_eq!(recalled(filled), None, "{filled}");
        }
        assert_eq!(recover("run NAME", "NAME", "run a"), None);
        assert_eq!(recover("run --name=NAMES", "NAME", "run --name=a"), None);
    }

    proptest! {
        /// A filled-in value is recovered.
        #[test]
        fn recall_is_the_way_back(value in "[A-Za-z0-9.=-]{1,9}", more in "[a-z -]{0,9}") {
            let template = format!("run {more} --name=NAME,x {more}");
            let filled = replace(&template, &BTreeMap::from([("NAME", value.as_str())]));
            prop_assert_eq!(recover(&template, "NAME", &filled), Some(value.as_str()));
        }

        /// Values are never searched for placeholders, whatever their content.
        #[test]
        fn one_pass(a in "[AB ]{0,9}", b in "[AB ]{0,9}") {
            let values = BTreeMap::from([("A", a.as_str()), ("B", b.as_str())]);
            prop_assert_eq!(replace("A-B.C", &values), format!("{a}-{b}.C"));
        }
    }
}
