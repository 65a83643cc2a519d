//! Certificate requests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Api;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// A request in PEM, its last signature byte changed if `broken`.
fn pem(broken: bool) -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    let request = rcgen::CertificateParams::default().serialize_request(&key).unwrap();
    let mut der = request.der().to_vec();
    if broken {
        *der.last_mut().unwrap() ^= 1;
    }
    let body = STANDARD.encode(der);
    format!("-----BEGIN CERTIFICATE REQUEST-----\n{body}\n-----END CERTIFICATE REQUEST-----\n")
}

fn request(name: &str, broken: bool) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"request": STANDARD.encode(pem(broken)), "signerName": "example.test/signer",
            "usages": ["client auth"]},
    })
}

#[tokio::test]
async fn a_broken_signature_is_refused() {
    let api = Api::new().await;
    let request = request("a", true);
    let (code, status) = api.post(REQUESTS, &request).await;
    let message = format!(
        "CertificateSigningRequest.certificates.k8s.io \"a\" is invalid: spec.request: Invalid \
         value: {}: x509: ECDSA verification failure",
        request["spec"]["request"]
    );
    assert_eq!((code, &status["message"]), (422, &json!(message)));
}

#[tokio::test]
async fn status_may_not_add_or_remove_an_approval() {
    let api = Api::new().await;
    let uri = format!("{REQUESTS}/a");
    assert_eq!(api.post(REQUESTS, &request("a", false)).await.0, 201);
    let condition = |of: &str| json!({"type": of, "status": "True", "reason": "r"});
    let status = |list: Vec<Value>| json!({"status": {"conditions": list}});
    let why = |what: &str, of: &str| {
        json!(format!("Forbidden: updates may not {what} a condition of type {of:?}"))
    };
    for of in ["Approved", "Denied"] {
        let patch = status(vec![condition(of)]);
        let (code, answer) = api.patch("merge", &format!("{uri}/status"), &patch).await;
        let cause = &answer["details"]["causes"][0];
        assert_eq!((code, &cause["message"]), (422, &why("add", of)));
        assert_eq!(cause["field"], "status.conditions");
    }
    let approve = status(vec![condition("Approved")]);
    assert_eq!(api.patch("merge", &format!("{uri}/approval"), &approve).await.0, 200);
    let (code, answer) = api.patch("merge", &format!("{uri}/status"), &status(vec![])).await;
    assert_eq!(
        (code, &answer["details"]["causes"][0]["message"]),
        (422, &why("remove", "Approved"))
    );
    // Another wording of the same condition is taken back, other conditions are kept.
    let mut other = condition("Approved");
    other["message"] = "changed".into();
    let patch = status(vec![condition("Mine"), other]);
    let (code, answer) = api.patch("merge", &format!("{uri}/status"), &patch).await;
    assert_eq!(code, 200);
    assert_eq!(answer["status"]["conditions"][0]["type"], "Mine");
    assert_eq!(answer["status"]["conditions"][1].get("message"), None);
}
