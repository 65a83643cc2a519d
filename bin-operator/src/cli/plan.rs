//! `plan`: what the operator would do with the objects in files. It touches nothing.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use wmco_core::digest::Sha256;
use wmco_core::facts::{Facts, MachineFacts, MachineSetFacts, NodeFacts};
use wmco_core::fleet::{self, Desired, MaxUnavailable, Notice, Observed, RemovalGuard, host_names};
use wmco_core::host_record::KnownHosts;
use wmco_core::instances;
use wmco_core::machines::Machines;
use wmco_core::names::machine_api::{INFRASTRUCTURE_KIND, MACHINE_SET_KIND};
use wmco_core::names::objects::{self, NEXT_PRIVATE_KEY_KEY, PRIVATE_KEY_KEY, PRIVATE_KEY_SECRET};
use wmco_core::node::Release;
use wmco_core::preflight::{self, Finding};
use wmco_core::preview::{Preview, preview};
use wmco_core::secret::Secret as Hidden;

use super::check_cluster::cluster_seen;
use super::cluster_facts::cluster_facts;
use super::{Answer, GuardOption, Output, tell};
use crate::VERSION;
use crate::input::{Objects, Reader};
use crate::keys::Keys;
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
    #[command(flatten)]
    output: Output,
}

impl Plan {
    /// Prints the plan. "No" means that entries are broken; the others are planned all the same.
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
        let map = |name: &str| {
            let mut maps = objects.config_maps.iter().map(|map| &map.object);
            maps.find(|map| map.metadata.name.as_deref() == Some(name))
        };
        let list = map(objects::INSTANCES_CONFIG_MAP).map(InstanceList::from);
        let data = list.as_ref().map(|list| list.data.clone()).unwrap_or_default();
        let cluster = cluster_facts(&objects)?.addresses;
        let entries = instances::parse(&data, &facts).without(&cluster);
        let nodes: Vec<NodeFacts> =
            objects.nodes.iter().map(|node| NodeFacts::from(&node.object)).collect();
        let kept = map(objects::HOST_KEYS_CONFIG_MAP).and_then(|map| map.data.clone());
        let hosts = KnownHosts::read(kept.unwrap_or_default());
        let names = host_names(&entries, &facts, &facts.hostnames, &hosts);
        let machines = machines(&objects);
        let keys = keys(&objects);
        let observed = Observed { hosts: &hosts, host_names: &names, ..Observed::new(&nodes) };
        let findings = preflight::cluster(&cluster_seen(&objects));
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
        let release = Arc::new(Release::new(&self.operator_version, Sha256::of(&[])));
        let assignments = fleet::reconcile(&desired, &observed);
        let keys = keys.as_ref().map(|keys| &keys.facts);
        let plan = preview(&assignments, &hosts, keys, &release, Timestamp::now());
        self.output.print(&plan, || text(&plan))?;
        for finding in &findings {
            tell("warning", &finding.to_string());
        }
        for error in entries.errors() {
            tell("error", &error.to_string());
        }
        // What a rotation still has to do is above, and has not begun.
        let is_told = |notice: &&Notice| !matches!(notice, Notice::KeyNotProven { .. });
        for notice in assignments.notices.iter().filter(is_told) {
            tell("warning", &notice.to_string());
        }
        Ok(if entries.errors().next().is_some() { Answer::No } else { Answer::Yes })
    }
}

/// The Machines among `objects`; where no Infrastructure tells the platform, it is none of those that
/// name users or hosts in a way of their own.
fn machines(objects: &Objects) -> Machines {
    let all = |kind| objects.others_of(kind).map(|found| &found.object);
    let platform = all(INFRASTRUCTURE_KIND).next();
    let platform = platform.and_then(|it| it.pointer("/status/platformStatus/type")?.as_str());
    Machines::read(
        all(objects::MACHINE.2).map(MachineFacts::of),
        all(MACHINE_SET_KIND).map(MachineSetFacts::of),
        platform.unwrap_or_default(),
    )
}

/// The private keys, if their Secret is among `objects`.
fn keys(objects: &Objects) -> Option<Keys> {
    let named = |secret: &&Secret| secret.metadata.name.as_deref() == Some(PRIVATE_KEY_SECRET);
    let secret = objects.secrets.iter().map(|found| &found.object).find(named)?;
    let pem = |key| {
        let text = || secret.string_data.as_ref()?.get(key).map(|text| text.clone().into_bytes());
        let bytes = secret.data.as_ref().and_then(|data| Some(data.get(key)?.0.clone()));
        // As the API server merges them.
        text().or(bytes).map(Hidden::new)
    };
    let tell = |problem: String| tell("warning", &problem);
    Keys::parse(pem(PRIVATE_KEY_KEY), pem(NEXT_PRIVATE_KEY_KEY), tell)
}

fn text(plan: &[Preview<'_>]) -> String {
    if plan.is_empty() {
        return "nothing is listed and no node is ours: nothing to do\n".to_owned();
    }
    let lines: Vec<String> = plan.iter().map(ToString::to_string).collect();
    lines.join("\n") + "\n"
}
