//! A Machine API on a simulated cluster, with its hosts.

mod login;
mod nodes;
mod oddities;
mod scaling;
mod scenery;
