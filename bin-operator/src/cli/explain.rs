//! `explain`: why the operator decides as it does.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use wmco_core::facts::{self, Facts};
use wmco_core::instances;
use wmco_core::names::objects::INSTANCES_CONFIG_MAP;
use wmco_csr::{
    Decision, MachineFacts, NodeNames, Policy, Request, Rule, Verdict, View, csr_from_pem, decide,
};

use super::cluster_facts::cluster_facts;
use super::explain_mirror::Mirror;
use super::{Answer, Output, tell};
use crate::input::{self, InputError, Located, Objects, Reader, Selection};

/// What to explain.
#[derive(Debug, Subcommand)]
pub enum Explain {
    /// Explain the decision on certificate signing requests, check by check.
    ///
    /// The cluster's state is taken from the Nodes, Machines, ConfigMap windows-instances,
    /// Infrastructure and Network in the input. Neither DNS nor hosts are queried: give their answers
    /// with --facts. A note names each assumption that is made because the input lacks an object.
    Csr(Csr),
    /// Explain where an image is pulled from: the URLs that containerd tries, in order, and why.
    Mirror(Mirror),
}

/// Arguments of `explain csr`.
#[derive(Args, Debug)]
pub struct Csr {
    /// Files with cluster objects in YAML or JSON, or with one request in PEM; `-` is standard
    /// input.
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,
    /// File with answers of DNS and hosts: {"dns": {"forward": {NAME: [IP]}, "reverse": {IP:
    /// [NAME]}}, "hostnames": {ADDRESS: NAME}, "addresses": {ADDRESS: [IP]}}. The ADDRESS of a Machine's
    /// host is MACHINE_machine.
    #[arg(long, value_name = "FILE")]
    facts: Option<PathBuf>,
    /// Namespace of the operator; default: that of the ConfigMap windows-instances.
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    #[command(flatten)]
    output: Output,
}

impl Explain {
    /// Decides and prints. "No" means that not all requests are approved, or that nothing may be asked for
    /// the image.
    ///
    /// # Errors
    /// The input cannot be read, or holds no request.
    pub fn run(self) -> anyhow::Result<Answer> {
        match self {
            Self::Csr(csr) => csr.run(),
            Self::Mirror(mirror) => mirror.run(),
        }
    }
}

/// What the files hold.
#[derive(Default)]
struct Input {
    objects: Objects,
    /// Requests without an object around them, by the name of their file.
    bare: Vec<(String, Vec<u8>)>,
}

impl Csr {
    fn run(self) -> anyhow::Result<Answer> {
        let mut reader = Reader::new(std::io::stdin());
        let input = Input::read(&mut reader, &self.files)?;
        let facts = match &self.facts {
            Some(file) => reader.facts(file)?,
            None => Facts::default(),
        };
        let selection = Selection::new(&input.objects, self.namespace.as_deref())?;
        let mut policy = Policy::new(selection.namespace());
        // Without any answer of hosts, what their Nodes say is the best that there is.
        policy.believe_nodes = facts.addresses.is_none();
        let now = Timestamp::now();
        let requests = input.requests(&policy, now)?;
        let mut view = input.cluster(&selection, &facts)?;
        for request in &requests {
            view.set_request(request);
        }
        let decisions: Vec<Decision<'_>> = requests
            .iter()
            .map(|request| decide(&Request::from(request), &policy, &view, now))
            .collect();
        self.output.print(&decisions, || text(&decisions))?;
        for passed_over in selection.passed_over() {
            tell("note", &passed_over);
        }
        for assumption in input.assumptions(&facts)? {
            if assumption.matters(&decisions, &requests, &policy, &view, now) {
                tell("note", assumption.note());
            }
        }
        let unknown = |decision: &Decision<'_>| decision.rule() == Some(Rule::Instance);
        if self.facts.is_none() && decisions.iter().any(unknown) {
            tell("note", "names and hosts are not asked, tell what they answer with --facts FILE");
        }
        let approved = |decision: &Decision<'_>| matches!(decision.verdict(), Verdict::Approve(_));
        Ok(if decisions.iter().all(approved) { Answer::Yes } else { Answer::No })
    }
}

impl Input {
    fn read<R: std::io::Read>(
        reader: &mut Reader<R>,
        files: &[PathBuf],
    ) -> Result<Self, InputError> {
        let mut input = Self::default();
        for file in &input::expanded(files)? {
            let bytes = reader.bytes(file)?;
            if is_bare(file, &bytes) {
                input.bare.push((input::name(file), bytes));
            } else {
                input.objects.add_file(file, bytes)?;
            }
        }
        Ok(input)
    }

