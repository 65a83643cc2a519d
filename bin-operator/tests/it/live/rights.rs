//! What WICD's two identities may do in a cluster where the operator runs.
//!
//! Source: `docs/contract/wicd.md`, WICD90 and WICD91.

use std::fmt::Write as _;

use bin_operator::demo::Stage;
use bin_operator::progress::Progress;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use wmco_core::bundle::Bundle;
use wmco_core::cluster::rbac;
use wmco_core::manifests::{GRANTS, Installation, Place};
use wmco_core::names::{self, objects};

use super::scenery::{admin, listed, operate_until_settled, until};

const GROUP: &str = "rbac.authorization.k8s.io";
const GROUPS: [&str; 5] = ["", "apps", "certificates.k8s.io", "events.k8s.io", GROUP];
const VERBS: [&str; 8] =
    ["create", "delete", "get", "list", "patch", "update", "watch", "impersonate"];
const RESOURCES: [(&str, &str); 9] = [
    ("certificatesigningrequests", ""),
    ("configmaps", ""),
    ("events", ""),
    ("nodes", ""),
    ("nodes", "status"),
    ("pods", ""),
    ("secrets", ""),
    ("serviceaccounts", "token"),
    ("clusterroles", ""),
];

/// The operator has the rights that it uses: all of its watches, and the wait for a Lease.
#[tokio::test(flavor = "multi_thread")]
async fn the_operator_is_refused_nothing() {
    let stage = Stage::start(&listed(&[]), |_, host| host).await.unwrap();
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": objects::LEADER_LEASE, "namespace": stage.namespace()},
        "spec": {"holderIdentity": "another", "leaseDurationSeconds": 2},
    });
    stage.cluster.put(&lease).unwrap();
    let running = stage.operate(Progress::new()).unwrap();
    let binding = rbac::BindingKind::ClusterRoleBinding;
    until(|| stage.cluster.object(GROUP, "clusterrolebindings", "", binding.name())).await;
    let (namespace, user_data) = (objects::MACHINE_API_NAMESPACE, objects::USER_DATA_SECRET);
    until(|| stage.cluster.object("", "secrets", namespace, user_data)).await;
    running.stop().await.unwrap();
    let operator = format!("system:serviceaccount:{}:{}", stage.namespace(), objects::OPERATOR);
    let requests = stage.cluster.requests();
    let ours = || requests.iter().filter(|request| request.user == operator);
    assert!(ours().any(|request| request.verb == "watch" && request.resource == "leases"));
    let refused: Vec<_> = ours().filter(|request| request.code == 403).collect();
    assert!(refused.is_empty(), "{refused:#?}");
    stage.shutdown().await;
}

/// Runs an operator on a platform until it has made its bindings, and leaves the cluster.
async fn installed(platform: &str) -> Stage {
    let stage = Stage::start(&listed(&[]), |_, host| host).await.unwrap();
    let (group, cluster) = ("config.openshift.io", objects::CLUSTER);
    let mut found = (*stage.cluster.object(group, "infrastructures", "", cluster).unwrap()).clone();
    found["status"]["platformStatus"]["type"] = platform.into();
    stage.cluster.put(&found).unwrap();
    let running = stage.operate(Progress::new()).unwrap();
    for &kind in rbac::BindingKind::on(platform) {
        let (plural, namespace) = match kind {
            rbac::BindingKind::RoleBinding => ("rolebindings", stage.namespace()),
            _ => ("clusterrolebindings", ""),
        };
        until(|| stage.cluster.object(GROUP, plural, namespace, kind.name())).await;
    }
    running.stop().await.unwrap();
    stage
}

fn account(stage: &Stage) -> String {
    format!("system:serviceaccount:{}:{}", stage.namespace(), objects::WICD)
}

fn certificate() -> String {
    format!("{}host", names::WICD_USER_PREFIX)
}

