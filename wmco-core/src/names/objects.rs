//! Names of API objects and of the keys in them. Source: `docs/contract/cluster.md`, CLU11 to CLU16.

/// Namespace of a default installation.
pub const DEFAULT_NAMESPACE: &str = "openshift-windows-machine-config-operator";

/// Name of the operator's ClusterRole, Deployment and event source.
pub const OPERATOR: &str = "windows-machine-config-operator";

/// ConfigMap in which administrators list their own hosts: address to `username=NAME`.
pub const INSTANCES_CONFIG_MAP: &str = "windows-instances";

/// Prefix of the services ConfigMaps; the operator version follows.
pub const SERVICES_CONFIG_MAP_PREFIX: &str = "windows-services-";

/// Name of the services ConfigMap of the operator version `version`.
pub fn services_name(version: &str) -> String {
    format!("{SERVICES_CONFIG_MAP_PREFIX}{version}")
}

/// Key of a services ConfigMap: the services. Source: `docs/contract/services.md`, SVC5.
pub const SERVICES_KEY: &str = "services";

/// Key of a services ConfigMap: files with their checksums.
pub const FILES_KEY: &str = "files";

/// Optional key of a services ConfigMap: variables with their values.
pub const ENVIRONMENT_KEY: &str = "environmentVars";

/// Optional key of a services ConfigMap: names of the variables that WICD manages.
pub const WATCHED_KEY: &str = "watchedEnvironmentVars";

/// ConfigMap with the pinned host keys: address to base64 wire form; for jump hosts under `HOST_PORT`. It also has
/// the records of hosts, see [`HOST_RECORD_SUFFIX`].
pub const HOST_KEYS_CONFIG_MAP: &str = "windows-ssh-host-keys";

/// Suffix of the key of a [`HostRecord`](crate::host_record::HostRecord) in [`HOST_KEYS_CONFIG_MAP`], after the
/// address. The Go operator never looks up such a key.
pub const HOST_RECORD_SUFFIX: &str = "_host";

/// Suffix of the keys for a Machine's host in [`HOST_KEYS_CONFIG_MAP`], after the Machine's name. No entry and no
/// jump host has such a key.
pub const MACHINE_KEY_SUFFIX: &str = "_machine";

/// ConfigMap that the cluster fills with the trusted CA bundle.
pub const TRUSTED_CA_CONFIG_MAP: &str = "trusted-ca";

/// Label with which [`TRUSTED_CA_CONFIG_MAP`] asks the cluster to fill it; its value is `"true"`.
pub const INJECT_TRUSTED_CA_LABEL: &str = "config.openshift.io/inject-trusted-cabundle";

/// Key of the bundle in [`TRUSTED_CA_CONFIG_MAP`].
pub const CA_BUNDLE_KEY: &str = "ca-bundle.crt";

/// Secret with the SSH private key.
pub const PRIVATE_KEY_SECRET: &str = "cloud-private-key";

/// Key of the PEM text in [`PRIVATE_KEY_SECRET`].
pub const PRIVATE_KEY_KEY: &str = "private-key.pem";

/// Like [`PRIVATE_KEY_KEY`], for the next key during a key exchange. Ours.
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

/// User in the kubelet's bootstrap kubeconfig. Source: `docs/contract/node-files.md`, FILE13.
pub const KUBELET_KUBECONFIG_USER: &str = "kubelet";

/// User in WICD's kubeconfig with a token. Source: `docs/contract/node-files.md`, FILE14.
pub const WICD_KUBECONFIG_USER: &str = "wicd";

/// ServiceAccount, token Secret, Role, ClusterRole, bindings and Windows service of WICD.
pub const WICD: &str = "windows-instance-config-daemon";

/// Source of the daemon's Events. Source: `docs/contract/wicd.md`, WICD54.
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

/// Name of the one ClusterVersion.
pub const CLUSTER_VERSION: &str = "version";

/// Namespace of the cluster itself.
pub const KUBE_SYSTEM_NAMESPACE: &str = "kube-system";

/// Pool of the Linux workers; Windows nodes use some of its settings. Source: `docs/contract/node-files.md`,
/// FILE19.
pub const WORKER_POOL: &str = "worker";

/// Group, version and kind of Machines.
pub const MACHINE: (&str, &str, &str) = ("machine.openshift.io", "v1beta1", "Machine");

/// Namespace of Machines.
pub const MACHINE_API_NAMESPACE: &str = "openshift-machine-api";

/// Namespace of the Machines of the Cluster API; not every cluster has it.
pub const CLUSTER_API_NAMESPACE: &str = "openshift-cluster-api";

/// Secret with the user data of new cloud machines, in [`MACHINE_API_NAMESPACE`] and, if it exists,
/// [`CLUSTER_API_NAMESPACE`]. Source: `docs/contract/user-data.md`, UD1.
pub const USER_DATA_SECRET: &str = "windows-user-data";

/// Key of the text in [`USER_DATA_SECRET`].
pub const USER_DATA_KEY: &str = "userData";

/// Type of a Secret without a special type.
pub const OPAQUE_TYPE: &str = "Opaque";

/// Label of objects that this operator manages, as information.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
