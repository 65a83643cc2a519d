//! Benchmarks certificate requests: parse, verify, decide, in a cluster of 10,000 nodes.
//!
//! Groups: `parse` (PEM and DER), `ring` (only the signature verification), `verify` (parse and verification), `decide`
//! (a complete decision), `unsigned` (a decision without the signature: the rule before it is broken), `foreign`
//! (requests of nodes that are not ours).

#![allow(missing_docs)] // of functions that criterion's macros generate
#![allow(clippy::expect_used, clippy::panic)] // a bench without its inputs has nothing to say

use std::hint::black_box;

use criterion::{
    BenchmarkGroup, Criterion, criterion_group, criterion_main, measurement::WallTime,
};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use wmco_benches::csr::{NODES, Pem, bare, inputs, view};
use wmco_csr::pkcs10::CertificationRequest;
use wmco_csr::{Policy, Request, Verdict, View, decide, pem};

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
    let (without, with) = (view(NODES, None), view(NODES, Some(&inputs.node)));
    let view = |key: &str| if key.starts_with("kubelet-client") { &without } else { &with };
    let mut policy = Policy::new("openshift-windows-machine-config-operator");
    let mut group = criterion.benchmark_group("decide");
    for (key, csr) in &inputs.validate {
        bench(&mut group, key, csr, &policy, view(key), |v| matches!(v, Verdict::Approve(_)));
    }
    group.finish();

    // No pending request is permitted, which is the last rule before the signature.
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
    expected: impl Fn(&Verdict<'_>) -> bool,
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
