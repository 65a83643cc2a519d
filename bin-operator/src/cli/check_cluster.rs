//! `check cluster`: whether a cluster is fit for Windows nodes.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};
use kube::{Client, CustomResourceExt, Resource};
use serde::Serialize;
use serde_json::Value;
use wmco_core::names::objects;
use wmco_core::preflight::{self, ClusterSeen, Finding, NodeSeen, Seen};
use wmco_core::proxy::{ProxyError, ProxySettings};

use super::live::runtime;
use super::{Answer, Output};
use crate::input::{self, CONFIGURATION, InputError, OPERATORS, Objects, Reader};
use crate::openshift::{
    ApiServer, ClusterVersion, ControllerConfig, Infrastructure, MachineConfigPool, Network,
    OperatorNetwork, Proxy, ProxyStatus, proxy_settings,
};

/// How long the API server may take for all objects.
const PATIENCE: Duration = Duration::from_secs(60);

/// Arguments of `check cluster`.
#[derive(Args, Debug)]
pub struct Cluster {
    /// Files with Infrastructure, ClusterVersion, Network (of both groups), Proxy, APIServer and Nodes in YAML or
    /// JSON; `-` is standard input. Missing objects are not checked.
    #[arg(short = 'f', long = "filename", value_name = "FILE", num_args = 1.., required_unless_present = "live")]
    files: Vec<PathBuf>,
    /// Check the cluster of KUBECONFIG instead; changes nothing.
    #[arg(long, conflicts_with = "files")]
    live: bool,
    /// Version of the API server, such as v1.36.2, for a check of files.
    #[arg(long, value_name = "VERSION", conflicts_with = "live")]
    server_version: Option<String>,
    #[command(flatten)]
    output: Output,
}

/// What was found, as `-o json` prints it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Found {
    /// Whether nothing blocks.
    pub(super) ok: bool,
    /// What blocks first.
    pub(super) findings: Vec<Finding>,
    /// What was not looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) not_judged: Vec<&'static str>,
}

impl Cluster {
    /// Checks and prints what was found. "No" means that new work would wait.
    ///
    /// # Errors
    /// The input cannot be read or holds nothing to check, or the cluster does not answer.
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let mut lacks = Vec::new();
        let seen = if self.live {
            let look = async { tokio::time::timeout(PATIENCE, look()).await };
            let looked = runtime()?.block_on(look);
            looked.with_context(|| {
                format!("the API server took more than {PATIENCE:?}, see what holds it up")
            })??
        } else {
            let objects = Reader::new(std::io::stdin()).objects(&self.files)?;
            let seen = cluster_seen(&objects)?;
            let has_proxy = input::of_cluster(&objects, CONFIGURATION, "Proxy")?.is_some();
            lacks.extend((!has_proxy).then_some("Proxy"));
            lacks.extend(objects.nodes.is_empty().then_some("Nodes"));
            lacks.extend(self.server_version.is_none().then_some("--server-version"));
            if seen == ClusterSeen::default() {
                bail!(
                    "the input has nothing that tells of a cluster, add its Infrastructure and Network with -f FILE"
                );
            }
            ClusterSeen { server_version: self.server_version, ..seen }
        };
        let found = Found::of(preflight::cluster(&seen));
        let not_judged = [seen.not_judged(), lacks].concat();
        Found { not_judged, ..found }.print(self.output, "the cluster")
    }
}

impl Found {
    pub(super) fn of(findings: Vec<Finding>) -> Self {
        Self { ok: !findings.iter().any(Finding::blocks), findings, not_judged: Vec::new() }
    }

