//! Runnable programs for people who use the crates: see the `examples` folder of this package.
