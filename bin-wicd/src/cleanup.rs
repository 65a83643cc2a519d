//! `wicd cleanup`: takes away what bootstrap and controller did, and says so on the Node.
//!
//! Source: `docs/contract/wicd.md`, WICD80 to WICD83.

use std::io::Write;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use wmco_core::names::{self, host, objects};
use wmco_core::protocol::ServicesData;
use wmco_services::manifest::Manifest;
use wmco_services::windows::Windows;
use wmco_services::{daemon, lifecycle};

use crate::args::Cluster;
use crate::{cluster, own_node};

/// What is taken from the cluster before anything is touched.
struct Known {
    manifests: Vec<Manifest>,
    node: Option<String>,
    /// What could not be read or is doubtful, one line each.
    problems: Vec<String>,
}

/// Cleans the host. A restart that it needs is asked for on the Node, and told on `out`, and so is what could
/// not be read and is passed over. Tells whether the host must restart and there is no Node to say so.
///
/// # Errors
/// The cluster cannot be asked, and nothing is touched; or something on the host cannot be taken away.
pub fn cleanup(
    windows: &dyn Windows,
    cluster: &Cluster,
    out: &mut dyn Write,
) -> anyhow::Result<bool> {
    let runtime = crate::runtime()?;
    let (client, known) = runtime.block_on(async {
        let client = cluster::client(windows.files(), &cluster.kubeconfig)?;
        let known = know(&client, &cluster.namespace, windows).await?;
        anyhow::Ok((client, known))
    })?;
    for problem in &known.problems {
        tracing::warn!("{problem}");
        writeln!(out, "{problem}")?;
    }
    let cleaned = lifecycle::cleanup(windows, &known.manifests)?;
    tracing::info!(changed = cleaned.changed, "the host is clean");
    if cleaned.restart_needed {
        writeln!(out, "restart this host: variables or trusted roots were taken away")?;
    }
    let Some(node) = known.node else { return Ok(cleaned.restart_needed) };
    runtime
        .block_on(annotate(client, &node, cleaned.restart_needed))
        .with_context(|| format!("node {node} cannot be annotated"))?;
    Ok(false)
}

async fn know(client: &Client, namespace: &str, windows: &dyn Windows) -> anyhow::Result<Known> {
    let maps = Api::<ConfigMap>::namespaced(client.clone(), namespace)
        .list(&ListParams::default())
        .await
        .context("the services ConfigMaps cannot be listed")?;
    let is_ours = |map: &ConfigMap| {
        let name = map.metadata.name.as_deref().unwrap_or_default();
        name.starts_with(objects::SERVICES_CONFIG_MAP_PREFIX)
    };
    // Whichever was in force, what it brought is known. What was not understood may still be known by its tag.
    let (mut manifests, mut problems) = (Vec::new(), Vec::new());
    for map in maps.items.into_iter().filter(is_ours) {
        match Manifest::parse(&ServicesData(map.data.unwrap_or_default())) {
            Ok(manifest) => manifests.push(manifest),
            Err(error) => {
                let name = map.metadata.name.unwrap_or_default();
                let error = anyhow::Error::from(error);
                problems.push(format!(
                    "ConfigMap {name} cannot be read, what only it names is left: {error:#}"
                ));
            }
        }
    }
    let identity = daemon::host_identity(windows, &host::WICD_CERTIFICATES.parse()?)?;
    let search = own_node::search(client, &identity).await?;
    if search.node.is_none() {
        tracing::info!("no node has an address of this host or the name in its certificates");
    }
    problems.extend(search.warnings);
    Ok(Known { manifests, node: search.node, problems })
}

async fn annotate(client: Client, node: &str, restart_needed: bool) -> kube::Result<()> {
    // In a merge patch null removes, and removing what is not there is fine.
    let mut annotations =
        serde_json::Map::from_iter([(names::VERSION_ANNOTATION.to_owned(), Value::Null)]);
    if restart_needed {
        annotations.insert(names::REBOOT_ANNOTATION.to_owned(), json!(""));
    }
    let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
    Api::<Node>::all(client).patch(node, &PatchParams::default(), &patch).await.map(drop)
}
