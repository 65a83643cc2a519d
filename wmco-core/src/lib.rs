#![doc = include_str!("../README.md")]
//!
//! # Modules
//! - [`names`] and [`limits`]: every wire name, path, time and size, each in one place.
//! - [`fleet`] and [`node`]: the next instance to work on, and its next steps; [`preview`]: both, for a dry run.
//! - [`instances`]: listed hosts; [`machines`]: hosts that the Machine API creates; [`facts`]: observed facts about
//!   Nodes, pods, Machines and the DNS.
//! - [`ignition`]: settings of Linux workers that Windows nodes use, too.
//! - [`content`], made from [`render`], [`ca_bundle`]: the files of a host; [`payload`]: those that are part of the
//!   operator.
//! - [`proxy`] and [`tls_profile`]: two settings of the cluster that hosts follow.
//! - [`preflight`]: checks whether cluster and hosts are ready for Windows nodes, by the [`support_matrix`].
//! - [`manifests`] and [`bundle`]: the objects that install the operator in a cluster.
//! - [`cluster`]: the operator's own objects in the cluster; [`monitoring`]: objects for the console and
//!   Prometheus; [`upgradeable`]: whether the operator may be upgraded now.
//! - [`machine_set`]: MachineSets whose Machines become Windows nodes, and checks of existing ones.
//! - [`registries`]: mirrors and settings of image registries.
//! - [`protocol`]: messages between the operator and the agent on a host.
//! - [`host_record`]: stored facts about a host.
//! - [`username`]: the encrypted user name on a Node.
//! - [`secret`], [`digest`], [`winpath`], [`ip_network`], [`host_key`], [`authorized_key`], [`units`]: small
//!   validated types; [`text`]: text for places with limited size.
//!
//! The feature `render` has [`bundle`], [`ca_bundle`], [`cluster`], [`content`], [`ignition`], [`machine_set`],
//! [`manifests`], [`monitoring`], [`registries`], [`render`] and [`worker_config`].

#![forbid(unsafe_code)]

pub mod authorized_key;
#[cfg(feature = "render")]
pub mod bundle;
#[cfg(feature = "render")]
pub mod ca_bundle;
#[cfg(feature = "render")]
pub mod cluster;
pub mod cluster_addresses;
pub mod cluster_identity;
#[cfg(feature = "render")]
pub mod content;
pub mod corrections;
pub mod digest;
pub mod event_limiter;
pub mod facts;
pub mod fleet;
pub mod foreign_names;
pub mod host_key;
pub mod host_record;
#[cfg(feature = "render")]
pub mod ignition;
#[cfg(feature = "render")]
pub mod ignition_unit;
pub mod instances;
pub mod ip_network;
pub mod limits;
pub mod login_keys;
#[cfg(feature = "render")]
pub mod machine_set;
pub mod machines;
#[cfg(feature = "render")]
pub mod manifests;
pub mod members;
#[cfg(feature = "render")]
pub mod monitoring;
pub mod names;
pub mod node;
pub mod pass;
pub mod payload;
pub mod preflight;
#[cfg(feature = "render")]
pub mod preview;
pub mod protocol;
pub mod proxy;
pub mod reach;
#[cfg(feature = "render")]
pub mod registries;
#[cfg(feature = "render")]
pub mod render;
pub mod reserved;
pub mod secret;
pub mod support_matrix;
pub mod text;
pub mod tls_profile;
pub mod units;
pub mod upgradeable;
pub mod url;
#[cfg(feature = "username")]
pub mod username;
#[cfg(test)]
mod vectors;
pub mod winpath;
#[cfg(feature = "render")]
pub mod worker_config;
