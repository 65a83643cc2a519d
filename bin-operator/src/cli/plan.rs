//! `plan`: what the operator would do with the objects in files. It touches nothing.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use jiff::Timestamp;
use wmco_core::cluster_identity::ClusterIdentity;
use wmco_core::digest::Sha256;
use wmco_core::facts::{Facts, MachineFacts, MachineSetFacts, NodeFacts};
use wmco_core::fleet::{self, Desired, MaxUnavailable, Notice, Observed, RemovalGuard, host_names};
use wmco_core::host_record::KnownHosts;
use wmco_core::instances;
use wmco_core::machines::Machines;
use wmco_core::names::objects::{self, NEXT_PRIVATE_KEY_KEY, PRIVATE_KEY_KEY, PRIVATE_KEY_SECRET};
use wmco_core::node::Release;
use wmco_core::preflight::{self, Finding};
use wmco_core::preview::{InputObject, Preview, missing_objects, preview};
use wmco_core::secret::Secret as Hidden;

use super::check::NAMES_NOT_ASKED;
use super::check_cluster::cluster_seen;
use super::cluster_facts::{cluster_facts, infrastructure, tells_infrastructure};
use super::{Answer, GuardOption, Output, tell, yes_without};
use crate::VERSION;
use crate::input::{InputError, Objects, Reader, Selection};
use crate::keys::{KeySecret, Keys};
use crate::snapshot::InstanceList;

/// Arguments of `plan`.
#[derive(Args, Debug)]
pub struct Plan {
    /// Files with cluster objects in YAML or JSON; `-` is standard input.
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,
    /// File with DNS answers: {"dns": {"forward": {NAME: IPV4}}}.
    #[arg(long, value_name = "FILE")]
    facts: Option<PathBuf>,
    /// Desired version of nodes; default: the version of this program.
    #[arg(long, value_name = "VERSION", default_value = VERSION)]
    operator_version: String,
    #[command(flatten)]
    guard: GuardOption,
    /// Most nodes that are disrupted at the same time, for example 2 or 25%.
    #[arg(long, value_name = "N|P%", default_value_t)]
    max_unavailable: MaxUnavailable,
    /// Namespace of the operator; default: that of the ConfigMap windows-instances.
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Print no plan if the input lacks an object that could change it.
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    output: Output,
}

