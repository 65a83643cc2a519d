//! A Kubernetes API server in this process.

pub mod error;
pub mod schema;
