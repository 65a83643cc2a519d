//! The kubelet's configuration file, [`host::KUBELET_CONFIG`].

use std::net::IpAddr;

use serde::Serialize;

use crate::limits;
use crate::names::{OS_ID_WINDOWS, host};

/// Text of [`host::KUBELET_CONFIG`]: a `KubeletConfiguration` in JSON.
///
/// `cluster_dns` is [`IpNetwork::cluster_dns`](crate::ip_network::IpNetwork::cluster_dns). Values that mean
/// "default" are written where the original writes them, so that the file of an existing node does not change by a
/// byte. Source: `docs/contract/node-files.md`, FILE9.
pub fn kubelet_config(cluster_dns: IpAddr) -> String {
    text(&KubeletConfiguration::new(cluster_dns))
}

#[expect(clippy::expect_used, reason = "plain structs with string keys serialize")]
fn text(configuration: &KubeletConfiguration) -> String {
    serde_json::to_string(configuration).expect("a kubelet configuration is JSON")
}

/// A duration for which the kubelet uses its default.
const DEFAULT: &str = "0s";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "the kubelet's format has them")]
struct KubeletConfiguration {
    kind: &'static str,
    api_version: &'static str,
    sync_frequency: &'static str,
    file_check_frequency: &'static str,
    http_check_frequency: &'static str,
    rotate_certificates: bool,
    #[serde(rename = "serverTLSBootstrap")]
    server_tls_bootstrap: bool,
    authentication: Authentication,
    authorization: Authorization,
    cluster_domain: &'static str,
    #[serde(rename = "clusterDNS")]
    cluster_dns: [IpAddr; 1],
    streaming_connection_idle_timeout: &'static str,
    node_status_update_frequency: &'static str,
    node_status_report_frequency: &'static str,
    #[serde(rename = "imageMinimumGCAge")]
    image_minimum_gc_age: &'static str,
    #[serde(rename = "imageMaximumGCAge")]
    image_maximum_gc_age: &'static str,
    volume_stats_agg_period: &'static str,
    #[serde(rename = "cgroupsPerQOS")]
    cgroups_per_qos: bool,
    cpu_manager_reconcile_period: &'static str,
    runtime_request_timeout: &'static str,
    max_pods: u32,
    /// Empty, not absent: absent means Linux's default file.
    resolv_conf: &'static str,
    #[serde(rename = "kubeAPIQPS")]
    kube_api_qps: u32,
    #[serde(rename = "kubeAPIBurst")]
    kube_api_burst: u32,
    serialize_image_pulls: bool,
    eviction_hard: EvictionHard,
    eviction_pressure_transition_period: &'static str,
    feature_gates: FeatureGates,
    memory_swap: Empty,
    container_log_max_size: &'static str,
    system_reserved: SystemReserved,
    enforce_node_allocatable: [&'static str; 1],
    logging: Logging,
    enable_system_log_handler: bool,
    enable_system_log_query: bool,
    shutdown_grace_period: &'static str,
    shutdown_grace_period_critical_pods: &'static str,
    crash_loop_back_off: Empty,
    register_with_taints: [Taint; 1],
    register_node: bool,
    container_runtime_endpoint: &'static str,
}

#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
struct Authentication {
    x509: X509,
    webhook: AuthenticationWebhook,
    anonymous: Anonymous,
}

#[derive(Serialize)]
struct X509 {
    #[serde(rename = "clientCAFile")]
    client_ca_file: &'static str,
}

#[derive(Serialize)]
struct AuthenticationWebhook {
    #[serde(rename = "cacheTTL")]
    cache_ttl: &'static str,
}

#[derive(Serialize)]
struct Anonymous {
    enabled: bool,
}

#[derive(Serialize)]
struct Authorization {
    webhook: AuthorizationWebhook,
}

#[derive(Serialize)]
struct AuthorizationWebhook {
    #[serde(rename = "cacheAuthorizedTTL")]
    cache_authorized_ttl: &'static str,
    #[serde(rename = "cacheUnauthorizedTTL")]
    cache_unauthorized_ttl: &'static str,
}

#[derive(Serialize)]
struct EvictionHard {
    #[serde(rename = "imagefs.available")]
    image_fs_available: &'static str,
    #[serde(rename = "nodefs.available")]
    node_fs_available: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct FeatureGates {
    /// Required by `enableSystemLogQuery`.
    node_log_query: bool,
    rotate_kubelet_server_certificate: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct SystemReserved {
    cpu: &'static str,
    ephemeral_storage: &'static str,
    memory: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Logging {
    flush_frequency: &'static str,
    verbosity: u32,
    options: LoggingOptions,
}

#[derive(Serialize)]
struct LoggingOptions {
    text: InfoBuffer,
    json: InfoBuffer,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InfoBuffer {
    info_buffer_size: &'static str,
}

#[derive(Serialize)]
struct Taint {
    key: &'static str,
    value: &'static str,
    effect: &'static str,
}

impl KubeletConfiguration {
    fn new(cluster_dns: IpAddr) -> Self {
        Self {
            kind: "KubeletConfiguration",
            api_version: "kubelet.config.k8s.io/v1beta1",
            sync_frequency: DEFAULT,
            file_check_frequency: DEFAULT,
            http_check_frequency: DEFAULT,
            rotate_certificates: true,
            server_tls_bootstrap: true,
            authentication: Authentication {
                x509: X509 { client_ca_file: host::KUBELET_CA },
                webhook: AuthenticationWebhook { cache_ttl: DEFAULT },
                anonymous: Anonymous { enabled: false },
            },
            authorization: Authorization {
                webhook: AuthorizationWebhook {
                    cache_authorized_ttl: DEFAULT,
                    cache_unauthorized_ttl: DEFAULT,
                },
            },
            cluster_domain: "cluster.local",
            cluster_dns: [cluster_dns],
            streaming_connection_idle_timeout: DEFAULT,
            node_status_update_frequency: DEFAULT,
            node_status_report_frequency: DEFAULT,
            image_minimum_gc_age: DEFAULT,
            image_maximum_gc_age: DEFAULT,
            volume_stats_agg_period: DEFAULT,
            cgroups_per_qos: false,
            cpu_manager_reconcile_period: DEFAULT,
            runtime_request_timeout: "10m0s",
            max_pods: limits::PODS_PER_NODE,
            resolv_conf: "",
            kube_api_qps: 50,
            kube_api_burst: 100,
            serialize_image_pulls: false,
            eviction_hard: EvictionHard { image_fs_available: "15%", node_fs_available: "10%" },
            eviction_pressure_transition_period: DEFAULT,
            feature_gates: FeatureGates {
                node_log_query: true,
                rotate_kubelet_server_certificate: true,
            },
            memory_swap: Empty {},
            container_log_max_size: "50Mi",
            system_reserved: SystemReserved {
                cpu: "500m",
                ephemeral_storage: "1Gi",
                memory: "2Gi",
            },
            enforce_node_allocatable: ["none"],
            logging: Logging {
                flush_frequency: "5s",
                verbosity: 0,
                options: LoggingOptions {
                    text: InfoBuffer { info_buffer_size: "0" },
                    json: InfoBuffer { info_buffer_size: "0" },
                },
            },
            enable_system_log_handler: true,
            enable_system_log_query: true,
            shutdown_grace_period: DEFAULT,
            shutdown_grace_period_critical_pods: DEFAULT,
            crash_loop_back_off: Empty {},
            register_with_taints: [Taint { key: "os", value: OS_ID_WINDOWS, effect: "NoSchedule" }],
            register_node: true,
            container_runtime_endpoint: "npipe://./pipe/containerd-containerd",
        }
    }
}