impl Plan {
    /// Prints the plan. "No" means that entries are broken; the others are planned all the same. It also means that
    /// hosts are listed where nobody reads them; then there is no plan, for it would remove those hosts.
    ///
    /// # Errors
    /// The input cannot be read.
    pub fn run(self) -> anyhow::Result<Answer> {
        let mut reader = Reader::new(std::io::stdin());
        let objects = reader.objects(&self.files)?;
        let facts = match &self.facts {
            Some(file) => reader.facts(file)?,
            None => Facts::default(),
        };
        let selection = Selection::new(&objects, self.namespace.as_deref())?;
        if yes_without(&selection.strays_of_list()) == Answer::No {
            return Ok(Answer::No);
        }
        let list = selection.config_map(objects::INSTANCES_CONFIG_MAP).map(InstanceList::from);
        let data = list.as_ref().map(|list| list.data.clone()).unwrap_or_default();
        let cluster = cluster_facts(&objects)?.addresses;
        let entries = instances::parse(&data, &facts).without(&cluster);
        let nodes: Vec<NodeFacts> =
            objects.nodes.iter().map(|node| NodeFacts::from(&node.object)).collect();
        let kept = selection.config_map(objects::HOST_KEYS_CONFIG_MAP);
        let hosts = KnownHosts::read(kept.iter().flat_map(|map| map.data.iter().flatten()));
        let names = host_names(&entries, &facts, &facts.reported_names(), &hosts);
        let machines = machines(&objects, &selection)?;
        let keys = keys(&selection);
        let observed = Observed { hosts: &hosts, host_names: &names, ..Observed::new(&nodes) };
        let findings = preflight::cluster(&cluster_seen(&objects)?);
        let guard = RemovalGuard {
            most: self.guard.most(),
            confirmed: list.as_ref().and_then(|list| list.confirmed),
        };
        let desired = Desired {
            entries: list.is_some().then_some(&entries),
            machines: &machines,
            version: &self.operator_version,
            budget: self.max_unavailable.of(&nodes),
            blocked: findings.iter().any(Finding::blocks),
            guard,
            keys: keys.as_ref().map(|keys| &keys.facts),
        };
        // Its content does not matter, because no host is asked.
        let anywhere = ClusterIdentity::new(String::new());
        let release = Release::new(&self.operator_version, Sha256::of(&[]), anywhere).into();
        let assignments = fleet::reconcile(&desired, &observed);
        let plan = preview(&assignments, &desired, &observed, &release, Timestamp::now());
        let given = [
            (InputObject::Hosts, kept.is_some()),
            (InputObject::Infrastructure, tells_infrastructure(&objects)?),
            (InputObject::Machines, selection.tells_machines()),
            (InputObject::Networks, cluster.services.is_some()),
            (InputObject::Nodes, selection.tells_nodes()),
        ];
        let given: BTreeSet<_> =
            given.into_iter().filter(|(_, is_given)| *is_given).map(|(object, _)| object).collect();
        for passed_over in selection.passed_over() {
            tell("note", &passed_over);
        }
        let missing = missing_objects(&desired, &observed, &given);
        if !missing.is_empty() {
            let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
            let missing = missing.join(", ");
            if self.strict {
                bail!(
                    "the input lacks {missing}, with which the plan may be another one: add it with -f FILE"
                );
            }
            tell(
                "note",
                &format!("the input lacks {missing}, with which the plan may be another one"),
            );
        }
        for machine in machines.iter() {
            if let Err(unfit) = &machine.instance {
                tell("note", &format!("machine {} is left as it is: {unfit}", machine.facts.name));
            }
        }
        self.output.print(&plan, || text(&plan))?;
        for finding in &findings {
            tell(if finding.blocks() { "blocks" } else { "warning" }, &finding.to_string());
        }
        let (open, wrong): (Vec<_>, Vec<_>) =
            entries.errors().partition(|error| error.is_pending());
        for error in &open {
            tell("note", &error.to_string());
        }
        if self.facts.is_none() && !open.is_empty() {
            tell("note", NAMES_NOT_ASKED);
        }
        for error in &wrong {
            tell("error", &error.to_string());
        }
        // What a rotation still has to do is above, and has not begun.
        let is_told = |notice: &&Notice| !matches!(notice, Notice::KeyNotProven { .. });
        for notice in assignments.notices.iter().filter(is_told) {
            tell("warning", &notice.to_string());
        }
        Ok(if wrong.is_empty() { Answer::Yes } else { Answer::No })
    }
}

/// The Machines among `objects`; where no Infrastructure tells the platform, it is none of those that
/// name users or hosts in a way of their own.
fn machines(objects: &Objects, selection: &Selection<'_>) -> Result<Machines, InputError> {
    let platform = infrastructure(objects)?;
    let platform =
        platform.and_then(|it| it.object.pointer("/status/platformStatus/type")?.as_str());
    Ok(Machines::read(
        selection.machines().map(MachineFacts::of),
        selection.machine_sets().map(MachineSetFacts::of),
        platform.unwrap_or_default(),
    ))
}

/// The private keys, if their Secret is in the input.
fn keys(selection: &Selection<'_>) -> Option<Keys> {
    let secret = selection.secret(PRIVATE_KEY_SECRET)?;
    let pem = |key| {
        let text = || secret.string_data.as_ref()?.get(key).map(|text| text.clone().into_bytes());
        let bytes = secret.data.as_ref().and_then(|data| Some(data.get(key)?.0.clone()));
        // As the API server merges them.
        text().or(bytes).map(Hidden::new)
    };
    let tell = |problem: String| tell("warning", &problem);
    let (current, next) = (pem(PRIVATE_KEY_KEY), pem(NEXT_PRIVATE_KEY_KEY));
    Keys::parse(Some(KeySecret { current, next }), tell)
}

fn text(plan: &[Preview<'_>]) -> String {
    if plan.is_empty() {
        return "nothing is listed and no node is ours: nothing to do\n".to_owned();
    }
    let lines: Vec<String> = plan.iter().map(ToString::to_string).collect();
    lines.join("\n") + "\n"
}
