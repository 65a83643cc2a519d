//! `check machinesets`: MachineSets whose Machines would not become Windows nodes.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use serde::Serialize;
use serde_json::Value;
use wmco_core::machine_set::{Finding, Platform, inspect_among};
use wmco_core::names::machine_api::MACHINE_SET_KIND;

use super::{Answer, Output, tell};
use crate::input::{Located, Reader, Selection};

/// Arguments of `check machinesets`.
#[derive(Args, Debug)]
pub struct MachineSets {
    /// Files with cluster objects in YAML or JSON; `-` is standard input.
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    output: Output,
}

/// What was found, as `-o json` prints it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    /// Those that are meant for Windows.
    machine_sets: Vec<Row>,
    /// How many are not.
    passed_over: usize,
}

/// What is known about one MachineSet.
#[derive(Serialize)]
struct Row {
    name: String,
    /// File, document and item.
    at: String,
    /// Null if it is not known.
    platform: Option<&'static str>,
    ok: bool,
    problems: Vec<Finding>,
    warnings: Vec<Finding>,
}

impl MachineSets {
    /// Checks and prints what was found.
    ///
    /// # Errors
    /// The input cannot be read, or holds nothing to check.
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let objects = Reader::new(std::io::stdin()).objects(&self.files)?;
        let selection = Selection::new(&objects, None)?;
        let all: Vec<_> = selection.located_machine_sets().collect();
        selection.passed_over().iter().for_each(|line| tell("note", line));
        if all.is_empty() {
            bail!("the input has no {MACHINE_SET_KIND}, add it with -f FILE");
        }
        let machine_sets: Vec<Row> = all.iter().filter_map(|set| row(set, &all)).collect();
        let found = Found { passed_over: all.len() - machine_sets.len(), machine_sets };
        self.output.print(&found, || report(&found))?;
        let ok = found.machine_sets.iter().all(|row| row.ok);
        Ok(if ok { Answer::Yes } else { Answer::No })
    }
}

fn row(set: &Located<Value>, all: &[&Located<Value>]) -> Option<Row> {
    let found = inspect_among(&set.object, all.iter().map(|other| &other.object))?;
    let name = set.object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    Some(Row {
        name: name.to_owned(),
        at: set.at.to_string(),
        platform: found.platform.map(Platform::name),
        ok: found.problems.is_empty(),
        problems: found.problems,
        warnings: found.warnings,
    })
}

/// A line for each problem and warning, and a summary, for people.
fn report(found: &Found) -> String {
    let mut text = String::new();
    for row in &found.machine_sets {
        let (name, verdict) = (row.name.escape_debug(), if row.ok { "fine" } else { "no node" });
        let on = row.platform.map(|platform| format!(" on {platform}")).unwrap_or_default();
        // Writing to a string does not fail.
        let _ = writeln!(text, "{MACHINE_SET_KIND} {name}{on} in {}: {verdict}", row.at);
        let problems = row.problems.iter().map(|finding| ("error", finding));
        for (label, finding) in
            problems.chain(row.warnings.iter().map(|warning| ("warning", warning)))
        {
            let _ = writeln!(text, "  {label:<7}  {finding}");
        }
        text.push('\n');
    }
    let wrong = found.machine_sets.iter().filter(|row| !row.ok).count();
    let (all, other) = (found.machine_sets.len(), found.passed_over);
    let _ = match (all, wrong) {
        (0, _) => write!(text, "none for Windows"),
        (_, 0) => write!(text, "{all} for Windows, all fine"),
        _ => write!(text, "{all} for Windows, {wrong} wrong"),
    };
    let _ = writeln!(text, "; {other} not for Windows, passed over");
    text
}
