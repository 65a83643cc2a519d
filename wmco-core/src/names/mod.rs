//! Every name that another program can see: annotations, labels, objects, paths, services.
//!
//! Code, tests, examples and manifest generators import these, so a name is spelled once.

pub mod host;
pub mod machine_api;
pub mod objects;
pub mod platforms;
pub mod registries;

/// Node annotation: the operator version whose services the node runs, for example
/// `11.0.0-1a2b3c4`.
///
/// Written last, by WICD; operator and people read it as "this node is configured".
/// Source: `spec/node-config.md`, section 9.
pub const VERSION_ANNOTATION: &str = "windowsmachineconfig.openshift.io/version";

/// Node annotation: the operator version that WICD is to bring the node to. Written by the operator.
///
/// Source: `spec/node-config.md`, section 9.
pub const DESIRED_VERSION_ANNOTATION: &str = "windowsmachineconfig.openshift.io/desired-version";

/// Node annotation of our own: digest of the services ConfigMap's content that the node is released
/// for. Written by the operator; WICD leaves the node as it is while the content is another one.
/// Without it the daemon follows the ConfigMap at once, as the Go operator's nodes do.
///
/// Source: `spec/services.md`, section 15, row 12.
pub const SERVICES_ANNOTATION: &str = "windowsmachineconfig.openshift.io/services";

/// Node annotation: its presence asks the operator to restart the host; the value is empty.
///
/// Source: `spec/node-config.md`, section 9.
pub const REBOOT_ANNOTATION: &str = "windowsmachineconfig.openshift.io/reboot-required";

/// Node annotation: the encrypted SSH user name. Source: `spec/ssh.md`, section 2.4.
pub const USERNAME_ANNOTATION: &str = "windowsmachineconfig.openshift.io/username";

/// Node annotation: lower-case hex SHA-256 of the public key that the host was configured with.
///
/// Source: `spec/ssh.md`, section 2.3.
pub const PUBLIC_KEY_HASH_ANNOTATION: &str = "windowsmachineconfig.openshift.io/pub-key-hash";

/// Node annotation: base64 of the pinned SSH host key in wire form. Source: `spec/ssh.md`, section 5.
pub const HOST_KEY_ANNOTATION: &str = "windowsmachineconfig.openshift.io/ssh-host-key";

/// Node annotation: algorithm of the pinned host key, for people. Source: `spec/ssh.md`, section 5.
pub const HOST_KEY_TYPE_ANNOTATION: &str = "windowsmachineconfig.openshift.io/ssh-host-key-type";

/// Node annotation of our own: this operator made the node unschedulable, so it may undo that.
///
/// A node that is unschedulable without it was cordoned by a person and stays so.
/// Source: `spec/node-config.md`, section 13, row 3.
pub const CORDONED_ANNOTATION: &str = "windowsmachineconfig.openshift.io/cordoned";

/// Value of [`CORDONED_ANNOTATION`] when a person had cordoned the node before we came.
pub const CORDONED_BY_OTHERS: &str = "by-others";

/// Value of [`CORDONED_ANNOTATION`] when the cordon is ours.
pub const CORDONED_BY_US: &str = "by-operator";

/// Node annotation of our own: boot identity of the host when a restart was ordered, so that the
/// restart is proven by another one. Source: `spec/ssh.md`, section 17, row K-23.
pub const RESTART_FROM_ANNOTATION: &str = "windowsmachineconfig.openshift.io/restart-from";

/// Node annotation of our own: the entry of the instances ConfigMap that the node comes from, so
/// that a name that does not resolve for a while does not look like a removed entry.
pub const INSTANCE_ANNOTATION: &str = "windowsmachineconfig.openshift.io/instance";

/// Annotation of [`objects::INSTANCES_CONFIG_MAP`] of our own: so many hosts may be removed at once.
/// The operator takes it off when they are on their way.
pub const CONFIRM_REMOVAL_ANNOTATION: &str = "windowsmachineconfig.openshift.io/confirm-removal";

