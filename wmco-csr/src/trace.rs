//! Records checks cheaply: all details share one string.

use std::fmt::{self, Write as _};

use crate::decision::Check;
use crate::rule::{Outcome, Rule};

/// No decision has more checks, and few have longer details: one allocation each.
const CHECKS: usize = 32;
const DETAILS: usize = 1024;
/// The most characters that a detail repeats of a foreign value.
const SHOWN: usize = 200;

/// The checks of one decision.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    /// All details, one behind the other.
    details: String,
    checks: Vec<(Rule, Outcome, usize)>,
}

impl Trace {
    pub(crate) fn new() -> Self {
        Self { details: String::with_capacity(DETAILS), checks: Vec::with_capacity(CHECKS) }
    }

    /// Records that `rule` is kept by `value`.
    pub(crate) fn pass(&mut self, rule: Rule, value: &str) {
        self.details.push_str(value);
        self.end(rule, Outcome::Pass);
    }

    /// Records that `rule` is kept by all `values`.
    pub(crate) fn pass_all<'v>(&mut self, rule: Rule, values: impl IntoIterator<Item = &'v str>) {
        for (index, value) in values.into_iter().enumerate() {
            if index > 0 {
                self.details.push_str(", ");
            }
            self.details.push_str(value);
        }
        self.end(rule, Outcome::Pass);
    }

    /// Records any outcome.
    pub(crate) fn add(&mut self, rule: Rule, outcome: Outcome, detail: fmt::Arguments<'_>) {
        // Writing to a string cannot fail, and a `Display` that does only shortens its detail.
        let _ = self.details.write_fmt(detail);
        self.end(rule, outcome);
    }

    fn end(&mut self, rule: Rule, outcome: Outcome) {
        self.checks.push((rule, outcome, self.details.len()));
    }

    pub(crate) fn checks(&self) -> impl Iterator<Item = Check<'_>> {
        let mut start = 0;
        self.checks.iter().map(move |&(rule, outcome, end)| {
            let detail = self.details.get(start..end).unwrap_or_default();
            start = end;
            Check { rule, outcome, detail }
        })
    }
}

/// A foreign value, escaped and cut so that it stays in its line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Foreign<'a>(pub(crate) &'a str);

impl fmt::Display for Foreign<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.char_indices().nth(SHOWN).map(|(end, _)| end);
        let shown = end.and_then(|end| self.0.get(..end)).unwrap_or(self.0);
        write!(f, "\"{}{}\"", shown.escape_debug(), if end.is_some() { "…" } else { "" })
    }
}

/// Foreign values in brackets; a long list is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForeignList<I>(pub(crate) I);

impl<'a, I: Clone + IntoIterator<Item = &'a str>> fmt::Display for ForeignList<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 10;
        f.write_char('[')?;
        for (index, value) in self.0.clone().into_iter().take(MOST + 1).enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            if index == MOST {
                f.write_char('…')?;
            } else {
                Foreign(value).fmt(f)?;
            }
        }
        f.write_char(']')
    }
}
