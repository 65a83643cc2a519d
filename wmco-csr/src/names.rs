//! Names that Kubernetes and the two kinds of node certificates define.
//!
//! Source: `docs/contract/certificate-requests.md`, CSR1 to CSR5. Names with the prefix of our own annotations, and
//! names that the operator uses elsewhere, are in `wmco_core::names`.

pub(crate) use wmco_core::names::{
    KUBELET_APPROVAL_REASON, NODE_USER_PREFIX, NODES_GROUP, WICD_APPROVAL_REASON, WICD_NODES_GROUP,
    WICD_USER_PREFIX, events,
};

/// Signer of kubelet client certificates.
pub(crate) const SIGNER_KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// Signer of kubelet serving certificates.
pub(crate) const SIGNER_KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
/// Signer of any other client certificate of the API server; WICD shares it with all other clients.
pub(crate) const SIGNER_API_CLIENT: &str = "kubernetes.io/kube-apiserver-client";

/// Group of all authenticated users.
pub(crate) const AUTHENTICATED_GROUP: &str = "system:authenticated";
/// Group of all service accounts. With `:<namespace>` appended, group of those in one namespace.
pub(crate) const SERVICE_ACCOUNTS_GROUP: &str = "system:serviceaccounts";

/// Prefix of `<namespace>:<name>` in a service account's user name.
pub(crate) const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";
/// Key of `spec.extra` that names the node of a token bound to a pod or a node.
pub(crate) const TOKEN_NODE_CLAIM: &str = "authentication.kubernetes.io/node-name";

/// Usage of keys that sign handshakes.
pub(crate) const USAGE_DIGITAL_SIGNATURE: &str = "digital signature";
/// Usage of RSA keys that older handshakes encrypt to.
pub(crate) const USAGE_KEY_ENCIPHERMENT: &str = "key encipherment";
/// Usage of client certificates.
pub(crate) const USAGE_CLIENT_AUTH: &str = "client auth";
/// Usage of serving certificates.
pub(crate) const USAGE_SERVER_AUTH: &str = "server auth";

/// Message of the operator's Approved condition on kubelet requests.
pub(crate) const APPROVE_KUBELET_MESSAGE: &str =
    "This CSR was approved by the WMCO certificate Approver.";
/// Message of the operator's Approved condition on WICD requests; it has no full stop.
pub(crate) const APPROVE_WICD_MESSAGE: &str =
    "This CSR was approved by the WICD certificate controller";
/// Reason of the operator's Denied condition, written only if the policy asks for it.
pub(crate) const DENY_REASON: &str = "WMCODeny";
