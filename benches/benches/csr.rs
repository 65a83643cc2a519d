//! Certificate requests: parse, verify, decide, in a cluster of 10,000 nodes.
//!
//! Groups: `parse` (PEM and DER), `ring` (the bare signature verification), `verify` (parse and
//! verification), `decide` (all of it), `unsigned` (all of it but the signature: a broken rule
//! comes last), `foreign` (requests of nodes that are not ours).

#![allow(missing_docs)] // of functions that criterion's macros generate
#![allow(clippy::expect_used, clippy::panic)] // a bench without its inputs has nothing to say

use std::collections::BTreeMap;
use std::hint::black_box;
use std::net::Ipv4Addr;

use criterion::{
    BenchmarkGroup, Criterion, criterion_group, criterion_main, measurement::WallTime,
};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Node;
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use serde::Deserialize;
use wmco_csr::pkcs10::{CertificationRequest, PublicKey};
use wmco_csr::{Facts, NodeFacts, Policy, Request, Verdict, View, decide, pem};

const NODES: u32 = 10_000;
const INSTANCE: &str = "win-bench-01.plant.example.net";

#[derive(Deserialize)]
struct Inputs {
    parse: BTreeMap<String, Pem>,
    validate: BTreeMap<String, CertificateSigningRequest>,
    node: Node,
}

#[derive(Deserialize)]
struct Pem {
    pem: String,
}

fn inputs() -> Inputs {
    serde_json::from_str(include_str!("../inputs/csr.json")).expect("inputs are in the repository")
}

/// A cluster of [`NODES`] nodes and half as many instances; the one that asks is among them.
fn view(node: Option<&Node>) -> View {
    let mut view = View::new();
    let address = |number: u32| Ipv4Addr::from(0x0b00_0000 + number);
    for number in 0..NODES {
        let name = format!("worker-{number}.plant.example.net");
        let os = Some(if number % 2 == 0 { "windows" } else { "linux" }.to_owned());
        let addresses = vec![address(number).into()];
        let names = vec![name.clone()];
        view.set_node_facts(&name, NodeFacts { os, created: None, addresses, names });
    }
    if let Some(node) = node {
        view.set_node(node);
    }
    let list = (0..NODES / 2).map(|n| (format!("worker-{}.plant.example.net", n * 2), address(n)));
    let list: Vec<_> = list.collect();
    let others = list.iter().map(|(name, ipv4)| (name.as_str(), Some(*ipv4)));
    let ours = (INSTANCE, Some(Ipv4Addr::new(10, 40, 50, 60)));
    view.set_instances(others.chain([ours]), &Facts::default());
    view
}

fn bare(request: &CertificationRequest<'_>) -> UnparsedPublicKey<Vec<u8>> {
    let (algorithm, key): (&'static dyn VerificationAlgorithm, &[u8]) = match request.key() {
        PublicKey::Rsa(key, _) => (&signature::RSA_PKCS1_2048_8192_SHA256, key),
        PublicKey::Ecdsa(_, key) => (&signature::ECDSA_P256_SHA256_ASN1, key),
        PublicKey::Ed25519(key) => (&signature::ED25519, key),
        other @ PublicKey::Unsupported(..) => panic!("no input has a key of type {other}"),
    };
    UnparsedPublicKey::new(algorithm, key.to_vec())
}

fn parsing(criterion: &mut Criterion) {
    let inputs = inputs();
    let mut group = criterion.benchmark_group("parse");
    for (key, Pem { pem }) in &inputs.parse {
        group.bench_function(key, |bencher| {
            bencher.iter(|| {
                let der = pem::decode(black_box(pem.as_bytes())).expect("accepted");
                let request = CertificationRequest::parse(&der).expect("accepted");
                request.subject().common_name().map(str::len)
            });
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("ring");
    for (key, Pem { pem }) in &inputs.parse {
        let der = pem::decode(pem.as_bytes()).expect("accepted");
        let request = CertificationRequest::parse(&der).expect("accepted");
        let verifier = bare(&request);
        group.bench_function(key, |bencher| {
            bencher.iter(|| {
                verifier.verify(black_box(request.signed()), request.signature()).expect("valid");
            });
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("verify");
    for (key, Pem { pem }) in &inputs.parse {
        group.bench_function(key, |bencher| {
            bencher.iter(|| {
                let der = pem::decode(black_box(pem.as_bytes())).expect("accepted");
                let request = CertificationRequest::parse(&der).expect("accepted");
                request.verify().expect("valid");
            });
        });
    }
    group.finish();
}

fn deciding(criterion: &mut Criterion) {
    let inputs = inputs();
    let (without, with) = (view(None), view(Some(&inputs.node)));
    let view = |key: &str| if key.starts_with("kubelet-client") { &without } else { &with };
    let mut policy = Policy::new("openshift-windows-machine-config-operator");
    let mut group = criterion.benchmark_group("decide");
    for (key, csr) in &inputs.validate {
        bench(&mut group, key, csr, &policy, view(key), |v| matches!(v, Verdict::Approve(_)));
    }
    group.finish();

    // No pending request is allowed, which is the last rule before the signature.
    policy.limits.pending_per_node = 0;
    let mut group = criterion.benchmark_group("unsigned");
    for (key, csr) in &inputs.validate {
        bench(&mut group, key, csr, &policy, view(key), |v| matches!(v, Verdict::Refuse(None)));
    }
    group.finish();

    let empty = View::new();
    let mut group = criterion.benchmark_group("foreign");
    for (key, csr) in inputs.validate.iter().filter(|(key, _)| key.starts_with("kubelet")) {
        bench(&mut group, key, csr, &policy, &empty, |v| matches!(v, Verdict::Ignore));
    }
    group.finish();
}

fn bench(
    group: &mut BenchmarkGroup<'_, WallTime>,
    key: &str,
    csr: &CertificateSigningRequest,
    policy: &Policy,
    view: &View,
    expected: impl Fn(&Verdict) -> bool,
) {
    let now = csr.metadata.creation_timestamp.as_ref().expect("inputs have a time").0;
    let decision = decide(&Request::from(csr), policy, view, now);
    assert!(expected(decision.verdict()), "{key}: {decision}");
    group.bench_function(key, |bencher| {
        bencher.iter(|| decide(&Request::from(black_box(csr)), policy, view, now));
    });
}

criterion_group!(benches, parsing, deciding);
criterion_main!(benches);
