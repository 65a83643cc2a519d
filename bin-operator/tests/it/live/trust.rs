//! Proxy, trusted certificates and TLS of the cluster reach nodes, at the price of one restart each at most.
//!
//! Source: `docs/contract/proxy-and-trust.md`, and `docs/contract/node-files.md`, FILE12.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bin_operator::demo::Stage;
use bin_operator::progress::Progress;
use serde_json::{Value, json};
use wmco_core::digest::Sha256;
use wmco_core::names::{events, host, objects};
use wmco_services::certs::Bundle;
use wmco_sim::host::SimHost;

use super::scenery::{
    addresses, delete_config_map, is_finished, listed, nodes, notes, operate_until_settled,
    patch_config_map, stage, until,
};

const LABEL: &str = "config.openshift.io/inject-trusted-cabundle";

/// PEM text of a new self-signed certificate, and its key.
fn new_pem(name: &str) -> [String; 2] {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
    [certificate.self_signed(&key).unwrap().pem(), key.serialize_pem()]
}

fn digest(pem: &str) -> Sha256 {
    *Bundle::parse(pem.as_bytes()).certificates.keys().next().unwrap()
}

/// What the cluster network operator makes of a person's wish.
fn set_proxy(stage: &Stage, status: &Value) {
    stage
        .cluster
        .put(&json!({
            "apiVersion": "config.openshift.io/v1", "kind": "Proxy",
            "metadata": {"name": objects::CLUSTER}, "spec": {}, "status": status,
        }))
        .unwrap();
}

fn trusted_ca(stage: &Stage) -> Option<Arc<Value>> {
    let name = objects::TRUSTED_CA_CONFIG_MAP;
    stage.cluster.object("", "configmaps", stage.namespace(), name)
}

/// Changes the ControllerConfig as the machine config operator does.
fn change_controller_config(stage: &Stage, change: impl FnOnce(&mut Value)) {
    let group = "machineconfiguration.openshift.io";
    let name = objects::CONTROLLER_CONFIG;
    let found = stage.cluster.object(group, "controllerconfigs", "", name).unwrap();
    let mut config = Value::clone(&found);
    change(&mut config["spec"]);
    stage.cluster.put(&config).unwrap();
}