/// A line for each resource in `namespace` (empty: all) with the verbs that are allowed there.
pub(super) async fn allowed(stage: &Stage, user: &str, groups: &[&str], namespace: &str) -> String {
    let text = stage.cluster.kubeconfig(user, groups).unwrap();
    let options = KubeConfigOptions::default();
    let kubeconfig = Kubeconfig::from_yaml(&text).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    let api: Api<SelfSubjectAccessReview> = Api::all(Client::try_from(config).unwrap());
    let mut lines = String::new();
    for group in GROUPS {
        for (resource, subresource) in RESOURCES {
            let mut verbs = Vec::new();
            for verb in VERBS {
                let text = |text: &str| Some(text.to_owned());
                let review = SelfSubjectAccessReview {
                    spec: SelfSubjectAccessReviewSpec {
                        resource_attributes: Some(ResourceAttributes {
                            group: text(group),
                            namespace: text(namespace),
                            resource: text(resource),
                            subresource: text(subresource),
                            verb: text(verb),
                            ..ResourceAttributes::default()
                        }),
                        ..SelfSubjectAccessReviewSpec::default()
                    },
                    ..SelfSubjectAccessReview::default()
                };
                let review = api.create(&PostParams::default(), &review).await.unwrap();
                if review.status.unwrap().allowed {
                    verbs.push(verb);
                }
            }
            if !verbs.is_empty() {
                writeln!(lines, "{group}/{resource}/{subresource}: {}", verbs.join(" ")).unwrap();
            }
        }
    }
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn config_maps_are_read_in_the_operators_namespace_only() {
    let stage = installed("None").await;
    let identities =
        [(account(&stage), "system:serviceaccounts"), (certificate(), names::WICD_NODES_GROUP)];
    for (user, group) in &identities {
        let here = allowed(&stage, user, &[group], stage.namespace()).await;
        assert!(here.contains("/configmaps/: get list watch\n"), "{user}: {here}");
        for elsewhere in ["", "default", objects::BOOTSTRAPPER_NAMESPACE] {
            let there = allowed(&stage, user, &[group], elsewhere).await;
            assert!(!there.contains("configmaps"), "{user} in {elsewhere}: {there}");
        }
    }
    stage.shutdown().await;
}

/// The right to make Secrets in a namespace gives the rights of each ServiceAccount there; the right to make
/// a Secret of one certain name is not shown here.
#[tokio::test(flavor = "multi_thread")]
async fn the_operator_makes_any_secrets_in_its_namespace_only() {
    let stage = installed("None").await;
    let operator = format!("system:serviceaccount:{}:{}", stage.namespace(), objects::OPERATOR);
    let groups = ["system:serviceaccounts"];
    let here = allowed(&stage, &operator, &groups, stage.namespace()).await;
    assert!(here.contains("\n/secrets/: create delete list watch\n"), "{here}");
    let others = ["", "default", objects::BOOTSTRAPPER_NAMESPACE, objects::MACHINE_API_NAMESPACE];
    for elsewhere in others {
        let there = allowed(&stage, &operator, &groups, elsewhere).await;
        assert!(there.contains("/nodes/") && !there.contains("/secrets/"), "{elsewhere}: {there}");
    }
    stage.shutdown().await;
}

/// A Secret as the operator itself would write it, and what the API says to that.
async fn written(stage: &Stage, namespace: &str, type_: &str) -> kube::Result<Secret> {
    let operator = format!("system:serviceaccount:{}:{}", stage.namespace(), objects::OPERATOR);
    let text = stage.cluster.kubeconfig(&operator, &["system:serviceaccounts"]).unwrap();
    let kubeconfig = Kubeconfig::from_yaml(&text).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    let api: Api<Secret> = Api::namespaced(Client::try_from(config).unwrap(), namespace);
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": type_,
        "metadata": {
            "name": objects::USER_DATA_SECRET,
            "annotations": {objects::SERVICE_ACCOUNT_ANNOTATION: "default"},
        },
    });
    let params = PatchParams::apply("test").force();
    api.patch(objects::USER_DATA_SECRET, &params, &Patch::Apply(secret)).await
}

