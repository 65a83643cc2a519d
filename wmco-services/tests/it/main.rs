//! Replays the vectors, each against the public function that answers it.

#![expect(clippy::expect_used, clippy::panic, reason = "a test says so when it fails")]

mod vectors;
