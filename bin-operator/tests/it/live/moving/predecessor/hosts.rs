//! What the Go operator leaves on a host, and in its Node.
//!
//! Source: `docs/contract/node-files.md`; `docs/contract/nodes.md`; `docs/contract/wicd.md`, WICD20.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bin_operator::demo::Stage;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use wmco_core::digest::Sha256;
use wmco_core::limits;
use wmco_core::names::{self as wire, host, objects};
use wmco_core::protocol::ServiceRunState;
use wmco_core::winpath::WindowsPath;
use wmco_services::windows::{ServiceConfig, StartType, Wait, Windows as _};

use super::cluster::without_comment;
use super::{Member, services};
use crate::live::machines::scenery::Key;
use crate::live::moving::gnupg;
use crate::live::scenery::admin;

/// Programs below its root folder, and scripts, by their full paths.
pub(super) const PROGRAMS: [&str; 13] = [
    r"C:\k\windows-instance-config-daemon.exe",
    r"C:\k\hybrid-overlay-node.exe",
    r"C:\k\windows_exporter.exe",
    r"C:\k\kube-proxy.exe",
    r"C:\k\kubelet.exe",
    r"C:\k\kube-log-runner.exe",
    r"C:\k\csi-proxy.exe",
    r"C:\k\ecr-credential-provider.exe",
    r"C:\k\cni\win-bridge.exe",
    r"C:\k\cni\host-local.exe",
    r"C:\k\cni\win-overlay.exe",
    r"C:\k\containerd\containerd.exe",
    r"C:\k\containerd\containerd-shim-runhcs-v1.exe",
];
pub(super) const SCRIPTS: [&str; 4] = [
    r"C:\Temp\gcp-get-hostname.ps1",
    r"C:\Temp\windows-defender-exclusion.ps1",
    r"C:\Temp\hns.psm1",
    r"C:\Temp\network-conf.ps1",
];
/// Its services, those first that nobody needs any more.
const FROM_LAST_TO_FIRST: [&str; 7] = [
    objects::WICD,
    "kube-proxy",
    "csi-proxy",
    "hybrid-overlay-node",
    "windows_exporter",
    "kubelet",
    "containerd",
];
/// A file that the host's owner keeps beside the scripts.
pub(in crate::live::moving) const MINE: &str = r"C:\Temp\mine.txt";

/// Content of its programs and scripts.
pub(super) fn content(path: &str) -> String {
    format!("MZ {path}, of the Go operator")
}

pub(in crate::live::moving) fn path(text: &str) -> WindowsPath {
    text.parse().unwrap()
}

/// Files, and the services that run before there is a Node.
pub(super) fn bootstrap(stage: &Stage, member: &Member) {
    let put = |at: &str, text: &str| member.model.put_file(&path(at), text);
    for program in PROGRAMS.iter().chain(&SCRIPTS) {
        put(program, &content(program));
    }
    put(MINE, "mine");
    let config = json!({
        "kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "rotateCertificates": true, "serverTLSBootstrap": true,
        "authentication": {"x509": {"clientCAFile": r"C:\k\kubelet-ca.crt"}, "anonymous": {"enabled": false}},
        "clusterDomain": "cluster.local", "clusterDNS": ["172.30.0.10"], "maxPods": 250,
        "registerWithTaints": [{"key": "os", "value": "Windows", "effect": "NoSchedule"}],
        "containerRuntimeEndpoint": "npipe://./pipe/containerd-containerd", "resolvConf": "",
        "syncFrequency": "0s", "memorySwap": {},
    });
    put(r"C:\k\kubelet.conf", &config.to_string());
    let ca = stage.cluster.ca_pem();
    put(r"C:\k\kubelet-ca.crt", ca);
    put(r"C:\k\bootstrap-ca.crt", ca);
    put(r"C:\k\ca-bundle.crt", "");
    put(r"C:\k\containerd\containerd_conf.toml", "version = 2\n");
    put(r"C:\k\credential-provider-config.yaml", "kind: CredentialProviderConfig\n");
    put(r"C:\k\tls\windows-exporter-webconfig.yaml", "tls_server_config: {}\n");
    for key in [objects::TLS_CERTIFICATE_KEY, objects::TLS_PRIVATE_KEY_KEY] {
        let secret = data(stage, stage.namespace(), objects::TLS_SECRET, key);
        put(&format!(r"C:\k\tls\certs\{key}"), &secret);
    }
    let (namespace, secret) = (objects::BOOTSTRAPPER_NAMESPACE, objects::BOOTSTRAPPER_SECRET);
    let token = data(stage, namespace, secret, objects::TOKEN_KEY);
    put(r"C:\k\bootstrap-kubeconfig", &kubeconfig(stage, "kubelet", &json!({"token": token})));
    let token = data(stage, stage.namespace(), objects::WICD, objects::TOKEN_KEY);
    put(r"C:\k\wicd-kubeconfig", &kubeconfig(stage, "wicd", &json!({"token": token})));
    let commands = services::commands(&stage.cluster.url(), &member.node, &member.address);
    for (name, needs) in services::BOOTSTRAP.iter().zip([None, Some("containerd")]) {
        let config = ServiceConfig {
            command: commands[*name].clone(),
            description: format!("OpenShift managed {name}"),
            dependencies: needs.iter().map(|name| name.parse().unwrap()).collect(),
            start: StartType::Manual,
            recovery: None,
        };
        member.model.add_service(&name.parse().unwrap(), &config, ServiceRunState::Running);
    }
}

