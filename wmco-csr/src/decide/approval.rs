//! Proofs that a verdict may be carried out, with the conditions to write.

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequestCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::names;
use crate::request::Request;
use crate::rule::{Kind, Rule};

/// Proof that a request keeps every rule. Only [`decide`](super::decide) makes one, so an executor that takes
/// nothing else cannot approve an unchecked request.
#[derive(Debug)]
pub struct Approval<'r> {
    name: &'r str,
    uid: Option<&'r str>,
    resource_version: Option<&'r str>,
    kind: Kind,
    node: String,
}

/// Permission to deny a request: it is ours, it is wrong, and the policy denies such requests. Only
/// [`decide`](super::decide) makes one.
#[derive(Debug)]
pub struct Denial<'r> {
    name: &'r str,
    resource_version: Option<&'r str>,
    rule: Rule,
}

impl<'r> Approval<'r> {
    pub(super) fn new(request: &Request<'r>, kind: Kind, node: String) -> Self {
        let Request { name, uid, resource_version, .. } = *request;
        Self { name, uid, resource_version, kind, node }
    }

    /// The name of the approved request.
    pub fn name(&self) -> &'r str {
        self.name
    }

    /// The kind of the approved request.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The name of the node that the certificate is for.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// The UID of the approved request. Send it along, so that no other request of the same name is approved.
    pub fn uid(&self) -> Option<&'r str> {
        self.uid
    }

    /// The resource version that was checked. Send it along, so that no newer version is approved.
    pub fn resource_version(&self) -> Option<&'r str> {
        self.resource_version
    }

    /// The condition to append. Source: `docs/contract/certificate-requests.md`, CSR50.
    pub fn condition(&self, now: Timestamp) -> CertificateSigningRequestCondition {
        let (reason, message) = match self.kind {
            Kind::KubeletClient | Kind::KubeletServing => {
                (names::KUBELET_APPROVAL_REASON, names::APPROVE_KUBELET_MESSAGE)
            }
            Kind::Wicd => (names::WICD_APPROVAL_REASON, names::APPROVE_WICD_MESSAGE),
        };
        condition("Approved", reason, message.to_owned(), now)
    }
}

impl<'r> Denial<'r> {
    pub(super) fn new(request: &Request<'r>, rule: Rule) -> Self {
        Self { name: request.name, resource_version: request.resource_version, rule }
    }

    /// The name of the denied request.
    pub fn name(&self) -> &'r str {
        self.name
    }

    /// The resource version that was checked. Send it along.
    pub fn resource_version(&self) -> Option<&'r str> {
        self.resource_version
    }

    /// The condition to append.
    pub fn condition(&self, now: Timestamp) -> CertificateSigningRequestCondition {
        let message = format!("This CSR breaks the rule {}.", self.rule);
        condition("Denied", names::DENY_REASON, message, now)
    }
}

fn condition(
    kind: &str,
    reason: &str,
    message: String,
    now: Timestamp,
) -> CertificateSigningRequestCondition {
    CertificateSigningRequestCondition {
        type_: kind.to_owned(),
        status: "True".to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message),
        last_update_time: Some(Time(now)),
        last_transition_time: None,
    }
}
