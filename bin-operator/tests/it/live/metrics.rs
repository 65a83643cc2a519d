//! Who gets metrics, by which certificate and which TLS.

use bin_operator::demo::{Running, Stage};
use bin_operator::progress::Progress;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::DeleteParams;
use kube_testserver::Fault;
use kube_testserver::error::ApiError;
use rustls::pki_types::CertificateDer;
use rustls::version::{TLS12, TLS13};
use serde_json::json;
use wmco_core::names::monitoring::OPERATOR_METRICS_TLS_SECRET;
use wmco_core::names::objects;

use super::https::{code, connect, connect_by, get, scraper, shown, token};
use super::scenery::{admin, listed, until, until_metrics};

/// An operator without hosts, whose caches are filled.
async fn operator() -> (Stage, Running) {
    let stage = Stage::start(&listed(&[]), |_, host| host).await.unwrap();
    let running = stage.operate(Progress::new()).unwrap();
    until_code(&running, "/readyz", 200).await;
    (stage, running)
}

async fn until_code(running: &Running, path: &str, wanted: u16) {
    while code(running.http, path, None).await != wanted {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// Writes the Secret as the service CA does.
fn serve_with_another(stage: &Stage) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {"name": OPERATOR_METRICS_TLS_SECRET, "namespace": stage.namespace()},
        "stringData": {
            (objects::TLS_CERTIFICATE_KEY): made.cert.pem(),
            (objects::TLS_PRIVATE_KEY_KEY): made.signing_key.serialize_pem(),
        },
    });
    stage.cluster.put(&secret).unwrap();
    made.cert.der().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_for_those_whom_the_api_server_lets() {
    let (stage, running) = operator().await;
    let (may, may_not) = (scraper(&stage).await, token(&stage, "guest").await);
    let text = get(running.http, "/metrics", Some(&may)).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200") && text.contains("wmco_leader 1"), "{text}");
    assert_eq!(code(running.http, "/metrics", Some(&may_not)).await, 403);
    assert_eq!(code(running.http, "/metrics", Some("garbage")).await, 401);
    assert_eq!(code(running.http, "/metrics", None).await, 401);
    assert_eq!(code(running.http, "/healthz", None).await, 200);
    let asked = stage.cluster.requests();
    assert!(asked.iter().all(|request| request.code != 403), "the operator may ask");

    // Who is known is let in without another question; nobody else is, when there is no answer.
    let other = token(&stage, "other").await;
    stage.cluster.inject_faults(|request| {
        let review = request.resource == "tokenreviews";
        review.then(|| Fault::Answer(ApiError::internal("away")))
    });
    assert_eq!(code(running.http, "/metrics", Some(&other)).await, 503);
    assert_eq!(code(running.http, "/metrics", Some(&may)).await, 200);
    stage.cluster.inject_faults(|request| {
        let review = request.resource == "tokenreviews";
        review.then_some(Fault::Hangup)
    });
    assert_eq!(code(running.http, "/metrics", Some(&other)).await, 503);
    stage.cluster.clear_faults();
    assert_eq!(code(running.http, "/metrics", Some(&other)).await, 403);
    running.stop().await.unwrap();
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_certificate_of_the_service_ca_is_taken_and_followed() {
    let (stage, running) = operator().await;
    let shown = async || shown(&connect(running.http).await);
    let own = shown().await;
    let first = serve_with_another(&stage);
    assert_ne!(own, first);
    while shown().await != first {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let rotated = serve_with_another(&stage);
    while shown().await != rotated {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let secrets: Api<Secret> = Api::namespaced(admin(&stage).await, stage.namespace());
    secrets.delete(OPERATOR_METRICS_TLS_SECRET, &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert_eq!(shown().await, rotated, "it stays until there is another");
    running.stop().await.unwrap();
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tls_profile_is_followed_by_those_who_are_asked_to() {
    let (stage, running) = operator().await;
    let profile = |adherence: &str| {
        stage.cluster.put(&json!({
            "apiVersion": "config.openshift.io/v1", "kind": "APIServer",
            "metadata": {"name": objects::CLUSTER},
            "spec": {"tlsAdherence": adherence, "tlsSecurityProfile": {"type": "Modern"}},
        }))
    };
    profile("LegacyAdheringComponentsOnly").unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    connect_by(running.http, &[&TLS12]).await.unwrap();
    profile("StrictAllComponents").unwrap();
    while connect_by(running.http, &[&TLS12]).await.is_ok() {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    connect_by(running.http, &[&TLS13]).await.unwrap();
    profile("").unwrap();
    while connect_by(running.http, &[&TLS12]).await.is_err() {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    running.stop().await.unwrap();
    stage.shutdown().await;
}

/// The metrics that alerts are made of are there while they tell something, and go.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_under_way_is_shown_and_goes() {
    // It is away until it was seen to be pending.
    let away = wmco_sim::host::Fault::RefuseConnections;
    let list = listed(&["10.9.8.1".to_owned()]);
    let stage = Stage::start(&list, |_, host| host.fault(away)).await.unwrap();
    let running = stage.operate(Progress::new()).unwrap();
    let pending = "wmco_instance_pending_since_timestamp_seconds{";
    until_metrics(&stage, &running, |text| text.contains(pending)).await;
    for (_, host) in stage.hosts.iter() {
        host.clear_fault(away);
    }
    let found = until_metrics(&stage, &running, |text| !text.contains(pending)).await;
    let node = super::scenery::nodes(&stage)[0]["metadata"]["name"].as_str().unwrap().to_owned();
    for certificate in ["kubelet-client", "kubelet-serving"] {
        let line = format!(
            "wmco_certificate_expiry_timestamp_seconds{{certificate=\"{certificate}\",node=\"{node}\"}}"
        );
        assert!(found.contains(&line), "{line} is missing: {found}");
    }
    assert!(found.contains("certificate=\"exporter\""), "{found}");
    stage.list(&listed(&[])).unwrap();
    until(|| super::scenery::nodes(&stage).is_empty().then_some(())).await;
    let of_node = format!("node=\"{node}\"");
    until_metrics(&stage, &running, |text| !text.contains(&of_node)).await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}
