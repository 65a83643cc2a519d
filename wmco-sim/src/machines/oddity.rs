//! Oddities of Machines.

use std::mem::discriminant;
use std::net::Ipv4Addr;

/// An oddity of a Machine. It stays until cleared; then the Machine reports its host correctly again.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Oddity {
    /// The Machine reports this address instead of its host's, for example that of another Machine.
    Address(Ipv4Addr),
    /// The cloud has failed: phase `Failed`, with a reason.
    Failed,
    /// The Machine reports no addresses.
    NoAddresses,
    /// The Machine has no owner. A MachineSet that selects its labels counts it nevertheless.
    NoOwner,
    /// The Machine has no provider ID.
    NoProviderId,
    /// The reference to its Node, if any, has this UID.
    NodeUid(String),
    /// The Machine reports this phase, whatever its state.
    Phase(String),
    /// The cloud does not delete its host, which keeps running; the Machine stays.
    StuckInDeletion,
}

/// Adds an oddity, replacing one of its kind.
pub(super) fn set(all: &mut Vec<Oddity>, oddity: Oddity) {
    all.retain(|known| discriminant(known) != discriminant(&oddity));
    all.push(oddity);
}
