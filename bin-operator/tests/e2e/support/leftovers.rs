//! What a run leaves in a cluster besides what it made itself: Nodes, certificate requests, and what the
//! operator made outside of its namespace.

use std::time::Duration;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Node};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{Api, DeleteParams, ListParams};
use kube::{Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};
use wmco_core::cluster::rbac::BindingKind;
use wmco_core::names::{self, objects};

use super::{HOST_PREFIX, MADE_LABEL};

/// Namespace of the Leases of Nodes.
const NODE_LEASES: &str = "kube-node-lease";

/// How long what is in a namespace may take to go.
const PATIENCE: Duration = Duration::from_secs(60);

/// Removes what a run left that was killed.
///
/// # Errors
/// When something does not go.
pub(crate) async fn remove_of_earlier_run(client: &Client) -> anyhow::Result<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let found = namespaces.list(&ListParams::default().labels(MADE_LABEL)).await?;
    if found.items.is_empty() {
        return Ok(());
    }
    let made = |namespace: &str| found.iter().any(|it| it.name_any() == namespace);
    let mut failed = remove(client, made).await;
    failed.extend(remove_some(namespaces, |it| it.labels().contains_key(MADE_LABEL)).await);
    failed.extend(until_no_namespaces(client).await);
    anyhow::ensure!(failed.is_empty(), "an earlier run left {}", failed.join(", "));
    Ok(())
}

/// Waits until no namespace is there that a run has made, and returns those that are there still.
pub(crate) async fn until_no_namespaces(client: &Client) -> Vec<String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let end = Instant::now() + PATIENCE;
    loop {
        let left = match namespaces.list(&ListParams::default().labels(MADE_LABEL)).await {
            Ok(left) => left.iter().map(|it| format!("namespace {}", it.name_any())).collect(),
            Err(error) => vec![format!("namespaces: {error}")],
        };
        if left.is_empty() || Instant::now() > end {
            return left;
        }
        sleep(Duration::from_millis(200)).await;
    }
}

/// Removes them, and returns what did not go. What accounts in a namespace asked for, and what is bound to
/// them, goes only if the namespace was `made` by a run: elsewhere it may be somebody else's.
pub(crate) async fn remove(client: &Client, made: impl Fn(&str) -> bool) -> Vec<String> {
    let nodes: Api<Node> = Api::all(client.clone());
    let leases: Api<Lease> = Api::namespaced(client.clone(), NODE_LEASES);
    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    let (bootstrapper, own) =
        (made(objects::BOOTSTRAPPER_NAMESPACE), made(objects::DEFAULT_NAMESPACE));
    let daemon = format!("system:serviceaccount:{}:{}", objects::DEFAULT_NAMESPACE, objects::WICD);
    let asked_here = |request: &CertificateSigningRequest| {
        let user = request.spec.username.as_deref().unwrap_or_default();
        is_of_host(user)
            || bootstrapper && user == objects::BOOTSTRAPPER_USER
            || own && user == daemon
    };
    let binding = BindingKind::ClusterRoleBinding.name();
    [
        remove_some(nodes, |node| node.name_any().starts_with(HOST_PREFIX)).await,
        remove_some(leases, |lease| lease.name_any().starts_with(HOST_PREFIX)).await,
        remove_some(requests, asked_here).await,
        remove_some(bindings, |it| own && it.name_any() == binding).await,
    ]
    .concat()
}

/// Whether this is the kubelet or the daemon of a host of ours.
fn is_of_host(user: &str) -> bool {
    [names::NODE_USER_PREFIX, names::WICD_USER_PREFIX]
        .iter()
        .filter_map(|prefix| user.strip_prefix(prefix))
        .any(|host| host.starts_with(HOST_PREFIX))
}

async fn remove_some<K>(api: Api<K>, ours: impl Fn(&K) -> bool) -> Vec<String>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let kind = K::plural(&());
    let all = match api.list(&ListParams::default()).await {
        Ok(all) => all,
        Err(error) => return vec![format!("{kind}: {error}")],
    };
    let mut failed = Vec::new();
    for object in all.iter().filter(|object| ours(object)) {
        let name = object.name_any();
        match api.delete(&name, &DeleteParams::default()).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(error) => failed.push(format!("{kind} {name}: {error}")),
        }
    }
    failed
}
