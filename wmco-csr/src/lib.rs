//! Decides which certificate signing requests of Windows nodes deserve approval, and says why.
//!
//! A Windows instance that becomes a node asks for up to three kinds of certificate ([`Kind`]).
//! [`decide`] holds such a request against everything that must be true of it ([`Rule`]) and
//! returns a [`Decision`]: approve, ignore, refuse or wait, with every check that was made. It is
//! strict where two readers of a request could see different things, and cheap where a request is
//! not ours: the signature comes last, and no lookup depends on the size of the cluster.
//!
//! # Example
//! ```
//! use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
//! use wmco_csr::{Facts, Policy, Request, Verdict, View, decide};
//!
//! // The cluster: one instance that is to become a node and has told its host name.
//! let facts: Facts = serde_json::from_str(r#"{"hostnames": {"192.0.2.7": "WIN-7"}}"#)?;
//! let mut view = View::new();
//! view.set_instances([("192.0.2.7", None)], &facts);
//!
//! // Its kubelet asks for its first certificate.
//! let pem = "\
//! -----BEGIN CERTIFICATE REQUEST-----
//! MIGyMGYCAQAwMzEVMBMGA1UECgwMc3lzdGVtOm5vZGVzMRowGAYDVQQDDBFzeXN0
//! ZW06bm9kZTp3aW4tNzAqMAUGAytlcAMhALVEV8G69SGi3SHJDdwf/aFkTrrh18Fc
//! 9/O5Ob2+nelkoAAwBQYDK2VwA0EAMSod82znusiw/7VGDpZy/dwFLZXo0raxXe9U
//! PjNGZ+Q9Jsst+5rQfw3wHrgo7L+XgOfVn7kEYOXa4wIaSGSSDA==
//! -----END CERTIFICATE REQUEST-----
//! ";
//! let mut object = CertificateSigningRequest::default();
//! object.metadata.name = Some("csr-1".into());
//! object.spec.signer_name = "kubernetes.io/kube-apiserver-client-kubelet".into();
//! object.spec.request = k8s_openapi::ByteString(pem.into());
//! object.spec.usages = Some(vec!["digital signature".into(), "client auth".into()]);
//!
//! // Somebody else asks in its name: refused, and people can be told why.
//! let policy = Policy::new("openshift-windows-machine-config-operator");
//! let now = jiff::Timestamp::UNIX_EPOCH;
//! object.spec.username = Some("jane".into());
//! object.spec.groups = Some(vec!["system:authenticated".into()]);
//! view.set_request(&object);
//! let decision = decide(&Request::from(&object), &policy, &view, now);
//! assert_eq!(decision.reason(), "requester: \"jane\" may not ask for system:node:win-7");
//! assert_eq!(decision.warning().map(|warning| warning.reason), Some("CertificateRefused"));
//!
//! // The node bootstrapper asks: approved. The proof knows the condition to write.
//! object.spec.username = Some(policy.bootstrapper.username.clone());
//! object.spec.groups = Some(policy.bootstrapper.groups.clone());
//! view.set_request(&object);
//! let decision = decide(&Request::from(&object), &policy, &view, now);
//! println!("{decision}");
//! let Verdict::Approve(approval) = decision.into_verdict() else { panic!("not approved") };
//! assert_eq!(approval.name(), "csr-1");
//! assert_eq!(approval.condition(now).reason.as_deref(), Some("WMCOApprove"));
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! Hosts of Machines that run Windows are instances as well: see [`View::set_machines`].
//!
//! # Guarantees
//! - An [`Approval`] exists only if every rule was kept, and only [`decide`] makes one.
//! - Pure and total: no clock, no I/O, no panic, equal decisions for equal arguments.
//! - What is approved, `x509-parser` reads in the same way (tested and fuzzed).
//!
//! # Assumptions
//! The API server fills in `spec.username`, `spec.groups` and `spec.extra` from the identity of
//! the requester, and lets nobody change `spec` afterwards.
//!
//! # Not here
//! Talking to a cluster: the caller tells a [`Docket`] (or, for one look, a [`View`]) what the
//! cluster shows, and carries out the verdict.

#![forbid(unsafe_code)]

mod bare;
mod cluster;
mod decide;
mod der;
mod docket;
mod names;
pub mod pem;
pub mod pkcs10;
mod policy;
mod request;
mod rule;
mod trace;
mod view;

pub use bare::honest;
pub use cluster::{ClusterFacts, NodeNames};
pub use decide::{Approval, Decision, Denial, Report, Verdict, Warning, decide};
pub use docket::{Answer, Docket};
pub use pkcs10::CertificationRequest;
pub use policy::{Limits, Policy, Requester};
pub use request::Request;
pub use rule::{Kind, Outcome, Rule};
pub use trace::Check;
pub use view::{Dispute, MachineFacts, NodeFacts, View};
pub use wmco_core::facts::{Dns, Facts, Reference};
pub use wmco_core::machines::Unfit;
