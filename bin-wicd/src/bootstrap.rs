//! `wicd bootstrap`: the bootstrap services of one services ConfigMap, from the cluster.

use std::path::Path;

use anyhow::Context as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use wmco_core::cluster::services_name;
use wmco_core::protocol::ServicesData;
use wmco_services::lifecycle;
use wmco_services::manifest::Manifest;
use wmco_services::windows::Windows;

/// Brings up the bootstrap services of the ConfigMap for `version` in `namespace`, with the same
/// code as the operator's host step. Tells whether all of them run.
///
/// # Errors
/// The cluster cannot be reached, the ConfigMap is missing or wrong, or a service does not run.
pub fn bootstrap(
    windows: &dyn Windows,
    kubeconfig: &Path,
    namespace: &str,
    version: &str,
) -> anyhow::Result<bool> {
    // Every TLS client of this process uses the same library; a second call changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let data = runtime.block_on(fetch(kubeconfig, namespace, version))?;
    let name = services_name(version);
    let manifest = Manifest::parse(&data).with_context(|| format!("ConfigMap {name}"))?;
    lifecycle::bootstrap(windows, &manifest, Timestamp::now())?;
    Ok(true)
}

async fn fetch(kubeconfig: &Path, namespace: &str, version: &str) -> anyhow::Result<ServicesData> {
    let read = Kubeconfig::read_from(kubeconfig)
        .with_context(|| format!("kubeconfig {} cannot be used", kubeconfig.display()))?;
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
    let maps: Api<ConfigMap> = Api::namespaced(Client::try_from(config)?, namespace);
    let name = services_name(version);
    let map = maps.get(&name).await.with_context(|| {
        format!("ConfigMap {name} in namespace {namespace} cannot be read, check the version")
    })?;
    Ok(ServicesData(map.data.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;
    use wmco_core::protocol::ServiceRunState;
    use wmco_services::fake::FakeWindows;
    use wmco_services::windows::ServiceManager as _;
    use wmco_sim::cluster::SimCluster;

    use super::*;

    const PROGRAM: &str = r"C:\k\containerd\containerd.exe";

    /// A cluster with the ConfigMap of version 1.2.3 and a kubeconfig for it.
    fn cluster(folder: &Path) -> (tokio::runtime::Runtime, SimCluster, PathBuf) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let cluster = runtime.block_on(SimCluster::start()).unwrap();
        let service = json!([
            { "name": "containerd", "path": PROGRAM, "bootstrap": true, "priority": 0 },
        ]);
        cluster
            .apply(&json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "name": services_name("1.2.3"), "namespace": "default" },
                "data": { "services": service.to_string(), "files": "[]" },
            }))
            .unwrap();
        let path = folder.join("kubeconfig");
        cluster.write_kubeconfig(&path, "admin", &["system:masters"]).unwrap();
        (runtime, cluster, path)
    }

    #[test]
    fn the_services_of_the_config_map_run_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let (_runtime, _cluster, kubeconfig) = cluster(folder.path());
        let host = FakeWindows::new("winhost");
        host.put_file(&PROGRAM.parse().unwrap(), "MZ");
        assert!(bootstrap(&host, &kubeconfig, "default", "1.2.3").unwrap());
        let services = host.list().unwrap();
        let found = services.iter().find(|service| service.name.to_string() == "containerd");
        assert_eq!(found.unwrap().state, ServiceRunState::Running);
    }

    #[test]
    fn a_missing_config_map_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let (_runtime, _cluster, kubeconfig) = cluster(folder.path());
        let host = FakeWindows::new("winhost");
        let error = bootstrap(&host, &kubeconfig, "default", "9.9.9").unwrap_err();
        assert!(error.to_string().contains("ConfigMap windows-services-9.9.9"), "{error:#}");
    }
}
