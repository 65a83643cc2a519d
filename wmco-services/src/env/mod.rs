//! Decides which system-wide variables change, and changes them.
//!
//! A variable is recorded before it is set ([`Record`]), so it is removed even when no manifest names it any more.
//!
//! # Guarantees
//! - Values are compared exactly and never logged: plans carry digests.
//! - Only variables that are watched or that we set are removed.
//! - Whether a restart is needed follows from the values that services inherit, where they are known, and otherwise
//!   from the changes that the host records since its start, so no crash loses it.
//! - A restart that had no effect is not requested again; it is reported.
//!
//! Source: `docs/contract/wicd.md`, WICD60 to WICD62.

mod record;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use wmco_core::digest::Sha256;

use crate::manifest::Manifest;
use crate::owner::Owner;
use crate::windows::{Inherited, Windows, WindowsError};

pub use record::{Record, Restart};

/// Variables as observed.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct Observed {
    /// Values of the managed variables that are set, by the requested name.
    pub values: BTreeMap<String, String>,
    /// See [`Environment::changed_since_boot`](crate::windows::Environment::changed_since_boot).
    pub changed_since_boot: BTreeSet<String>,
    /// See [`Environment::inherited`](crate::windows::Environment::inherited); by the requested name.
    pub inherited: BTreeMap<String, Inherited>,
    /// Boot identity of the host.
    pub boot: String,
    /// The record on disk.
    pub record: Record,
}

/// Values can hold passwords, so only names are printed.
impl fmt::Debug for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observed")
            .field("values", &self.values.keys())
            .field("changed_since_boot", &self.changed_since_boot)
            .field("inherited", &self.inherited)
            .field("boot", &self.boot)
            .field("record", &self.record)
            .finish()
    }
}

/// The plan for variables.
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[must_use = "a plan does nothing until an executor runs it"]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
    /// Whether services see the desired values only after a restart.
    pub restart_needed: bool,
    /// Variables that are not in force although the host has restarted; messages for people.
    pub problems: Vec<String>,
}

/// An action with its reason.
pub type Step = crate::step::Step<Action, Because>;

/// A single side effect. Idempotent.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "action")]
pub enum Action {
    /// Write the record; remove it when it is empty.
    #[serde(rename_all = "camelCase")]
    Record {
        /// Its content.
        record: Record,
    },
    /// Set a variable to the manifest's value.
    #[serde(rename_all = "camelCase")]
    Set {
        /// The variable.
        name: String,
        /// Digest of the value.
        sha256: Sha256,
    },
    /// Remove a variable.
    #[serde(rename_all = "camelCase")]
    Remove {
        /// The variable.
        name: String,
    },
}

/// Why a step is taken.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Because {
    /// Variables are about to be set.
    BeforeSetting,
    /// The record names values that are gone.
    AfterChanging,
    /// A restart is requested, or its record is no longer needed.
    Restarts,
    /// The variable is not set.
    Missing,
    /// The variable has another value.
    Differs,
    /// The variable is managed and should not be set.
    NotWanted,
}

/// Returns managed names, each once whatever its case: those that the manifest watches or sets, and those that we set
/// before.
fn managed<'a>(manifest: &'a Manifest, record: &'a Record) -> impl Iterator<Item = &'a str> {
    let known = manifest.watched().iter().chain(manifest.environment().keys());
    each_once(record.set.keys().chain(known).map(String::as_str))
}

/// Returns each name once, whatever its case, in alphabetical order and in its last spelling.
fn each_once<'a>(names: impl Iterator<Item = &'a str>) -> impl Iterator<Item = &'a str> {
    let spelled: BTreeMap<String, &str> = names.map(|name| (name.to_uppercase(), name)).collect();
    spelled.into_values()
}

/// Reads the facts that [`reconcile`] needs.
///
/// # Errors
/// [`WindowsError`] of the record, or of the first variable that cannot be read.
pub fn observe(
    manifest: &Manifest,
    owner: &Owner,
    windows: &dyn Windows,
) -> Result<Observed, WindowsError> {
    let environment = windows.environment();
    let record = Record::read(&owner.variables_record, windows)?;
    let (mut values, mut inherited) = (BTreeMap::new(), BTreeMap::new());
    for name in managed(manifest, &record) {
        if let Some(value) = environment.get(name)? {
            values.insert(name.to_owned(), value);
        }
        inherited.insert(name.to_owned(), environment.inherited(name)?);
    }
    Ok(Observed {
        values,
        changed_since_boot: environment.changed_since_boot()?,
        inherited,
        boot: windows.machine().boot_id()?,
        record,
    })
}

