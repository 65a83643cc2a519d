//! `check`: reports problems in files that a person wrote.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, Subcommand};
use k8s_openapi::api::core::v1::ConfigMap;
use serde::Serialize;
use wmco_core::facts::{Facts, MachineFacts, NodeFacts};
use wmco_core::fleet::nodes_of;
use wmco_core::foreign_names::foreign_names;
use wmco_core::host_record::fit;
use wmco_core::instances::{Entries, EntryError, Instance, Problem, parse, warnings};
use wmco_core::limits;
use wmco_core::names::objects::{DEFAULT_NAMESPACE, INSTANCES_CONFIG_MAP};
use wmco_core::text::printable;

use super::check_bundle::Bundle;
use super::check_cluster::Cluster;
use super::check_host::Host;
use super::check_machine_sets::MachineSets;
use super::check_registries::Registries;
use super::check_services::Services;
use super::cluster_facts::cluster_facts;
use super::{Answer, Output, tell, yes_without};
use crate::input::{Located, Reader, Selection, strays};

/// What to check.
#[derive(Debug, Subcommand)]
pub enum Check {
    /// Check a bundle against the published rules of the Operator Lifecycle Manager.
    Bundle(Bundle),
    /// Check whether a cluster supports Windows nodes: unmet requirements and next steps.
    Cluster(Cluster),
    /// Check whether a host can become a node, from the output of its agent.
    Host(Host),
    /// Check the ConfigMap windows-instances, which lists hosts that no MachineSet made.
    ///
    /// Entries are matched with the Nodes and Machines in the input, and with the addresses and names of the cluster
    /// itself in Infrastructure and Network. DNS is not queried: give the addresses of
    /// names with --facts.
    Instances(Instances),
    /// Check MachineSets: which Machines would not become Windows nodes, and why.
    ///
    /// MachineSets of Linux machines are counted and skipped.
    #[command(name = "machinesets")]
    MachineSets(MachineSets),
    /// Check mirror sets, image settings and the pull secret: what Windows nodes cannot use.
    Registries(Registries),
    /// Check services ConfigMaps: errors and possible mistakes, with their places.
    Services(Services),
}

/// Arguments of `check instances`.
#[derive(Args, Debug)]
pub struct Instances {
    /// Files with cluster objects in YAML or JSON; `-` is standard input.
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,
    /// File with DNS answers: {"dns": {"forward": {NAME: IPV4}}}.
    #[arg(long, value_name = "FILE")]
    facts: Option<PathBuf>,
    /// Namespace of the operator.
    #[arg(short, long, value_name = "NAMESPACE", default_value = DEFAULT_NAMESPACE)]
    namespace: String,
    #[command(flatten)]
    output: Output,
}

impl Check {
    /// Checks and prints what was found.
    ///
    /// # Errors
    /// The input cannot be read, or holds nothing to check.
    pub fn run(self) -> anyhow::Result<Answer> {
        match self {
            Self::Bundle(bundle) => bundle.run(),
            Self::Cluster(cluster) => cluster.run(),
            Self::Host(host) => host.run(),
            Self::Instances(instances) => instances.run(),
            Self::MachineSets(machine_sets) => machine_sets.run(),
            Self::Registries(registries) => registries.run(),
            Self::Services(services) => services.run(),
        }
    }
}

/// What to do about entries with names.
pub(super) const NAMES_NOT_ASKED: &str =
    "names are not looked up, tell their addresses with --facts FILE";

/// One entry, as `-o json` prints it.
#[derive(Serialize)]
struct Row<'a> {
    address: &'a str,
    ipv4: Option<Ipv4Addr>,
    username: Option<&'a str>,
    error: Option<String>,
}

