//! The controller of certificate requests, over HTTP against the simulated cluster.

mod answers;
mod scenery;
mod storm;
