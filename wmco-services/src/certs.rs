//! Decides which trusted roots are added and removed, and does it.
//!
//! The record of what we imported ([`host::IMPORTED_CERTIFICATES`]) is written before a certificate is
//! added, and shortened after one was removed, so that a crash never leaves one that nobody knows. A
//! certificate that was there before us is not recorded and never removed. A record that is damaged is
//! only added to, since the piece that cannot be read may name one that somebody has to remove.
//!
//! Source: `spec/wicd.md`, sections 11 and 23.5.

mod bundle;

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use wmco_core::digest::Sha256;
use wmco_core::names::host;
use wmco_core::protocol::Access;
use wmco_core::text::chain;
use wmco_core::winpath::WindowsPath;

use crate::limits;
use crate::windows::{Windows, WindowsError};

use bundle::pem;

pub use bundle::Bundle;

/// Trusted roots as they are.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Observed {
    /// What the store holds.
    pub store: BTreeSet<Sha256>,
    /// What we imported, by our record. With problems, [`record`](Self::record) is kept as it is.
    pub recorded: Bundle,
    /// The text of a record that has problems; else empty.
    pub record: Vec<u8>,
    /// Wanted certificates that are not in the store and that Windows does not understand.
    pub refused: BTreeSet<Sha256>,
    /// Why the record is there and cannot be read, if so: then nothing is added or removed.
    pub unknown: Option<String>,
    /// See [`RootStore::changed_since_boot`](crate::windows::RootStore::changed_since_boot).
    pub changed_since_boot: bool,
}

/// What to do now.
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[must_use = "a plan does nothing until an executor runs it"]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
    /// Whether programs may trust the old roots until the host restarts.
    pub restart_needed: bool,
    /// Pieces of the bundle that were passed over; for an Event.
    pub problems: Vec<String>,
}

/// An action with its reason.
pub type Step = crate::step::Step<Action, Because>;

/// One side effect. Idempotent.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "action")]
pub enum Action {
    /// Write the record with exactly these certificates, and what cannot be read of the present one;
    /// remove it when there are none.
    #[serde(rename_all = "camelCase")]
    Record {
        /// The certificates.
        certificates: BTreeSet<Sha256>,
    },
    /// Add a certificate of the bundle.
    #[serde(rename_all = "camelCase")]
    Add {
        /// The certificate.
        sha256: Sha256,
    },
    /// Remove a certificate that we imported.
    #[serde(rename_all = "camelCase")]
    Remove {
        /// The certificate.
        sha256: Sha256,
    },
}

/// Why a step is taken.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Because {
    /// Certificates are about to be added.
    BeforeAdding,
    /// The record names certificates that are gone.
    AfterRemoving,
    /// The certificate is wanted and not in the store.
    Missing,
    /// We imported it, and it is not wanted any more.
    NotWanted,
}

/// Reads what [`reconcile`] needs to know.
///
/// # Errors
/// [`WindowsError`] when the store or the record cannot be read.
pub fn observe(desired: &Bundle, windows: &dyn Windows) -> Result<Observed, WindowsError> {
    let (text, unknown) = match windows.files().read(&record_file(), limits::BUNDLE_BYTES) {
        Ok(text) => (text.unwrap_or_default(), None),
        Err(error) => (Vec::new(), Some(chain(&error))),
    };
    let recorded = Bundle::parse(&text);
    let record = if recorded.problems.is_empty() { Vec::new() } else { text };
    let store = windows.roots().list()?;
    let mut refused = BTreeSet::new();
    for (sha256, der) in &desired.certificates {
        if !store.contains(sha256) && !windows.roots().takes(der)? {
            refused.insert(*sha256);
        }
    }
    Ok(Observed {
        store,
        recorded,
        record,
        refused,
        unknown,
        changed_since_boot: windows.roots().changed_since_boot()?,
    })
}

/// Returns the steps to take now.
pub fn reconcile(desired: &Bundle, observed: &Observed) -> Plan {
    if let Some(why) = &observed.unknown {
        // A record that is written anew would forget what the old one names.
        let problem = format!(
            "the record of imported certificates cannot be read, so old ones may stay trusted: {why}"
        );
        return Plan {
            steps: Vec::new(),
            restart_needed: observed.changed_since_boot,
            problems: vec![problem],
        };
    }
    let wanted: BTreeSet<Sha256> = desired.certificates.keys().copied().collect();
    let recorded: BTreeSet<Sha256> = observed.recorded.certificates.keys().copied().collect();
    let addable = |sha256: &&Sha256| !observed.refused.contains(sha256);
    let missing = wanted.difference(&observed.store);
    let to_add: BTreeSet<Sha256> = missing.filter(addable).copied().collect();
    // A piece that cannot be read may be the very certificate that would now be removed.
    let unwanted: BTreeSet<Sha256> = if desired.problems.is_empty() {
        recorded.difference(&wanted).copied().collect()
    } else {
        BTreeSet::new()
    };
    let mut steps = Vec::new();
    let ahead: BTreeSet<Sha256> = recorded.union(&to_add).copied().collect();
    if ahead != recorded {
        let action = Action::Record { certificates: ahead.clone() };
        steps.push(Step { action, because: Because::BeforeAdding });
    }
    let add = |sha256: &Sha256| Step {
        action: Action::Add { sha256: *sha256 },
        because: Because::Missing,
    };
    steps.extend(to_add.iter().map(add));
    let remove = |sha256: &Sha256| Step {
        action: Action::Remove { sha256: *sha256 },
        because: Because::NotWanted,
    };
    steps.extend(unwanted.intersection(&observed.store).map(remove));
    let shortens = observed.recorded.problems.is_empty();
    if !unwanted.is_empty() && shortens {
        let certificates = ahead.difference(&unwanted).copied().collect();
        steps.push(Step {
            action: Action::Record { certificates },
            because: Because::AfterRemoving,
        });
    }
    let changes = steps.iter().any(|step| !matches!(step.action, Action::Record { .. }));
    Plan {
        steps,
        restart_needed: changes || observed.changed_since_boot,
        problems: problems(desired, observed),
    }
}

