//! What we remember of variables from one pass to the next.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wmco_core::digest::Sha256;
use wmco_core::names::host;
use wmco_core::protocol::Access;
use wmco_core::winpath::WindowsPath;

use crate::limits;
use crate::windows::{Windows, WindowsError};

/// What is in [`host::VARIABLES_RECORD`]. It holds no values, which
/// may be passwords. Names are in upper case.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Record {
    /// Variables that we set, each with the digests of the values that may be ours: recorded before a
    /// value is set, so that what others set is never taken for it.
    ///
    /// Source: `spec/wicd.md`, section 23.4, row 32.
    pub set: BTreeMap<String, BTreeSet<Sha256>>,
    /// Restarts that variables ask for, until services get what is wanted.
    ///
    /// Source: `spec/wicd.md`, section 23.4, rows 28 and 30.
    pub restarts: BTreeMap<String, Restart>,
}

/// A restart that a variable asks for.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Restart {
    /// Boot identity of the host when it was first asked for.
    pub boot: String,
    /// Digest of the value that was wanted.
    pub wanted: Option<Sha256>,
    /// Digest of the value that services got.
    pub inherited: Option<Sha256>,
}

impl Restart {
    /// Whether both are about the same difference.
    pub(super) fn is_about_the_same(&self, other: &Self) -> bool {
        (self.wanted, self.inherited) == (other.wanted, other.inherited)
    }
}

impl Record {
    /// Whether a variable has its value from us.
    pub(super) fn is_ours(&self, name: &str, value: &str) -> bool {
        let values = self.set.get(&name.to_uppercase());
        values.is_some_and(|values| values.contains(&Sha256::of(value.as_bytes())))
    }

    /// The record on disk; an empty one when there is none.
    pub(crate) fn read(windows: &dyn Windows) -> Result<Self, WindowsError> {
        let Some(json) = windows.files().read(&file(), limits::JSON_BYTES)? else {
            return Ok(Self::default());
        };
        Ok(serde_json::from_slice(&json).unwrap_or_else(|error| {
            // Nothing can be learnt from it, and waiting for a person would hold up the whole node.
            tracing::warn!(%error, "{} is damaged, variables that it named may stay set", file());
            Self::default()
        }))
    }

    /// Writes the record in place of the one on disk; an empty one is no file.
    pub(super) fn write(&self, windows: &dyn Windows) -> Result<(), WindowsError> {
        if *self == Self::default() {
            if windows.files().kind(&file())?.is_some() {
                windows.files().remove_file(&file())?;
            }
            return Ok(());
        }
        let json = serde_json::to_vec_pretty(self)
            .map_err(|error| WindowsError::other("write the record of variables", error))?;
        windows.files().write(&file(), Access::Administrators, &mut json.as_slice())
    }
}

#[expect(clippy::expect_used, reason = "a constant that a test of names parses")]
fn file() -> WindowsPath {
    host::VARIABLES_RECORD.parse().expect("the record's path is valid")
}
