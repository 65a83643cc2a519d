//! What the operator is willing to approve.

use jiff::SignedDuration;
use wmco_core::names::objects;

use crate::names;

/// What the operator is willing to approve. [`Policy::new`] gives the one for OpenShift.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Policy {
    /// Who asks for the first client certificate of a kubelet.
    pub bootstrapper: Requester,
    /// User name of WICD while it still has no certificate.
    pub wicd: String,
    /// Whether cluster-machine-approver is at work, so that kubelets of Machines that do not run Windows
    /// are not ours, even if an entry means the host. Those of Windows Machines are ours either way.
    pub machine_approver: bool,
    /// Whether a Node's own word about its addresses and names counts, as far as they are nobody
    /// else's. Whoever asks writes it, so this is for looks at a cluster from outside, where no host
    /// can be asked.
    pub believe_nodes: bool,
    /// Whether refused requests are to be denied. Else they stay pending, as in the Go operator.
    pub deny: bool,
    /// How much, how long, how often.
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

/// Bounds of requests and of waiting for what they depend on.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// The most bytes of `spec.request`. A request for an RSA key of 8192 bits has about 4 KiB.
    pub request_bytes: usize,
    /// The most pending requests per node, kind and requester that are looked at, newest first.
    pub pending_per_node: usize,
    /// The longest lifetime that a kubelet may ask for.
    pub kubelet_lifetime: SignedDuration,
    /// The longest lifetime that WICD may ask for.
    pub wicd_lifetime: SignedDuration,
    /// How long after its creation a request may wait for its Node.
    pub node_wait: SignedDuration,
    /// How long after its creation a request may wait for host names that are not known yet.
    pub name_wait: SignedDuration,
    /// How long after a Node's creation requests may wait for addresses that it lacks.
    pub address_wait: SignedDuration,
}

impl Default for Limits {
    /// Source: `spec/csr.md`, W-7, W-8, W-31 and section 11. The signer's own default for kubelets
    /// is a year; WICD asks for an hour, the rest is slack for an administrator's other choice.
    fn default() -> Self {
        Self {
            request_bytes: 16 * 1024,
            pending_per_node: 5,
            kubelet_lifetime: SignedDuration::from_hours(365 * 24),
            wicd_lifetime: SignedDuration::from_mins(65),
            node_wait: SignedDuration::from_mins(5),
            name_wait: SignedDuration::from_mins(10),
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
            deny: false,
            limits: Limits::default(),
        }
    }
}

fn service_account(namespace: &str, name: &str) -> String {
    format!("{}{namespace}:{name}", names::SERVICE_ACCOUNT_PREFIX)
}
