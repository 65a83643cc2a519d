//! The kinds of request and the rules for them.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::names;

/// The three kinds of request that we decide on.
#[derive(Clone, Copy, Debug, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// First client certificate of a kubelet that is about to become a node.
    KubeletClient,
    /// Serving certificate of the kubelet of an existing node.
    KubeletServing,
    /// Client certificate of the Windows Instance Config Daemon.
    Wicd,
}

impl Kind {
    /// The kind of a signer. Each kind has exactly one signer.
    pub fn from_signer(signer: &str) -> Option<Self> {
        let kinds = [Self::KubeletClient, Self::KubeletServing, Self::Wicd];
        kinds.into_iter().find(|kind| kind.signer() == signer)
    }

    /// The signer of this kind.
    pub(crate) fn signer(self) -> &'static str {
        match self {
            Self::KubeletClient => names::SIGNER_KUBELET_CLIENT,
            Self::KubeletServing => names::SIGNER_KUBELET_SERVING,
            Self::Wicd => names::SIGNER_API_CLIENT,
        }
    }

    /// The short stable name, as in JSON and metric labels.
    pub fn name(self) -> &'static str {
        match self {
            Self::KubeletClient => "kubelet-client",
            Self::KubeletServing => "kubelet-serving",
            Self::Wicd => "wicd",
        }
    }

    /// The prefix of the node name in the common name.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Self::KubeletClient | Self::KubeletServing => names::NODE_USER_PREFIX,
            Self::Wicd => names::WICD_USER_PREFIX,
        }
    }

    /// The one organization that the subject must have.
    pub(crate) fn organization(self) -> &'static str {
        match self {
            Self::KubeletClient | Self::KubeletServing => names::NODES_GROUP,
            Self::Wicd => names::WICD_NODES_GROUP,
        }
    }

    /// The usage that a certificate of this kind needs.
    pub(crate) fn essential_usage(self) -> &'static str {
        match self {
            Self::KubeletClient | Self::Wicd => names::USAGE_CLIENT_AUTH,
            Self::KubeletServing => names::USAGE_SERVER_AUTH,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The rules for a request, in the order of their checks.
///
/// Source: `docs/contract/certificate-requests.md`, CSR10 to CSR40.
#[derive(Clone, Copy, Debug, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Rule {
    /// Nobody has approved, denied or failed the request, and no certificate was issued.
    Undecided,
    /// The signer is that of one of the three kinds.
    Signer,
    /// `spec.request` is within the size limit.
    Size,
    /// `spec.request` is one PEM block in canonical form.
    Pem,
    /// The block is a PKCS#10 request in canonical DER.
    Pkcs10,
    /// The common name is the prefix of the kind and a node name.
    CommonName,
    /// The subject holds one common name, organizations, and nothing else.
    Subject,
    /// The node name is a lower-case RFC 1123 subdomain.
    NodeName,
    /// No other Machine has the node name or the instance's address, and no entry lists the address of the
    /// host's own Machine.
    Machine,
    /// The request is not a kubelet's own renewal, which the cluster approves itself.
    Renewal,
    /// The Node, if there is one, runs Windows.
    NodeOs,
    /// Exactly one instance has the node name.
    Instance,
    /// There is no Node yet (kubelet client).
    NodeAbsent,
    /// There is a Node (kubelet serving, WICD).
    Node,
    /// The Machine of the host has no other Node (kubelet client), or names this one as its Node (kubelet
    /// serving).
    MachineNode,
    /// The requester is the one that this kind of request comes from.
    Requester,
    /// The requester has the groups that belong to it.
    Groups,
    /// A token that is bound to a node is bound to this one (WICD).
    TokenNode,
    /// The organization is exactly the one of the kind.
    Organization,
    /// The usages are exactly those of the kind.
    Usages,
    /// The alternative names are of the kinds that this certificate may have.
    NameKinds,
    /// Nothing is requested but alternative names and key usages.
    Extensions,
    /// The requested lifetime is within its limits.
    Lifetime,
    /// The key is of a kind and a size that we accept.
    Key,
    /// The signature algorithm is one that we accept for this key.
    Algorithm,
    /// The Node has the address of the instance, or one of its Machine (kubelet serving).
    NodeAddress,
    /// Each alternative name is an address of the Node (kubelet serving).
    Addresses,
    /// Each alternative name belongs to the host, by the list of instances, its Machine, the DNS or what the
    /// host itself reports, and to nobody else (kubelet serving).
    Belongs,
    /// No newer request asks for the same node, key and requester.
    Duplicate,
    /// Not too many newer requests of this kind and requester are pending for the node.
    PendingLimit,
    /// The request is signed by its own key. Last, because it is the one expensive check.
    Signature,
}

impl Rule {
    /// The short stable name, as in JSON, events and metric labels.
    pub fn name(self) -> &'static str {
        match self {
            Self::Undecided => "undecided",
            Self::Signer => "signer",
            Self::Size => "size",
            Self::Pem => "pem",
            Self::Pkcs10 => "pkcs10",
            Self::CommonName => "common-name",
            Self::Subject => "subject",
            Self::NodeName => "node-name",
            Self::Machine => "machine",
            Self::Renewal => "renewal",
            Self::NodeOs => "node-os",
            Self::Instance => "instance",
            Self::NodeAbsent => "node-absent",
            Self::Node => "node",
            Self::MachineNode => "machine-node",
            Self::Requester => "requester",
            Self::Groups => "groups",
            Self::TokenNode => "token-node",
            Self::Organization => "organization",
            Self::Usages => "usages",
            Self::NameKinds => "name-kinds",
            Self::Extensions => "extensions",
            Self::Lifetime => "lifetime",
            Self::Key => "key",
            Self::Algorithm => "algorithm",
            Self::NodeAddress => "node-address",
            Self::Addresses => "addresses",
            Self::Belongs => "belongs",
            Self::Duplicate => "duplicate",
            Self::PendingLimit => "pending-limit",
            Self::Signature => "signature",
        }
    }
}

impl Rule {
    /// Whether the result of the rule may change with the cluster. Results of all other rules are final.
    pub(crate) fn depends_on_cluster(self) -> bool {
        match self {
            Self::Addresses
            | Self::Belongs
            | Self::Instance
            | Self::Machine
            | Self::MachineNode
            | Self::Node
            | Self::NodeAbsent
            | Self::NodeAddress
            | Self::NodeOs => true,
            Self::Algorithm
            | Self::CommonName
            | Self::Duplicate
            | Self::Extensions
            | Self::Groups
            | Self::Key
            | Self::Lifetime
            | Self::NameKinds
            | Self::NodeName
            | Self::Organization
            | Self::Pem
            | Self::PendingLimit
            | Self::Pkcs10
            | Self::Renewal
            | Self::Requester
            | Self::Signature
            | Self::Signer
            | Self::Size
            | Self::Subject
            | Self::TokenNode
            | Self::Undecided
            | Self::Usages => false,
        }
    }

    /// Whether the result of the rule may change when other requests come and go.
    pub(crate) fn depends_on_requests(self) -> bool {
        matches!(self, Self::Duplicate | Self::PendingLimit)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The result of checking a request against a rule.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The request breaks the rule, or the rule shows that it is not ours.
    Fail,
    /// The request keeps the rule.
    Pass,
    /// An object that the rule needs does not exist yet.
    Pending,
    /// Not checked, because an earlier rule had decided.
    Skipped,
}

impl Outcome {
    /// The short stable name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Pass => "pass",
            Self::Pending => "pending",
            Self::Skipped => "skipped",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
