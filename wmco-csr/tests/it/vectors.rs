//! Replays `tests/vectors/csr.json`: requests, clusters, and what a correct approver answers.

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Node;
use serde::Deserialize;
use std::collections::BTreeMap;
use wmco_csr::{Decision, Dns, Facts, Policy, Request, Verdict, View, decide};

/// Cases that we answer otherwise than their `strict` says, each with the reason. Only cases of
/// level `either` are here: all of level `must` and `should` are answered as they say.
const OTHERWISE: &[(&str, &str)] = &[];

#[derive(Deserialize)]
struct Case {
    name: String,
    input: Input,
    expect: Expect,
}

#[derive(Deserialize)]
struct Input {
    csr: CertificateSigningRequest,
    cluster: Cluster,
}

#[derive(Deserialize)]
struct Cluster {
    namespace: String,
    nodes: Vec<Node>,
    windows_instances: Option<BTreeMap<String, String>>,
    dns: Dns,
    reported_hostnames: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Expect {
    parsed: Parsed,
    approver: Approver,
    strict: bool,
    strict_level: String,
}

#[derive(Deserialize)]
struct Parsed {
    ok: bool,
    common_name: Option<String>,
    organizations: Option<Vec<String>>,
    dns_names: Option<Vec<String>>,
    ip_addresses: Option<Vec<String>>,
    emails: Option<Vec<String>>,
    uris: Option<Vec<String>>,
    signature_valid: Option<bool>,
}

#[derive(Deserialize)]
struct Approver {
    condition: Option<Condition>,
}

#[derive(Deserialize)]
struct Condition {
    reason: String,
    message: String,
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("../vectors/csr.json")).unwrap()
}

fn decision(input: &Input) -> Decision {
    let cluster = &input.cluster;
    let mut view = View::new();
    for node in &cluster.nodes {
        view.set_node(node);
    }
    let facts = Facts { dns: cluster.dns.clone(), hostnames: cluster.reported_hostnames.clone() };
    let instances = cluster.windows_instances.iter().flatten();
    view.set_instances(instances.map(|(address, _)| (address.as_str(), None)), &facts);
    view.set_request(&input.csr);
    // Long after all of these were created: nothing is worth waiting for.
    let now = "2026-03-01T00:00:00Z".parse().unwrap();
    decide(&Request::from(&input.csr), &Policy::new(&cluster.namespace), &view, now)
}

#[test]
fn every_case_is_answered_as_a_correct_approver_does() {
    let mut wrong = Vec::new();
    for case in cases() {
        let decision = decision(&case.input);
        let approved = matches!(decision.verdict(), Verdict::Approve(_));
        let listed = OTHERWISE.iter().any(|(name, _)| *name == case.name);
        if (approved == case.expect.strict) == listed {
            let Expect { strict, strict_level, .. } = case.expect;
            wrong.push(format!("{} ({strict_level}, strict {strict}): {decision}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
}
