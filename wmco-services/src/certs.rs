//! Decides which trusted roots are added and removed, and applies it.
//!
//! We record a certificate ([`Owner::roots_record`]) before we add it, and remove it from the record after its removal,
//! so a crash never leaves a certificate that no record names. A certificate that was there before us is not recorded
//! and never removed. A damaged record is only added to, since its unreadable part may name a certificate that a person
//! has to remove.
//!
//! Source: `docs/contract/wicd.md`, WICD65 to WICD68.

mod bundle;

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use wmco_core::digest::Sha256;
use wmco_core::protocol::Access;
use wmco_core::text::chain;

use crate::limits;
use crate::owner::Owner;
use crate::windows::{Windows, WindowsError};

use bundle::pem;

pub use bundle::Bundle;

/// Trusted roots as observed.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Observed {
    /// Digests of the certificates in the store.
    pub store: BTreeSet<Sha256>,
    /// The certificates that we imported, from our record. With problems, [`record`](Self::record) is kept as it is.
    pub recorded: Bundle,
    /// Path of the record, for messages.
    pub record_path: String,
    /// The text of a record with problems; empty otherwise.
    pub record: Vec<u8>,
    /// Desired certificates that are not in the store and that Windows cannot decode.
    pub refused: BTreeSet<Sha256>,
    /// Why an existing record cannot be read, if so: then nothing is added or removed.
    pub unknown: Option<String>,
    /// See [`RootStore::changed_since_boot`](crate::windows::RootStore::changed_since_boot).
    pub changed_since_boot: bool,
}

/// The plan for trusted roots.
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[must_use = "a plan does nothing until an executor runs it"]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
    /// Whether programs may trust the old roots until the host restarts.
    pub restart_needed: bool,
    /// Unreadable parts of the bundle or the record, and refused certificates; for an Event.
    pub problems: Vec<String>,
}

/// An action with its reason.
pub type Step = crate::step::Step<Action, Because>;

/// A single side effect. Idempotent.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "action")]
pub enum Action {
    /// Write the record with exactly these certificates, and the unreadable part of the current one; remove it if there
    /// are none.
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
    /// The certificate is desired and not in the store.
    Missing,
    /// We imported the certificate, and it is no longer desired.
    NotWanted,
}

/// Reads the facts that [`reconcile`] needs.
///
/// # Errors
/// [`WindowsError`] when the store or the record cannot be read.
pub fn observe(
    desired: &Bundle,
    owner: &Owner,
    windows: &dyn Windows,
) -> Result<Observed, WindowsError> {
    let (text, unknown) = match windows.files().read(&owner.roots_record, limits::BUNDLE_BYTES) {
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
        record_path: owner.roots_record.to_string(),
        record,
        refused,
        unknown,
        changed_since_boot: windows.roots().changed_since_boot()?,
    })
}

/// Returns the steps to take now.
pub fn reconcile(desired: &Bundle, observed: &Observed) -> Plan {
    if let Some(why) = &observed.unknown {
        // A rewritten record would lose the certificates that the old one names.
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
    // The unreadable part of the bundle may be the very certificate that would now be removed.
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
    let damage = damage(observed);
    desired.problems.iter().cloned().chain(refused).chain(damage).collect()
}

/// Describes a damaged record for an Event; `None` if it is intact.
pub(crate) fn damage(observed: &Observed) -> Option<String> {
    let problem = observed.recorded.problems.first()?;
    Some(format!(
        "{} is damaged, so certificates that it named may stay trusted; remove those by hand and then \
         that file: {problem}",
        observed.record_path
    ))
}

/// Takes the steps in order; returns whether any changed the store. A certificate that cannot be added does not delay
/// other additions, but all removals.
///
/// # Errors
/// [`WindowsError`] of the first step that failed.
pub fn execute(
    plan: &Plan,
    desired: &Bundle,
    observed: &Observed,
    owner: &Owner,
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
                windows.files().remove_file(&owner.roots_record)?;
            }
            Action::Record { certificates } => {
                let text = record(certificates, observed, der);
                windows.files().write(
                    &owner.roots_record,
                    Access::Inherited,
                    &mut text.as_slice(),
                )?;
            }
            Action::Remove { sha256 } => changed |= windows.roots().remove(*sha256)?,
        }
    }
    failure.map_or(Ok(changed), Err)
}

/// Renders a record of these certificates. The unreadable part of the current record stays in it.
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
        // The last line may be truncated.
        text.push(b'\n');
    }
    text.extend(more.into_bytes());
    text
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
