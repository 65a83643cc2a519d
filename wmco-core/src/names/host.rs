//! Paths, services and environment variables on a Windows host.
//!
//! Source: `spec/node-config.md`, section 3, and `spec/services.md`, section 5.

/// Root of everything that we own on a host; its ACL lets in administrators and the system only.
pub const ROOT: &str = r"C:\k";

/// Where uploads wait until the agent moves them into place.
pub const STAGING: &str = r"C:\k\staging";

/// Start of the name of a folder in the login user's own one that an agent is brought to on first
/// contact; random digits follow, see [`FreshFolder`](crate::protocol::FreshFolder).
pub const FRESH_FOLDER_PREFIX: &str = "wmco-";

/// Name of the agent in such a folder.
pub const BROUGHT_AGENT: &str = "wicd.exe";

/// Where the agent puts what lay below an open root and is not ours. Nothing there is run or read, and
/// it outlives the node: it is evidence.
pub const QUARANTINE: &str = r"C:\k\quarantine";

/// Appended to the name of something that stands where we need a folder of our own, until it is moved
/// into [`QUARANTINE`].
pub const FOUND_SUFFIX: &str = ".wmco-found";

/// Folders whose every file is read by a program of the node, whatever its name is, with the files in
/// them that belong there. The first holds static pods, which nobody uses on Windows nodes.
pub const FOLDERS_READ_WHOLE: [(&str, &[&str]); 2] =
    [(r"C:\k\etc\kubernetes\manifests", &[]), (CNI_CONFIG, &[CNI_CONFIG_FILE])];

/// The agent and daemon, WICD, in its final place.
pub const AGENT: &str = r"C:\k\windows-instance-config-daemon.exe";

/// What the agent has placed on the host, so that removal takes back exactly that.
pub const STATE_FILE: &str = r"C:\k\wmco-state.json";

/// Scripts of the payload, which the system runs.
///
/// The services ConfigMap has them in [`MANIFEST_SCRIPTS`].
pub const SCRIPTS: &str = r"C:\k\scripts";

/// Where the services ConfigMap says that the scripts are, for the original operator puts them there.
///
/// On many hosts everybody may write to it, so nothing of ours is in it: the daemon reads
/// [`SCRIPTS`] in its place. Source: `spec/services.md`, sections 5 and 15, row 20.
pub const MANIFEST_SCRIPTS: &str = r"C:\Temp";

/// Module with commands for the Host Networking Service (HNS), part of the payload.
pub const HNS_MODULE: &str = r"C:\k\scripts\hns.psm1";

/// Script that the operator renders for [`SCRIPTS`]; WICD runs it before kube-proxy starts.
///
/// Source: `spec/services.md`, section 13.
pub const NETWORK_SCRIPT: &str = "network-conf.ps1";

/// Root of all logs.
pub const LOGS: &str = r"C:\var\log";

/// CNI plugins.
pub const CNI: &str = r"C:\k\cni";

/// CNI configuration.
pub const CNI_CONFIG: &str = r"C:\k\cni\config";

/// Configuration of the overlay's CNI plugin, written by [`NETWORK_SCRIPT`] on the host.
pub const CNI_CONFIG_FILE: &str = r"C:\k\cni\config\cni.conf";

/// State of CNI plugins; removed before a node starts and when it leaves.
pub const CNI_STATE: &str = r"C:\var\lib\cni";

/// State of the kubelet; removed when a node leaves, since its keys lie below.
pub const KUBELET_STATE: &str = r"C:\var\lib\kubelet";

/// The kubelet's current client certificate and key, one file; the user is the node.
///
/// Source: `spec/services.md`, section 5, and the Kubernetes documentation of kubelet certificates.
pub const KUBELET_CLIENT_CERTIFICATE: &str = r"C:\var\lib\kubelet\pki\kubelet-client-current.pem";

/// containerd, its shim and its configuration.
pub const CONTAINERD: &str = r"C:\k\containerd";

/// containerd's mirror configuration.
pub const REGISTRIES: &str = r"C:\k\containerd\registries";

/// Exporter configuration.
pub const TLS: &str = r"C:\k\tls";

/// Exporter certificates.
pub const TLS_CERTIFICATES: &str = r"C:\k\tls\certs";

/// Program that runs another one and writes what that says to a log.
pub const LOG_RUNNER: &str = r"C:\k\kube-log-runner.exe";

/// WICD's client certificates.
pub const WICD_CERTIFICATES: &str = r"C:\k\wicd-certs";

/// WICD's current client certificate and key, one file.
pub const WICD_CURRENT_CERTIFICATE: &str = r"C:\k\wicd-certs\wicd-client-current.pem";

/// WICD's kubeconfig.
pub const WICD_KUBECONFIG: &str = r"C:\k\wicd-kubeconfig";

/// WICD's log folder.
pub const WICD_LOGS: &str = r"C:\var\log\wicd";

/// The kubelet's bootstrap kubeconfig.
pub const BOOTSTRAP_KUBECONFIG: &str = r"C:\k\bootstrap-kubeconfig";

/// CA of the kubelet's bootstrap kubeconfig.
pub const BOOTSTRAP_CA: &str = r"C:\k\bootstrap-ca.crt";

