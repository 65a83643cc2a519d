//! Integration tests of the simulated cluster.

mod client;
mod replay;
mod replay_match;
mod replay_steps;
