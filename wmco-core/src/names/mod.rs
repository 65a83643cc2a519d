//! Every name that another program can see: annotations, labels, objects, paths, services.
//!
//! Code, tests, examples and manifest generators import these, so each name is spelled once.

pub mod host;
pub mod machine_api;
pub mod monitoring;
pub mod objects;
pub mod platforms;
pub mod registries;

/// Node annotation: the operator version whose services the node runs, for example
/// `11.0.0-1a2b3c4`.
///
/// Written last, by WICD; the operator and administrators read it as "this node is configured".
/// Source: `docs/contract/nodes.md`, NODE8 and NODE9.
pub const VERSION_ANNOTATION: &str = "windowsmachineconfig.openshift.io/version";

/// Node annotation: the operator version to which WICD is to bring the node. Written by the operator.
///
/// Source: `docs/contract/nodes.md`, NODE8.
pub const DESIRED_VERSION_ANNOTATION: &str = "windowsmachineconfig.openshift.io/desired-version";

/// Node annotation of our own: digest of the services ConfigMap's content for which the node is released. Written
/// by the operator; while the content differs, WICD leaves the node as it is. Without the annotation the daemon
/// follows the ConfigMap at once, as on the Go operator's nodes.
///
/// Source: `docs/contract/services.md`, SVC9.
pub const SERVICES_ANNOTATION: &str = "windowsmachineconfig.openshift.io/services";

/// Node annotation of our own: digest of the trusted roots for which the node is released. Written by the operator
/// together with [`SERVICES_ANNOTATION`], so that variables and roots that change at the same time share one
/// restart; while the bundle on the host has other roots, WICD leaves the host's roots as they are. Without the
/// annotation the daemon follows the bundle at once.
pub const ROOTS_ANNOTATION: &str = "windowsmachineconfig.openshift.io/roots";

/// Node annotation: its presence asks the operator to restart the host; the value is empty.
///
/// Source: `docs/contract/nodes.md`, NODE12.
pub const REBOOT_ANNOTATION: &str = "windowsmachineconfig.openshift.io/reboot-required";

/// Node annotation: the encrypted SSH user name. Source: `docs/contract/ssh.md`, SSH10.
pub const USERNAME_ANNOTATION: &str = "windowsmachineconfig.openshift.io/username";

/// Node annotation: lower-case hex SHA-256 of the public key with which the host was configured.
///
/// Source: `docs/contract/ssh.md`, SSH6.
pub const PUBLIC_KEY_HASH_ANNOTATION: &str = "windowsmachineconfig.openshift.io/pub-key-hash";

/// Node annotation: base64 of the pinned SSH host key in wire form. Source: `docs/contract/ssh.md`, SSH20.
pub const HOST_KEY_ANNOTATION: &str = "windowsmachineconfig.openshift.io/ssh-host-key";

/// Node annotation: algorithm of the pinned host key, as information. Source: `docs/contract/ssh.md`, SSH20.
pub const HOST_KEY_TYPE_ANNOTATION: &str = "windowsmachineconfig.openshift.io/ssh-host-key-type";

/// Node annotation of our own: this operator cordoned the node, so it may uncordon it.
///
/// A node that is unschedulable without it was cordoned by an administrator and stays so. Source:
/// `docs/contract/nodes.md`, NODE13.
pub const CORDONED_ANNOTATION: &str = "windowsmachineconfig.openshift.io/cordoned";

/// Value of [`CORDONED_ANNOTATION`] if the node was already cordoned before.
pub const CORDONED_BY_OTHERS: &str = "by-others";

/// Value of [`CORDONED_ANNOTATION`] if the operator cordoned the node.
pub const CORDONED_BY_US: &str = "by-operator";

/// Node annotation of our own: boot identity of the host before a requested restart; a different one proves the
/// restart. Source: `docs/contract/lifecycle.md`, LIFE13.
pub const RESTART_FROM_ANNOTATION: &str = "windowsmachineconfig.openshift.io/restart-from";

/// Node annotation of our own: the entry of the instances ConfigMap that the node was made from, so that a name
/// that temporarily does not resolve does not look like a removed entry.
pub const INSTANCE_ANNOTATION: &str = "windowsmachineconfig.openshift.io/instance";

/// Annotation of our own on [`objects::INSTANCES_CONFIG_MAP`]: number of hosts that may be removed at once. The
/// operator deletes it when their removal has begun.
pub const CONFIRM_REMOVAL_ANNOTATION: &str = "windowsmachineconfig.openshift.io/confirm-removal";

/// Annotation of our own on [`objects::INSTANCES_CONFIG_MAP`]: identities of clusters whose hosts may be taken over,
/// with commas between them. Source: `docs/contract/host.md`, HOST66.
pub const TAKE_OVER_ANNOTATION: &str = "windowsmachineconfig.openshift.io/take-over-from";

