//! A Kubernetes API server in this process.

pub mod error;
pub mod protobuf;
pub mod schema;
