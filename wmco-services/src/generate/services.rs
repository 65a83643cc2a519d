//! The services of a node. Source: `docs/contract/services.md`, SVC41 to SVC43.

use wmco_core::names::host;
use wmco_core::render::ContainerdLogLevel;

use super::command::{Command, file_name, fit};
use super::{GenerateError, ManifestInputs, platform};
use crate::manifest::placeholders::{
    HOSTNAME_OVERRIDE, KUBE_CONFIG_PATH, KUBE_PROXY_CONFIG_PATH, NODE_IP, NODE_NAME, NODE_SUBNET,
    VERBOSITY,
};
use crate::manifest::{NodeVariable, PreScript, Service};
use crate::scripts;
use crate::windows::{BadServiceName, ServiceName};

const HYBRID_OVERLAY_SERVICE: &str = "hybrid-overlay-node";
/// Returns all services, before they are sorted by priority.
pub(super) fn all(inputs: &ManifestInputs) -> Result<Vec<Service>, GenerateError> {
    let mut services = vec![
        windows_exporter(inputs),
        containerd(inputs),
        kubelet(inputs)?,
        hybrid_overlay(inputs)?,
        kube_proxy(inputs),
        csi_proxy(inputs),
    ];
    if inputs.platform == "Azure" {
        services.push(cloud_node_manager());
    }
    Ok(services)
}

fn service(name: &str, priority: u64, command: &Command) -> Service {
    Service { priority, ..Service::new(known(name), command.to_string()) }
}

#[expect(clippy::expect_used, reason = "called with constants that every generation test uses")]
fn known(name: &str) -> ServiceName {
    let name: Result<ServiceName, BadServiceName> = name.parse();
    name.expect("a constant name is legal")
}

fn variable(name: &str, path: &str) -> NodeVariable {
    NodeVariable { name: name.to_owned(), node_object_json_path: path.to_owned() }
}

fn node_name() -> NodeVariable {
    variable(NODE_NAME, "{.metadata.name}")
}

fn script(variable: &str, text: &str) -> PreScript {
    PreScript { variable_name: variable.to_owned(), path: text.to_owned(), node_args: Vec::new() }
}

/// Returns the verbosity flag that most services share.
fn verbosity(inputs: &ManifestInputs) -> &'static str {
    if inputs.debug { "--v=4" } else { "--v=2" }
}

fn level(inputs: &ManifestInputs) -> &'static str {
    if inputs.debug { "debug" } else { "info" }
}

/// Builds the command of a program whose output the log runner writes to a file and rotates.
fn wrapped(inputs: &ManifestInputs, log: &str, program: &str) -> Command {
    Command::new(host::LOG_RUNNER)
        .arg(format!(r"-log-file={log}"))
        .extend(inputs.logs.runner_flags())
        .arg(program)
}

fn windows_exporter(inputs: &ManifestInputs) -> Service {
    let command = Command::new(r"C:\k\windows_exporter.exe").args([
        "--collectors.enabled",
        "cpu,logical_disk,net,os,service,system,container,memory,cpu_info",
        "--web.config.file",
        r"C:\k\tls\windows-exporter-webconfig.yaml",
        "--log.level",
        level(inputs),
        "--log.file",
        host::EXPORTER_LOG,
    ]);
    service("windows_exporter", 2, &command)
}

fn containerd(inputs: &ManifestInputs) -> Service {
    let program = r"C:\k\containerd\containerd.exe";
    let command = Command::new(program).args([
        "--config",
        host::CONTAINERD_CONFIG,
        "--log-file",
        host::CONTAINERD_LOG,
        "--run-service",
        "--log-level",
        // The flag overrides the level in the configuration.
        inputs.containerd_log_level.map_or_else(|| level(inputs), ContainerdLogLevel::as_str),
    ]);
    let exclusion = format!(r"C:\Temp\windows-defender-exclusion.ps1 -BinPath {program}");
    Service {
        powershell_pre_scripts: vec![script("", &exclusion)],
        bootstrap: true,
        ..service(host::CONTAINERD_SERVICE, 0, &command)
    }
}

