//! Names that Kubernetes and the two kinds of node certificates fix.
//!
//! Source: `spec/csr.md`, section 1. A name that starts with the prefix of our own annotations
//! does not belong here but in `wmco_core::names`, which also has those that
//! the operator uses elsewhere.

pub(crate) use wmco_core::names::{
    KUBELET_APPROVAL_REASON, NODE_USER_PREFIX, NODES_GROUP, WICD_APPROVAL_REASON, WICD_NODES_GROUP,
    WICD_USER_PREFIX, events,
};

/// Signer of kubelet client certificates.
pub(crate) const SIGNER_KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// Signer of kubelet serving certificates.
pub(crate) const SIGNER_KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
/// Signer of any other client certificate of the API server; WICD shares it with everybody.
pub(crate) const SIGNER_API_CLIENT: &str = "kubernetes.io/kube-apiserver-client";

/// Group of everybody who is known to the API server.
pub(crate) const AUTHENTICATED_GROUP: &str = "system:authenticated";
/// Group of all service accounts; with `:<namespace>` behind it, of those in one namespace.
pub(crate) const SERVICE_ACCOUNTS_GROUP: &str = "system:serviceaccounts";

/// What comes before `<namespace>:<name>` in a service account's user name.
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

/// Message of our Approved condition on kubelet requests.
pub(crate) const APPROVE_KUBELET_MESSAGE: &str =
    "This CSR was approved by the WMCO certificate Approver.";
/// Message of our Approved condition on WICD requests; it has no full stop.
pub(crate) const APPROVE_WICD_MESSAGE: &str =
    "This CSR was approved by the WICD certificate controller";
/// Reason of our Denied condition, written only when the policy says so.
pub(crate) const DENY_REASON: &str = "WMCODeny";