fn problems(desired: &Bundle, observed: &Observed) -> Vec<String> {
    let refused = observed.refused.iter().map(|sha256| {
        format!("certificate {sha256} of the bundle is refused by Windows, replace it")
    });
    let damage = damage(&observed.recorded);
    desired.problems.iter().cloned().chain(refused).chain(damage).collect()
}

/// What people should know of a record that is damaged.
pub(crate) fn damage(recorded: &Bundle) -> Option<String> {
    let problem = recorded.problems.first()?;
    Some(format!(
        "{} is damaged, so certificates that it named may stay trusted; remove those by hand and then \
         that file: {problem}",
        host::IMPORTED_CERTIFICATES
    ))
}

/// Takes the steps in order; tells whether any changed the store. A certificate that cannot be added
/// does not hold back the others, but their removal.
///
/// # Errors
/// [`WindowsError`] of the first step that failed.
pub fn execute(
    plan: &Plan,
    desired: &Bundle,
    observed: &Observed,
    windows: &dyn Windows,
) -> Result<bool, WindowsError> {
    let der = |sha256: &Sha256| {
        desired.certificates.get(sha256).or_else(|| observed.recorded.certificates.get(sha256))
    };
    let mut changed = false;
    let mut failure = None;
    for step in &plan.steps {
        match &step.action {
            Action::Add { sha256 } => match der(sha256).map(|der| windows.roots().add(der)) {
                Some(Ok(())) => changed = true,
                Some(Err(error)) => failure = failure.or(Some(error)),
                None => {}
            },
            _ if failure.is_some() => break,
            Action::Record { certificates } if certificates.is_empty() => {
                windows.files().remove_file(&record_file())?;
            }
            Action::Record { certificates } => {
                let text = record(certificates, observed, der);
                windows.files().write(&record_file(), Access::Inherited, &mut text.as_slice())?;
            }
            Action::Remove { sha256 } => changed |= windows.roots().remove(*sha256)?,
        }
    }
    failure.map_or(Ok(changed), Err)
}

/// Text of a record with these certificates. What cannot be read of the present one stays in it.
fn record<'a>(
    certificates: &BTreeSet<Sha256>,
    observed: &Observed,
    der: impl Fn(&Sha256) -> Option<&'a Vec<u8>>,
) -> Vec<u8> {
    let mut text = observed.record.clone();
    let kept =
        |sha256: &Sha256| !text.is_empty() && observed.recorded.certificates.contains_key(sha256);
    let more: String = certificates
        .iter()
        .filter(|sha256| !kept(sha256))
        .filter_map(der)
        .map(|d| pem(d))
        .collect();
    if !text.is_empty() {
        // The last line may be one that was cut.
        text.push(b'\n');
    }
    text.extend(more.into_bytes());
    text
}

#[expect(clippy::expect_used, reason = "a constant that a test parses")]
fn record_file() -> WindowsPath {
    host::IMPORTED_CERTIFICATES.parse().expect("the record's path is valid")
}

impl Action {
    /// Short stable name for logs, metrics and tests.
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::Record { .. } => "record-certificates",
            Self::Add { .. } => "add-certificate",
            Self::Remove { .. } => "remove-certificate",
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))?;
        self.problems.iter().try_for_each(|problem| writeln!(f, "passed over: {problem}"))?;
        if self.restart_needed { writeln!(f, "then restart the host") } else { Ok(()) }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.action.verb())?;
        match &self.action {
            Action::Record { certificates } => write!(f, " ({} in all)", certificates.len())?,
            Action::Add { sha256 } | Action::Remove { sha256 } => write!(f, " {sha256}")?,
        }
        f.write_str(match self.because {
            Because::BeforeAdding => ", because certificates are about to be added",
            Because::AfterRemoving => ", because the record names certificates that are gone",
            Because::Missing => ", because it is wanted and not in the store",
            Because::NotWanted => ", because we imported it and it is not wanted any more",
        })
    }
}

#[cfg(test)]
mod tests;