/// Gives the operator what the Operator Lifecycle Manager would, and nothing else.
async fn give_rights_of_the_bundle(stage: &Stage) {
    let bundle = Bundle {
        installation: Installation::default(),
        version: "1.0.0".parse().unwrap(),
        skip_range: None,
        catalog_image: "catalog",
        own_image: "bundle",
    };
    let name = format!("manifests/{}.clusterserviceversion.yaml", objects::OPERATOR);
    let version: Value = serde_saphyr::from_str(&bundle.files()[&name]).unwrap();
    let granted = &version["spec"]["install"]["spec"];
    for (kind, namespace, field) in [
        ("ClusterRole", None, "clusterPermissions"),
        ("Role", Some(stage.namespace()), "permissions"),
    ] {
        let mut metadata = json!({"name": objects::OPERATOR});
        if let Some(namespace) = namespace {
            metadata["namespace"] = namespace.into();
        }
        let role = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": metadata,
            "rules": granted[field][0]["rules"],
        });
        stage.cluster.put(&role).unwrap();
    }
    for grant in GRANTS {
        let Place::Elsewhere(namespace) = grant.place else { continue };
        let bindings: Api<RoleBinding> = Api::namespaced(admin(stage).await, namespace);
        for binding in bindings.list(&ListParams::default()).await.unwrap() {
            let name = binding.metadata.name.unwrap();
            bindings.delete(&name, &DeleteParams::default()).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rights_of_the_bundle_are_enough() {
    let addresses = ["10.20.30.1".to_owned()];
    let stage = Stage::start(&listed(&addresses), |_, host| host).await.unwrap();
    give_rights_of_the_bundle(&stage).await;
    let running = operate_until_settled(&stage, &addresses).await;
    let (namespace, user_data) = (objects::MACHINE_API_NAMESPACE, objects::USER_DATA_SECRET);
    until(|| stage.cluster.object("", "secrets", namespace, user_data)).await;
    running.stop().await.unwrap();
    let operator = format!("system:serviceaccount:{}:{}", stage.namespace(), objects::OPERATOR);
    let asked = stage.cluster.access_decisions();
    let refused: Vec<_> = asked.iter().filter(|it| it.user == operator && !it.allowed).collect();
    assert!(refused.is_empty(), "{refused:#?}");
    stage.shutdown().await;
}

/// With the rights of a bundle, which are not narrowed to namespaces.
#[tokio::test(flavor = "multi_thread")]
async fn secrets_that_ask_for_tokens_are_refused_to_the_operator() {
    let stage = Stage::start(&listed(&[]), |_, host| host).await.unwrap();
    give_rights_of_the_bundle(&stage).await;
    let (token, opaque) = (objects::SERVICE_ACCOUNT_TOKEN_TYPE, objects::OPAQUE_TYPE);
    let machines = objects::MACHINE_API_NAMESPACE;
    for (namespace, type_) in [(machines, token), ("default", opaque), ("default", token)] {
        let error = written(&stage, namespace, type_).await.unwrap_err().to_string();
        assert!(error.contains("windows-machine-config-operator-secrets"), "{namespace}: {error}");
    }
    written(&stage, machines, opaque).await.unwrap();
    // Not shut down, for what was asked here was asked by us, and is no use of the operator's rights.
    drop(stage);
}

/// All that is allowed outside the operator's namespace.
#[tokio::test(flavor = "multi_thread")]
async fn elsewhere_there_are_nodes_requests_and_events() {
    let stage = installed("None").await;
    let token = allowed(&stage, &account(&stage), &["system:serviceaccounts"], "").await;
    insta::assert_snapshot!(token, @r"
    /nodes/: get list patch update
    certificates.k8s.io/certificatesigningrequests/: create get list watch
    ");
    let certificate = allowed(&stage, &certificate(), &[names::WICD_NODES_GROUP], "").await;
    insta::assert_snapshot!(certificate, @r"
    /nodes/: get list patch update watch
    certificates.k8s.io/certificatesigningrequests/: create get list watch
    events.k8s.io/events/: create patch
    ");
    stage.shutdown().await;
}

/// It works with WICD's kubeconfig.
#[tokio::test(flavor = "multi_thread")]
async fn azures_cloud_node_manager_may_do_its_work() {
    let stage = installed("Azure").await;
    let identities =
        [(account(&stage), "system:serviceaccounts"), (certificate(), names::WICD_NODES_GROUP)];
    for (user, group) in &identities {
        let allowed = allowed(&stage, user, &[group], "").await;
        let needed = "/nodes/: get list patch update watch\n/nodes/status: patch\n";
        assert!(allowed.contains(needed), "{user}: {allowed}");
        assert!(!allowed.contains("configmaps"), "{user}: {allowed}");
    }
    stage.shutdown().await;
}
