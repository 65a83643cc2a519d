//! How many nodes may be out of service because of us, and who is next.

mod hand_out;
mod health;
mod ledger;
mod max_unavailable;
mod replacements;
mod replacing;
mod siblings;

pub(super) use hand_out::hand_out;
pub(super) use health::Health;
pub(super) use ledger::marked;
pub use max_unavailable::{MaxUnavailable, NoMaxUnavailable};
pub(super) use replacements::Replacements;
