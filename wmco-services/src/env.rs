//! Decides which system-wide variables change, and changes them.
//!
//! # Guarantees
//! - Values are compared exactly and never shown: plans carry digests.
//! - Whether a restart is needed follows from what the host says about itself, so no crash loses it.
//!
//! Source: `spec/wicd.md`, sections 10 and 23.4.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use wmco_core::digest::Sha256;

use crate::manifest::Manifest;
use crate::windows::{Windows, WindowsError};

/// Variables as they are.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct Observed {
    /// Values of the managed variables that are set, by the name asked for.
    pub values: BTreeMap<String, String>,
    /// See [`Environment::changed_since_boot`](crate::windows::Environment::changed_since_boot).
    pub changed_since_boot: BTreeSet<String>,
}

/// Values can hold passwords, so only names are shown.
impl fmt::Debug for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observed")
            .field("values", &self.values.keys())
            .field("changed_since_boot", &self.changed_since_boot)
            .finish()
    }
}

/// What to do now.
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[must_use = "a plan does nothing until an executor runs it"]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
    /// Whether services see the desired values only after a restart.
    pub restart_needed: bool,
}

/// An action with its reason.
pub type Step = crate::step::Step<Action, Because>;

/// One side effect. Idempotent.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "action")]
pub enum Action {
    /// Set a variable to the value that the manifest has for it.
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
    /// The variable is not set.
    Missing,
    /// The variable has another value.
    Differs,
    /// The variable is under management and shall not be set.
    NotWanted,
}

/// Names that the manifest manages: those that it watches and those that it sets.
pub fn managed(manifest: &Manifest) -> BTreeSet<&str> {
    let watched = manifest.watched().iter().map(String::as_str);
    watched.chain(manifest.environment().keys().map(String::as_str)).collect()
}

/// Reads what [`reconcile`] needs to know.
///
/// # Errors
/// [`WindowsError`] of the first variable that cannot be read.
pub fn observe(manifest: &Manifest, windows: &dyn Windows) -> Result<Observed, WindowsError> {
    let environment = windows.environment();
    let mut values = BTreeMap::new();
    for name in managed(manifest) {
        if let Some(value) = environment.get(name)? {
            values.insert(name.to_owned(), value);
        }
    }
    Ok(Observed { values, changed_since_boot: environment.changed_since_boot()? })
}

/// Returns the steps to take now. A variable that shall be empty is removed: Windows has no empty ones.
pub fn reconcile(desired: &Manifest, observed: &Observed) -> Plan {
    let managed = managed(desired);
    let mut steps = Vec::new();
    for name in &managed {
        let wanted = desired
            .environment()
            .iter()
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty());
        let seen = observed.values.get(*name).map(String::as_str);
        let set = |value: &str| Action::Set {
            name: (*name).to_owned(),
            sha256: Sha256::of(value.as_bytes()),
        };
        let step = match (wanted, seen) {
            (Some(value), None) => Step { action: set(value), because: Because::Missing },
            (Some(value), Some(seen)) if value != seen => {
                Step { action: set(value), because: Because::Differs }
            }
            (None, Some(_)) => Step {
                action: Action::Remove { name: (*name).to_owned() },
                because: Because::NotWanted,
            },
            (Some(_), Some(_)) | (None, None) => continue,
        };
        steps.push(step);
    }
    let stale = |name: &String| managed.iter().any(|other| other.eq_ignore_ascii_case(name));
    let restart_needed = !steps.is_empty() || observed.changed_since_boot.iter().any(stale);
    Plan { steps, restart_needed }
}

/// Takes the steps in order; tells whether any changed the host.
///
/// # Errors
/// [`WindowsError`] of the first step that failed; those before it are done.
pub fn execute(
    plan: &Plan,
    desired: &Manifest,
    windows: &dyn Windows,
) -> Result<bool, WindowsError> {
    let environment = windows.environment();
    for step in &plan.steps {
        match &step.action {
            Action::Set { name, .. } => {
                let value = desired
                    .environment()
                    .iter()
                    .find(|(other, _)| other.eq_ignore_ascii_case(name))
                    .map_or("", |(_, value)| value);
                environment.set(name, value)?;
            }
            Action::Remove { name } => {
                environment.remove(name)?;
            }
        }
    }
    Ok(!plan.steps.is_empty())
}

