//! What is remembered of the replacement of a Machine.

use crate::host_record::MachinesThen;

/// The replacement of a Machine: what is remembered of it while the operator runs.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Replacement {
    /// The MachineSet that is to create a replacement.
    pub set: String,
    /// The Machine's UID, if it is known.
    pub uid: Option<String>,
    /// The Machines of the MachineSet then, if they are known.
    pub of: Option<MachinesThen>,
}