    /// Prints it, and answers whether `what` is fit.
    pub(super) fn print(&self, output: Output, what: &str) -> anyhow::Result<Answer> {
        output.print(self, || {
            let mut text = String::new();
            for finding in &self.findings {
                let label = if finding.blocks() { "blocks " } else { "warning" };
                // Writing to a string does not fail.
                let _ = writeln!(text, "{label}  {finding}");
            }
            let all = self.findings.len();
            let blocking = self.findings.iter().filter(|finding| finding.blocks()).count();
            let so_far = if self.not_judged.is_empty() { "" } else { ", as far as it was judged" };
            let _ = match (all, blocking) {
                (0, _) => writeln!(text, "{what} is fit for Windows nodes{so_far}"),
                (_, 0) => {
                    writeln!(text, "\n{what} is fit for Windows nodes{so_far}; findings: {all}")
                }
                _ => writeln!(
                    text,
                    "\n{what} is not fit for Windows nodes; findings: {all}, {blocking} that block"
                ),
            };
            if !self.not_judged.is_empty() {
                let _ =
                    writeln!(text, "not judged, for want of it: {}", self.not_judged.join(", "));
            }
            text
        })?;
        Ok(if self.ok { Answer::Yes } else { Answer::No })
    }
}

/// The cluster that objects in files tell of.
///
/// # Errors
/// One of them is there twice.
pub(super) fn cluster_seen(objects: &Objects) -> Result<ClusterSeen, InputError> {
    let body = |kind, group| {
        let found = input::of_cluster(objects, group, kind)?;
        Ok::<_, InputError>(found.map(|found| found.object.clone()))
    };
    let seen =
        |kind, group| body(kind, group).map(|object| object.map_or(Seen::Unknown, Seen::Object));
    Ok(ClusterSeen {
        server_version: None,
        infrastructure: seen("Infrastructure", CONFIGURATION)?,
        cluster_version: seen("ClusterVersion", CONFIGURATION)?,
        network: seen("Network", CONFIGURATION)?,
        operator_network: seen("Network", OPERATORS)?,
        api_server: seen("APIServer", CONFIGURATION)?,
        proxy: body("Proxy", CONFIGURATION)?.as_ref().and_then(proxy),
        worker_pool: Seen::Unknown,
        controller_config: Seen::Unknown,
        nodes: objects.nodes.iter().filter_map(|node| NodeSeen::of(&node.object)).collect(),
    })
}

/// The problem of the cluster's proxy, as it would count without a proxy in the operator's own environment.
fn proxy(object: &Value) -> Option<ProxyError> {
    let status = ProxyStatus::in_force(object);
    proxy_settings(&ProxySettings::default(), Some(status.as_ref())).err()
}

/// The cluster of the current configuration.
async fn look() -> anyhow::Result<ClusterSeen> {
    let config = wmco_kubeconfig::infer().context("no cluster")?;
    let client = wmco_kubeconfig::client(config)?;
    let version = client.apiserver_version().await.context("the API server does not answer")?;
    let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await;
    let nodes = nodes.context("cannot list nodes")?;
    let cluster = objects::CLUSTER;
    let proxies = object::<Proxy>(&client, cluster).await?;
    Ok(ClusterSeen {
        server_version: Some(version.git_version),
        infrastructure: object::<Infrastructure>(&client, cluster).await?,
        cluster_version: object::<ClusterVersion>(&client, objects::CLUSTER_VERSION).await?,
        network: object::<Network>(&client, cluster).await?,
        operator_network: object::<OperatorNetwork>(&client, cluster).await?,
        api_server: object::<ApiServer>(&client, cluster).await?,
        proxy: if let Seen::Object(object) = &proxies { proxy(object) } else { None },
        worker_pool: object::<MachineConfigPool>(&client, objects::WORKER_POOL).await?,
        controller_config: object::<ControllerConfig>(&client, objects::CONTROLLER_CONFIG).await?,
        nodes: nodes.items.iter().filter_map(NodeSeen::of).collect(),
    })
}

/// One object. It is listed, since the answer to a list tells a missing kind from a missing object.
async fn object<K>(client: &Client, name: &str) -> anyhow::Result<Seen>
where
    K: CustomResourceExt + Resource<DynamicType = ()>,
{
    let resource = kube::api::ApiResource::erase::<K>(&());
    let api: Api<kube::api::DynamicObject> = Api::all_with(client.clone(), &resource);
    let only = ListParams::default().fields(&format!("metadata.name={name}"));
    match api.list(&only).await {
        Ok(list) => match list.items.into_iter().next() {
            Some(object) => Ok(Seen::Object(serde_json::to_value(object)?)),
            None => Ok(Seen::ObjectMissing),
        },
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Seen::KindMissing),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", K::crd_name())),
    }
}