/// Labels and annotations, which a Node has before its daemon runs; `pinned`: with the host's key.
pub(super) async fn mark(stage: &Stage, member: &Member, version: &str, pinned: bool) {
    let key = without_comment(&Key::first(stage).public.to_openssh().unwrap());
    let mut annotations = json!({
        wire::USERNAME_ANNOTATION: gnupg::encrypt(&member.user, stage.key.expose()),
        wire::PUBLIC_KEY_HASH_ANNOTATION: Sha256::of(key.as_bytes()).to_string(),
        wire::DESIRED_VERSION_ANNOTATION: version,
    });
    if pinned {
        annotations[wire::HOST_KEY_ANNOTATION] = member.host_key().into();
        annotations[wire::HOST_KEY_TYPE_ANNOTATION] = member.key.algorithm().to_string().into();
    }
    let mut patch = json!({"metadata": {"annotations": annotations}});
    if member.machine.is_none() {
        patch["metadata"]["labels"] = json!({wire::BYOH_LABEL: "true", wire::WORKER_LABEL: ""});
    }
    let nodes: Api<Node> = Api::all(admin(stage).await);
    nodes.patch(&member.node, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

/// Its daemon, which does the rest.
pub(super) fn start_daemon(member: &Member) {
    let command = format!(
        r"{} controller --windows-service --log-dir C:\var\log\wicd --namespace {} --kubeconfig C:\k\wicd-kubeconfig --cert-dir C:\k\wicd-certs --cert-duration 1h --ca-bundle C:\k\ca-bundle.crt",
        host::AGENT,
        objects::DEFAULT_NAMESPACE,
    );
    let config = ServiceConfig {
        command,
        description: format!("OpenShift managed {}", objects::WICD),
        dependencies: Vec::new(),
        start: StartType::Automatic,
        recovery: None,
    };
    let name = objects::WICD.parse().unwrap();
    member.model.add_service(&name, &config, ServiceRunState::Running);
}

/// The kubeconfig of a daemon that is configured once more: it has a certificate by then.
pub(super) fn hand_over_to_certificate(stage: &Stage, member: &Member) {
    let file = r"C:\k\wicd-certs\wicd-client-current.pem";
    let user = format!("system:wicd-node:{}", member.node);
    let certificate = json!({"client-certificate": file, "client-key": file});
    let text = kubeconfig(stage, &user, &certificate);
    member.model.put_file(&path(r"C:\k\wicd-kubeconfig"), text);
}

/// Takes everything off a host that its cleanup finds, and all its folders.
pub(super) fn deconfigure(member: &Member) {
    let model = member.model.running_as(path(r"C:\Windows\System32\cmd.exe"));
    let (services, files) = (model.services(), model.files());
    let wait = Wait::at_most(limits::SERVICE_STOP);
    for name in FROM_LAST_TO_FIRST {
        let name = name.parse().unwrap();
        services.stop(&name, wait).unwrap();
        services.delete(&name, wait).unwrap();
    }
    for folder in host::DIRECTORIES.iter().chain(&[host::CNI_STATE]) {
        files.remove_tree(&path(folder)).unwrap();
    }
}

/// What the simulated daemon does and the Go operator's does not: links to logs, and notes of ours.
pub(super) fn remove_traces_of_ours(member: &Member) {
    member.model.with_tree(|tree| {
        let ours = [host::STATE_FILE, host::VARIABLES_RECORD, host::RELEASED_SERVICES].map(path);
        let links: Vec<_> =
            tree.below(&path(host::LOG_LINKS)).map(|(path, _)| path.clone()).collect();
        for path in links.iter().rev().chain([&path(host::LOG_LINKS)]).chain(&ours) {
            tree.remove(path);
        }
    });
}

fn kubeconfig(stage: &Stage, user: &str, access: &Value) -> String {
    json!({
        "clusters": [{"name": "local", "cluster": {
            "server": stage.cluster.url(),
            "certificate-authority-data": BASE64_STANDARD.encode(stage.cluster.ca_pem()),
        }}],
        "users": [{"name": user, "user": access}],
        "contexts": [{"name": user, "context": {"cluster": "local", "user": user}}],
        "current-context": user,
    })
    .to_string()
}

/// A value of a Secret, as text.
fn data(stage: &Stage, namespace: &str, secret: &str, key: &str) -> String {
    let secret = stage.cluster.object("", "secrets", namespace, secret).unwrap();
    let value = secret["data"][key].as_str().unwrap_or_else(|| panic!("{key} in {secret:#}"));
    String::from_utf8(BASE64_STANDARD.decode(value).unwrap()).unwrap()
}
