//! CustomResourceDefinitions: their defaults and validation, and how they take effect.

mod definition;
mod reconcile;

pub(crate) use definition::{complete, unsupported, validate_definition};
pub(crate) use reconcile::{reconcile, retry};