    /// The requests as objects with a name. A request that was never stored counts as made now.
    fn requests(
        &self,
        policy: &Policy,
        now: Timestamp,
    ) -> anyhow::Result<Vec<CertificateSigningRequest>> {
        if let Some(other) = self.objects.others_of("CertificateSigningRequest").next() {
            bail!("{} is of another API version, get it as certificates.k8s.io/v1", other.at);
        }
        let stored = self.objects.requests.iter().map(|Located { at, object }| {
            let mut object = object.clone();
            object.metadata.name.get_or_insert_with(|| at.to_string());
            object
        });
        let bare = self.bare.iter().map(|(name, pem)| {
            tell(
                "note",
                &format!(
                    "{name} has no object around it, so who asks and for what is taken on trust"
                ),
            );
            csr_from_pem(name, pem.clone(), policy)
        });
        let mut requests: Vec<_> = stored.chain(bare).collect();
        if requests.is_empty() {
            bail!("the input has no CertificateSigningRequest, add one with -f FILE");
        }
        for request in &mut requests {
            request.metadata.creation_timestamp.get_or_insert(now.into());
        }
        Ok(requests)
    }

    /// What the input leaves open.
    fn assumptions(&self, facts: &Facts) -> Result<Vec<Assumption>, InputError> {
        let cluster = cluster_facts(&self.objects)?;
        let platform = (cluster.node_names == NodeNames::Unknown).then_some(Assumption::Platform);
        let networks = cluster.addresses.services.is_none().then_some(Assumption::ServiceNetwork);
        let nodes = facts.addresses.is_none().then_some(Assumption::Nodes);
        Ok([platform, networks, nodes].into_iter().flatten().collect())
    }

    fn cluster(&self, selection: &Selection<'_>, facts: &Facts) -> Result<View, InputError> {
        let mut view = View::new();
        let mut cluster = cluster_facts(&self.objects)?;
        if cluster.node_names == NodeNames::Unknown {
            cluster.node_names = NodeNames::FirstLabel;
        }
        cluster.addresses.services.get_or_insert_default();
        view.set_cluster(cluster);
        for node in &self.objects.nodes {
            view.set_node(&node.object);
        }
        let list = selection.config_map(INSTANCES_CONFIG_MAP);
        let data = list.into_iter().flat_map(|map| map.data.iter().flatten());
        let entries = instances::parse(data, facts).without(&view.cluster().addresses);
        view.set_entries(&entries, facts);
        let machine = |object| MachineFacts::from(&facts::MachineFacts::of(object));
        view.set_machines(selection.machines().map(machine));
        Ok(view)
    }
}

/// What is taken for granted because nothing in the input says it.
#[derive(Clone, Copy)]
enum Assumption {
    Nodes,
    Platform,
    ServiceNetwork,
}

impl Assumption {
    const fn note(self) -> &'static str {
        match self {
            Self::Nodes => {
                "hosts are not asked for their addresses, so a Node is believed what nobody else \
                 has; the operator believes hosts only, tell what they report with --facts FILE"
            }
            Self::Platform => {
                "no Infrastructure in the input, so a Node has the first label of its host's name, \
                 as on platform None"
            }
            Self::ServiceNetwork => {
                "no Network in the input, so an address could be one of a service"
            }
        }
    }

    /// Whether an answer would be another one without it.
    fn matters(
        self,
        decisions: &[Decision<'_>],
        requests: &[CertificateSigningRequest],
        policy: &Policy,
        view: &View,
        now: Timestamp,
    ) -> bool {
        let (mut policy, mut view) = (policy.clone(), view.clone());
        let mut cluster = view.cluster().clone();
        match self {
            Self::Nodes => policy.believe_nodes = false,
            Self::Platform => cluster.node_names = NodeNames::Unknown,
            Self::ServiceNetwork => cluster.addresses.services = None,
        }
        view.set_cluster(cluster);
        decisions.iter().zip(requests).any(|(decision, request)| {
            decide(&Request::from(request), &policy, &view, now).rule() != decision.rule()
        })
    }
}

/// Whether a file holds one request in PEM rather than objects. No line of an object starts like
/// a PEM block; without one, the file's name tells what it should have been.
fn is_bare(file: &Path, bytes: &[u8]) -> bool {
    let lines = || bytes.split(|byte| *byte == b'\n');
    if lines().any(|line| line.starts_with(b"-----BEGIN")) {
        return true;
    }
    let is_object = |line: &[u8]| line.starts_with(b"{") || line.starts_with(b"kind:");
    let named = file.extension().is_some_and(|end| {
        ["csr", "der", "pem", "req"].iter().any(|known| end.eq_ignore_ascii_case(known))
    });
    named && !lines().any(is_object)
}

/// A block for each decision, and how many there are of each.
fn text(decisions: &[Decision<'_>]) -> String {
    let mut text = String::new();
    let of = |name: &str| decisions.iter().filter(|d| d.verdict().name() == name).count();
    let verdicts = [
        ("approve", "approved"),
        ("refuse", "refused"),
        ("wait", "waiting"),
        ("ignore", "ignored"),
    ];
    let counts: Vec<String> = verdicts
        .into_iter()
        .filter(|(name, _)| of(name) > 0)
        .map(|(name, word)| format!("{} {word}", of(name)))
        .collect();
    let noun = if decisions.len() == 1 { "request" } else { "requests" };
    // Writing to a string does not fail.
    for decision in decisions {
        let _ = writeln!(text, "{decision}\n");
    }
    let _ = writeln!(text, "{} {noun}: {}", decisions.len(), counts.join(", "));
    text
}
