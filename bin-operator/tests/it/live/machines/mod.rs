//! Nodes that a Machine API makes, while an observer checks the safety rules at every change.

mod key;
mod observer;
mod safety;
mod scale;
mod scenery;
