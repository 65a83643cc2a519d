//! `explain`: why the operator decides as it does.

use std::collections::BTreeMap;
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
    Decision, Kind, MachineFacts, NodeNames, Policy, Request, Rule, Verdict, View, csr_from_pem,
    decide,
};

use super::cluster_facts::{cluster_facts, tells_infrastructure};
use super::explain_mirror::Mirror;
use super::{Answer, Output, tell, yes_without};
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
    /// [NAME]}}, "hostnames": {ADDRESS: NAME}, "metadataNames": {ADDRESS: NAME}, "addresses": {ADDRESS:
    /// [IP]}}. The ADDRESS of a Machine's host is MACHINE_machine.
    #[arg(long, value_name = "FILE")]
    facts: Option<PathBuf>,
    /// Namespace of the operator; default: that of the ConfigMap windows-instances.
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Print no answer if the input lacks something that could change it.
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    output: Output,
}

impl Explain {
    /// Decides and prints. "No" means that not all requests are approved, that hosts are listed where nobody reads
    /// them, that nothing may be asked for the image, or that a setting for it does not hold.
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
        if yes_without(&selection.strays_of_list()) == Answer::No {
            return Ok(Answer::No);
        }
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
        let given = Given { input: &input, selection: &selection, facts: &facts };
        let case = Case { decisions: &decisions, requests: &requests, policy: &policy, now };
        let mut notes = Vec::new();
        for assumption in given.assumptions(&decisions)? {
            if given.matters(assumption, &case, &view)? {
                notes.push(assumption.note());
            }
        }
        let unknown = |decision: &Decision<'_>| decision.rule() == Some(Rule::Instance);
        if self.facts.is_none() && decisions.iter().any(unknown) {
            notes.push("names and hosts are not asked, tell what they answer with --facts FILE");
        }
        for passed_over in selection.passed_over() {
            tell("note", &passed_over);
        }
        if self.strict && !notes.is_empty() {
            bail!(
                "answers may be other ones with what the input lacks, add it with -f FILE or --facts FILE: {}",
                notes.join("; ")
            );
        }
        self.output.print(&decisions, || text(&decisions))?;
        for note in notes {
            tell("note", note);
        }
        Ok(if decisions.iter().all(is_approved) { Answer::Yes } else { Answer::No })
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

/// What an answer was made of.
struct Given<'a> {
    input: &'a Input,
    selection: &'a Selection<'a>,
    facts: &'a Facts,
}

/// The answers to the requests, with all that they depend on besides.
struct Case<'a> {
    decisions: &'a [Decision<'a>],
    requests: &'a [CertificateSigningRequest],
    policy: &'a Policy,
    now: Timestamp,
}

/// What is taken for granted because nothing in the input says it.
#[derive(Clone, Copy)]
enum Assumption {
    ClusterAddresses,
    List,
    Machines,
    Names,
    Nodes,
    OtherNodes,
    Platform,
    ServiceNetwork,
}

impl Assumption {
    const fn note(self) -> &'static str {
        match self {
            Self::ClusterAddresses => {
                "no Infrastructure in the input, so a name or an address could be the API server's or \
                 the ingress'"
            }
            Self::List => {
                "no ConfigMap windows-instances in the input, so a name or an address could be an entry's; \
                 one without data says that there is none"
            }
            Self::Machines => {
                "no Machine in the input, so a name or an address could be a Machine's; an empty \
                 MachineList says that there is none"
            }
            Self::Names => {
                "hosts are not asked, so `names=` of an entry with a name as its key counts for the host \
                 that the DNS leads to; the operator waits until it was on the host at that address, tell \
                 what it reports with --facts FILE"
            }
            Self::Nodes => {
                "hosts are not asked for their addresses, so a Node is believed what nobody else \
                 has; the operator believes hosts only, tell what they report with --facts FILE"
            }
            Self::OtherNodes => {
                "no Node in the input, so a name or an address could be another one's; an empty NodeList \
                 says that there is none"
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
}

impl Given<'_> {
    /// What the input leaves open.
    fn assumptions(&self, decisions: &[Decision<'_>]) -> Result<Vec<Assumption>, InputError> {
        let objects = &self.input.objects;
        let cluster = cluster_facts(objects)?;
        let of_kubelet = |decision: &&Decision<'_>| {
            matches!(decision.kind(), Some(Kind::KubeletClient | Kind::KubeletServing))
        };
        let gives_names = decisions.iter().filter(of_kubelet).any(is_approved);
        let list = self.selection.config_map(INSTANCES_CONFIG_MAP);
        let open = [
            (Assumption::Platform, cluster.node_names == NodeNames::Unknown),
            (Assumption::ClusterAddresses, gives_names && !tells_infrastructure(objects)?),
            (Assumption::ServiceNetwork, cluster.addresses.services.is_none()),
            (Assumption::List, gives_names && list.is_none()),
            (Assumption::Machines, gives_names && !self.selection.tells_machines()),
            (Assumption::OtherNodes, gives_names && !self.selection.tells_nodes()),
            (Assumption::Names, self.facts.addresses.is_none()),
            (Assumption::Nodes, self.facts.addresses.is_none()),
        ];
        Ok(open.into_iter().filter(|(_, is_open)| *is_open).map(|(open, _)| open).collect())
    }

    /// Whether an answer would be another one without the assumption, or could be.
    fn matters(
        &self,
        assumption: Assumption,
        case: &Case<'_>,
        view: &View,
    ) -> Result<bool, InputError> {
        let (mut policy, mut view) = (case.policy.clone(), view.clone());
        let mut cluster = view.cluster().clone();
        match assumption {
            // What is not known could belong to them, whatever it is.
            Assumption::ClusterAddresses
            | Assumption::List
            | Assumption::Machines
            | Assumption::OtherNodes => return Ok(true),
            Assumption::Names => {
                let nobody = Some(BTreeMap::new());
                let facts = Facts { addresses: nobody, ..self.facts.clone() };
                view = self.input.cluster(self.selection, &facts)?;
                case.requests.iter().for_each(|request| view.set_request(request));
            }
            Assumption::Nodes => policy.believe_nodes = false,
            Assumption::Platform => cluster.node_names = NodeNames::Unknown,
            Assumption::ServiceNetwork => cluster.addresses.services = None,
        }
        view.set_cluster(cluster);
        Ok(case.decisions.iter().zip(case.requests).any(|(decision, request)| {
            decide(&Request::from(request), &policy, &view, case.now).rule() != decision.rule()
        }))
    }
}

fn is_approved(decision: &Decision<'_>) -> bool {
    matches!(decision.verdict(), Verdict::Approve(_))
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
