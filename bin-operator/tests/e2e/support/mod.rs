//! The parts of the end-to-end test.

pub(crate) mod api;
pub(crate) mod asked;
pub(crate) mod condition;
pub(crate) mod controllers;

pub(crate) mod fitness;
pub(crate) mod leftovers;
pub(crate) mod nodes;
pub(crate) mod objects;
pub(crate) mod own_api;
pub(crate) mod story;
pub(crate) mod trouble;

pub(crate) use api::Api;

/// Label of everything that the test makes itself.
pub(crate) const MADE_LABEL: &str = "e2e.wmco-rs.test/made";

/// Names of its hosts, and of their Nodes, begin so.
pub(crate) const HOST_PREFIX: &str = "wmco-e2e-";