fn kubelet(inputs: &ManifestInputs) -> Result<Service, GenerateError> {
    let host_name = platform::host_name(&inputs.platform);
    let arguments = &inputs.kubelet;
    let provider = match arguments.cloud_provider.as_deref() {
        // The kubelet takes an empty value as none.
        None | Some("") => arguments.cloud_provider.as_deref(),
        Some(value) => Some(fit("the kubelet argument cloud-provider", value)?),
    };
    let config = match arguments.cloud_config.as_deref().map(last_element) {
        None | Some("") => None,
        Some(name) => Some(file_name("the kubelet argument cloud-config", name)?),
    };
    let command = wrapped(inputs, host::KUBELET_LOG, r"C:\k\kubelet.exe")
        .arg(format!("--config={}", host::KUBELET_CONFIG))
        .arg(format!("--bootstrap-kubeconfig={}", host::BOOTSTRAP_KUBECONFIG))
        .arg(format!("--kubeconfig={}", host::KUBELET_KUBECONFIG))
        .args([
            r"--cert-dir=c:\var\lib\kubelet\pki\",
            "--windows-service",
            "--node-labels=node.openshift.io/os_id=Windows",
            "--windows-priorityclass=ABOVE_NORMAL_PRIORITY_CLASS",
            verbosity(inputs),
        ])
        .maybe(provider.map(|value| format!("--cloud-provider={value}")))
        .maybe(config.map(|name| format!(r"--cloud-config={}\{name}", host::ROOT)))
        .maybe(host_name.map(|_| format!("--hostname-override={HOSTNAME_OVERRIDE}")))
        .arg(format!("--node-ip={NODE_IP}"));
    let command = if inputs.platform == "AWS" && !arguments.no_credential_provider {
        command
            .arg(format!("--image-credential-provider-bin-dir={}", host::ROOT))
            .arg(format!("--image-credential-provider-config={}", host::CREDENTIAL_PROVIDER_CONFIG))
    } else {
        command
    };
    let host_name = host_name.map(|text| script(HOSTNAME_OVERRIDE, text));
    let node_ip = script(NODE_IP, scripts::NODE_IP);
    Ok(Service {
        powershell_pre_scripts: host_name.into_iter().chain([node_ip]).collect(),
        dependencies: vec![known(host::CONTAINERD_SERVICE)],
        bootstrap: true,
        ..service(host::KUBELET_SERVICE, 1, &command)
    })
}

/// Returns the last element of a Linux path, ignoring trailing slashes.
fn last_element(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

fn hybrid_overlay(inputs: &ManifestInputs) -> Result<Service, GenerateError> {
    let api_server = fit("the URL of the API server", &inputs.api_server)?;
    let command = Command::new(r"C:\k\hybrid-overlay-node.exe")
        .args(["--node", NODE_NAME])
        .arg(format!("--bootstrap-kubeconfig={}", host::KUBELET_KUBECONFIG))
        .arg(format!("--cert-dir={}", host::CNI_CONFIG))
        .args(["--cert-duration=24h", "--windows-service", "--logfile", host::HYBRID_OVERLAY_LOG])
        .arg(format!("--k8s-apiserver={api_server}"))
        .args(["--k8s-cacert", host::BOOTSTRAP_CA])
        .extend(
            inputs
                .vxlan_port
                .into_iter()
                .flat_map(|port| ["--hybrid-overlay-vxlan-port".to_owned(), port.to_string()]),
        )
        .args(inputs.debug.then_some(["--loglevel", "5"]).into_iter().flatten());
    Ok(Service {
        node_variables_in_command: vec![node_name()],
        dependencies: vec![known(host::KUBELET_SERVICE)],
        ..service(HYBRID_OVERLAY_SERVICE, 2, &command)
    })
}

fn kube_proxy(inputs: &ManifestInputs) -> Service {
    let config = r"C:\k\kube-proxy.conf";
    let command = wrapped(inputs, host::KUBE_PROXY_LOG, r"C:\k\kube-proxy.exe").args([
        "--config",
        config,
        "--windows-service",
    ]);
    let network = PreScript {
        variable_name: String::new(),
        path: format!(
            r"C:\Temp\network-conf.ps1 -hostnameOverride {NODE_NAME} -clusterCIDR {NODE_SUBNET} -kubeConfigPath {KUBE_CONFIG_PATH} -kubeProxyConfigPath {KUBE_PROXY_CONFIG_PATH} -verbosity {VERBOSITY}"
        ),
        node_args: vec![
            node_name(),
            variable(
                NODE_SUBNET,
                r"{.metadata.annotations.k8s\.ovn\.org/hybrid-overlay-node-subnet}",
            ),
            variable(KUBE_CONFIG_PATH, host::KUBELET_KUBECONFIG),
            variable(KUBE_PROXY_CONFIG_PATH, config),
            variable(VERBOSITY, if inputs.debug { "4" } else { "0" }),
        ],
    };
    Service {
        powershell_pre_scripts: vec![network],
        dependencies: vec![known(HYBRID_OVERLAY_SERVICE)],
        ..service("kube-proxy", 3, &command)
    }
}

fn csi_proxy(inputs: &ManifestInputs) -> Service {
    let command = Command::new(r"C:\k\csi-proxy.exe")
        .arg(format!("-log_file={}", host::CSI_PROXY_LOG))
        .args(["-logtostderr=false", "-windows-service", verbosity(inputs)]);
    service("csi-proxy", 2, &command)
}

fn cloud_node_manager() -> Service {
    let command = Command::new(r"C:\k\azure-cloud-node-manager.exe")
        .arg("--windows-service")
        .arg(format!("--node-name={NODE_NAME}"))
        .arg("--wait-routes=false")
        .arg(format!("--kubeconfig={}", host::WICD_KUBECONFIG));
    Service {
        node_variables_in_command: vec![node_name()],
        ..service("cloud-node-manager", 3, &command)
    }
}
