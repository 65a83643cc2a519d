//! Nodes that a Machine API makes, while an observer checks the safety rules at every change.

mod kept;
mod key;
mod killed;
pub(super) mod observer;
mod odd;
mod rotation;
mod safety;
mod scale;
pub(super) mod scenery;
mod takeover;
mod upgrade;
mod vain;