impl Instances {
    fn run(self) -> anyhow::Result<Answer> {
        let mut reader = Reader::new(std::io::stdin());
        let objects = reader.objects(&self.files)?;
        let facts = match &self.facts {
            Some(file) => reader.facts(file)?,
            None => Facts::default(),
        };
        let named = |map: &&Located<ConfigMap>| {
            map.object.metadata.name.as_deref() == Some(INSTANCES_CONFIG_MAP)
        };
        let selection = Selection::new(&objects, Some(&self.namespace))?;
        let cluster = cluster_facts(&objects)?.addresses;
        let checked: Vec<_> = objects
            .config_maps
            .iter()
            .filter(named)
            .map(|map| {
                let entries = parse(map.object.data.iter().flatten(), &facts);
                (map, entries.without(&cluster))
            })
            .collect();
        if checked.is_empty() {
            bail!("the input has no ConfigMap named {INSTANCES_CONFIG_MAP}, add it with -f FILE");
        }

        let nodes: Vec<NodeFacts> =
            objects.nodes.iter().map(|node| NodeFacts::from(&node.object)).collect();
        let entries = || checked.iter().flat_map(|(_, entries)| entries.iter());
        let rows: Vec<_> = entries().map(|(address, entry)| row(address, entry)).collect();
        let machines: Vec<_> = selection.machines().map(MachineFacts::of).collect();
        let foreign = |entries: &Entries| foreign_names(entries, &nodes, &machines);
        self.output.print(&rows, || {
            let report = |(map, entries): &(&Located<ConfigMap>, Entries)| {
                let counts = Counts {
                    foreign: foreign(entries).len(),
                    misplaced: strays(&objects, map).len(),
                };
                let report = report(entries, &nodes, counts);
                format!("ConfigMap {INSTANCES_CONFIG_MAP} in {}:\n\n{report}", map.at)
            };
            checked.iter().map(report).collect::<Vec<_>>().join("\n")
        })?;
        let instances = entries().filter_map(|(_, entry)| entry.as_ref().ok());
        for warning in instances.flat_map(warnings) {
            tell("warning", &printable(&warning.to_string()));
        }
        let foreign: Vec<_> = checked.iter().flat_map(|(_, entries)| foreign(entries)).collect();
        for foreign in &foreign {
            tell("error", &printable(&foreign.to_string()));
        }
        let unresolved = |error: &EntryError| matches!(error.problem, Problem::Unresolved(_));
        if self.facts.is_none() && entries().any(|(_, entry)| entry.as_ref().is_err_and(unresolved))
        {
            tell("note", NAMES_NOT_ASKED);
        }
        for map in objects.config_maps.iter().filter(named) {
            let namespace = map.object.metadata.namespace.as_deref();
            if let Some(namespace) = namespace.filter(|namespace| *namespace != self.namespace) {
                let namespace = printable(namespace);
                let told = format!(
                    "the operator in {} does not read ConfigMap {INSTANCES_CONFIG_MAP} in {namespace} ({}): move it \
                     there, or say --namespace {namespace}",
                    self.namespace, map.at
                );
                tell("warning", &told);
            }
        }
        let overfull = checked.iter().filter_map(|(map, entries)| {
            fit(entries.instances()).err().map(|error| format!("{error}: {}", map.at))
        });
        let overfull: Vec<_> = overfull.collect();
        for error in &overfull {
            tell("error", error);
        }
        let strays: Vec<String> =
            checked.iter().flat_map(|(map, _)| strays(&objects, map)).collect();
        let all_is_read = yes_without(&strays) == Answer::Yes;
        // What was not looked up may be wrong.
        let is_ours = all_is_read && overfull.is_empty() && foreign.is_empty();
        let wrong = !is_ours || entries().any(|(_, entry)| entry.is_err());
        Ok(if wrong { Answer::No } else { Answer::Yes })
    }
}

fn row<'a>(address: &'a str, entry: &'a Result<Instance, EntryError>) -> Row<'a> {
    let instance = entry.as_ref().ok();
    Row {
        address,
        ipv4: instance.map(|instance| instance.ipv4),
        username: instance.map(|instance| instance.username.as_str()),
        error: entry.as_ref().err().map(ToString::to_string),
    }
}

/// What is wrong with a list beside its entries.
#[derive(Clone, Copy)]
struct Counts {
    /// Further names that others have.
    foreign: usize,
    /// Parts that nobody reads.
    misplaced: usize,
}

/// A line per entry and a summary, for people.
fn report(entries: &Entries, nodes: &[NodeFacts], counts: Counts) -> String {
    // What nobody could list in a cluster may stand in a file.
    let shown: Vec<_> =
        entries.iter().map(|(address, entry)| (printable(address), entry)).collect();
    let width = shown.iter().map(|(address, _)| address.chars().count()).max().unwrap_or(0);
    let nodes = nodes_of(entries, nodes);
    let mut text = String::new();
    for (address, entry) in shown {
        let (label, found) = match entry {
            Ok(instance) => ("ok", describe(instance, &nodes)),
            Err(error) => {
                let label = if error.is_pending() { "open" } else { "error" };
                (label, format!("{}: {}", error.field, error.problem))
            }
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {label:<5}  {address:<width$}  {found}");
    }
    if !text.is_empty() {
        text.push('\n');
    }
    let wrong = entries.errors().filter(|error| !error.is_pending()).count();
    let (all, open) = (entries.iter().count(), entries.errors().count() - wrong);
    let noun = if all == 1 { "entry" } else { "entries" };
    let _ = match (wrong, open) {
        (0, 0) if fit(entries.instances()).is_err() => writeln!(text, "{all} {noun}, too many"),
        (0, 0) if counts.misplaced > 0 => {
            writeln!(text, "{all} {noun}, {} at the wrong place", counts.misplaced)
        }
        (0, 0) if counts.foreign > 0 => {
            writeln!(text, "{all} {noun}, {} in `names=` of others", counts.foreign)
        }
        (0, 0) => writeln!(text, "{all} {noun}, all fine"),
        (0, open) => writeln!(text, "{all} {noun}, {open} not looked up"),
        (wrong, _) => writeln!(text, "{all} {noun}, {wrong} wrong"),
    };
    text
}

fn describe(instance: &Instance, nodes: &BTreeMap<String, String>) -> String {
    let mut text = format!("{} at {}", printable(&instance.username), instance.ipv4);
    if instance.port != limits::SSH_PORT {
        let _ = write!(text, " port {}", instance.port);
    }
    if let Some(key) = &instance.host_key {
        let _ = write!(text, ", host key {}", key.fingerprint());
    }
    if let Some(jump) = &instance.via {
        let _ = write!(text, ", via {}", printable(&jump.to_string()));
    }
    if let Some(key) = &instance.via_host_key {
        let _ = write!(text, " with host key {}", key.fingerprint());
    }
    if let Some(node) = nodes.get(&instance.address) {
        let _ = write!(text, ", node {node}");
    }
    text
}
