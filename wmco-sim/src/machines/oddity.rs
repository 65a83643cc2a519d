//! What can be odd about a Machine.

use std::mem::discriminant;
use std::net::Ipv4Addr;

/// Something odd about one Machine. It stays until it is cleared, then the Machine is as its host is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Oddity {
    /// It shows this address in place of that of its host, for example one of another Machine.
    Address(Ipv4Addr),
    /// The cloud gave it up: phase `Failed`, with a reason.
    Failed,
    /// It shows no addresses.
    NoAddresses,
    /// No MachineSet owns it. One whose labels it has counts it nevertheless.
    NoOwner,
    /// It has no provider ID.
    NoProviderId,
    /// Its Node, if it has one, is named with this UID.
    NodeUid(String),
    /// It shows this phase, whatever happens.
    Phase(String),
    /// The cloud does not delete its host, which runs on; the Machine stays.
    StuckInDeletion,
}

/// Adds an oddity; another one of its kind is replaced.
pub(super) fn set(all: &mut Vec<Oddity>, oddity: Oddity) {
    all.retain(|known| discriminant(known) != discriminant(&oddity));
    all.push(oddity);
}
