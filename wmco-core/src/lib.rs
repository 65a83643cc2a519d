//! Names, types and pure reconcile functions for Windows nodes.
#![forbid(unsafe_code)]
