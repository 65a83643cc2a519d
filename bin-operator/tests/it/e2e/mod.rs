//! The parts of the end-to-end test that `make e2e` runs, against a cluster in this process that is reached
//! by a kubeconfig alone, and against programs that only look like an API server's.

#[path = "../../e2e/support/mod.rs"]
mod support;

mod asked;
mod cluster;
mod own_api;
mod refused;
mod schemas;
