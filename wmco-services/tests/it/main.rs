//! Replays the vectors, each against the public function that answers it.

mod vectors;