/// Returns the manifest's value for a variable. An empty value means removal: Windows has no empty variables.
fn wanted<'a>(desired: &'a Manifest, name: &str) -> Option<&'a str> {
    let mut set = desired.environment().iter();
    let (_, value) = set.find(|(other, _)| other.eq_ignore_ascii_case(name))?;
    Some(value.as_str()).filter(|value| !value.is_empty())
}

/// Returns the steps to take now.
pub fn reconcile(desired: &Manifest, observed: &Observed) -> Plan {
    let (mut steps, mut problems) = (Vec::new(), Vec::new());
    let mut restart_needed = false;
    let mut ahead = Record { set: observed.record.set.clone(), ..Record::default() };
    for name in managed(desired, &observed.record) {
        let (key, change) = (name.to_uppercase(), change(name, desired, observed));
        if let Some(Step { action: Action::Set { sha256, .. }, .. }) = &change {
            ahead.set.entry(key.clone()).or_default().insert(*sha256);
        }
        let restart = match force(name, change.is_some(), desired, observed) {
            InForce::Now => None,
            InForce::Unsure { restart } => {
                restart_needed |= restart;
                // Only a service changes the recorded restarts, not the agent in between.
                observed.record.restarts.get(&key).cloned()
            }
            InForce::AfterRestart(restart) => {
                restart_needed = true;
                Some(restart)
            }
            InForce::Never(restart) => {
                problems.push(format!(
                    "services get another value of variable {name} than is set, and a restart of the \
                     host did not change that; look for what else sets it"
                ));
                Some(restart)
            }
        };
        ahead.restarts.extend(restart.map(|restart| (key, restart)));
        steps.extend(change);
    }
    let mut after = ahead.clone();
    after.set.retain(|name, values| {
        let wanted = wanted(desired, name).map(|value| Sha256::of(value.as_bytes()));
        values.retain(|value| Some(*value) == wanted);
        !values.is_empty()
    });
    let record = |from: &Record, to: &Record, because| {
        let action = Action::Record { record: to.clone() };
        (from != to).then_some(Step { action, because })
    };
    let sets = ahead.set != observed.record.set;
    let because = if sets { Because::BeforeSetting } else { Because::Restarts };
    let first = record(&observed.record, &ahead, because);
    let last = record(&ahead, &after, Because::AfterChanging);
    Plan { steps: first.into_iter().chain(steps).chain(last).collect(), restart_needed, problems }
}

/// When services inherit the desired value of a variable, given that it is set.
enum InForce {
    /// They inherit it now.
    Now,
    /// Unknown; `restart` says whether a restart would make sure.
    Unsure { restart: bool },
    /// After the next restart of the host.
    AfterRestart(Restart),
    /// The host has restarted since that was requested, without effect.
    Never(Restart),
}

/// Decides when a managed variable is in force. `changes`: whether this pass has to change it first.
fn force(name: &str, changes: bool, desired: &Manifest, observed: &Observed) -> InForce {
    let inherited = match observed.inherited.get(name).unwrap_or(&Inherited::Unknown) {
        Inherited::Unknown => {
            let before = observed.changed_since_boot.iter().any(|n| n.eq_ignore_ascii_case(name));
            return InForce::Unsure { restart: changes || before };
        }
        Inherited::Nothing => None,
        Inherited::Value(value) => Some(value.as_str()).filter(|value| !value.is_empty()),
    };
    let wanted = wanted(desired, name);
    if inherited == wanted {
        return InForce::Now;
    }
    let sha256 = |value: Option<&str>| value.map(|value| Sha256::of(value.as_bytes()));
    let (wanted, inherited) = (sha256(wanted), sha256(inherited));
    let restart = Restart { boot: observed.boot.clone(), wanted, inherited };
    match observed.record.restarts.get(&name.to_uppercase()) {
        Some(known) if known.is_about_the_same(&restart) && known.boot != restart.boot => {
            InForce::Never(known.clone())
        }
        Some(_) | None => InForce::AfterRestart(restart),
    }
}

