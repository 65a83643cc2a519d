//! The controller of certificate requests, over HTTP against the simulated cluster.

mod answers;
pub(crate) mod scenery;
mod storm;
