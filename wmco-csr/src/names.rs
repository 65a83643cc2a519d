//! Names that Kubernetes and the two kinds of node certificates fix.
//!
//! Source: `spec/csr.md`, section 1. A name that starts with the prefix of our own annotations
//! does not belong here but in `wmco_core::names`, which also has those that
//! the operator uses elsewhere.

/// Signer of kubelet client certificates.
pub(crate) const SIGNER_KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// Signer of kubelet serving certificates.
pub(crate) const SIGNER_KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
/// Signer of any other client certificate of the API server; WICD shares it with everybody.
pub(crate) const SIGNER_API_CLIENT: &str = "kubernetes.io/kube-apiserver-client";

/// What comes before the node name in a kubelet's user name and common name.
pub(crate) const NODE_USER_PREFIX: &str = "system:node:";
/// What comes before the node name in WICD's user name and common name.
pub(crate) const WICD_USER_PREFIX: &str = "system:wicd-node:";

/// Group, and therefore organization, of kubelets.
pub(crate) const NODES_GROUP: &str = "system:nodes";
/// Group, and therefore organization, of WICD.
pub(crate) const WICD_GROUP: &str = "system:wicd-nodes";
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

/// Reason of our Approved condition on kubelet requests. Part of the wire contract.
pub(crate) const APPROVE_KUBELET_REASON: &str = "WMCOApprove";
/// Message of our Approved condition on kubelet requests.
pub(crate) const APPROVE_KUBELET_MESSAGE: &str =
    "This CSR was approved by the WMCO certificate Approver.";
/// Reason of our Approved condition on WICD requests. Part of the wire contract.
pub(crate) const APPROVE_WICD_REASON: &str = "WICDAutoApproved";
/// Message of our Approved condition on WICD requests; it has no full stop.
pub(crate) const APPROVE_WICD_MESSAGE: &str =
    "This CSR was approved by the WICD certificate controller";
/// Reason of our Denied condition, written only when the policy says so.
pub(crate) const DENY_REASON: &str = "WMCODeny";

/// Reason of the Warning Event about a node name that is no RFC 1123 subdomain.
pub(crate) const EVENT_NODE_NAME: &str = "NodeNameValidationFailed";
/// Reason of the Warning Event about any other refused request.
pub(crate) const EVENT_REFUSED: &str = "CSRRefused";
/// Reason of the Warning Event about a Node that stands in the way of its own successor.
pub(crate) const EVENT_NODE_EXISTS: &str = "CSRNodeExists";
