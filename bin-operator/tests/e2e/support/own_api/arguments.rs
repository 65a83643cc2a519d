//! Command lines.

use std::path::{Path, PathBuf};

/// Ports on 127.0.0.1.
pub(super) struct Ports {
    pub(super) etcd: u16,
    pub(super) etcd_peers: u16,
    pub(super) api: u16,
}

/// What it reads and writes; keys and certificates are PEM.
pub(super) struct Files {
    pub(super) ca: PathBuf,
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    pub(super) accounts_key: PathBuf,
    pub(super) accounts_public_key: PathBuf,
    pub(super) audit_policy: PathBuf,
    pub(super) audit_log: PathBuf,
}

/// A single member that nobody but this machine reaches.
pub(super) fn etcd(ports: &Ports, data: &Path) -> Vec<String> {
    let (clients, peers) = (url(ports.etcd), url(ports.etcd_peers));
    vec![
        format!("--data-dir={}", data.display()),
        format!("--listen-client-urls={clients}"),
        format!("--advertise-client-urls={clients}"),
        format!("--listen-peer-urls={peers}"),
        format!("--initial-advertise-peer-urls={peers}"),
        format!("--initial-cluster=default={peers}"),
    ]
}

/// As strict as a real cluster's about who may do what; without what needs other parts of a cluster.
pub(super) fn api_server(ports: &Ports, files: &Files) -> Vec<String> {
    let file = |flag: &str, path: &Path| format!("--{flag}={}", path.display());
    let mut arguments: Vec<String> = [
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        // A loopback address is none for the endpoints of the service `kubernetes`.
        "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=172.30.0.0/16",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        // It waits for ServiceAccounts that the controller manager makes.
        "--disable-admission-plugins=ServiceAccount",
        "--service-account-issuer=https://kubernetes.default.svc",
    ]
    .map(str::to_owned)
    .into();
    arguments.extend([
        format!("--etcd-servers={}", url(ports.etcd)),
        format!("--secure-port={}", ports.api),
        file("client-ca-file", &files.ca),
        file("tls-cert-file", &files.certificate),
        file("tls-private-key-file", &files.key),
        file("service-account-signing-key-file", &files.accounts_key),
        file("service-account-key-file", &files.accounts_public_key),
        file("audit-policy-file", &files.audit_policy),
        file("audit-log-path", &files.audit_log),
    ]);
    arguments
}

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}
