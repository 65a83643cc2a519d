//! Whether a cluster may be used: not if it is somebody's live OpenShift, or has Windows nodes already.

use anyhow::Context as _;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::api::{ListParams, ObjectMeta};
use kube::{Client, Resource, ResourceExt as _};
use wmco_core::names::{self, objects};
use wmco_core::support_matrix::SUPPORTED;

use bin_operator::openshift::ClusterVersion;

use super::asked::ANY_CLUSTER;
use super::{Api, HOST_PREFIX, MADE_LABEL};

/// Succeeds for a version of Kubernetes that the operator works with: in others it configures no host.
///
/// # Errors
/// Names the versions.
pub(crate) fn supported(api: &Api) -> anyhow::Result<()> {
    let version = api.version.parse();
    anyhow::ensure!(
        version.is_ok_and(|version| SUPPORTED.kubernetes.contains(&version)),
        "Kubernetes {} is none that the operator works with, use one of {}",
        api.version,
        SUPPORTED.kubernetes_names()
    );
    Ok(())
}

/// Succeeds for a cluster that has nothing of what this test makes but from an earlier run.
///
/// # Errors
/// Names all that speaks against it, and the variable that outweighs it.
pub(crate) async fn throw_away(api: &Api) -> anyhow::Result<()> {
    let against = against(&api.client).await.context("cannot tell what the cluster has")?;
    anyhow::ensure!(
        against.is_empty(),
        "{} does not look like a cluster to throw away: it has {}; use another one, or set \
         {ANY_CLUSTER}=yes if this one may be changed",
        api.url,
        against.join(", ")
    );
    Ok(())
}

async fn against(client: &Client) -> kube::Result<Vec<String>> {
    let mut against = Vec::new();
    let windows = format!("{}={}", names::OS_LABEL, names::OS_WINDOWS);
    let nodes: kube::Api<Node> = kube::Api::all(client.clone());
    let found = nodes.list(&ListParams::default().labels(&windows)).await?;
    let found = found.iter().map(kube::ResourceExt::name_any);
    let of_others = found.filter(|name| !name.starts_with(HOST_PREFIX));
    against.extend(of_others.map(|name| format!("Windows node {name}")));
    let ours = ListParams::default().fields(&format!("metadata.name={}", objects::OPERATOR));
    let deployments: kube::Api<Deployment> = kube::Api::all(client.clone());
    for deployment in deployments.list(&ours).await? {
        let namespace = deployment.namespace().unwrap_or_default();
        against.push(format!("deployment {namespace}/{}", deployment.name_any()));
    }
    let namespaces: kube::Api<Namespace> = kube::Api::all(client.clone());
    let found = namespaces.get_opt(objects::DEFAULT_NAMESPACE).await?;
    against.extend(
        found.filter(|it| !is_made(it.meta())).map(|it| format!("namespace {}", it.name_any())),
    );
    let versions: kube::Api<ClusterVersion> = kube::Api::all(client.clone());
    let found = match versions.get(objects::CLUSTER_VERSION).await {
        // The kind is missing, or the object.
        Err(kube::Error::Api(status)) if status.code == 404 => None,
        answer => Some(answer?),
    };
    let installed = found.filter(|it| !is_made(it.meta()));
    against.extend(installed.map(|_| "a ClusterVersion, so it is an OpenShift".to_owned()));
    Ok(against)
}

fn is_made(meta: &ObjectMeta) -> bool {
    meta.labels.as_ref().is_some_and(|labels| labels.contains_key(MADE_LABEL))
}
