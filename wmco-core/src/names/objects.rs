//! Names of API objects and of the keys in them. Source: `spec/operator.md`, sections 1 to 4.

/// Namespace of a default installation.
pub const DEFAULT_NAMESPACE: &str = "openshift-windows-machine-config-operator";

/// Name of the operator's ClusterRole, Deployment and event source.
pub const OPERATOR: &str = "windows-machine-config-operator";

/// ConfigMap in which people list their own hosts: address to `username=NAME`.
pub const INSTANCES_CONFIG_MAP: &str = "windows-instances";

/// Prefix of the services ConfigMaps; the operator version follows.
pub const SERVICES_CONFIG_MAP_PREFIX: &str = "windows-services-";

/// Key of a services ConfigMap: the services. Source: `spec/services.md`, section 2.
pub const SERVICES_KEY: &str = "services";

/// Key of a services ConfigMap: files with their checksums.
pub const FILES_KEY: &str = "files";

/// Key of a services ConfigMap, may be missing: variables with their values.
pub const ENVIRONMENT_KEY: &str = "environmentVars";

/// Key of a services ConfigMap, may be missing: names of the variables that are looked after.
pub const WATCHED_KEY: &str = "watchedEnvironmentVars";

/// ConfigMap with the pinned host keys: address to base64 wire form; of jump hosts as `HOST_PORT`.
/// Records of hosts are there, too, see [`HOST_RECORD_SUFFIX`].
pub const HOST_KEYS_CONFIG_MAP: &str = "windows-ssh-host-keys";

/// What follows the address in the key of a [`HostRecord`](crate::host_record::HostRecord) in
/// [`HOST_KEYS_CONFIG_MAP`]. The Go operator never looks up such a key.
pub const HOST_RECORD_SUFFIX: &str = "_host";

/// What follows the name of a Machine in the key of what is kept of its host in
/// [`HOST_KEYS_CONFIG_MAP`]. No entry has such a key, and no jump host.
pub const MACHINE_KEY_SUFFIX: &str = "_machine";

/// ConfigMap that the cluster fills with the trusted CA bundle.
pub const TRUSTED_CA_CONFIG_MAP: &str = "trusted-ca";

/// Key of the bundle in [`TRUSTED_CA_CONFIG_MAP`].
pub const CA_BUNDLE_KEY: &str = "ca-bundle.crt";

/// Secret with the SSH private key.
pub const PRIVATE_KEY_SECRET: &str = "cloud-private-key";

/// Key of the PEM text in [`PRIVATE_KEY_SECRET`].
pub const PRIVATE_KEY_KEY: &str = "private-key.pem";

/// As [`PRIVATE_KEY_KEY`], the one that replaces it, while keys are exchanged. Ours.
pub const NEXT_PRIVATE_KEY_KEY: &str = "private-key-next.pem";

/// Secret with the serving certificate of the metrics exporter on nodes (`tls.crt`, `tls.key`).
pub const TLS_SECRET: &str = "windows-machine-config-operator-tls";

/// Secret with the kubelet's bootstrap credentials (`ca.crt`, `token`).
pub const BOOTSTRAPPER_SECRET: &str = "node-bootstrapper-token";

/// Namespace of [`BOOTSTRAPPER_SECRET`].
pub const BOOTSTRAPPER_NAMESPACE: &str = "openshift-machine-config-operator";

/// User name of the kubelet's bootstrap credentials.
pub const BOOTSTRAPPER_USER: &str =
    "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper";

/// User in the kubelet's bootstrap kubeconfig. Source: `spec/node-config.md`, section 5.2.
pub const KUBELET_KUBECONFIG_USER: &str = "kubelet";

/// User in WICD's kubeconfig with a token. Source: `spec/node-config.md`, section 5.2.
pub const WICD_KUBECONFIG_USER: &str = "wicd";

/// ServiceAccount, token Secret, Role, ClusterRole, bindings and Windows service of WICD.
pub const WICD: &str = "windows-instance-config-daemon";

/// Source of the daemon's Events. Source: `spec/wicd.md`, section 20.
pub const WICD_CONTROLLER: &str = "windows-instance-config-daemon-controller";

/// Annotation of token Secrets: the ServiceAccount that they belong to.
pub const SERVICE_ACCOUNT_ANNOTATION: &str = "kubernetes.io/service-account.name";

/// Type of token Secrets.
pub const SERVICE_ACCOUNT_TOKEN_TYPE: &str = "kubernetes.io/service-account-token";

/// Key of the CA certificate in token Secrets.
pub const CA_KEY: &str = "ca.crt";

/// Key of the token in token Secrets.
pub const TOKEN_KEY: &str = "token";

/// Key of the certificate in TLS Secrets.
pub const TLS_CERTIFICATE_KEY: &str = "tls.crt";

/// Key of the private key in TLS Secrets.
pub const TLS_PRIVATE_KEY_KEY: &str = "tls.key";

/// Lease of the operator's leader election.
pub const LEADER_LEASE: &str = "windows-machine-config-operator-lock";

/// ControllerConfig with the kubelet CA and the registry CAs.
pub const CONTROLLER_CONFIG: &str = "machine-config-controller";

/// Name of the one cluster-wide object of each configuration kind.
pub const CLUSTER: &str = "cluster";

/// Pool of the Linux workers; Windows nodes take over some of its settings.
/// Source: `spec/node-config.md`, section 13, row 13.
pub const WORKER_POOL: &str = "worker";

/// Group, version and kind of Machines.
pub const MACHINE: (&str, &str, &str) = ("machine.openshift.io", "v1beta1", "Machine");

/// Namespace of Machines.
pub const MACHINE_API_NAMESPACE: &str = "openshift-machine-api";

/// Namespace of the Machines of the Cluster API; not every cluster has it.
pub const CLUSTER_API_NAMESPACE: &str = "openshift-cluster-api";

/// Secret with what a new cloud machine runs when it starts, in [`MACHINE_API_NAMESPACE`] and, where it
/// exists, [`CLUSTER_API_NAMESPACE`]. Source: `spec/operator.md`, section 6.4.
pub const USER_DATA_SECRET: &str = "windows-user-data";

/// Key of the text in [`USER_DATA_SECRET`].
pub const USER_DATA_KEY: &str = "userData";

/// Type of a Secret that is nobody's in particular.
pub const OPAQUE_TYPE: &str = "Opaque";

/// Label of objects that this operator manages, for people.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