/// Returns the step that sets or removes the variable; `None` if it is as desired.
fn change(name: &str, desired: &Manifest, observed: &Observed) -> Option<Step> {
    let set = |value: &str, because| {
        let sha256 = Sha256::of(value.as_bytes());
        Some(Step { action: Action::Set { name: name.to_owned(), sha256 }, because })
    };
    match (wanted(desired, name), observed.values.get(name).map(String::as_str)) {
        (Some(value), None) => set(value, Because::Missing),
        (Some(value), Some(seen)) if value != seen => set(value, Because::Differs),
        (None, Some(seen)) if knows(desired, name) || observed.record.is_ours(name, seen) => {
            let action = Action::Remove { name: name.to_owned() };
            Some(Step { action, because: Because::NotWanted })
        }
        (Some(_), Some(_)) | (None, _) => None,
    }
}

/// Whether the manifest names the variable.
fn knows(manifest: &Manifest, name: &str) -> bool {
    let mut names = manifest.watched().iter().chain(manifest.environment().keys());
    names.any(|other| other.eq_ignore_ascii_case(name))
}

/// Takes the steps in order; returns whether any changed a variable.
///
/// # Errors
/// [`WindowsError`] of the first step that failed; earlier steps are done.
pub fn execute(
    plan: &Plan,
    desired: &Manifest,
    owner: &Owner,
    windows: &dyn Windows,
) -> Result<bool, WindowsError> {
    let environment = windows.environment();
    let mut changed = false;
    for step in &plan.steps {
        match &step.action {
            Action::Record { record } => record.write(&owner.variables_record, windows)?,
            Action::Set { name, .. } => {
                environment.set(name, wanted(desired, name).unwrap_or_default())?;
                changed = true;
            }
            Action::Remove { name } => changed |= environment.remove(name)?,
        }
    }
    Ok(changed)
}

/// Removes the variables that the manifests watch, `others`, and those that were set for the owner. Returns whether
/// there were any.
///
/// # Errors
/// [`WindowsError`] of the first variable that cannot be removed; the record is then unchanged.
pub fn clear(
    manifests: &[Manifest],
    others: &[&str],
    owner: &Owner,
    windows: &dyn Windows,
) -> Result<bool, WindowsError> {
    let environment = windows.environment();
    let record = Record::read(&owner.variables_record, windows)?;
    let watched = manifests.iter().flat_map(|manifest| manifest.watched().iter());
    let watched: BTreeSet<String> =
        watched.map(String::as_str).chain(others.iter().copied()).map(str::to_uppercase).collect();
    let mut changed = false;
    for name in watched.iter().chain(record.set.keys().filter(|name| !watched.contains(*name))) {
        let Some(value) = environment.get(name)? else { continue };
        if watched.contains(name) || record.is_ours(name, &value) {
            changed |= environment.remove(name)?;
        }
    }
    Record::default().write(&owner.variables_record, windows)?;
    Ok(changed)
}

impl Action {
    /// Short stable name for logs, metrics and tests.
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::Record { .. } => "record-variables",
            Self::Set { .. } => "set-variable",
            Self::Remove { .. } => "remove-variable",
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))?;
        self.problems.iter().try_for_each(|problem| writeln!(f, "note: {problem}"))?;
        if self.restart_needed { writeln!(f, "then restart the host") } else { Ok(()) }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.action.verb())?;
        match &self.action {
            Action::Record { record } => write!(f, " ({} in all)", record.set.len())?,
            Action::Set { name, .. } | Action::Remove { name } => write!(f, " {name}")?,
        }
        let because = match self.because {
            Because::BeforeSetting => "variables are about to be set",
            Because::AfterChanging => "it names values that are gone",
            Because::Restarts => "it tells of restarts",
            Because::Missing => "it is not set",
            Because::Differs => "it has another value",
            Because::NotWanted => "it shall not be set",
        };
        write!(f, ", because {because}")
    }
}

#[cfg(test)]
mod tests;
