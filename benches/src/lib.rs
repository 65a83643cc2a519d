//! Criterion benches for the crates: see the `benches` folder of this package.
