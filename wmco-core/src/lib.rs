//! Names, types and pure reconcile functions for Windows nodes in Kubernetes clusters.
//!
//! Everything here is data and decisions: desired and observed state in, a plan of actions out.
//!
//! # What belongs here
//! - [`names`] and [`limits`]: every wire name, path, time and size, each in one place.
//! - [`fleet`] and [`node`]: which instance is next, and what it needs.
//! - [`instances`]: hosts that people list, [`machines`]: those that the Machine API makes, [`facts`]
//!   instead of the network.
//! - [`ignition`]: what Windows nodes take over from Linux workers.
//! - [`content`], made from [`render`], [`ca_bundle`], [`payload`]: what a host gets.
//! - [`cluster`]: what the operator's own objects in the cluster need.
//! - [`machine_set`]: MachineSets whose Machines become Windows nodes, and what is wrong with others.
//! - [`registries`]: where nodes pull images from instead of their own registry.
//! - [`protocol`]: what the operator and the agent on a host say to each other.
//! - [`host_record`]: what the operator keeps of a host.
//! - [`secret`], [`digest`], [`winpath`], [`host_key`], [`authorized_key`], [`units`]: small types that
//!   remember a check; [`text`]: text that is cut to fit.
//!
//! # Not here
//! I/O, clocks, randomness and async code: binaries and transports bring those.

#![forbid(unsafe_code)]

pub mod authorized_key;
pub mod ca_bundle;
pub mod cluster;
pub mod content;
pub mod digest;
pub mod facts;
pub mod fleet;
pub mod host_key;
pub mod host_record;
pub mod ignition;
pub mod ignition_unit;
pub mod instances;
pub mod limits;
pub mod login_keys;
pub mod machine_set;
pub mod machines;
pub mod names;
pub mod node;
pub mod payload;
pub mod preview;
pub mod protocol;
pub mod reach;
pub mod registries;
pub mod render;
pub mod secret;
pub mod text;
pub mod units;
#[cfg(test)]
mod vectors;
pub mod winpath;
pub mod worker_config;
