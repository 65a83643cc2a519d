//! The record of variables that passes share.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wmco_core::digest::Sha256;
use wmco_core::protocol::Access;
use wmco_core::winpath::WindowsPath;

use crate::limits;
use crate::windows::{Windows, WindowsError};

/// The content of the file [`Owner::variables_record`](crate::owner::Owner::variables_record). It holds no values,
/// which may be passwords. Names are in upper case.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Record {
    /// Variables that we set, each with the digests of the values that may be ours. A value is recorded before it is
    /// set, so values that others set are never taken for ours.
    ///
    /// Source: `docs/contract/wicd.md`, WICD62.
    pub set: BTreeMap<String, BTreeSet<Sha256>>,
    /// Restarts that variables require, until services inherit the desired values.
    ///
    /// Source: `docs/contract/wicd.md`, WICD61.
    pub restarts: BTreeMap<String, Restart>,
}

/// A restart that a variable requires.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Restart {
    /// Boot identity of the host when the restart was first requested.
    pub boot: String,
    /// Digest of the desired value.
    pub wanted: Option<Sha256>,
    /// Digest of the inherited value.
    pub inherited: Option<Sha256>,
}

impl Restart {
    /// Whether both concern the same desired and inherited values.
    pub(super) fn is_about_the_same(&self, other: &Self) -> bool {
        (self.wanted, self.inherited) == (other.wanted, other.inherited)
    }
}

impl Record {
    /// Whether we set this value of the variable.
    pub(super) fn is_ours(&self, name: &str, value: &str) -> bool {
        let values = self.set.get(&name.to_uppercase());
        values.is_some_and(|values| values.contains(&Sha256::of(value.as_bytes())))
    }

    /// Reads the record on disk; an empty one if there is none.
    pub(crate) fn read(file: &WindowsPath, windows: &dyn Windows) -> Result<Self, WindowsError> {
        let Some(json) = windows.files().read(file, limits::JSON_BYTES)? else {
            return Ok(Self::default());
        };
        Ok(serde_json::from_slice(&json).unwrap_or_else(|error| {
            // The content is lost, and waiting for a person would block the whole node.
            tracing::warn!(%error, "{} is damaged, variables that it named may stay set", file);
            Self::default()
        }))
    }

    /// Replaces the record on disk; an empty record removes the file.
    pub(super) fn write(
        &self,
        file: &WindowsPath,
        windows: &dyn Windows,
    ) -> Result<(), WindowsError> {
        if *self == Self::default() {
            if windows.files().kind(file)?.is_some() {
                windows.files().remove_file(file)?;
            }
            return Ok(());
        }
        let json = serde_json::to_vec_pretty(self)
            .map_err(|error| WindowsError::other("write the record of variables", error))?;
        windows.files().write(file, Access::Administrators, &mut json.as_slice())
    }
}
