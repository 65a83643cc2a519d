//! Integration tests of the simulations.

#[cfg(test)] // always so here; it tells clippy that helpers are test code, too
mod host;
