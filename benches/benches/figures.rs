//! Compares certificate requests with their goals, as a table: the best of many rounds. All compared functions take
//! turns, so that a busy machine affects all of them alike.
//!
//! `parse`: PEM and DER; `bare`: the signature verification of the crypto library; `decide`: a complete decision;
//! `unsigned`: a decision without its signature; `alone`: a decision in a cluster without other nodes.
//!
//! `cargo bench -p wmco-benches --bench figures [-- PART OF A LABEL]`

#![allow(clippy::expect_used, clippy::print_stdout)] // it prints, or has nothing to say

use std::hint::black_box;
use std::time::Instant;

use wmco_benches::csr::{NODES, bare, inputs, view};
use wmco_csr::pkcs10::CertificationRequest;
use wmco_csr::{Policy, Request, decide, pem};

const ROUNDS: usize = 400;

/// Microseconds of the original operator, by kind of key or of request (see `bench_inputs.json` in its set of vectors
/// for the method).
const ORIGINAL: &[(&str, f64)] = &[
    ("rsa2048", 10.5),
    ("p256", 9.2),
    ("ed25519", 8.2),
    ("kubelet-client", 5.4),
    ("kubelet-serving", 10.3),
    ("wicd", 6.8),
];

/// A measured function, and its fewest nanoseconds.
struct Measured<'a> {
    label: String,
    run: Box<dyn Fn() + 'a>,
    repeat: u32,
    best_ns: f64,
}

impl<'a> Measured<'a> {
    fn new(label: String, repeat: u32, run: impl Fn() + 'a) -> Self {
        Self { label, run: Box::new(run), repeat, best_ns: f64::INFINITY }
    }

    fn round(&mut self) {
        let begun = Instant::now();
        for _ in 0..self.repeat {
            (self.run)();
        }
        let each = begun.elapsed().as_secs_f64() * 1e9 / f64::from(self.repeat);
        self.best_ns = self.best_ns.min(each);
    }
}

fn original_ns(of: &str) -> f64 {
    let found = ORIGINAL.iter().find(|(name, _)| *name == of);
    found.expect("every kind has a figure").1 * 1e3
}

fn main() {
    let inputs = inputs();
    let (without, with) = (view(NODES, None), view(NODES, Some(&inputs.node)));
    let (alone_without, alone_with) = (view(0, None), view(0, Some(&inputs.node)));
    let policy = Policy::new("openshift-windows-machine-config-operator");
    // No pending request is permitted, which is the last rule before the signature.
    let mut unsigned = policy.clone();
    unsigned.limits.pending_per_node = 0;
    let mut all = Vec::new();
    for (key, text) in &inputs.parse {
        all.push(Measured::new(format!("parse {key}"), 200, || {
            let der = pem::decode(black_box(text.pem.as_bytes())).expect("accepted");
            let request = CertificationRequest::parse(&der).expect("accepted");
            black_box(request.subject().common_name());
        }));
    }
    for (key, csr) in &inputs.validate {
        let is_first = key.starts_with("kubelet-client");
        let (view, alone) =
            if is_first { (&without, &alone_without) } else { (&with, &alone_with) };
        let now = csr.metadata.creation_timestamp.as_ref().expect("inputs have a time").0;
        let der = pem::decode(&csr.spec.request.0).expect("accepted");
        let signed = CertificationRequest::parse(&der).expect("accepted");
        let (verifier, message) = (bare(&signed), signed.signed().to_vec());
        let signature = signed.signature().to_vec();
        all.push(Measured::new(format!("bare {key}"), 25, move || {
            verifier.verify(black_box(&message), &signature).expect("valid");
        }));
        let policy = &policy;
        all.push(Measured::new(format!("decide {key}"), 25, move || {
            black_box(decide(&Request::from(black_box(csr)), policy, view, now).rule());
        }));
        let unsigned = &unsigned;
        all.push(Measured::new(format!("unsigned {key}"), 100, move || {
            black_box(decide(&Request::from(black_box(csr)), unsigned, view, now).rule());
        }));
        all.push(Measured::new(format!("alone {key}"), 100, move || {
            black_box(decide(&Request::from(black_box(csr)), unsigned, alone, now).rule());
        }));
    }
    // Cargo adds `--bench`.
    if let Some(part) = std::env::args().skip(1).find(|argument| !argument.starts_with('-')) {
        all.retain(|measured| measured.label.contains(&part));
    }
    for _ in 0..ROUNDS {
        all.iter_mut().for_each(Measured::round);
    }
    let best = |what: &str, key: &str| {
        let label = format!("{what} {key}");
        all.iter().find(|measured| measured.label == label).map(|measured| measured.best_ns)
    };
    for Measured { label, best_ns, .. } in &all {
        let (what, key) = label.split_once(' ').expect("two words");
        let kind = key.split('/').next().unwrap_or(key);
        let compared = match what {
            "alone" => best("unsigned", key)
                .map(|unsigned| format!("{:.2} of it among {NODES} nodes", best_ns / unsigned)),
            "decide" => best("bare", key)
                .map(|bare| format!("{:.3} of the bare verification", best_ns / bare)),
            "parse" | "unsigned" => {
                Some(format!("{:.1} times as fast as the original", original_ns(kind) / best_ns))
            }
            _ => None,
        };
        let compared = compared.unwrap_or_default();
        println!("{label:<32} {best_ns:>9.0} ns  {compared}");
    }
}
