//! Replays `tests/vectors/csr.json`: requests, clusters, and what a correct approver answers.

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Node;
use serde::Deserialize;
use std::collections::BTreeMap;
use wmco_core::cluster_addresses::ClusterAddresses;
use wmco_csr::pkcs10::{Attribute, GeneralName};
use wmco_csr::{
    CertificationRequest, ClusterFacts, Decision, Dns, Facts, NodeNames, Policy, Request, Verdict,
    View, decide,
};

/// Cases that we answer otherwise than their `strict` says, each with the reason. Only cases of
/// level `either` are here: all of level `must` and `should`, but for `DECIDED_LATER`, are answered as they say.
/// Rules with a number are those of `docs/contract/certificate-requests.md`.
const OTHERWISE: &[(&str, &str)] = &[
    ("kubelet-client: failed before", "a failed request is over, CSR10"),
    ("kubelet-client: signature: SHA-1 with RSA", "weak algorithm, CSR34"),
    ("kubelet-client: DER: version 1", "RFC 2986 knows version 0 only"),
    ("kubelet-client: DER: T61 strings", "readers differ in what the bytes mean"),
    ("kubelet-client: DER: BMP common name", "readers differ in what the bytes mean"),
    ("kubelet-client: DER: requested unknown critical extension", "unexpected content, CSR31"),
    ("kubelet-client: DER: further element within the outer sequence", "not DER of a request"),
    ("kubelet-client: PEM: binary after the end", "data that some readers see, others do not"),
    ("kubelet-client: PEM: two blocks, the second for another node", "readers differ in the block"),
    ("kubelet-client: PEM: base64 in lines of 76", "not the form of RFC 7468"),
    ("kubelet-client: PEM: empty lines within the base64", "not the form of RFC 7468"),
    ("kubelet-client: PEM: headers", "not the form of RFC 7468"),
    (
        "kubelet-serving: DER: data after the SAN sequence",
        "data that some readers see, others do not",
    ),
    ("wicd: PEM: text after the end", "data that some readers see, others do not"),
    ("kubelet-client: openssl: RSA-2048 with PSS", "no node asks so, one algorithm less to trust"),
    ("kubelet-client: openssl: P-224", "weak curve, CSR33"),
];

/// Cases that an operator, which asks hosts for their addresses, answers otherwise although they are
/// of level `must`. The clusters of the vectors know Nodes' words only, so where no host can be asked
/// those are believed; an operator does not, since the requester writes them.
const BELIEVED: &[(&str, &str)] = &[(
    "kubelet-serving: all kinds of addresses of the node",
    "that the host has 203.0.113.15, fd20:30::f and win-echo.pub.example.com says its Node alone",
)];

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

/// Cases whose answer was decided after they were written, with the reason.
const DECIDED_LATER: [(&str, &str); 1] = [(
    "kubelet-serving: own name with a trailing dot",
    "dots at the end mean nothing on either side (CSR36): on AWS a domain with one is copied into the Node and the request",
)];

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("../vectors/csr.json")).unwrap()
}

fn decision(input: &Input, believe_nodes: bool) -> Decision<'_> {
    let cluster = &input.cluster;
    let mut view = View::new();
    // The vectors know no platform, no service network and no addresses that hosts report.
    view.set_cluster(ClusterFacts {
        node_names: NodeNames::of_platform(""),
        addresses: ClusterAddresses { services: Some(Vec::new()), ..ClusterAddresses::default() },
        ..ClusterFacts::default()
    });
    for node in &cluster.nodes {
        view.set_node(node);
    }
    let hostnames = cluster.reported_hostnames.clone();
    let dns = cluster.dns.clone();
    let facts = Facts { dns, hostnames, ..Facts::default() };
    let instances = cluster.windows_instances.iter().flatten();
    view.set_instances(instances.map(|(address, _)| (address.as_str(), None)), &facts);
    view.set_request(&input.csr);
    // Long after all of these were created: nothing is worth waiting for.
    let now = "2026-03-01T00:00:00Z".parse().unwrap();
    let mut policy = Policy::new(&cluster.namespace);
    policy.believe_nodes = believe_nodes;
    decide(&Request::from(&input.csr), &policy, &view, now)
}