/// The kubelet's own kubeconfig, written by the kubelet.
pub const KUBELET_KUBECONFIG: &str = r"C:\k\kubeconfig";

/// The kubelet's configuration.
pub const KUBELET_CONFIG: &str = r"C:\k\kubelet.conf";

/// CA of the clients that the kubelet lets in.
pub const KUBELET_CA: &str = r"C:\k\kubelet-ca.crt";

/// Cloud provider configuration.
pub const CLOUD_CONFIG: &str = r"C:\k\cloud.conf";

/// Image credential provider configuration.
pub const CREDENTIAL_PROVIDER_CONFIG: &str = r"C:\k\credential-provider-config.yaml";

/// CA bundle that WICD imports into the host's root store.
pub const CA_BUNDLE: &str = r"C:\k\ca-bundle.crt";

/// Copy of the bundle that WICD imported last.
pub const IMPORTED_CERTIFICATES: &str = r"C:\k\imported-certs.pem";

/// What the daemon remembers of the system-wide variables that it manages. Ours.
pub const VARIABLES_RECORD: &str = r"C:\k\variables.json";

/// Directories that a configured host has, parents before children.
///
/// Source: `spec/node-config.md`, section 3.3 (a set there; the order here is ours).
pub const DIRECTORIES: [&str; 17] = [
    ROOT,
    CNI,
    CNI_CONFIG,
    CONTAINERD,
    REGISTRIES,
    r"C:\k\etc\kubernetes\manifests",
    SCRIPTS,
    TLS,
    WICD_CERTIFICATES,
    LOGS,
    r"C:\var\log\containerd",
    r"C:\var\log\csi-proxy",
    r"C:\var\log\hybrid-overlay",
    r"C:\var\log\kube-proxy",
    r"C:\var\log\kubelet",
    WICD_LOGS,
    r"C:\var\log\windows_exporter",
];

/// HNS network that pods are attached to; the hybrid overlay makes it.
pub const OVERLAY_NETWORK: &str = "OVNKubernetesHybridOverlayNetwork";

/// HNS networks of the hybrid overlay, in the order of their removal.
pub const HNS_NETWORKS: [&str; 2] = ["BaseOVNKubernetesHybridOverlayNetwork", OVERLAY_NETWORK];

/// HNS endpoint on [`OVERLAY_NETWORK`] whose address kube-proxy uses as its own.
pub const VIP_ENDPOINT: &str = "VIPEndpoint";

/// Start of the name of network adapters that Windows makes for networks of containers and for itself when
/// such a network takes over an adapter.
pub const VIRTUAL_ADAPTER_NAME: &str = "vEthernet (";

/// Start of the description of these adapters, which nobody changes. The adapter of a virtual machine is
/// called otherwise.
pub const VIRTUAL_ADAPTER_DESCRIPTION: &str = "Hyper-V Virtual Ethernet";

/// Start of the description of every Windows service of ours; the service's name follows.
pub const SERVICE_TAG: &str = "OpenShift managed";

/// Windows service of containerd.
pub const CONTAINERD_SERVICE: &str = "containerd";

/// Windows service of the kubelet.
pub const KUBELET_SERVICE: &str = "kubelet";

/// Environment variable with the proxy for plain requests.
pub const HTTP_PROXY: &str = "HTTP_PROXY";

/// Environment variable with the proxy for encrypted requests.
pub const HTTPS_PROXY: &str = "HTTPS_PROXY";

/// Environment variables of a proxy. Source: `spec/operator.md`, section 1.2.
pub const PROXY_VARIABLES: [&str; 3] = [HTTP_PROXY, HTTPS_PROXY, "NO_PROXY"];

/// Windows feature that containers need.
pub const CONTAINERS_FEATURE: &str = "Containers";

/// User of cloud machines but those of Azure. Source: `spec/operator.md`, section 3.
pub const ADMINISTRATOR: &str = "Administrator";

/// User of Azure's machines.
pub const AZURE_USER: &str = "capi";

/// Windows capability with the SSH server. Source of this and the next six: `spec/operator.md`,
/// section 6.4.
pub const SSH_CAPABILITY: &str = "OpenSSH.Server~~~~0.0.1.0";

/// Windows service of the SSH server.
pub const SSH_SERVICE: &str = "sshd";

/// Configuration of the SSH server.
pub const SSH_CONFIG: &str = r"C:\ProgramData\ssh\sshd_config";

/// Public keys with which administrators log in.
pub const AUTHORIZED_KEYS: &str = r"C:\ProgramData\ssh\administrators_authorized_keys";

/// Firewall rule of the SSH server.
pub const SSH_RULE: &str = "OpenSSH-Server-In-TCP";

/// Firewall rule, by its display name, of the kubelet's port.
pub const CONTAINER_LOGS_RULE: &str = "ContainerLogsPort";

/// Firewall rule, by its display name, of the metrics exporter's port.
pub const EXPORTER_RULE: &str = "WindowsExporter";

/// Start of the last line of [`AUTHORIZED_KEYS`] as user data writes it; a digest of its keys follows.
///
/// User data may run at every start of a machine. It leaves a file with its line alone, so whoever
/// exchanges keys keeps the line, or a restart of the machine brings the former keys back. Ours.
pub const USER_DATA_MARK: &str = "# from user data ";
