//! `check services`: everything that is wrong with services ConfigMaps.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use k8s_openapi::api::core::v1::ConfigMap;
use serde::Serialize;
use wmco_core::names::objects::SERVICES_CONFIG_MAP_PREFIX;
use wmco_core::protocol::ServicesData;
use wmco_services::manifest::{Review, review};

use super::{Answer, Output, tell};
use crate::input::{Located, Reader};

/// Arguments of `check services`.
#[derive(Args, Debug)]
pub struct Services {
    /// Files with cluster objects in YAML or JSON; `-` is standard input.
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    output: Output,
}

/// What is known about one ConfigMap, as `-o json` prints it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    name: String,
    /// File, document and item.
    at: String,
    ok: bool,
    /// Names by ascending priority; null when the ConfigMap is refused.
    services: Option<Vec<String>>,
    /// Names in the order in which they are started; null when the ConfigMap is refused.
    start_order: Option<Vec<String>>,
    /// Names of those that start before there is a Node; null when the ConfigMap is refused.
    bootstrap: Option<Vec<String>>,
    problems: Vec<Line>,
    warnings: Vec<Line>,
}

/// One thing to look at.
#[derive(Serialize)]
struct Line {
    /// Place in the data, for example `services[2].dependencies[0]`.
    at: String,
    text: String,
}

impl Services {
    /// Checks and prints what was found.
    ///
    /// # Errors
    /// The input cannot be read, or holds nothing to check.
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let objects = Reader::new(std::io::stdin()).objects(&self.files)?;
        let rows: Vec<Row> = chosen(&objects.config_maps)?.into_iter().map(row).collect();
        self.output.print(&rows, || rows.iter().map(report).collect::<Vec<_>>().join("\n"))?;
        Ok(if rows.iter().all(|row| row.ok) { Answer::Yes } else { Answer::No })
    }
}

fn name(map: &Located<ConfigMap>) -> &str {
    map.object.metadata.name.as_deref().unwrap_or_default()
}

/// The ConfigMaps that are called as the operator calls them; without any, all that there are.
fn chosen(maps: &[Located<ConfigMap>]) -> anyhow::Result<Vec<&Located<ConfigMap>>> {
    let ours: Vec<_> =
        maps.iter().filter(|map| name(map).starts_with(SERVICES_CONFIG_MAP_PREFIX)).collect();
    if !ours.is_empty() {
        return Ok(ours);
    }
    if maps.is_empty() {
        bail!(
            "the input has no ConfigMap {SERVICES_CONFIG_MAP_PREFIX}VERSION, add it with -f FILE"
        );
    }
    for map in maps {
        let told = format!(
            "ConfigMap {} in {} is checked, but nodes read {SERVICES_CONFIG_MAP_PREFIX}VERSION only",
            name(map),
            map.at
        );
        tell("note", &told);
    }
    Ok(maps.iter().collect())
}

fn row(map: &Located<ConfigMap>) -> Row {
    let data: BTreeMap<String, String> = map.object.data.clone().unwrap_or_default();
    let Review { mut problems, warnings, manifest } = review(&ServicesData(data));
    let problems = problems
        .drain(..)
        .map(|problem| Line {
            at: problem.at,
            text: format!("{:#}", anyhow::Error::from(problem.error)),
        })
        .collect();
    let mut warnings: Vec<Line> =
        warnings.into_iter().map(|warning| Line { at: warning.at, text: warning.text }).collect();
    if map.object.immutable != Some(true) {
        let text = "is not set, so the operator recreates this ConfigMap; write `immutable: true`";
        warnings.push(Line { at: "immutable".to_owned(), text: text.to_owned() });
    }
    let manifest = manifest.as_ref();
    Row {
        name: name(map).to_owned(),
        at: map.at.to_string(),
        ok: manifest.is_some(),
        services: manifest.map(|m| m.services().iter().map(|s| s.name.to_string()).collect()),
        start_order: manifest.map(|m| m.start_order().map(|s| s.name.to_string()).collect()),
        bootstrap: manifest.map(|m| m.bootstrap().map(|s| s.name.to_string()).collect()),
        problems,
        warnings,
    }
}

/// A line for each problem and warning, and a summary, for people.
fn report(row: &Row) -> String {
    let mut text = format!("ConfigMap {} in {}:\n\n", row.name, row.at);
    let lines = row.problems.iter().map(|line| ("error", line));
    for (label, line) in lines.chain(row.warnings.iter().map(|line| ("warning", line))) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {label:<7}  {}: {}", line.at, line.text);
    }
    if !(row.problems.is_empty() && row.warnings.is_empty()) {
        text.push('\n');
    }
    let _ = match (&row.start_order, row.problems.len()) {
        (Some(order), _) if order.is_empty() => {
            writeln!(text, "fine, but without a service nodes run nothing")
        }
        (Some(order), _) => writeln!(text, "fine, starts in this order: {}", order.join(", ")),
        (None, 1) => writeln!(text, "refused, 1 problem"),
        (None, problems) => writeln!(text, "refused, {problems} problems"),
    };
    text
}