/// Node annotation of our own: since when the node is drained, such as `2026-11-22T04:05:06Z`. A copy
/// for the next operator process; whoever changes it can hasten or delay this node's turn only.
pub const DRAIN_SINCE_ANNOTATION: &str = "windowsmachineconfig.openshift.io/drain-since";

/// Node annotation of our own: how many drains in a row were given up, and when the next may begin,
/// such as `2 2026-11-22T05:15:06Z`. As [`DRAIN_SINCE_ANNOTATION`].
pub const DRAIN_GIVEN_UP_ANNOTATION: &str = "windowsmachineconfig.openshift.io/drain-given-up";

/// Node condition of our own: pods block the drain of the node. Its message names them, what holds
/// each, since when, and what follows.
pub const DRAIN_CONDITION: &str = "DrainBlocked";

/// Reason of [`DRAIN_CONDITION`] when no pod blocks any more.
pub const DRAIN_NOT_BLOCKED: &str = "NotBlocked";

/// Node condition of our own: its host shows another SSH key than the pinned one, so nothing is done
/// there. Its message names both keys and says how to accept the new one.
pub const HOST_KEY_CONDITION: &str = "SSHHostKeyMismatch";

/// Reason of [`HOST_KEY_CONDITION`] when the host shows the pinned key again.
pub const HOST_KEY_AS_PINNED: &str = "AsPinned";

/// Node annotation written by the cluster network operator: the node's pod subnet. kube-proxy on the
/// node waits for it.
pub const SUBNET_ANNOTATION: &str = "k8s.ovn.org/hybrid-overlay-node-subnet";

/// Node annotation written by Machine API: the Machine behind the node.
pub const MACHINE_ANNOTATION: &str = "machine.openshift.io/machine";

/// Pod annotation of mirror pods, which only the kubelet can end.
pub const MIRROR_POD_ANNOTATION: &str = "kubernetes.io/config.mirror";

/// Node label of nodes that come from [`objects::INSTANCES_CONFIG_MAP`]; its value is `"true"`.
pub const BYOH_LABEL: &str = "windowsmachineconfig.openshift.io/byoh";

/// Node label: the node holds a disruption slot; its value is `"true"`.
pub const UPGRADING_LABEL: &str = "windowsmachineconfig.openshift.io/upgrading";

/// Node label of workers; its value is empty.
pub const WORKER_LABEL: &str = "node-role.kubernetes.io/worker";

/// Machine label: `"true"` takes the Machine out of our hands.
pub const IGNORE_LABEL: &str = "windowsmachineconfig.openshift.io/ignore";

/// Node label with the operating system in lower case, written by the kubelet.
pub const OS_LABEL: &str = "kubernetes.io/os";

/// Value of [`OS_LABEL`] on Windows nodes.
pub const OS_WINDOWS: &str = "windows";

/// Node label written by the kubelets that we start; its value is [`OS_ID_WINDOWS`].
pub const OS_ID_LABEL: &str = "node.openshift.io/os_id";

/// Value of [`OS_ID_LABEL`] and of [`MACHINE_OS_LABEL`].
pub const OS_ID_WINDOWS: &str = "Windows";

/// Machine label: the operating system of a Machine.
pub const MACHINE_OS_LABEL: &str = "machine.openshift.io/os-id";

/// Value of every label that is a plain mark.
pub const TRUE: &str = "true";

/// Group of kubelets' certificates.
pub const NODES_GROUP: &str = "system:nodes";

/// Prefix of kubelets' user names; the node's name follows.
pub const NODE_USER_PREFIX: &str = "system:node:";

/// Group of WICD's client certificates.
pub const WICD_NODES_GROUP: &str = "system:wicd-nodes";

/// Prefix of WICD's user names; the node's name follows.
pub const WICD_USER_PREFIX: &str = "system:wicd-node:";

/// Field manager and event source of the operator.
pub const FIELD_MANAGER: &str = "windows-machine-config-operator";

/// Reason of the approval condition on kubelets' certificate requests.
pub const KUBELET_APPROVAL_REASON: &str = "WMCOApprove";

