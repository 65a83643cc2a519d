//! The daemon as a whole, against a simulated cluster: on a host in memory, and as the real program
//! for Windows under Wine.
//!
//! What both must do is in [`scenarios`], written once over [`bench::Bench`]; [`wine`] has besides what
//! only a real Service Control Manager can show.

mod bench;
mod cluster;
mod memory;
mod scenarios;
mod wine;
