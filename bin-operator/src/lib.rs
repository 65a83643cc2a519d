//! Wiring of the operator: it observes a cluster, asks the pure functions of the wmco crates what to
//! do, and does it. No decision about a node, a service or a certificate is taken here.

#![forbid(unsafe_code)]

pub mod announce;
pub mod claims;
pub mod http;
pub mod instance;
pub mod leader;
pub mod metrics;
pub mod openshift;
pub mod progress;
pub mod sources;

/// An error with all its causes in one line.
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    std::iter::successors(Some(error), |error| error.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}
