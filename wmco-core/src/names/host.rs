//! Paths, services and environment variables on a Windows host.
//!
//! Source: `docs/contract/host.md`.

/// Root of all our files on a host; its ACL allows only administrators and the system.
pub const ROOT: &str = r"C:\k";

/// Folder of uploads until the agent moves them into place.
pub const STAGING: &str = r"C:\k\staging";

/// Prefix of a folder in the login user's profile, to which an agent is uploaded on first contact; random digits
/// follow, see [`FreshFolder`](crate::protocol::FreshFolder).
pub const FRESH_FOLDER_PREFIX: &str = "wmco-";

/// Name of the agent in such a folder.
pub const UPLOADED_AGENT: &str = "wicd.exe";

/// Folder for foreign files that the agent found below an open root. Nothing there is run or read, and it is kept
/// after the node is removed, as evidence.
pub const QUARANTINE: &str = r"C:\k\quarantine";

/// Suffix of the name of an object that occupies the place of our folder, until it is moved into [`QUARANTINE`].
pub const FOUND_SUFFIX: &str = ".wmco-found";

/// Folders in which a program of the node reads every file, whatever its name, with the expected files. The first
/// is for static pods, which Windows nodes do not use.
pub const FOLDERS_READ_WHOLE: [(&str, &[&str]); 2] =
    [(r"C:\k\etc\kubernetes\manifests", &[]), (CNI_CONFIG, &[CNI_CONFIG_FILE])];

/// The agent and daemon, WICD, at its final path.
pub const AGENT: &str = r"C:\k\windows-instance-config-daemon.exe";

/// Record of the agent's changes on the host, so that removal undoes exactly these.
pub const STATE_FILE: &str = r"C:\k\wmco-state.json";

/// Scripts of the payload, which run as the system.
///
/// The services ConfigMap has them in [`MANIFEST_SCRIPTS`].
pub const SCRIPTS: &str = r"C:\k\scripts";

/// Folder of the scripts according to the services ConfigMap, where the original operator puts them.
///
/// On many hosts every user may write to it, so it holds nothing of ours: the daemon uses [`SCRIPTS`] in its place.
/// Source: `docs/contract/services.md`, SVC47.
pub const MANIFEST_SCRIPTS: &str = r"C:\Temp";

/// Module with commands for the Host Networking Service (HNS), part of the payload.
pub const HNS_MODULE: &str = r"C:\k\scripts\hns.psm1";

/// Script that the operator renders for [`SCRIPTS`]; WICD runs it before kube-proxy starts.
///
/// Source: `docs/contract/services.md`, SVC50.
pub const NETWORK_SCRIPT: &str = "network-conf.ps1";

/// Root of all logs.
pub const LOGS: &str = r"C:\var\log";

/// CNI plugins.
pub const CNI: &str = r"C:\k\cni";

/// CNI configuration.
pub const CNI_CONFIG: &str = r"C:\k\cni\config";

/// Configuration of the overlay's CNI plugin, written by [`NETWORK_SCRIPT`] on the host.
pub const CNI_CONFIG_FILE: &str = r"C:\k\cni\config\cni.conf";

/// State of CNI plugins; removed before a node starts and when it is removed.
pub const CNI_STATE: &str = r"C:\var\lib\cni";

/// State of the kubelet; removed with the node, because it holds the kubelet's keys.
pub const KUBELET_STATE: &str = r"C:\var\lib\kubelet";

/// The kubelet's current client certificate and key, in one file; the certificate's user is the node.
///
/// Source: `docs/contract/host.md`, HOST33, and the Kubernetes documentation of kubelet certificates.
pub const KUBELET_CLIENT_CERTIFICATE: &str = r"C:\var\lib\kubelet\pki\kubelet-client-current.pem";

/// containerd, its shim and its configuration.
pub const CONTAINERD: &str = r"C:\k\containerd";

/// containerd's own configuration, which it reads when it starts.
///
/// Source: `docs/contract/node-files.md`, FILE16.
pub const CONTAINERD_CONFIG: &str = r"C:\k\containerd\containerd_conf.toml";

/// containerd's mirror configuration.
pub const REGISTRIES: &str = r"C:\k\containerd\registries";

/// Exporter configuration.
pub const TLS: &str = r"C:\k\tls";

