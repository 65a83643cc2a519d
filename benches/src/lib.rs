//! Criterion benches for the crates, one file in `benches/` for each; run them with
//! `cargo bench -p wmco-benches`. Their inputs are in `inputs/`.
#![forbid(unsafe_code)]

pub mod csr;
pub mod fleet;
pub mod machines;
