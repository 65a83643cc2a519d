//! The guarantees of the planners, tried on a model of a cluster and its hosts, and the laws of user data,
//! of files of keys, of containerd's files and of other texts from outside.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "all of it is test code, clippy allows these in test functions only"
)]

mod authorized_keys;
mod drains;
mod enumerated;
mod guarantees;
mod machine_set;
mod outside;
mod registration;
mod registries;
mod replace;
mod rotate;
mod setbacks;
mod stories;
mod swapped;
mod user_data;
mod world;
