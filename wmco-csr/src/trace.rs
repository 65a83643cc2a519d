//! Records checks cheaply: details are formatted only when they are read.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::net::Ipv4Addr;

use schemars::JsonSchema;
use serde::Serialize;

use crate::pkcs10::{GeneralName, GeneralNames};
use crate::rule::{Outcome, Rule};

/// Most checks of a decision; few have longer texts, so one allocation each is enough.
const CHECKS: usize = 32;
const TEXTS: usize = 256;
/// The most characters of a foreign value that a detail repeats.
const SHOWN: usize = 200;

/// The check of a rule.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Check<'a> {
    /// The rule.
    pub rule: Rule,
    /// The result.
    pub outcome: Outcome,
    /// The value that was looked at, or what is wrong with it. One line, without secrets.
    pub detail: Cow<'a, str>,
}

/// The checks of one decision.
#[derive(Clone, Debug)]
pub(crate) struct Trace<'r> {
    /// Texts of details that exist nowhere else, concatenated.
    texts: String,
    checks: Vec<(Rule, Outcome, Detail<'r>)>,
}

/// The detail of a check.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Detail<'r> {
    /// An address.
    Address(Ipv4Addr),
    /// A size.
    Bytes(usize),
    /// A fixed text, or a member of the object.
    Fixed(&'r str),
    /// Members of a list in the object.
    List(&'r [String]),
    /// The alternative names at this place in the bytes of the request.
    Names(Place),
    /// A time span.
    Seconds(i32),
    /// A text at this place in the bytes of the request.
    Stands(Place),
    /// The next text of [`Trace::texts`], up to this place.
    Text(usize),
}

/// A range of the bytes of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    start: u32,
    end: u32,
}

impl Place {
    /// The place of `part` in `der`, which it was borrowed from.
    pub(crate) fn of(part: &[u8], der: &[u8]) -> Self {
        let start = part.as_ptr().addr().saturating_sub(der.as_ptr().addr());
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Self { start: place(start), end: place(start + part.len()) }
    }

    fn within(self, der: &[u8]) -> &[u8] {
        let place = |at: u32| usize::try_from(at).unwrap_or(usize::MAX);
        der.get(place(self.start)..place(self.end)).unwrap_or_default()
    }
}

impl<'r> Trace<'r> {
    pub(crate) fn new() -> Self {
        Self { texts: String::new(), checks: Vec::with_capacity(CHECKS) }
    }

    /// Records that `rule` is kept.
    #[inline]
    pub(crate) fn pass(&mut self, rule: Rule, detail: Detail<'r>) {
        self.checks.push((rule, Outcome::Pass, detail));
    }

    /// Records that `rule` was not checked.
    pub(crate) fn skip(&mut self, rule: Rule) {
        self.checks.push((rule, Outcome::Skipped, Detail::Fixed("decided before")));
    }

    /// Records that `rule` is kept by all `values`.
    pub(crate) fn pass_all<'v>(&mut self, rule: Rule, values: impl IntoIterator<Item = &'v str>) {
        self.make_room();
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
        self.make_room();
        // Writing to a string cannot fail; a failing `Display` only shortens its detail.
        let _ = self.texts.write_fmt(detail);
        self.checks.push((rule, outcome, Detail::Text(self.texts.len())));
    }

    /// Reserves memory for texts, for decisions that have any.
    fn make_room(&mut self) {
        if self.texts.capacity() == 0 {
            self.texts.reserve(TEXTS);
        }
    }

    /// The checks as text. `der` are the bytes of the request.
    pub(crate) fn checks<'a>(&'a self, der: &'a [u8]) -> impl Iterator<Item = Check<'a>> {
        let mut begin = 0;
        self.checks.iter().map(move |&(rule, outcome, detail)| {
            let detail = match detail {
                Detail::Address(ipv4) => ipv4.to_string().into(),
                Detail::Bytes(bytes) => format!("{bytes} bytes").into(),
                Detail::Fixed(text) => text.into(),
                Detail::List(list) => list.join(", ").into(),
                Detail::Names(place) => names(place.within(der)),
                Detail::Seconds(seconds) => format!("{seconds} s").into(),
                Detail::Stands(place) => String::from_utf8_lossy(place.within(der)),
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

/// Host names and addresses among alternative names, separated by commas.
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

/// A foreign value, escaped and cut so that it fits in one line.
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
