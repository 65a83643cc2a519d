//! The guarantees of the planners, tried on a model of a cluster and its hosts.

mod enumerated;
mod guarantees;
mod world;