/// Node annotation of our own: start of the node's drain, such as `2026-11-22T04:05:06Z`. A copy for the next
/// operator process; changing it can only hasten or delay this node's turn.
pub const DRAIN_SINCE_ANNOTATION: &str = "windowsmachineconfig.openshift.io/drain-since";

/// Node annotation of our own: when the operator saw its cordon on the node, such as `2026-11-22T04:05:08Z`. Pods that
/// were created later tolerate the cordon, so the drain does not wait for them. A copy like
/// [`DRAIN_SINCE_ANNOTATION`]. Source: `docs/contract/lifecycle.md`, LIFE41.
pub const CORDONED_SINCE_ANNOTATION: &str = "windowsmachineconfig.openshift.io/cordoned-since";

/// Node annotation of our own: number of drains given up in a row, and the time from which the next may begin, such
/// as `2 2026-11-22T05:15:06Z`. A copy like [`DRAIN_SINCE_ANNOTATION`].
pub const DRAIN_GIVEN_UP_ANNOTATION: &str = "windowsmachineconfig.openshift.io/drain-given-up";

/// Node condition of our own: pods block the drain of the node. Its message names the pods, what blocks each, since
/// when, and the next step.
pub const DRAIN_CONDITION: &str = "DrainBlocked";

/// Reason of [`DRAIN_CONDITION`] when no pod blocks the drain any more.
pub const DRAIN_NOT_BLOCKED: &str = "NotBlocked";

/// Node condition of our own: its host shows another SSH key than the pinned one, so no work is done there. Its
/// message names both keys and how to accept the new one.
pub const HOST_KEY_CONDITION: &str = "SSHHostKeyMismatch";

/// Reason of [`HOST_KEY_CONDITION`] when the host shows the pinned key again.
pub const HOST_KEY_AS_PINNED: &str = "AsPinned";

/// Node annotation written by the cluster network operator: the node's pod subnet. kube-proxy on the
/// node waits for it.
pub const SUBNET_ANNOTATION: &str = "k8s.ovn.org/hybrid-overlay-node-subnet";

/// Node annotation written by the Machine API: the Machine of the node.
pub const MACHINE_ANNOTATION: &str = "machine.openshift.io/machine";

/// Pod annotation of mirror pods, which only the kubelet can delete.
pub const MIRROR_POD_ANNOTATION: &str = "kubernetes.io/config.mirror";

/// Node label of nodes made from [`objects::INSTANCES_CONFIG_MAP`]; its value is `"true"`.
pub const BYOH_LABEL: &str = "windowsmachineconfig.openshift.io/byoh";

/// Node label: the node holds a disruption slot; its value is `"true"`.
pub const UPGRADING_LABEL: &str = "windowsmachineconfig.openshift.io/upgrading";

/// Node label of workers; its value is empty.
pub const WORKER_LABEL: &str = "node-role.kubernetes.io/worker";

/// Machine label: with `"true"` the operator ignores the Machine.
pub const IGNORE_LABEL: &str = "windowsmachineconfig.openshift.io/ignore";

/// Node label with the operating system in lower case, written by the kubelet.
pub const OS_LABEL: &str = "kubernetes.io/os";

/// Value of [`OS_LABEL`] on Windows nodes.
pub const OS_WINDOWS: &str = "windows";

/// Node label written by the kubelets that the operator starts; its value is [`OS_ID_WINDOWS`].
pub const OS_ID_LABEL: &str = "node.openshift.io/os_id";

/// Value of [`OS_ID_LABEL`] and of [`MACHINE_OS_LABEL`].
pub const OS_ID_WINDOWS: &str = "Windows";

/// Machine label: the operating system of a Machine.
pub const MACHINE_OS_LABEL: &str = "machine.openshift.io/os-id";

/// Value of every boolean label.
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