#[test]
fn every_case_is_answered_as_a_correct_approver_does() {
    let mut wrong = Vec::new();
    for case in cases() {
        let decision = decision(&case.input, true);
        let approved = matches!(decision.verdict(), Verdict::Approve(_));
        let Expect { strict, strict_level, .. } = &case.expect;
        let listed = OTHERWISE.iter().any(|(name, _)| *name == case.name);
        let decided_later = DECIDED_LATER.iter().any(|(name, _)| *name == case.name);
        let may_differ = *strict_level == "either" || decided_later;
        let listed = listed || decided_later;
        if (approved == *strict) == listed || (listed && !may_differ) {
            wrong.push(format!("{} ({strict_level}, strict {strict}): {decision}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
}

/// Not to believe Nodes changes nothing but the cases that are about that.
#[test]
fn an_operator_believes_no_node() {
    let differs = |case: &Case| {
        let approves = |believe_nodes| {
            matches!(decision(&case.input, believe_nodes).verdict(), Verdict::Approve(_))
        };
        approves(true) != approves(false)
    };
    let all = cases();
    let found: Vec<_> = all.iter().filter(|case| differs(case)).map(|case| &*case.name).collect();
    let listed: Vec<_> = BELIEVED.iter().map(|(name, _)| *name).collect();
    assert_eq!(found, listed);
}

#[test]
fn conditions_are_those_of_the_original() {
    let mut compared = 0;
    for case in cases() {
        let Some(expected) = &case.expect.approver.condition else { continue };
        let Verdict::Approve(approval) = decision(&case.input, true).into_verdict() else {
            continue;
        };
        let now = "2026-03-01T00:00:00Z".parse().unwrap();
        let found = serde_json::to_value(approval.condition(now)).unwrap();
        let expected = serde_json::json!({
            "type": "Approved",
            "status": "True",
            "reason": expected.reason,
            "message": expected.message,
            "lastUpdateTime": "2026-03-01T00:00:00Z",
        });
        assert_eq!(found, expected, "{}", case.name);
        compared += 1;
    }
    assert_eq!(compared, 33, "approved by us and by the original");
}

/// Whatever we can read at all, we read as the original does.
#[test]
fn fields_are_those_of_the_original() {
    let mut compared = 0;
    for case in cases() {
        let Ok(der) = wmco_csr::pem::decode(&case.input.csr.spec.request.0) else { continue };
        let Ok(found) = CertificationRequest::parse(&der) else { continue };
        let Parsed { ok, common_name, organizations, .. } = &case.expect.parsed;
        let names = found.extensions().alternative_names();
        let mut names = names.into_iter().flat_map(|names| names.iter());
        if names.any(|name| matches!(name, GeneralName::Uri(_))) && !ok {
            continue; // Go parses URIs; we refuse every request that has one.
        }
        assert!(ok, "{}: the original cannot read it", case.name);
        let mut names = Vec::new();
        let mut groups = Vec::new();
        for attribute in found.subject().attributes() {
            match attribute {
                Attribute::CommonName(name) => names.push(name),
                Attribute::Organization(name) => groups.push(name),
                Attribute::Other(_) => {}
            }
        }
        let last = names.last().copied().unwrap_or_default();
        assert_eq!(Some(last), common_name.as_deref(), "{}", case.name);
        assert_eq!(groups, organizations.as_deref().unwrap_or_default(), "{}", case.name);

        let [mut hosts, mut ips, mut emails, mut uris] = [const { Vec::new() }; 4];
        let names = found.extensions().alternative_names();
        for name in names.into_iter().flat_map(|names| names.iter()) {
            match name {
                GeneralName::Dns(name) => hosts.push(name.to_owned()),
                GeneralName::Email(name) => emails.push(name.to_owned()),
                GeneralName::Ip(ip) => ips.push(ip.to_string()),
                GeneralName::Other(_) => {}
                GeneralName::Uri(name) => uris.push(name.to_owned()),
            }
        }
        let expected = &case.expect.parsed;
        assert_eq!(Some(hosts), expected.dns_names, "{}", case.name);
        assert_eq!(Some(ips), expected.ip_addresses, "{}", case.name);
        assert_eq!(Some(emails), expected.emails, "{}", case.name);
        assert_eq!(Some(uris), expected.uris, "{}", case.name);
        if found.key().is_strong() && found.algorithm().fits(&found.key()) {
            let valid = Some(found.verify().is_ok());
            assert_eq!(valid, expected.signature_valid, "{}", case.name);
        }
        compared += 1;
    }
    assert!(compared > 140, "{compared} cases can be read");
}
