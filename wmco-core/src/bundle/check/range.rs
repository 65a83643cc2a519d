//! Ranges of versions, as the Operator Lifecycle Manager reads them.
//!
//! Source: <https://pkg.go.dev/github.com/blang/semver/v4#ParseRange>.

use std::cmp::Ordering;

use semver::Version;

/// Whether `version` is in the range: alternatives separated by `||`, comparisons separated by blanks, all of which
/// have to hold. `None` if the text is no range.
pub(in crate::bundle) fn contains(range: &str, version: &Version) -> Option<bool> {
    let mut is_in = false;
    for alternative in range.split("||") {
        let comparisons = comparisons(alternative);
        if comparisons.is_empty() {
            return None;
        }
        let mut holds = true;
        for comparison in &comparisons {
            holds &= is_true(comparison, version)?;
        }
        is_in |= holds;
    }
    Some(is_in)
}

/// Whether the range has older versions than `version`, and only such. It changes its answer nowhere but at the versions
/// that it names, so these and their neighbours tell.
pub(in crate::bundle) fn is_of_older(range: &str, version: &Version) -> bool {
    let named = range.split("||").flat_map(comparisons).filter_map(|comparison| {
        let (first, last) = span(comparison.trim_start_matches(['<', '>', '=', '!']))?;
        Some([first, last])
    });
    let next = |it: &Version| Version::new(it.major, it.minor, it.patch.saturating_add(1));
    let Version { major, minor, .. } = *version;
    let others = [
        Version::new(0, 0, 0),
        next(version),
        Version::new(major, minor.saturating_add(1), 0),
        Version::new(major.saturating_add(1), 0, 0),
        Version::new(u64::MAX, 0, 0),
    ];
    let all = named.flatten().flat_map(|it| [next(&it), it]).chain(others);
    let held: Vec<_> = all.filter(|it| contains(range, it) == Some(true)).collect();
    contains(range, version) == Some(false)
        && !held.is_empty()
        && held.iter().all(|it| it.cmp_precedence(version).is_lt())
}

/// The comparisons of an alternative. Blanks after a sign belong to its comparison.
fn comparisons(alternative: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for part in alternative.split_whitespace() {
        match all.last_mut().filter(|last| last.ends_with(['<', '>', '='])) {
            Some(last) => last.push_str(part),
            None => all.push(part.to_owned()),
        }
    }
    all
}

/// Whether one comparison holds; `None` if it is none.
fn is_true(comparison: &str, version: &Version) -> Option<bool> {
    let operand = comparison.trim_start_matches(['<', '>', '=', '!']);
    // The versions that are equal to the operand, from the first to before the last.
    let (first, last) = span(operand)?;
    let [from_first, from_last] =
        [&first, &last].map(|limit| version.cmp_precedence(limit) != Ordering::Less);
    let is_equal = if first == last {
        version.cmp_precedence(&first).is_eq()
    } else {
        from_first && !from_last
    };
    Some(match comparison.strip_suffix(operand)? {
        "" | "=" | "==" => is_equal,
        "!" | "!=" => !is_equal,
        "<" => !from_first,
        ">=" => from_first,
        "<=" => !from_first || is_equal,
        ">" => from_first && !is_equal,
        _ => return None,
    })
}

/// A version twice, or of one whose last numbers are `x` the first that it stands for and the first that it does not.
fn span(operand: &str) -> Option<(Version, Version)> {
    let parts: Vec<&str> = operand.split('.').collect();
    let number = |text: &str| text.parse::<u64>().ok();
    match parts[..] {
        [major, "x"] | [major, "x", "x"] => {
            let major = number(major)?;
            Some((Version::new(major, 0, 0), Version::new(major.checked_add(1)?, 0, 0)))
        }
        [major, minor, "x"] => {
            let (major, minor) = (number(major)?, number(minor)?);
            Some((Version::new(major, minor, 0), Version::new(major, minor.checked_add(1)?, 0)))
        }
        _ => operand.parse().ok().map(|version: Version| (version.clone(), version)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_to_upgrade_from_has_older_versions_alone() {
        let is_right = |range: &str| is_of_older(range, &Version::new(1, 2, 3));
        for range in [
            "<1.2.3",
            ">=0.0.0 <1.2.3",
            ">1.2.1 <1.2.3",
            "1.2.0",
            "1.1.x",
            "0.1.0 || >=1.0.0-rc.1 <1.2.3",
        ] {
            assert!(is_right(range), "{range}");
        }
        for range in [
            "<=1.2.3",
            "!=1.2.3",
            ">1.2.3",
            ">=1.2.4",
            "1.x",
            "1.3.x",
            "<1.2.3 || >=2.0.0 <3.0.0",
            ">=2.0.0 <1.0.0",
            ">=1.2.2 <1.2.2",
            ">=0.0.0",
            "all",
            "",
        ] {
            assert!(!is_right(range), "{range}");
        }
    }

    #[test]
    fn ranges_are_read_as_the_lifecycle_manager_does() {
        let is_in = |range: &str, version: &str| contains(range, &version.parse().unwrap());
        assert_eq!(is_in(">=1.0.0 <2.0.0", "1.5.0"), Some(true));
        assert_eq!(is_in(">=1.0.0 <2.0.0", "2.0.0"), Some(false));
        assert_eq!(is_in("<1.0.0 || >=1.5.0", "1.5.0"), Some(true));
        assert_eq!(is_in(">=0.0.0 <2.0.0", "1.0.0-rc.1"), Some(true), "others pass over these");
        assert_eq!([is_in("!=1.0.0", "1.0.0"), is_in("1.0.0", "1.0.0")], [Some(false), Some(true)]);
        assert_eq!(
            [is_in(">= 1.0.0", "1.0.0"), is_in("> 1.0.0", "1.0.0")],
            [Some(true), Some(false)]
        );
        for (range, [before, within, after]) in [
            ("1.2.x", [false, true, false]),
            ("!=1.2.x", [true, false, true]),
            ("<1.2.x", [true, false, false]),
            ("<=1.2.x", [true, true, false]),
            (">1.2.x", [false, false, true]),
            (">= 1.2.x", [false, true, true]),
        ] {
            let found = ["1.1.9", "1.2.7", "1.3.0"].map(|version| is_in(range, version));
            assert_eq!(found, [Some(before), Some(within), Some(after)], "{range}");
        }
        assert_eq!([is_in("1.x", "1.9.9"), is_in("1.x.x", "2.0.0")], [Some(true), Some(false)]);
        for none in [
            "",
            " ",
            "^1.0.0",
            "~1.2.0",
            ">=0.1 <0.2.0",
            "all",
            "1.0.0 ||",
            "! 1.0.0",
            "x",
            "1.x.2",
            "=>1.0.0",
        ] {
            assert_eq!(is_in(none, "1.0.0"), None, "{none}");
        }
    }
}
