//! The real controller on hosts in memory, against a cluster in this process over TLS.

mod certificates;
mod cleanup;
mod controller;
mod world;