fn file(host: &SimHost, path: &str) -> String {
    let bytes = host.model().file(&path.parse().unwrap()).unwrap_or_default();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Waits until all nodes are finished and their hosts are so; never are two nodes out of service.
async fn rolled_out(stage: &Stage, is_so: impl Fn(&SimHost) -> bool) {
    until(|| {
        let nodes = nodes(stage);
        let cordoned = nodes.iter().filter(|n| n["spec"]["unschedulable"] == json!(true)).count();
        assert!(cordoned <= 1, "{cordoned} nodes are out of service at once");
        let finished = nodes.iter().filter(|node| is_finished(node)).count();
        let hosts: Vec<_> = stage.hosts.iter().collect();
        (finished == hosts.len() && hosts.iter().all(|(_, host)| is_so(host))).then_some(())
    })
    .await;
}

/// How often each host restarted since it was asked last.
fn restarts(stage: &Stage) -> Vec<u64> {
    let counts = stage.hosts.counts().iter().map(|counts| counts.restarts).collect();
    stage.hosts.reset_counts();
    counts
}

/// Whether a host has these variables, in force, and trusts this certificate or not.
fn has(
    host: &SimHost,
    variables: &[(&str, &str)],
    trusted: Option<Sha256>,
    not: &[Sha256],
) -> bool {
    let seen = host.model().snapshot();
    let wanted: BTreeMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    seen.environment == wanted
        && trusted.is_none_or(|sha256| seen.roots.contains(&sha256))
        && !not.iter().any(|sha256| seen.roots.contains(sha256))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_goes_on_changes_and_goes_off_with_one_restart_per_node() {
    let stage = stage(3).await;
    let running = operate_until_settled(&stage, &addresses(3)).await;
    let _ = restarts(&stage);
    let ([first, _], [second, _]) = (new_pem("first"), new_pem("second"));

    set_proxy(
        &stage,
        &json!({"httpsProxy": "http://u:hush@proxy.test:3128", "noProxy": ".svc, a"}),
    );
    let map = until(|| trusted_ca(&stage)).await;
    assert_eq!(map["metadata"]["labels"][LABEL], "true");
    assert_eq!(restarts(&stage), [0, 0, 0], "nobody goes through a proxy that nobody trusts");
    let filled = json!({"data": {objects::CA_BUNDLE_KEY: first}});
    patch_config_map(&stage, objects::TRUSTED_CA_CONFIG_MAP, &filled).await;
    let proxy = [("HTTPS_PROXY", "http://u:hush@proxy.test:3128"), ("NO_PROXY", ".svc,a")];
    rolled_out(&stage, |host| has(host, &proxy, Some(digest(&first)), &[])).await;
    assert_eq!(restarts(&stage), [1, 1, 1]);

    // The label comes back, others stay, and it costs nothing.
    let labels = json!({"metadata": {"labels": {LABEL: null, "mine": "yes"}}});
    patch_config_map(&stage, objects::TRUSTED_CA_CONFIG_MAP, &labels).await;
    let label = |name| Some(trusted_ca(&stage)?["metadata"]["labels"][name].clone());
    until(|| (label(LABEL)? == "true").then_some(())).await;
    assert_eq!(label("mine"), Some(json!("yes")));

    // So does the whole ConfigMap, and until it is filled again hosts keep what they trust.
    let uid = |map: Arc<Value>| map["metadata"]["uid"].clone();
    let before = trusted_ca(&stage).map(uid);
    delete_config_map(&stage, objects::TRUSTED_CA_CONFIG_MAP).await;
    until(|| (trusted_ca(&stage).map(uid).is_some_and(|new| Some(new) != before)).then_some(()))
        .await;
    assert_eq!(label(LABEL), Some(json!("true")));
    patch_config_map(&stage, objects::TRUSTED_CA_CONFIG_MAP, &filled).await;
    rolled_out(&stage, |host| has(host, &proxy, Some(digest(&first)), &[])).await;
    assert_eq!(restarts(&stage), [0, 0, 0]);

    // Variables and roots change at the same time.
    set_proxy(&stage, &json!({"httpProxy": "http://other.test:3128"}));
    let filled = json!({"data": {objects::CA_BUNDLE_KEY: second}});
    patch_config_map(&stage, objects::TRUSTED_CA_CONFIG_MAP, &filled).await;
    let other = [("HTTP_PROXY", "http://other.test:3128")];
    rolled_out(&stage, |host| has(host, &other, Some(digest(&second)), &[digest(&first)])).await;
    let most = restarts(&stage);
    // Both changes are two: who was reached between them restarted for each.
    assert!(most.iter().all(|restarts| (1..=2).contains(restarts)), "{most:?}");

    set_proxy(&stage, &json!({}));
    rolled_out(&stage, |host| has(host, &[], None, &[digest(&first), digest(&second)])).await;
    assert_eq!(restarts(&stage), [1, 1, 1]);

    // A wrong value is reported without the value, and changes nothing.
    set_proxy(&stage, &json!({"httpsProxy": "hush.test:3128"}));
    let told = || notes(&stage, events::INSTANCE_SETUP_FAILURE);
    let note = until(|| told().into_iter().find(|note| note.contains("httpsProxy"))).await;
    assert!(!note.contains("hush"), "{note}");
    rolled_out(&stage, |host| has(host, &[], None, &[])).await;
    assert_eq!(restarts(&stage), [0, 0, 0]);
    running.stop().await.unwrap();

    // An operator that starts then cannot render anything, and hosts leave all the same.
    let running = stage.operate(Progress::new()).unwrap();
    stage.list(&listed(&addresses(2))).unwrap();
    until(|| (nodes(&stage).len() == 2).then_some(())).await;
    until(|| told().iter().any(|note| note.contains("httpsProxy")).then_some(())).await;
    assert!(nodes(&stage).iter().all(|node| is_finished(node)));
    running.stop().await.unwrap();
    stage.shutdown().await;
}

/// The new one may be the same host, so it is looked at, and nothing is done there.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_leaves_beside_a_new_one_whatever_is_wrong() {
    let (stage, all) = (stage(3).await, addresses(3));
    stage.list(&listed(&all[..2])).unwrap();
    let running = operate_until_settled(&stage, &all[..2]).await;
    running.stop().await.unwrap();
    set_proxy(&stage, &json!({"httpsProxy": "hush.test:3128"}));
    let running = stage.operate(Progress::new()).unwrap();
    stage.list(&listed(&[all[0].clone(), all[2].clone()])).unwrap();
    until(|| (nodes(&stage).len() == 1).then_some(())).await;
    let (_, new) = stage.hosts.iter().nth(2).unwrap();
    assert!(!new.model().snapshot().services.keys().any(|name| name.as_str() == "kubelet"));
    set_proxy(&stage, &json!({}));
    let finished = || nodes(&stage).iter().filter(|node| is_finished(node)).count();
    until(|| (finished() == 2).then_some(())).await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}

/// Its variables and its certificates come into force together.
#[tokio::test(flavor = "multi_thread")]
async fn a_join_under_a_proxy_takes_one_restart_more() {
    let mut taken = Vec::new();
    for proxy in [false, true] {
        let stage = stage(1).await;
        let [pem, _] = new_pem("trusted");
        if proxy {
            set_proxy(&stage, &json!({"httpProxy": "http://proxy.test:3128"}));
            let map = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "data": {objects::CA_BUNDLE_KEY: pem},
                "metadata": {
                    "name": objects::TRUSTED_CA_CONFIG_MAP, "namespace": stage.namespace(),
                    "labels": {LABEL: "true"},
                },
            });
            stage.cluster.put(&map).unwrap();
        }
        let running = operate_until_settled(&stage, &addresses(1)).await;
        if proxy {
            let set = [("HTTP_PROXY", "http://proxy.test:3128")];
            rolled_out(&stage, |host| has(host, &set, Some(digest(&pem)), &[])).await;
        }
        taken.extend(restarts(&stage));
        running.stop().await.unwrap();
        stage.shutdown().await;
    }
    assert_eq!(taken[1], taken[0] + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_and_the_profile_of_tls_reach_nodes_while_they_run() {
    let stage = stage(2).await;
    let running = operate_until_settled(&stage, &addresses(2)).await;
    let _ = restarts(&stage);
    let tls = |name: &str| format!(r"{}\{name}", host::TLS_CERTIFICATES);
    let both = [objects::TLS_CERTIFICATE_KEY, objects::TLS_PRIVATE_KEY_KEY].map(tls);

    let [certificate, key] = new_pem("exporter");
    let secret = |data: Value| {
        let metadata = json!({"name": objects::TLS_SECRET, "namespace": stage.namespace()});
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
    };
    let data = json!({
        objects::TLS_CERTIFICATE_KEY: BASE64_STANDARD.encode(&certificate),
        objects::TLS_PRIVATE_KEY_KEY: BASE64_STANDARD.encode(&key),
    });
    stage.cluster.put(&secret(data.clone())).unwrap();
    let files = |host: &SimHost| both.clone().map(|path| file(host, &path));
    rolled_out(&stage, |host| files(host) == [certificate.clone(), key.clone()]).await;

    let [kubelet, _] = new_pem("kubelet");
    change_controller_config(&stage, |spec| {
        spec["kubeAPIServerServingCAData"] = BASE64_STANDARD.encode(&kubelet).into();
    });
    rolled_out(&stage, |host| file(host, host::KUBELET_CA) == kubelet).await;

    let group = "config.openshift.io";
    let profile = json!({"minTLSVersion": "VersionTLS12", "ciphers": ["ECDHE-RSA-AES128-GCM-SHA256", "RC4-SHA"]});
    stage
        .cluster
        .put(&json!({
            "apiVersion": format!("{group}/v1"), "kind": "APIServer",
            "metadata": {"name": objects::CLUSTER},
            "spec": {
                "tlsAdherence": "StrictAllComponents",
                "tlsSecurityProfile": {"type": "Custom", "custom": profile},
            },
        }))
        .unwrap();
    let web_config = format!(r"{}\{}", host::TLS, host::WEB_CONFIG);
    let suite =
        "  min_version: TLS12\n  cipher_suites:\n  - TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256\n";
    rolled_out(&stage, |host| file(host, &web_config).ends_with(suite)).await;
    let told = |reason| notes(&stage, reason);
    let cipher = |note: &String| note.contains("RC4-SHA");
    until(|| told(events::SETTING_NOT_APPLIED).iter().any(cipher).then_some(())).await;
    assert_eq!(restarts(&stage), [0, 0]);

    // Only what nodes trust needs a restart.
    let [registry, _] = new_pem("registry");
    change_controller_config(&stage, |spec| {
        let data = BASE64_STANDARD.encode(&registry);
        spec["imageRegistryBundleUserData"] = json!([{"file": "r.test..5000", "data": data}]);
    });
    rolled_out(&stage, |host| has(host, &[], Some(digest(&registry)), &[])).await;
    assert_eq!(restarts(&stage), [1, 1]);

    // What is empty for a moment takes nothing from hosts.
    stage.cluster.put(&secret(json!({objects::TLS_CERTIFICATE_KEY: ""}))).unwrap();
    change_controller_config(&stage, |spec| {
        spec["kubeAPIServerServingCAData"] = "".into();
        spec["imageRegistryBundleUserData"] = json!([]);
    });
    let lacks = |note: &String| note.contains("machine-config-controller");
    until(|| told(events::INSTANCE_SETUP_FAILURE).iter().any(lacks).then_some(())).await;
    let kept = |host: &SimHost| {
        files(host) == [certificate.clone(), key.clone()]
            && file(host, host::KUBELET_CA) == kubelet
            && has(host, &[], Some(digest(&registry)), &[])
    };
    assert!(stage.hosts.iter().all(|(_, host)| kept(host)));
    assert_eq!(restarts(&stage), [0, 0]);
    running.stop().await.unwrap();
    stage.shutdown().await;
}
