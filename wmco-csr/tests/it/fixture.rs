//! A cluster in which one request of each kind deserves approval, to be changed by tests.

use std::net::Ipv4Addr;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition, CertificateSigningRequestSpec,
};
use k8s_openapi::api::core::v1::Node;
use rcgen::{CertificateParams, DnType, KeyPair, SanType};
use wmco_core::cluster_addresses::ClusterAddresses;
use wmco_core::instances::{self, Entries, Resolutions, Unresolved};
use wmco_csr::{
    ClusterFacts, Decision, Facts, Kind, MachineFacts, NodeNames, Policy, Request, Verdict, View,
    decide,
};

pub(crate) const NAMESPACE: &str = "windows-operator";
/// The instance that asks: its name in `windows-instances`, its address, its node.
pub(crate) const INSTANCE: &str = "win-7.plant.example.net";
pub(crate) const IPV4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);
pub(crate) const NODE: &str = "win-7";

/// What a test may change before it asks for a decision.
pub(crate) struct World {
    pub(crate) csr: CertificateSigningRequest,
    /// What `csr.spec.request` is made from, see [`World::ask`].
    pub(crate) params: CertificateParams,
    pub(crate) key: KeyPair,
    pub(crate) nodes: Vec<Node>,
    pub(crate) instances: Vec<(String, Option<Ipv4Addr>)>,
    /// `names=` of entries, by their keys. With one, `instances` are read as entries.
    pub(crate) also: Vec<(String, &'static str)>,
    pub(crate) facts: Facts,
    pub(crate) machines: Vec<MachineFacts>,
    pub(crate) pending: Vec<CertificateSigningRequest>,
    pub(crate) cluster: ClusterFacts,
    pub(crate) policy: Policy,
    /// How long after the creation of the request the decision is made.
    pub(crate) later: SignedDuration,
}

fn created() -> Timestamp {
    "2026-05-04T03:02:01Z".parse().unwrap()
}

/// What a cluster on bare metal says of itself.
pub(crate) fn bare_metal() -> ClusterFacts {
    ClusterFacts {
        node_names: NodeNames::FirstLabel,
        hosts_named_as_machines: false,
        addresses: ClusterAddresses {
            services: Some(vec!["172.30.0.0/16".parse().unwrap(), "fd02::/112".parse().unwrap()]),
            api_names: ["api-int.cluster.example.net".to_owned()].into(),
            ..ClusterAddresses::default()
        },
    }
}

pub(crate) fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|&text| text.to_owned()).collect()
}

/// A Windows Node that is a day older than the request, with the instance's address.
pub(crate) fn node(name: &str, os: &str, address: Ipv4Addr) -> Node {
    serde_json::from_value(serde_json::json!({
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/os": os},
            "creationTimestamp": "2026-05-03T03:02:01Z",
        },
        "status": {"addresses": [
            {"type": "InternalIP", "address": address},
            {"type": "Hostname", "address": name},
        ]},
    }))
    .unwrap()
}

