//! The operator restores the daemon's bindings after any deletion or change, and without
//! anything else that happens in the cluster: it looks at all by itself less often than a test waits.

use std::sync::Arc;
use std::time::Duration;

use bin_operator::announce::Announcer;
use bin_operator::config::Config;
use bin_operator::demo::{Running, Stage};
use bin_operator::leader::Leadership;
use bin_operator::metrics::Metrics;
use bin_operator::owned::Owned;
use bin_operator::progress::Progress;
use bin_operator::sources::Sources;
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleBinding};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube_testserver::Fault;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wmco_core::cluster::rbac::{self, BindingKind};
use wmco_core::names::{events, objects};
use wmco_ssh::{Options, Pool, PoolLimits, TcpDialer};

use super::scenery::{admin, listed, notes, until};

const GROUP: &str = "rbac.authorization.k8s.io";

fn binding(stage: &Stage, kind: BindingKind) -> Option<Arc<Value>> {
    let (plural, namespace) = match kind {
        BindingKind::RoleBinding => ("rolebindings", stage.namespace()),
        BindingKind::ClusterRoleBinding | BindingKind::CloudNodeManager => {
            ("clusterrolebindings", "")
        }
    };
    stage.cluster.object(GROUP, plural, namespace, kind.name())
}

/// An operator that has nothing to do any more, on a platform that needs all bindings.
async fn at_rest() -> (Stage, Running) {
    let stage = Stage::start(&listed(&[]), |_, host| host).await.unwrap();
    let (group, cluster) = ("config.openshift.io", objects::CLUSTER);
    let mut found = (*stage.cluster.object(group, "infrastructures", "", cluster).unwrap()).clone();
    found["status"]["platformStatus"]["type"] = "Azure".into();
    stage.cluster.put(&found).unwrap();
    let running = stage.operate(Progress::new()).unwrap();
    for &kind in BindingKind::on("Azure") {
        until(|| binding(&stage, kind)).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    (stage, running)
}

async fn delete(stage: &Stage, kind: BindingKind) {
    let (client, options) = (admin(stage).await, DeleteParams::default());
    match kind {
        BindingKind::RoleBinding => {
            let api: Api<RoleBinding> = Api::namespaced(client, stage.namespace());
            api.delete(kind.name(), &options).await.map(drop).unwrap();
        }
        BindingKind::ClusterRoleBinding | BindingKind::CloudNodeManager => {
            let api: Api<ClusterRoleBinding> = Api::all(client);
            api.delete(kind.name(), &options).await.map(drop).unwrap();
        }
    }
}

/// Binds the role to somebody else.
async fn change(stage: &Stage, kind: BindingKind) {
    let subject = json!({"kind": "Group", "apiGroup": GROUP, "name": "everybody"});
    let patch = Patch::Merge(json!({"subjects": [subject]}));
    let (client, options) = (admin(stage).await, PatchParams::default());
    match kind {
        BindingKind::RoleBinding => {
            let api: Api<RoleBinding> = Api::namespaced(client, stage.namespace());
            api.patch(kind.name(), &options, &patch).await.map(drop).unwrap();
        }
        BindingKind::ClusterRoleBinding | BindingKind::CloudNodeManager => {
            let api: Api<ClusterRoleBinding> = Api::all(client);
            api.patch(kind.name(), &options, &patch).await.map(drop).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_binding_is_restored() {
    let (stage, running) = at_rest().await;
    for &kind in BindingKind::on("Azure") {
        let before = binding(&stage, kind).unwrap();
        delete(&stage, kind).await;
        let after = until(|| binding(&stage, kind)).await;
        assert_eq!(
            (&after["subjects"], &after["roleRef"]),
            (&before["subjects"], &before["roleRef"])
        );
    }
    running.stop().await.unwrap();
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_binding_is_restored() {
    let (stage, running) = at_rest().await;
    for &kind in BindingKind::on("Azure") {
        let before = binding(&stage, kind).unwrap();
        change(&stage, kind).await;
        until(|| binding(&stage, kind).filter(|found| found["subjects"] == before["subjects"]))
            .await;
    }
    running.stop().await.unwrap();
    stage.shutdown().await;
}

/// A changed binding is deleted and made anew, and who changed it is told all the same.
#[tokio::test(flavor = "multi_thread")]
async fn who_changes_a_binding_again_and_again_is_told_by_name() {
    let (stage, running) = at_rest().await;
    let (kind, stop) = (BindingKind::ClusterRoleBinding, CancellationToken::new());
    let (api, stopped): (Api<ClusterRoleBinding>, _) =
        (Api::all(admin(&stage).await), stop.clone());
    let fights = tokio::spawn(async move {
        let params = PatchParams { field_manager: Some("flux".into()), ..PatchParams::default() };
        let subject = json!({"kind": "Group", "apiGroup": GROUP, "name": "everybody"});
        let theirs = Patch::Merge(json!({"subjects": [subject]}));
        while !stopped.is_cancelled() {
            let found = api.get_opt(kind.name()).await.unwrap();
            let subjects = found.and_then(|found| found.subjects).unwrap_or_default();
            if subjects.iter().any(|subject| subject.kind == "ServiceAccount") {
                // It may be gone by now.
                let _ = api.patch(kind.name(), &params, &theirs).await;
            }
        }
    });
    let note = until(|| notes(&stage, events::OWNED_OBJECT_FAILURE).pop()).await;
    stop.cancel();
    assert!(note.starts_with("`flux` changes or deletes ClusterRoleBinding"), "{note}");
    fights.await.unwrap();
    running.stop().await.unwrap();
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn binding_whose_deletion_no_event_reports_is_restored_by_the_resync() {
    let stage = Stage::start(&listed(&[]), |_, host| host).await.unwrap();
    let there = rbac::cluster_role_binding(stage.namespace());
    stage.cluster.put(&serde_json::to_value(there).unwrap()).unwrap();
    // The cache has it, and then its watch is silent.
    stage.cluster.inject_faults(|request| {
        let silent = request.verb == "watch" && request.resource == "clusterrolebindings";
        silent.then_some(Fault::Delay(Duration::from_secs(3600)))
    });
    let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
    let client = admin(&stage).await;
    let sources = Sources::watch(&client, stage.namespace(), None, &stop, &tasks);
    sources.ready().await.unwrap();
    let namespace = |name: &str| (name == "WATCH_NAMESPACE").then(|| stage.namespace().to_owned());
    let pool = Pool::new(Arc::new(TcpDialer), Options::default(), PoolLimits::default());
    let metrics = Metrics::new(pool);
    let owned = Owned {
        announcer: Announcer::new(client.clone(), stage.namespace(), "test", metrics),
        client,
        config: Arc::new(Config::from_env(bin_operator::VERSION, false, 1, namespace).unwrap()),
        sources,
        leadership: Leadership::unchallenged(),
        resync: Duration::from_secs(1),
    };
    let running = tokio::spawn(owned.run(stop.clone()));
    until(|| binding(&stage, BindingKind::RoleBinding)).await;
    let kind = BindingKind::ClusterRoleBinding;
    delete(&stage, kind).await;
    until(|| binding(&stage, kind)).await;
    stop.cancel();
    running.await.unwrap();
}