impl Action {
    /// Short stable name for logs, metrics and tests.
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::Set { .. } => "set-variable",
            Self::Remove { .. } => "remove-variable",
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))?;
        if self.restart_needed { writeln!(f, "then restart the host") } else { Ok(()) }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Action::Set { name, .. } | Action::Remove { name }) = &self.action;
        let because = match self.because {
            Because::Missing => "it is not set",
            Because::Differs => "it has another value",
            Because::NotWanted => "it shall not be set",
        };
        write!(f, "{} {name}, because {because}", self.action.verb())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::fake::{Call, FakeWindows, Fault};
    use crate::manifest::Parts;

    fn manifest(set: &[(&str, &str)], watched: &[&str]) -> Manifest {
        let text = |text: &&str| (*text).to_owned();
        Manifest::new(Parts {
            environment: set.iter().map(|(name, value)| (text(name), text(value))).collect(),
            watched: watched.iter().map(text).collect(),
            ..Parts::default()
        })
        .unwrap()
    }

    #[test]
    fn plans_name_variables_and_no_values() {
        let desired = manifest(&[("A", "new"), ("B", "word"), ("E", "")], &["A", "B", "C", "D"]);
        let observed = Observed {
            values: [("A", "old"), ("C", "left")].map(|(a, b)| (a.into(), b.into())).into(),
            changed_since_boot: BTreeSet::new(),
        };
        let plan = reconcile(&desired, &observed);
        insta::assert_snapshot!(plan, @r"
        set-variable A, because it has another value
        set-variable B, because it is not set
        remove-variable C, because it shall not be set
        then restart the host
        ");
        assert!(!serde_json::to_string(&plan).unwrap().contains("word"));
    }

    #[test]
    fn a_change_that_a_crash_forgot_still_asks_for_a_restart() {
        let host = FakeWindows::new("winhost");
        let desired = manifest(&[("A", "1"), ("B", "2")], &[]);
        host.fail(Call::EnvironmentSet, "B", 1, Fault::Other);
        let plan = reconcile(&desired, &observe(&desired, &host).unwrap());
        assert!(execute(&plan, &desired, &host).is_err());
        host.environment().set("B", "2").unwrap();
        let plan = reconcile(&desired, &observe(&desired, &host).unwrap());
        assert_eq!(plan, Plan { steps: Vec::new(), restart_needed: true });
        host.machine().restart().unwrap();
        assert_eq!(reconcile(&desired, &observe(&desired, &host).unwrap()), Plan::default());
    }

    fn any_variables() -> impl Strategy<Value = BTreeMap<String, String>> {
        proptest::collection::btree_map("[A-D]", "[a-b ]{0,2}", 0..4)
    }

    proptest! {
        /// Wherever it starts and is cut, the host ends with exactly the managed variables that the
        /// manifest has, and others stay.
        #[test]
        fn converges(start in any_variables(), set in any_variables(), cuts in proptest::collection::vec(0..3_usize, 0..4)) {
            let host = FakeWindows::new("winhost");
            host.environment().set("OTHER", "kept").unwrap();
            for (name, value) in &start {
                host.environment().set(name, value).unwrap();
            }
            let parts = Parts {
                environment: set.clone(),
                watched: ["A", "B", "C", "D"].map(str::to_owned).to_vec(),
                ..Parts::default()
            };
            let desired = Manifest::new(parts).unwrap();
            for cut in cuts.into_iter().map(Some).chain([None]) {
                if let Some(cut) = cut {
                    host.cut_after(cut);
                }
                let plan = reconcile(&desired, &observe(&desired, &host).unwrap());
                let _ = execute(&plan, &desired, &host);
                host.heal();
            }
            let mut goal: BTreeMap<String, String> =
                set.into_iter().filter(|(_, value)| !value.is_empty()).collect();
            goal.insert("OTHER".into(), "kept".into());
            prop_assert_eq!(host.snapshot().environment, goal);
        }
    }
}