/// File in [`TLS`] with the server settings of the metrics exporter, which reads it for each connection.
pub const WEB_CONFIG: &str = "windows-exporter-webconfig.yaml";

/// Exporter certificates.
pub const TLS_CERTIFICATES: &str = r"C:\k\tls\certs";

/// Program that runs another program and writes its output to a log.
pub const LOG_RUNNER: &str = r"C:\k\kube-log-runner.exe";

/// WICD's client certificates.
pub const WICD_CERTIFICATES: &str = r"C:\k\wicd-certs";

/// WICD's current client certificate and key, in one file.
pub const WICD_CURRENT_CERTIFICATE: &str = r"C:\k\wicd-certs\wicd-client-current.pem";

/// WICD's kubeconfig.
pub const WICD_KUBECONFIG: &str = r"C:\k\wicd-kubeconfig";

/// WICD's log folder.
pub const WICD_LOGS: &str = r"C:\var\log\wicd";

/// Name that always leads to WICD's current log in [`WICD_LOGS`].
pub const WICD_CURRENT_LOG: &str = r"C:\var\log\wicd\windows-instance-config-daemon.exe.INFO";

/// containerd's log.
pub const CONTAINERD_LOG: &str = r"C:\var\log\containerd\containerd.log";

/// csi-proxy's log.
pub const CSI_PROXY_LOG: &str = r"C:\var\log\csi-proxy\csi-proxy.log";

/// The hybrid overlay's log.
pub const HYBRID_OVERLAY_LOG: &str = r"C:\var\log\hybrid-overlay\hybrid-overlay.log";

/// kube-proxy's log, which [`LOG_RUNNER`] writes.
pub const KUBE_PROXY_LOG: &str = r"C:\var\log\kube-proxy\kube-proxy.log";

/// The kubelet's log, which [`LOG_RUNNER`] writes.
pub const KUBELET_LOG: &str = r"C:\var\log\kubelet\kubelet.log";

/// The metrics exporter's log.
pub const EXPORTER_LOG: &str = r"C:\var\log\windows_exporter\windows_exporter.log";

/// Logs of services, each in its own folder below [`LOGS`]. WICD limits their size. The cloud node manager has
/// none: it writes to standard error, which services do not have.
///
/// Source: `docs/contract/host.md`, HOST40 to HOST47.
pub const SERVICE_LOGS: [&str; 6] =
    [CONTAINERD_LOG, CSI_PROXY_LOG, HYBRID_OVERLAY_LOG, KUBE_PROXY_LOG, KUBELET_LOG, EXPORTER_LOG];

/// Folder with links to logs for administrators: WICD creates a link to each of [`SERVICE_LOGS`], by the same file
/// name, and [`WICD_LOG_LINK`].
pub const LOG_LINKS: &str = r"C:\k\logs";

/// Link to [`WICD_CURRENT_LOG`].
pub const WICD_LOG_LINK: &str = r"C:\k\logs\wicd.log";

/// The kubelet's bootstrap kubeconfig.
pub const BOOTSTRAP_KUBECONFIG: &str = r"C:\k\bootstrap-kubeconfig";

/// CA of the kubelet's bootstrap kubeconfig.
pub const BOOTSTRAP_CA: &str = r"C:\k\bootstrap-ca.crt";

/// The kubelet's own kubeconfig, written by the kubelet.
pub const KUBELET_KUBECONFIG: &str = r"C:\k\kubeconfig";

/// The kubelet's configuration.
pub const KUBELET_CONFIG: &str = r"C:\k\kubelet.conf";

/// CA of the clients that the kubelet accepts.
pub const KUBELET_CA: &str = r"C:\k\kubelet-ca.crt";

/// Cloud provider configuration.
pub const CLOUD_CONFIG: &str = r"C:\k\cloud.conf";

/// Image credential provider configuration.
pub const CREDENTIAL_PROVIDER_CONFIG: &str = r"C:\k\credential-provider-config.yaml";

/// CA bundle that WICD imports into the host's root store.
pub const CA_BUNDLE: &str = r"C:\k\ca-bundle.crt";

/// Copy of the bundle that WICD last imported.
pub const IMPORTED_CERTIFICATES: &str = r"C:\k\imported-certs.pem";

/// The daemon's record of the system-wide variables that it manages. Ours.
pub const VARIABLES_RECORD: &str = r"C:\k\variables.json";

