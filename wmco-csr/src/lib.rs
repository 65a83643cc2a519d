#![doc = include_str!("../README.md")]
//!
//! # Where to begin
//! [`decide`] takes a [`Request`], a [`Policy`] and a [`View`] of the cluster, and returns a [`Decision`] with its
//! [`Verdict`]. [`Kind`] lists the certificates, [`Rule`] everything that is checked. A controller keeps a [`Docket`].

#![forbid(unsafe_code)]

mod cluster;
mod decide;
mod der;
mod docket;
mod from_pem;
mod names;
pub mod pem;
pub mod pkcs10;
mod policy;
mod request;
mod rule;
mod trace;
mod view;

pub use cluster::{ClusterFacts, NodeNames};
pub use decide::{Approval, Decision, Denial, Questions, Report, Verdict, Warning, decide};
pub use docket::{Answer, Docket};
pub use from_pem::csr_from_pem;
pub use pkcs10::CertificationRequest;
pub use policy::{Limits, Policy, Requester};
pub use request::Request;
pub use rule::{Kind, Outcome, Rule};
pub use trace::Check;
pub use view::{Dispute, MachineFacts, NodeIdentity, View};
pub use wmco_core::facts::{Dns, Facts, Reference};
pub use wmco_core::machines::Unfit;
