//! The policy for approvals: identities, limits, and other approvers.

use jiff::SignedDuration;
use wmco_core::names::objects;

use crate::names;

/// Settings of the approval: identities, limits, and other approvers. [`Policy::new`] is the policy for OpenShift.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "settings that do not depend on each other")]
pub struct Policy {
    /// Requester of a kubelet's first client certificate.
    pub bootstrapper: Requester,
    /// User name of WICD before it has a certificate.
    pub wicd: String,
    /// Whether cluster-machine-approver is running, so that kubelets of Machines without Windows are not ours, even
    /// if an entry has the address of such a Machine. Kubelets of Windows Machines are always ours.
    pub machine_approver: bool,
    /// Whether the addresses and names in a Node's status count as proof, if nothing else has them. The requester
    /// writes them, so this is only for checks from outside the cluster, where no host can be asked.
    pub believe_nodes: bool,
    /// Whether the DNS is asked for [`Questions`](crate::Questions) of open requests meanwhile. A name or an address
    /// that it has not answered for yet then waits.
    pub asks_dns: bool,
    /// Whether refused requests are denied. Otherwise they stay pending, as in the Go operator.
    pub deny: bool,
    /// Limits of size, number and time.
    pub limits: Limits,
}

/// An identity as the API server writes it into a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Requester {
    /// Equal to `spec.username`, byte for byte.
    pub username: String,
    /// All of them are in `spec.groups`; others may be there too.
    pub groups: Vec<String>,
}

/// Limits of requests and of the time to wait for objects that they depend on.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// The most bytes of `spec.request`. A request for an RSA key of 8192 bits has about 4 KiB.
    pub request_bytes: usize,
    /// The most pending requests per node, kind and requester that are considered, newest first.
    pub pending_per_node: usize,
    /// The longest lifetime that a kubelet may ask for.
    pub kubelet_lifetime: SignedDuration,
    /// The longest lifetime that WICD may ask for.
    pub wicd_lifetime: SignedDuration,
    /// How long after its creation a request may wait for its Node.
    pub node_wait: SignedDuration,
    /// How long after its creation a request may wait for host names that are not known yet.
    pub name_wait: SignedDuration,
    /// How long after its creation a request may wait before people are told.
    pub wait_patience: SignedDuration,
    /// How long after a Node's creation requests may wait for its missing addresses.
    pub address_wait: SignedDuration,
}

impl Default for Limits {
    /// Source: `docs/contract/certificate-requests.md`, CSR12, CSR9, CSR23, CSR32, CSR35 and CSR39. The signer's own
    /// default for kubelets is a year. WICD asks for an hour; the rest leaves room for another choice of an
    /// administrator.
    fn default() -> Self {
        Self {
            request_bytes: 16 * 1024,
            pending_per_node: 5,
            kubelet_lifetime: SignedDuration::from_hours(365 * 24),
            wicd_lifetime: SignedDuration::from_mins(65),
            node_wait: SignedDuration::from_mins(5),
            name_wait: SignedDuration::from_mins(10),
            wait_patience: SignedDuration::from_mins(2),
            address_wait: SignedDuration::from_mins(10),
        }
    }
}

impl Policy {
    /// The policy of an operator in `namespace`, for a cluster with OpenShift's node bootstrapper.
    pub fn new(namespace: &str) -> Self {
        let bootstrap = objects::BOOTSTRAPPER_NAMESPACE;
        Self {
            bootstrapper: Requester {
                username: objects::BOOTSTRAPPER_USER.to_owned(),
                groups: vec![
                    format!("{}:{bootstrap}", names::SERVICE_ACCOUNTS_GROUP),
                    names::SERVICE_ACCOUNTS_GROUP.to_owned(),
                    names::AUTHENTICATED_GROUP.to_owned(),
                ],
            },
            wicd: service_account(namespace, objects::WICD),
            machine_approver: true,
            believe_nodes: false,
            asks_dns: false,
            deny: false,
            limits: Limits::default(),
        }
    }
}

fn service_account(namespace: &str, name: &str) -> String {
    format!("{}{namespace}:{name}", names::SERVICE_ACCOUNT_PREFIX)
}