/// Event reasons that administrators and tests watch for. Source: `docs/contract/cluster.md`, CLU18.
pub mod events {
    /// An instance became a configured node.
    pub const INSTANCE_SETUP: &str = "InstanceSetup";
    /// An entry is invalid, or its host could not be configured.
    pub const INSTANCE_SETUP_FAILURE: &str = "InstanceSetupFailure";
    /// A node was removed and its host cleaned.
    pub const INSTANCE_TEARDOWN: &str = "InstanceTeardown";
    /// The host of a Machine became a configured node.
    pub const MACHINE_SETUP: &str = "MachineSetup";
    /// A Machine is not usable, or its host could not be configured.
    pub const MACHINE_SETUP_FAILURE: &str = "MachineSetupFailure";
    /// A Machine is to be replaced, but not now.
    pub const MACHINE_DELETION_RESTRICTED: &str = "MachineDeletionRestricted";
    /// The API server refused to delete a Machine.
    pub const MACHINE_DELETION_FAILED: &str = "MachineDeletionFailed";
    /// A Machine was deleted, to be replaced.
    pub const MACHINE_DELETED: &str = "MachineDeleted";
    /// All hosts accept the operator's next private key, and none the former one. Ours.
    pub const KEY_EXCHANGED: &str = "PrivateKeyExchanged";
    /// A host shows another key than the pinned one. Ours; the original records nothing.
    pub const HOST_KEY_MISMATCH: &str = "HostKeyMismatch";
    /// A host key was trusted on first use and is pinned from then on. Ours; source:
    /// `docs/contract/ssh.md`, SSH22.
    pub const HOST_KEY_PINNED: &str = "HostKeyPinned";
    /// A node waits for a slot of the disruption budget. Ours.
    pub const SLOT_AWAITED: &str = "DisruptionSlotAwaited";
    /// A node is taken out of service for work on its host. Ours.
    pub const NODE_TAKEN_OUT: &str = "NodeTakenOut";
    /// The restart that a Node asked for is over. Ours.
    pub const HOST_RESTARTED: &str = "HostRestarted";
    /// A node that was taken out of service is back. Ours.
    pub const NODE_GIVEN_BACK: &str = "NodeGivenBack";
    /// Pods block the drain of a node. Ours.
    pub const DRAIN_BLOCKED: &str = "DrainBlocked";
    /// The drain of a node was given up, to be tried again later. Ours.
    pub const DRAIN_GIVEN_UP: &str = "DrainGivenUp";
    /// Pods that tolerate the cordon of a node came back to it, and are not waited for. Ours.
    pub const PODS_CAME_BACK: &str = "PodsTolerateCordon";
    /// A drain takes too long, but its host is already changed. Ours.
    pub const DRAIN_OVERDUE: &str = "DrainOverdue";
    /// A Node was deleted while its kubelet runs; the kubelet is started again. Ours.
    pub const NODE_GONE: &str = "NodeGone";
    /// A foreign containerd is on a host, so the host waits. Ours.
    pub const FOREIGN_CONTAINERD: &str = "ForeignContainerd";
    /// Foreign files below our root were moved to quarantine, or left there. Ours.
    pub const QUARANTINED: &str = "ForeignFilesQuarantined";
    /// The OperatorCondition cannot be read or written.
    pub const OPERATOR_CONDITION_ERROR: &str = "OperatorConditionError";
    /// The cluster's Prometheus now scrapes the exporters on nodes.
    pub const MONITORING_ENABLED: &str = "monitoringEnabled";
    /// The cluster's Prometheus no longer scrapes them.
    pub const MONITORING_DISABLED: &str = "monitoringDisabled";
    /// An object of the operator's own differed from its desired state and was corrected. Ours.
    pub const OWNED_OBJECT_PUT_RIGHT: &str = "OwnedObjectPutRight";
    /// An object of the operator's own differs from its desired state and cannot be corrected. Ours.
    pub const OWNED_OBJECT_FAILURE: &str = "OwnedObjectFailure";
    /// A cluster or host is not ready for Windows nodes, so new work waits. Ours.
    pub const PREFLIGHT_FAILED: &str = "PreflightFailed";
    /// A feature will not work on Windows nodes as expected, because of the cluster. Ours.
    pub const PREFLIGHT_WARNING: &str = "PreflightWarning";
    /// Windows nodes cannot follow a setting of the cluster, such as its TLS profile. Ours.
    pub const SETTING_NOT_APPLIED: &str = "ClusterSettingNotApplied";
    /// Windows nodes cannot apply a part of a mirror set, the image settings or the pull secret. Ours.
    pub const REGISTRY_NOT_APPLIED: &str = "RegistryConfigurationNotApplied";
    /// Windows nodes apply a part of a mirror set, the image settings or the pull secret, but maybe not as
    /// intended. Ours.
    pub const REGISTRY_WARNING: &str = "RegistryConfigurationWarning";
    /// A certificate request of ours broke a rule. Ours; the original records nothing.
    pub const CERTIFICATE_REFUSED: &str = "CertificateRefused";
    /// A node asks for its first certificate, but a Node of its name exists. Ours.
    pub const CERTIFICATE_NODE_EXISTS: &str = "CertificateNodeExists";
    /// A certificate request of ours waits for long. Ours.
    pub const CERTIFICATE_WAITS: &str = "CertificateWaits";
    /// Two hosts claim one name, or a host claims another host's name. Ours.
    pub const NAME_CONFLICT: &str = "HostNameConflict";
    /// A node name in a certificate request is not an RFC 1123 subdomain. Source:
    /// `docs/contract/certificate-requests.md`, CSR53.
    pub const NODE_NAME: &str = "NodeNameValidationFailed";
    /// The daemon cannot read the certificates that the node should trust, or its record of them.
    ///
    /// Source: `docs/contract/wicd.md`, WICD54.
    pub const CERTIFICATE_READ_ERROR: &str = "CertificateReadError";
    /// The daemon refuses the services ConfigMap of its node's version. Ours.
    pub const SERVICES_REFUSED: &str = "ServicesConfigMapRefused";

    /// Warning from WICD about its Node: services get another value of a variable than the one that is set, and a
    /// restart did not help. Ours.
    pub const VARIABLE_NOT_IN_FORCE: &str = "VariableNotInForce";
}
