//! Inputs of the benchmarks of certificate requests: requests and their cluster.

#![allow(clippy::expect_used, clippy::panic)] // a bench without its inputs has nothing to say

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Node;
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use serde::Deserialize;
use wmco_core::cluster_addresses::ClusterAddresses;
use wmco_csr::pkcs10::{CertificationRequest, PublicKey};
use wmco_csr::{ClusterFacts, Facts, NodeIdentity, NodeNames, View};

/// Number of nodes of a big cluster.
pub const NODES: u32 = 10_000;
const INSTANCE: &str = "win-bench-01.plant.example.net";

/// The inputs.
#[derive(Deserialize)]
pub struct Fixture {
    /// Texts to parse, by kind of key.
    pub parse: BTreeMap<String, Pem>,
    /// Requests to decide about, by `kind/key`.
    pub validate: BTreeMap<String, CertificateSigningRequest>,
    /// The Node of the requests.
    pub node: Node,
}

/// A text to parse.
#[derive(Deserialize)]
pub struct Pem {
    /// The text.
    pub pem: String,
}

/// Parses the inputs.
///
/// # Panics
/// If the file in the repository is invalid.
pub fn inputs() -> Fixture {
    serde_json::from_str(include_str!("../inputs/csr.json")).expect("inputs are in the repository")
}

/// Returns the view of a cluster of `nodes` nodes and half as many instances, including the requesting one.
///
/// # Panics
/// If a constant is invalid.
pub fn view(nodes: u32, node: Option<&Node>) -> View {
    let mut view = View::new();
    view.set_cluster(ClusterFacts {
        node_names: NodeNames::FirstLabel,
        hosts_named_as_machines: false,
        addresses: ClusterAddresses {
            services: Some(vec!["172.30.0.0/16".parse().expect("a network")]),
            api_names: ["api-int.plant.example.net".to_owned()].into(),
            ..ClusterAddresses::default()
        },
    });
    let address = |number: u32| Ipv4Addr::from(0x0b00_0000 + number);
    for number in 0..nodes {
        let name = format!("worker-{number}.plant.example.net");
        let os = Some(if number % 2 == 0 { "windows" } else { "linux" }.to_owned());
        let addresses = vec![address(number).into()];
        let names = vec![name.clone()];
        view.set_node_identity(
            &name,
            NodeIdentity { os, addresses, names, ..NodeIdentity::default() },
        );
    }
    if let Some(node) = node {
        view.set_node(node);
    }
    let list = (0..nodes / 2).map(|n| (format!("worker-{}.plant.example.net", n * 2), address(n)));
    let list: Vec<_> = list.collect();
    let others = list.iter().map(|(name, ipv4)| (name.as_str(), Some(*ipv4)));
    let ours = (INSTANCE, Some(Ipv4Addr::new(10, 40, 50, 60)));
    // Names that the hosts report.
    let host_names = list.iter().map(|(name, _)| (name.clone(), name.clone()));
    let mut facts = Facts { hostnames: host_names.collect(), ..Facts::default() };
    facts.hostnames.insert(INSTANCE.to_owned(), "win-bench-01.internal.example.net".to_owned());
    let mut addresses: BTreeMap<String, Vec<IpAddr>> =
        list.iter().map(|(name, ipv4)| (name.clone(), vec![(*ipv4).into()])).collect();
    let own = ["10.40.50.60", "fd40:50::3c"].map(|address| address.parse().expect("an address"));
    addresses.insert(INSTANCE.to_owned(), own.to_vec());
    facts.addresses = Some(addresses);
    view.set_instances(others.chain([ours]), &facts);
    view
}

/// Returns the bare verification of a request's signature by the crypto library.
///
/// # Panics
/// If the key is of a kind that no input has.
pub fn bare(request: &CertificationRequest<'_>) -> UnparsedPublicKey<Vec<u8>> {
    let (algorithm, key): (&'static dyn VerificationAlgorithm, &[u8]) = match request.key() {
        PublicKey::Rsa(key, _) => (&signature::RSA_PKCS1_2048_8192_SHA256, key),
        PublicKey::Ecdsa(_, key) => (&signature::ECDSA_P256_SHA256_ASN1, key),
        PublicKey::Ed25519(key) => (&signature::ED25519, key),
        other @ PublicKey::Unsupported(..) => panic!("no input has a key of type {other}"),
    };
    UnparsedPublicKey::new(algorithm, key.to_vec())
}
