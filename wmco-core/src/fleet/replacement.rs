//! What is remembered of the replacement of a Machine.

/// The replacement of a Machine: what is remembered of it while the operator runs.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Replacement {
    /// The MachineSet that is to create a replacement.
    pub set: String,
    /// The Machine's UID, if it is known.
    pub uid: Option<String>,
    /// Number of Machines that the MachineSet had then, if it is known.
    pub of: Option<usize>,
}
