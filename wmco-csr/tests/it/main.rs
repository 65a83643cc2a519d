//! Tests of the crate through its public API.

mod vectors;
