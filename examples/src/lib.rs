//! Runnable programs that use the crates: see the `examples` folder of this package.

/// Compiles and runs the sample in the repository's README.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