/// The services ConfigMap as it was released for this node last. Ours.
pub const RELEASED_SERVICES: &str = r"C:\k\services.json";

/// Directories that a configured host has, parents before children.
///
/// Source: `docs/contract/host.md`, HOST1 to HOST13.
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

/// HNS network of the pods, created by the hybrid overlay.
pub const OVERLAY_NETWORK: &str = "OVNKubernetesHybridOverlayNetwork";

/// HNS networks of the hybrid overlay, in the order of their removal.
pub const HNS_NETWORKS: [&str; 2] = ["BaseOVNKubernetesHybridOverlayNetwork", OVERLAY_NETWORK];

/// HNS endpoint on [`OVERLAY_NETWORK`] whose address kube-proxy uses as its own.
pub const VIP_ENDPOINT: &str = "VIPEndpoint";

/// Prefix of the names of network adapters that Windows creates for container networks, and for itself when such a
/// network takes over an adapter.
pub const VIRTUAL_ADAPTER_NAME: &str = "vEthernet (";

/// Prefix of the description of these adapters, which is never changed. The adapter of a virtual machine has
/// another one.
pub const VIRTUAL_ADAPTER_DESCRIPTION: &str = "Hyper-V Virtual Ethernet";

/// Prefix of the description of every Windows service of ours; the service's name follows.
pub const SERVICE_TAG: &str = "OpenShift managed";

/// Windows service of containerd.
pub const CONTAINERD_SERVICE: &str = "containerd";

/// Windows service of the kubelet.
pub const KUBELET_SERVICE: &str = "kubelet";

/// TCP port of the kubelet. Source: `docs/contract/user-data.md`, UD7.
pub const KUBELET_PORT: u16 = 10250;

/// TCP port of the metrics exporter. Source: `docs/contract/cluster.md`, CLU25.
pub const EXPORTER_PORT: u16 = 9182;

/// TCP ports that a node listens on.
pub const NODE_PORTS: [u16; 2] = [KUBELET_PORT, EXPORTER_PORT];

/// Environment variable with the proxy for plain requests.
pub const HTTP_PROXY: &str = "HTTP_PROXY";

/// Environment variable with the proxy for encrypted requests.
pub const HTTPS_PROXY: &str = "HTTPS_PROXY";

/// Environment variable with servers that are reached without a proxy.
pub const NO_PROXY: &str = "NO_PROXY";

/// Environment variables of a proxy. Source: `docs/contract/proxy-and-trust.md`, TRUST1.
pub const PROXY_VARIABLES: [&str; 3] = [HTTP_PROXY, HTTPS_PROXY, NO_PROXY];

/// Windows feature that containers need.
pub const CONTAINERS_FEATURE: &str = "Containers";

/// User of cloud machines except Azure's. Source: `docs/contract/machines.md`, MACH6.
pub const ADMINISTRATOR: &str = "Administrator";

/// User of Azure's machines.
pub const AZURE_USER: &str = "capi";

/// Windows capability with the SSH server. Source of this and the next six:
/// `docs/contract/user-data.md`, UD7.
pub const SSH_CAPABILITY: &str = "OpenSSH.Server~~~~0.0.1.0";

/// Windows service of the SSH server.
pub const SSH_SERVICE: &str = "sshd";

/// Configuration of the SSH server.
pub const SSH_CONFIG: &str = r"C:\ProgramData\ssh\sshd_config";

/// Authorized keys of administrators.
pub const AUTHORIZED_KEYS: &str = r"C:\ProgramData\ssh\administrators_authorized_keys";

/// Firewall rule of the SSH server.
pub const SSH_RULE: &str = "OpenSSH-Server-In-TCP";

/// Firewall rule, by its display name, of the kubelet's port.
pub const CONTAINER_LOGS_RULE: &str = "ContainerLogsPort";

/// Firewall rule, by its display name, of the metrics exporter's port.
pub const EXPORTER_RULE: &str = "WindowsExporter";

/// Prefix of the last line of [`AUTHORIZED_KEYS`] that user data writes; a digest of its keys follows.
///
/// User data may run at every start of a machine. It leaves a file with its own line alone, so an exchange of keys
/// keeps the line; otherwise a restart of the machine would restore the former keys. Ours.
pub const USER_DATA_MARK: &str = "# from user data ";
