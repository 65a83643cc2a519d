//! The condition `Upgradeable`.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Pending;
use crate::limits;
use crate::names::monitoring::{UPGRADE_IS_NOT_SAFE, UPGRADE_IS_SAFE, UPGRADEABLE};

/// The desired condition `Upgradeable`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Condition {
    /// Whether the operator may be upgraded.
    pub upgradeable: bool,
    /// Names of the instances with unfinished or waiting work.
    pub message: String,
}

impl Condition {
    /// Makes the condition from all unfinished work.
    ///
    /// ```
    /// use wmco_core::upgradeable::Condition;
    ///
    /// let condition = Condition::of(&[]);
    /// assert!(condition.upgradeable);
    /// assert_eq!(condition.message, "no work on windows nodes is under way");
    /// ```
    pub fn of(pending: &[Pending]) -> Self {
        let (held, working): (Vec<_>, Vec<_>) = pending.iter().partition(|it| it.hold.is_some());
        let upgradeable = working.is_empty();
        let mut message = if upgradeable {
            "no work on windows nodes is under way".to_owned()
        } else {
            let all = told(&working, |it| it.work.name().to_owned());
            format!("work on {} is not finished: {all}", instances(working.len()))
        };
        if !held.is_empty() {
            let why = |it: &Pending| it.hold.map(|hold| hold.to_string()).unwrap_or_default();
            let all = told(&held, why);
            // Writing to a string does not fail.
            let verb = if held.len() == 1 { "keeps" } else { "keep" };
            let held = instances(held.len());
            let _ = write!(message, "; {held} {verb} no upgrade away: {all}");
        }
        Self { upgradeable, message }
    }

    /// `True` or `False`.
    pub const fn status(&self) -> &'static str {
        if self.upgradeable { "True" } else { "False" }
    }

    /// Its reason.
    pub const fn reason(&self) -> &'static str {
        if self.upgradeable { UPGRADE_IS_SAFE } else { UPGRADE_IS_NOT_SAFE }
    }
}

fn instances(count: usize) -> String {
    format!("{count} instance{}", if count == 1 { "" } else { "s" })
}

/// The first instances, and the number of the others.
fn told(pending: &[&Pending], why: impl Fn(&Pending) -> String) -> String {
    let first = pending.iter().take(limits::CONDITION_NAMES);
    let mut text =
        first.map(|it| format!("{} ({})", it.name, why(it))).collect::<Vec<_>>().join(", ");
    let others = pending.len().saturating_sub(limits::CONDITION_NAMES);
    if others > 0 {
        let _ = write!(text, " and {others} more");
    }
    text
}

/// All conditions of an OperatorCondition's `spec` with ours updated; `None` if nothing has to be written. The
/// transition time changes only with the status, and other conditions stay.
///
/// ```
/// use wmco_core::upgradeable::{Condition, merged};
///
/// let now = jiff::Timestamp::UNIX_EPOCH;
/// let other = serde_json::json!({"type": "Healthy", "status": "True"});
/// let written = merged(&[other.clone()], &Condition::of(&[]), now).unwrap();
/// assert_eq!(written[0], other);
/// assert_eq!(merged(&written, &Condition::of(&[]), now), None);
/// ```
pub fn merged(found: &[Value], wanted: &Condition, now: Timestamp) -> Option<Vec<Value>> {
    let is_ours = |condition: &&Value| condition["type"] == UPGRADEABLE;
    let ours: Vec<&Value> = found.iter().filter(is_ours).collect();
    let text = |condition: &Value, field: &str| condition[field].as_str().map(str::to_owned);
    let is = |condition: &Value, field: &str, value: &str| {
        text(condition, field).as_deref() == Some(value)
    };
    if let [only] = ours.as_slice()
        && is(only, "status", wanted.status())
        && is(only, "reason", wanted.reason())
        && is(only, "message", &wanted.message)
        && text(only, "lastTransitionTime").is_some()
    {
        return None;
    }
    let same_status = ours.iter().find(|condition| is(condition, "status", wanted.status()));
    let since = same_status.and_then(|condition| text(condition, "lastTransitionTime"));
    let condition = json!({
        "type": UPGRADEABLE,
        "status": wanted.status(),
        "reason": wanted.reason(),
        "message": wanted.message,
        "lastTransitionTime": since.unwrap_or_else(|| format!("{now:.0}")),
    });
    let mut all: Vec<Value> = Vec::with_capacity(found.len() + 1);
    let mut written = Some(condition);
    for condition in found {
        if !is_ours(&condition) {
            all.push(condition.clone());
        } else if let Some(condition) = written.take() {
            all.push(condition);
        }
    }
    all.extend(written);
    Some(all)
}
