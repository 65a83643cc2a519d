//! A CertificateSigningRequest object, with the fields that a decision uses.

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;

use crate::names;

/// Type of the condition that approves a request.
const APPROVED: &str = "Approved";

/// A CertificateSigningRequest object, borrowed. Usually made with `Request::from(&object)`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Request<'a> {
    /// `metadata.name`.
    pub name: &'a str,
    /// `metadata.uid`, if it was stored.
    pub uid: Option<&'a str>,
    /// `metadata.resourceVersion`, if it was stored; binds an approval to the version that was checked.
    pub resource_version: Option<&'a str>,
    /// `metadata.creationTimestamp`. Without it, a request never waits.
    pub created: Option<Timestamp>,
    /// Why the request is already decided: its condition, or that a certificate exists.
    pub decided: Option<&'a str>,
    /// `spec.signerName`.
    pub signer: &'a str,
    /// `spec.username`, set by the API server.
    pub username: &'a str,
    /// `spec.groups`, set by the API server.
    pub groups: &'a [String],
    /// The node that the requester's token is bound to: from `spec.extra`, set by the API server.
    pub token_node: Option<&'a [String]>,
    /// `spec.usages`.
    pub usages: &'a [String],
    /// `spec.expirationSeconds`.
    pub expiration_seconds: Option<i32>,
    /// `spec.request`: a PEM text.
    pub pem: &'a [u8],
}

impl Request<'_> {
    /// Whether the request is approved, so that older requests for the same are superfluous.
    pub(crate) fn is_granted(&self) -> bool {
        self.decided == Some(APPROVED)
    }
}

impl<'a> From<&'a CertificateSigningRequest> for Request<'a> {
    fn from(object: &'a CertificateSigningRequest) -> Self {
        let (metadata, spec) = (&object.metadata, &object.spec);
        let extra = spec.extra.as_ref();
        Self {
            name: metadata.name.as_deref().unwrap_or_default(),
            uid: metadata.uid.as_deref(),
            resource_version: metadata.resource_version.as_deref(),
            created: metadata.creation_timestamp.as_ref().map(|time| time.0),
            decided: decided(object),
            signer: &spec.signer_name,
            username: spec.username.as_deref().unwrap_or_default(),
            groups: spec.groups.as_deref().unwrap_or_default(),
            token_node: extra.and_then(|e| e.get(names::TOKEN_NODE_CLAIM)).map(Vec::as_slice),
            usages: spec.usages.as_deref().unwrap_or_default(),
            expiration_seconds: spec.expiration_seconds,
            pem: &spec.request.0,
        }
    }
}

/// Source: `docs/contract/certificate-requests.md`, CSR10.
fn decided(object: &CertificateSigningRequest) -> Option<&str> {
    let status = object.status.as_ref()?;
    let types = || status.conditions.iter().flatten().map(|condition| condition.type_.as_str());
    // A request that was approved and failed counts as failed, so `Failed` comes before `Approved`.
    for over in ["Denied", "Failed", APPROVED] {
        if let Some(decided) = types().find(|kind| *kind == over) {
            return Some(decided);
        }
    }
    status.certificate.as_ref().filter(|pem| !pem.0.is_empty()).map(|_| "Issued")
}
