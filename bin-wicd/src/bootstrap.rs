//! `wicd bootstrap`: the bootstrap services of one services ConfigMap, from the cluster.

use anyhow::Context as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use wmco_core::names::objects::services_name;
use wmco_core::protocol::ServicesData;
use wmco_services::lifecycle;
use wmco_services::manifest::Manifest;
use wmco_services::windows::Windows;

use crate::args::Cluster;
use crate::cluster;

/// Brings up the bootstrap services of the ConfigMap for `version`, with the same code as the
/// operator's host step. Tells whether all of them run.
///
/// # Errors
/// The cluster cannot be reached, the ConfigMap is missing or wrong, or a service does not run.
pub fn bootstrap(windows: &dyn Windows, cluster: &Cluster, version: &str) -> anyhow::Result<bool> {
    let data = crate::runtime()?.block_on(fetch(windows, cluster, version))?;
    let name = services_name(version);
    let manifest = Manifest::parse(&data).with_context(|| format!("ConfigMap {name}"))?;
    let changed = lifecycle::bootstrap(windows, &manifest, Timestamp::now())?;
    tracing::info!(changed, "the bootstrap services run");
    Ok(true)
}

async fn fetch(
    windows: &dyn Windows,
    cluster: &Cluster,
    version: &str,
) -> anyhow::Result<ServicesData> {
    let client = cluster::client(windows.files(), &cluster.kubeconfig)?;
    let namespace = &cluster.namespace;
    let maps: Api<ConfigMap> = Api::namespaced(client, namespace);
    let name = services_name(version);
    let map = maps.get(&name).await.with_context(|| {
        format!("ConfigMap {name} in namespace {namespace} cannot be read, check the version")
    })?;
    Ok(ServicesData(map.data.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use kube_testserver::TestServer;
    use serde_json::json;
    use tokio::runtime::Runtime;
    use wmco_core::names::host;
    use wmco_core::protocol::ServiceRunState;
    use wmco_services::fake::FakeWindows;
    use wmco_services::windows::ServiceManager as _;

    use super::*;

    const PROGRAM: &str = r"C:\k\containerd\containerd.exe";

    /// A cluster with the ConfigMap of version 1.2.3, and a host with a kubeconfig for it.
    fn world() -> (Runtime, TestServer, FakeWindows, Cluster) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let cluster = runtime.block_on(TestServer::start()).unwrap();
        let service = json!([
            { "name": "containerd", "path": PROGRAM, "bootstrap": true, "priority": 0 },
        ]);
        cluster
            .put(&json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "name": services_name("1.2.3"), "namespace": "default" },
                "data": { "services": service.to_string(), "files": "[]" },
            }))
            .unwrap();
        let windows = FakeWindows::new("winhost");
        let kubeconfig = host::WICD_KUBECONFIG.parse().unwrap();
        windows.put_file(&kubeconfig, cluster.kubeconfig("admin", &["system:masters"]).unwrap());
        (runtime, cluster, windows, Cluster { kubeconfig, namespace: "default".to_owned() })
    }

    #[test]
    fn the_services_of_the_config_map_run_afterwards() {
        let (_runtime, _cluster, windows, cluster) = world();
        windows.put_file(&PROGRAM.parse().unwrap(), "MZ");
        assert!(bootstrap(&windows, &cluster, "1.2.3").unwrap());
        let services = windows.list().unwrap();
        let found = services.iter().find(|service| service.name.to_string() == "containerd");
        assert_eq!(found.unwrap().state, ServiceRunState::Running);
    }

    #[test]
    fn a_missing_config_map_is_named() {
        let (_runtime, _cluster, windows, cluster) = world();
        let error = bootstrap(&windows, &cluster, "9.9.9").unwrap_err();
        assert!(error.to_string().contains("ConfigMap windows-services-9.9.9"), "{error:#}");
    }
}
