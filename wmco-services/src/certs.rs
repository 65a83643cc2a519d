//! Decides which trusted roots are added and removed, and does it.
//!
//! The record of what we imported ([`host::IMPORTED_CERTIFICATES`]) is written before a certificate is
//! added, and shortened after one was removed, so that a crash never leaves one that nobody knows. A
//! certificate that was there before us is not recorded and never removed.
//!
//! Source: `spec/wicd.md`, sections 11 and 23.5.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use wmco_core::digest::Sha256;
use wmco_core::names::host;
use wmco_core::protocol::Access;
use wmco_core::winpath::WindowsPath;
use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::limits;
use crate::text::one_line;
use crate::windows::{Windows, WindowsError};

/// Certificates of a PEM bundle.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Bundle {
    /// DER form by its SHA-256.
    pub certificates: BTreeMap<Sha256, Vec<u8>>,
    /// One line for each piece that could not be read. While there is any, nothing is removed.
    pub problems: Vec<String>,
}

impl Bundle {
    /// Reads a bundle; text between the certificates is passed over.
    pub fn parse(text: &[u8]) -> Self {
        let mut bundle = Self::default();
        let begins = count(text, b"-----BEGIN ");
        let mut read = 0;
        for (place, block) in Pem::iter_from_buffer(text).enumerate() {
            let number = place + 1;
            let Ok(block) = block else {
                bundle.problems.push(format!("block {number} of the bundle is cut or not base64"));
                continue;
            };
            read += 1;
            if block.label != "CERTIFICATE" {
                bundle.problems.push(format!("block {number} of the bundle is no certificate"));
            } else if X509Certificate::from_der(&block.contents).is_err() {
                bundle.problems.push(format!("certificate {number} of the bundle is damaged"));
            } else {
                bundle.certificates.insert(Sha256::of(&block.contents), block.contents);
            }
        }
        if read < begins && bundle.problems.is_empty() {
            bundle.problems.push("the last block of the bundle is cut".to_owned());
        }
        bundle
    }

    /// A bundle of which nothing is known, because of `problem`.
    pub fn unread(problem: String) -> Self {
        Self { problems: vec![problem], ..Self::default() }
    }

    /// PEM text of the certificates.
    pub fn to_pem(&self) -> String {
        self.certificates.values().map(|der| pem(der)).collect()
    }
}

fn count(text: &[u8], needle: &[u8]) -> usize {
    text.windows(needle.len()).filter(|window| *window == needle).count()
}

fn pem(der: &[u8]) -> String {
    use base64::Engine as _;
    let base64 = base64::engine::general_purpose::STANDARD.encode(der);
    let mut text = String::from("-----BEGIN CERTIFICATE-----\n");
    let mut rest = base64.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        text.push_str(line);
        text.push('\n');
        rest = after;
    }
    text + "-----END CERTIFICATE-----\n"
}

/// Trusted roots as they are.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Observed {
    /// What the store holds.
    pub store: BTreeSet<Sha256>,
    /// What we imported, by our record.
    pub recorded: Bundle,
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
    /// Write the record with exactly these certificates; remove it when there are none.
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
pub fn observe(windows: &dyn Windows) -> Result<Observed, WindowsError> {
    let (recorded, unknown) = match windows.files().read(&record_file(), limits::BUNDLE_BYTES) {
        Ok(record) => (record.map(|text| Bundle::parse(&text)).unwrap_or_default(), None),
        Err(error) => (Bundle::default(), Some(one_line(&error))),
    };
    Ok(Observed {
        store: windows.roots().list()?,
        recorded,
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
    let to_add: BTreeSet<Sha256> = wanted.difference(&observed.store).copied().collect();
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
    if !unwanted.is_empty() {
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
        problems: desired.problems.clone(),
    }
}

/// Takes the steps in order; tells whether any changed the store.
///
/// # Errors
/// [`WindowsError`] of the first step that failed; those before it are done.
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
    for step in &plan.steps {
        match &step.action {
            Action::Record { certificates } if certificates.is_empty() => {
                windows.files().remove_file(&record_file())?;
            }
            Action::Record { certificates } => {
                let text: String =
                    certificates.iter().filter_map(der).map(|der| pem(der)).collect();
                windows.files().write(&record_file(), Access::Inherited, &mut text.as_bytes())?;
            }
            Action::Add { sha256 } => {
                if let Some(der) = der(sha256) {
                    windows.roots().add(der)?;
                    changed = true;
                }
            }
            Action::Remove { sha256 } => changed |= windows.roots().remove(*sha256)?,
        }
    }
    Ok(changed)
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
