//! The services ConfigMap of the Go operator, on AWS and with debug logging, and the command lines that follow.
//!
//! Source: `docs/contract/services.md`, SVC1 to SVC10 and SVC40 to SVC48.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wmco_core::names::objects;

/// Value of the key `services`, as it writes it; `API_SERVER` stands for the URL of the cluster.
const SERVICES: &str = concat!(
    r#"[{"name":"containerd","path":"C:\\k\\containerd\\containerd.exe --config C:\\k\\containerd\\containerd_conf.toml"#,
    r#" --log-file C:\\var\\log\\containerd\\containerd.log --run-service --log-level debug","#,
    r#""powershellPreScripts":[{"path":"C:\\Temp\\windows-defender-exclusion.ps1 -BinPath"#,
    r#" C:\\k\\containerd\\containerd.exe","NodeArgs":null}],"bootstrap":true,"priority":0},"#,
    r#"{"name":"kubelet","path":"C:\\k\\kube-log-runner.exe -log-file=C:\\var\\log\\kubelet\\kubelet.log"#,
    r#" C:\\k\\kubelet.exe --config=C:\\k\\kubelet.conf --bootstrap-kubeconfig=C:\\k\\bootstrap-kubeconfig"#,
    r#" --kubeconfig=C:\\k\\kubeconfig --cert-dir=c:\\var\\lib\\kubelet\\pki\\ --windows-service"#,
    r#" --node-labels=node.openshift.io/os_id=Windows --windows-priorityclass=ABOVE_NORMAL_PRIORITY_CLASS --v=4"#,
    r#" --hostname-override=HOSTNAME_OVERRIDE --node-ip=NODE_IP --image-credential-provider-bin-dir=C:\\k"#,
    r#" --image-credential-provider-config=C:\\k\\credential-provider-config.yaml","#,
    r#""powershellPreScripts":[{"variableName":"HOSTNAME_OVERRIDE","path":"Invoke-RestMethod -UseBasicParsing"#,
    r#" -Uri http://169.254.169.254/latest/meta-data/local-hostname","NodeArgs":null},{"variableName":"NODE_IP","#,
    r#""path":"(Get-NetRoute -DestinationPrefix '0.0.0.0/0' | Get-NetIpAddress -AddressFamily IPv4 -ifIndex"#,
    r#" {$_.ifIndex}[0]).IPAddress","NodeArgs":null}],"dependencies":["containerd"],"bootstrap":true,"priority":1},"#,
    r#"{"name":"windows_exporter","path":"C:\\k\\windows_exporter.exe --collectors.enabled"#,
    r#" cpu,logical_disk,net,os,service,system,container,memory,cpu_info --web.config.file"#,
    r#" C:\\k\\tls\\windows-exporter-webconfig.yaml --log.level debug --log.file"#,
    r#" C:\\var\\log\\windows_exporter\\windows_exporter.log","bootstrap":false,"priority":2},"#,
    r#"{"name":"hybrid-overlay-node","path":"C:\\k\\hybrid-overlay-node.exe --node NODE_NAME"#,
    r#" --bootstrap-kubeconfig=C:\\k\\kubeconfig --cert-dir=C:\\k\\cni\\config --cert-duration=24h --windows-service"#,
    r#" --logfile C:\\var\\log\\hybrid-overlay\\hybrid-overlay.log --k8s-apiserver=API_SERVER --k8s-cacert"#,
    r#" C:\\k\\bootstrap-ca.crt --hybrid-overlay-vxlan-port 9898 --loglevel 5","#,
    r#""nodeVariablesInCommand":[{"name":"NODE_NAME","nodeObjectJsonPath":"{.metadata.name}"}],"#,
    r#""dependencies":["kubelet"],"bootstrap":false,"priority":2},"#,
    r#"{"name":"csi-proxy","path":"C:\\k\\csi-proxy.exe -log_file=C:\\var\\log\\csi-proxy\\csi-proxy.log"#,
    r#" -logtostderr=false -windows-service --v=4","bootstrap":false,"priority":2},"#,
    r#"{"name":"kube-proxy","path":"C:\\k\\kube-log-runner.exe -log-file=C:\\var\\log\\kube-proxy\\kube-proxy.log"#,
    r#" C:\\k\\kube-proxy.exe --config C:\\k\\kube-proxy.conf --windows-service","#,
    r#""powershellPreScripts":[{"path":"C:\\Temp\\network-conf.ps1 -hostnameOverride NODE_NAME -clusterCIDR NODE_SUBNET"#,
    r#" -kubeConfigPath KUBE_CONFIG_PATH -kubeProxyConfigPath KUBE_PROXY_CONFIG_PATH -verbosity VERBOSITY","#,
    r#""NodeArgs":[{"name":"NODE_NAME","nodeObjectJsonPath":"{.metadata.name}"},{"name":"NODE_SUBNET","#,
    r#""nodeObjectJsonPath":"{.metadata.annotations.k8s\\.ovn\\.org/hybrid-overlay-node-subnet}"},"#,
    r#"{"name":"KUBE_CONFIG_PATH","nodeObjectJsonPath":"C:\\k\\kubeconfig"},"#,
    r#"{"name":"KUBE_PROXY_CONFIG_PATH","nodeObjectJsonPath":"C:\\k\\kube-proxy.conf"},"#,
    r#"{"name":"VERBOSITY","nodeObjectJsonPath":"4"}]}],"#,
    r#""dependencies":["hybrid-overlay-node"],"bootstrap":false,"priority":3}]"#,
);

/// Services that run before there is a Node, in the order in which they start.
pub(super) const BOOTSTRAP: [&str; 2] = ["containerd", "kubelet"];

/// The ConfigMap of a version.
pub(super) fn config_map(namespace: &str, version: &str, api_server: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "immutable": true,
        "metadata": {
            "name": format!("{}{version}", objects::SERVICES_CONFIG_MAP_PREFIX),
            "namespace": namespace,
        },
        "data": {
            "services": SERVICES.replace("API_SERVER", api_server),
            "files": "[]",
            "watchedEnvironmentVars": r#"["HTTP_PROXY","HTTPS_PROXY","NO_PROXY"]"#,
        },
    })
}

/// Command lines of the services on one host, by name.
pub(super) fn commands(api_server: &str, node: &str, address: &str) -> BTreeMap<String, String> {
    let services: Vec<Value> = serde_json::from_str(SERVICES).unwrap();
    let filled = |command: &str| {
        [
            ("HOSTNAME_OVERRIDE", node),
            ("NODE_NAME", node),
            ("NODE_IP", address),
            ("API_SERVER", api_server),
        ]
        .iter()
        .fold(command.to_owned(), |text, (from, to)| text.replace(from, to))
    };
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    services.iter().map(|it| (text(&it["name"]), filled(&text(&it["path"])))).collect()
}
