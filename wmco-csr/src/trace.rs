//! Records checks cheaply: what is shown of them is put into words when somebody asks.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::net::Ipv4Addr;

use crate::decision::Check;
use crate::pkcs10::{GeneralName, GeneralNames};
use crate::rule::{Outcome, Rule};

/// No decision has more checks, and few have longer texts: one allocation each, of a size that
/// allocators have at hand.
const CHECKS: usize = 32;
const TEXTS: usize = 512;
/// The most characters that a detail repeats of a foreign value.
const SHOWN: usize = 200;

/// The checks of one decision.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    /// Texts of details, one behind the other.
    texts: String,
    checks: Vec<(Rule, Outcome, Detail)>,
}

/// What is to be shown of a check.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Detail {
    /// An address.
    Address(Ipv4Addr),
    /// A size.
    Bytes(usize),
    /// The same words each time.
    Fixed(&'static str),
    /// The alternative names that stand at this place in the bytes of the request.
    Names {
        /// Where their content begins.
        start: usize,
        /// Where it ends.
        end: usize,
    },
    /// A time span.
    Seconds(i32),
    /// The next text of [`Trace::texts`], up to this place.
    Text(usize),
}

impl Trace {
    pub(crate) fn new() -> Self {
        Self { texts: String::with_capacity(TEXTS), checks: Vec::with_capacity(CHECKS) }
    }

    /// Records that `rule` is kept.
    pub(crate) fn pass(&mut self, rule: Rule, detail: Detail) {
        self.checks.push((rule, Outcome::Pass, detail));
    }

    /// Records that `rule` is kept by `value`, a text that lasts no longer than the request.
    pub(crate) fn pass_text(&mut self, rule: Rule, value: &str) {
        self.texts.push_str(value);
        self.pass(rule, Detail::Text(self.texts.len()));
    }

    /// Records that `rule` is kept by all `values`.
    pub(crate) fn pass_all<'v>(&mut self, rule: Rule, values: impl IntoIterator<Item = &'v str>) {
        for (index, value) in values.into_iter().enumerate() {
            if index > 0 {
                self.texts.push_str(", ");
            }
            self.texts.push_str(value);
        }
        self.pass(rule, Detail::Text(self.texts.len()));
    }

    /// Records any outcome.
    pub(crate) fn add(&mut self, rule: Rule, outcome: Outcome, detail: fmt::Arguments<'_>) {
        // Writing to a string cannot fail, and a `Display` that does only shortens its detail.
        let _ = self.texts.write_fmt(detail);
        self.checks.push((rule, outcome, Detail::Text(self.texts.len())));
    }

    /// The checks, in words. `der` are the bytes of the request.
    pub(crate) fn checks<'a>(&'a self, der: &'a [u8]) -> impl Iterator<Item = Check<'a>> {
        let mut begin = 0;
        self.checks.iter().map(move |&(rule, outcome, detail)| {
            let detail = match detail {
                Detail::Address(ipv4) => ipv4.to_string().into(),
                Detail::Bytes(bytes) => format!("{bytes} bytes").into(),
                Detail::Fixed(text) => text.into(),
                Detail::Names { start, end } => names(der.get(start..end).unwrap_or_default()),
                Detail::Seconds(seconds) => format!("{seconds} s").into(),
                Detail::Text(end) => {
                    let text = self.texts.get(begin..end).unwrap_or_default();
                    begin = end;
                    text.into()
                }
            };
            Check { rule, outcome, detail }
        })
    }
}

/// Host names and addresses among alternative names, with commas.
fn names(content: &[u8]) -> Cow<'static, str> {
    let mut text = String::new();
    for name in GeneralNames::read_again(content).iter() {
        let separator = if text.is_empty() { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = match name {
            GeneralName::Dns(name) => write!(text, "{separator}{name}"),
            GeneralName::Ip(ip) => write!(text, "{separator}{ip}"),
            GeneralName::Email(_) | GeneralName::Other(_) | GeneralName::Uri(_) => Ok(()),
        };
    }
    text.into()
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
