//! A simulated Windows host, driven by an SSH client.

mod agent;
pub(crate) mod client;
mod daemon;
mod faults;
mod join;
mod keys;
mod login;
mod restart;
mod sftp;
mod shell;