/// Reason of the approval condition on WICD's certificate requests.
pub const WICD_APPROVAL_REASON: &str = "WICDAutoApproved";

/// Event reasons that people and tests watch for. Source: `spec/operator.md`, section 8.
pub mod events {
    /// An instance became a configured node.
    pub const INSTANCE_SETUP: &str = "InstanceSetup";
    /// An entry is wrong, or its host could not be configured.
    pub const INSTANCE_SETUP_FAILURE: &str = "InstanceSetupFailure";
    /// A node was removed and its host cleaned.
    pub const INSTANCE_TEARDOWN: &str = "InstanceTeardown";
    /// The host of a Machine became a configured node.
    pub const MACHINE_SETUP: &str = "MachineSetup";
    /// A Machine is odd, or its host could not be configured.
    pub const MACHINE_SETUP_FAILURE: &str = "MachineSetupFailure";
    /// A Machine is to be made anew, but not now.
    pub const MACHINE_DELETION_RESTRICTED: &str = "MachineDeletionRestricted";
    /// The API server did not delete a Machine.
    pub const MACHINE_DELETION_FAILED: &str = "MachineDeletionFailed";
    /// A Machine was deleted to be made anew.
    pub const MACHINE_DELETED: &str = "MachineDeleted";
    /// All hosts let the operator's next private key in, and none the one before. Ours.
    pub const KEY_EXCHANGED: &str = "PrivateKeyExchanged";
    /// A host shows another key than the pinned one. Ours; the original shows nothing.
    pub const HOST_KEY_MISMATCH: &str = "HostKeyMismatch";
    /// A host key was trusted on first use and is pinned from then on. Ours; source: `spec/ssh.md`,
    /// section 17.1, S-1.
    pub const HOST_KEY_PINNED: &str = "HostKeyPinned";
    /// Pods block the drain of a node. Ours.
    pub const DRAIN_BLOCKED: &str = "DrainBlocked";
    /// The drain of a node was given up, to be tried again later. Ours.
    pub const DRAIN_GIVEN_UP: &str = "DrainGivenUp";
    /// A drain takes too long, but its host has been changed already. Ours.
    pub const DRAIN_OVERDUE: &str = "DrainOverdue";
    /// A Node is gone while its kubelet runs, which is started again. Ours.
    pub const NODE_GONE: &str = "NodeGone";
    /// What is not ours was moved away from below our root, or is left there. Ours.
    pub const QUARANTINED: &str = "ForeignFilesQuarantined";
    /// An object of the operator's own was not as it should be, and was put right. Ours.
    pub const OWNED_OBJECT_PUT_RIGHT: &str = "OwnedObjectPutRight";
    /// An object of the operator's own is not as it should be and cannot be put right. Ours.
    pub const OWNED_OBJECT_FAILURE: &str = "OwnedObjectFailure";
    /// A certificate request of ours broke a rule. Ours; the original shows nothing.
    pub const CERTIFICATE_REFUSED: &str = "CertificateRefused";
    /// A node asks for its first certificate, but there is a Node of its name. Ours.
    pub const CERTIFICATE_NODE_EXISTS: &str = "CertificateNodeExists";
    /// Two hosts claim one name, or a host claims that of another. Ours.
    pub const NAME_CONFLICT: &str = "HostNameConflict";
    /// A node name in a certificate request is no RFC 1123 subdomain. Source: `spec/csr.md`,
    /// section 8.
    pub const NODE_NAME: &str = "NodeNameValidationFailed";
    /// The daemon cannot read certificates that the node is to trust, or its record of them.
    ///
    /// Source: `spec/wicd.md`, section 20.
    pub const CERTIFICATE_READ_ERROR: &str = "CertificateReadError";
    /// The daemon refuses the services ConfigMap of its node's version. Ours.
    pub const SERVICES_REFUSED: &str = "ServicesConfigMapRefused";

    /// Warning from WICD about its Node: services get another value of a variable than is set, and a
    /// restart did not help. Ours.
    pub const VARIABLE_NOT_IN_FORCE: &str = "VariableNotInForce";
}
