//! Whole stories, and the vectors, each against the public functions that answer them.

#![expect(clippy::expect_used, clippy::panic, reason = "a test says so when it fails")]

mod join;
mod vectors;
