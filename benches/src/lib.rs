//! Benchmarks of the crates; run the files in `benches/` with `cargo bench -p wmco-benches`. Their inputs are in
//! `inputs/`.
#![forbid(unsafe_code)]

pub mod csr;
pub mod fleet;
pub mod machines;
