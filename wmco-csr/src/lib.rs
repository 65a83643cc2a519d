//! Decides which certificate signing requests of Windows nodes deserve approval, and says why.
//!
//! # Not here
//! Talking to a cluster: the caller gathers the view and carries out the verdict.

#![forbid(unsafe_code)]

mod decide;
mod decision;
mod der;
mod names;
pub mod pem;
pub mod pkcs10;
mod policy;
mod request;
mod rule;
mod trace;
mod view;

pub use decide::{Approval, Denial, decide};
pub use decision::{Check, Decision, Report, Verdict, Warning};
pub use pkcs10::CertificationRequest;
pub use policy::{Limits, Policy, Requester};
pub use request::Request;
pub use rule::{Kind, Outcome, Rule};
pub use view::{Dns, Facts, Instance, MachineFacts, NodeFacts, Source, View};
