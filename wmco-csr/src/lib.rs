//! Decides which certificate signing requests of Windows nodes deserve approval, and says why.
//!
//! # Not here
//! Talking to a cluster: the caller gathers the view and carries out the verdict.

#![forbid(unsafe_code)]