impl World {
    /// A world in which the one request, of `kind`, is approved.
    pub(crate) fn new(kind: Kind) -> Self {
        let (signer, prefix, organization, username, groups, usage) = match kind {
            Kind::KubeletClient => (
                "kubernetes.io/kube-apiserver-client-kubelet",
                "system:node:",
                "system:nodes",
                "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper",
                vec![
                    "system:serviceaccounts",
                    "system:serviceaccounts:openshift-machine-config-operator",
                    "system:authenticated",
                ],
                "client auth",
            ),
            Kind::KubeletServing => (
                "kubernetes.io/kubelet-serving",
                "system:node:",
                "system:nodes",
                "system:node:win-7",
                vec!["system:nodes", "system:authenticated"],
                "server auth",
            ),
            Kind::Wicd => (
                "kubernetes.io/kube-apiserver-client",
                "system:wicd-node:",
                "system:wicd-nodes",
                "system:serviceaccount:windows-operator:windows-instance-config-daemon",
                vec!["system:authenticated"],
                "client auth",
            ),
        };
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, organization);
        params.distinguished_name.push(DnType::CommonName, format!("{prefix}{NODE}"));
        if kind == Kind::KubeletServing {
            params.subject_alt_names =
                vec![SanType::DnsName(NODE.try_into().unwrap()), SanType::IpAddress(IPV4.into())];
        }
        let mut csr = CertificateSigningRequest {
            spec: CertificateSigningRequestSpec {
                signer_name: signer.to_owned(),
                username: Some(username.to_owned()),
                groups: Some(strings(&groups)),
                usages: Some(strings(&["digital signature", usage])),
                // The daemon names its lifetime.
                expiration_seconds: (kind == Kind::Wicd).then_some(3600),
                ..CertificateSigningRequestSpec::default()
            },
            ..CertificateSigningRequest::default()
        };
        csr.metadata.name = Some("csr-1".to_owned());
        csr.metadata.uid = Some("uid-1".to_owned());
        csr.metadata.resource_version = Some("17".to_owned());
        csr.metadata.creation_timestamp = Some(created().into());
        let exists = kind != Kind::KubeletClient;
        let mut world = Self {
            csr,
            params,
            key: KeyPair::generate().unwrap(),
            nodes: exists.then(|| node(NODE, "windows", IPV4)).into_iter().collect(),
            instances: vec![(INSTANCE.to_owned(), Some(IPV4))],
            also: Vec::new(),
            facts: Facts::default(),
            machines: Vec::new(),
            pending: Vec::new(),
            cluster: bare_metal(),
            policy: Policy::new(NAMESPACE),
            later: SignedDuration::ZERO,
        };
        world.facts.hostnames.insert(INSTANCE.to_owned(), "WIN-7".to_owned());
        world.facts.addresses = Some([(INSTANCE.to_owned(), vec![IPV4.into()])].into());
        world.ask();
        world
    }

    /// Makes `csr.spec.request` anew, after a change of `params` or `key`.
    pub(crate) fn ask(&mut self) {
        let pem = self.params.serialize_request(&self.key).unwrap().pem().unwrap();
        self.csr.spec.request = ByteString(pem.into_bytes());
    }

    /// Makes `csr.spec.request` anew after `change`.
    pub(crate) fn params_change(&mut self, change: impl FnOnce(&mut CertificateParams)) {
        change(&mut self.params);
        self.ask();
    }

    /// The DER bytes of the request.
    pub(crate) fn der(&self) -> Vec<u8> {
        wmco_csr::pem::decode(&self.csr.spec.request.0).unwrap()
    }

    /// Replaces the request by other DER bytes.
    pub(crate) fn set_der(&mut self, der: &[u8]) {
        use base64::Engine as _;
        let text = base64::engine::general_purpose::STANDARD.encode(der);
        let lines: Vec<_> =
            text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
        let (begin, end) = ("BEGIN CERTIFICATE REQUEST", "END CERTIFICATE REQUEST");
        let pem = format!("-----{begin}-----\n{}\n-----{end}-----\n", lines.join("\n"));
        self.csr.spec.request = ByteString(pem.into_bytes());
    }

    /// Adds the current request to the pending requests, with another name.
    pub(crate) fn also_pending(&mut self, name: &str, later: SignedDuration) {
        let mut other = self.csr.clone();
        other.metadata.name = Some(name.to_owned());
        other.metadata.creation_timestamp = Some((created() + later).into());
        self.pending.push(other);
    }

    /// Adds a condition to the request.
    pub(crate) fn condition(&mut self, kind: &str) {
        let condition = CertificateSigningRequestCondition {
            type_: kind.to_owned(),
            status: "True".to_owned(),
            ..CertificateSigningRequestCondition::default()
        };
        let status = self.csr.status.get_or_insert_default();
        status.conditions.get_or_insert_default().push(condition);
    }

    /// What `instances`, `facts` and all the rest look like to a decision.
    pub(crate) fn view(&self) -> View {
        let mut view = View::new();
        view.set_cluster(self.cluster.clone());
        for node in &self.nodes {
            view.set_node(node);
        }
        if self.also.is_empty() {
            let instances = self.instances.iter();
            let instances = instances.map(|(address, ipv4)| (address.as_str(), *ipv4));
            view.set_instances(instances, &self.facts);
        } else {
            view.set_entries(&self.entries(), &self.facts);
        }
        view.set_machines(self.machines.iter().cloned());
        for csr in self.pending.iter().chain([&self.csr]) {
            view.set_request(csr);
        }
        view
    }

    fn entries(&self) -> Entries {
        let mut resolutions = Resolutions::default();
        for (address, ipv4) in &self.instances {
            let answer = ipv4.ok_or(Unresolved::NoSuchName);
            resolutions.insert(address, answer);
        }
        let value = |address: &String| {
            let also = self.also.iter().find(|(of, _)| of == address);
            also.map_or("username=a".to_owned(), |(_, names)| format!("username=a\nnames={names}"))
        };
        let data = self.instances.iter().map(|(address, _)| (address, value(address)));
        instances::parse(data, &resolutions)
    }

    pub(crate) fn decide(&self) -> Decision<'_> {
        let now = created() + self.later;
        decide(&Request::from(&self.csr), &self.policy, &self.view(), now)
    }

    /// Asserts the verdict, and the rule that decided (empty when all were kept).
    #[track_caller]
    pub(crate) fn check(&self, verdict: &str, rule: &str) {
        let decision = self.decide();
        let found = (decision.verdict().name(), decision.rule().map_or("", wmco_csr::Rule::name));
        assert_eq!(found, (verdict, rule), "{decision}");
        let approved = matches!(decision.verdict(), Verdict::Approve(_));
        let clean = decision.checks().all(|check| check.outcome == wmco_csr::Outcome::Pass);
        assert_eq!(approved, clean, "approved if and only if every check passed: {decision}");
    }
}
