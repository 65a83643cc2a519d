//! Ranges of versions, as the Operator Lifecycle Manager reads them.
//!
//! Source: <https://pkg.go.dev/github.com/blang/semver/v4#ParseRange>; `x` in place of a number is not supported.

use std::cmp::Ordering;

use semver::Version;

/// Whether a comparison holds for an ordering of two versions.
type Holds = fn(Ordering) -> bool;

/// Operators, longer ones first.
const OPERATORS: [(&str, Holds); 8] = [
    (">=", Ordering::is_ge),
    ("<=", Ordering::is_le),
    ("!=", Ordering::is_ne),
    ("==", Ordering::is_eq),
    (">", Ordering::is_gt),
    ("<", Ordering::is_lt),
    ("!", Ordering::is_ne),
    ("=", Ordering::is_eq),
];

/// Whether `version` is in the range: alternatives separated by `||`, comparisons separated by blanks, all of which
/// have to hold. `None` if the text is no range.
pub(super) fn contains(range: &str, version: &Version) -> Option<bool> {
    let mut is_in = false;
    for alternative in range.split("||") {
        let mut holds = true;
        let mut comparisons = alternative.split_whitespace().peekable();
        comparisons.peek()?;
        for comparison in comparisons {
            let operator = OPERATORS.iter().find(|(sign, _)| comparison.starts_with(sign));
            let (sign, is) = operator.copied().unwrap_or(("", Ordering::is_eq));
            let other: Version = comparison.strip_prefix(sign)?.parse().ok()?;
            holds &= is(version.cmp_precedence(&other));
        }
        is_in |= holds;
    }
    Some(is_in)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_the_lifecycle_manager_does() {
        let is_in = |range: &str, version: &str| contains(range, &version.parse().unwrap());
        assert_eq!(is_in(">=1.0.0 <2.0.0", "1.5.0"), Some(true));
        assert_eq!(is_in(">=1.0.0 <2.0.0", "2.0.0"), Some(false));
        assert_eq!(is_in("<1.0.0 || >=1.5.0", "1.5.0"), Some(true));
        assert_eq!(is_in(">=0.0.0 <2.0.0", "1.0.0-rc.1"), Some(true), "others pass over these");
        assert_eq!([is_in("!=1.0.0", "1.0.0"), is_in("1.0.0", "1.0.0")], [Some(false), Some(true)]);
        for none in ["", " ", "^1.0.0", "~1.2.0", ">=0.1 <0.2.0", "all", "1.0.0 ||", ">= 1.0.0"] {
            assert_eq!(is_in(none, "1.0.0"), None, "{none}");
        }
    }
}
