//! `check registries`: what of mirror sets and settings for images Windows nodes cannot do.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use serde::Serialize;
use wmco_core::registries::{ClusterObject, RegistryAdvice, RegistryFinding};

use super::registries::{Given, KINDS};
use super::{Answer, Output, tell};

/// Arguments of `check registries`.
///
/// Also reports a pause image that no mirror resolves: the default, or that of the environment variable
/// CONTAINERD_PAUSE_IMAGE.
#[derive(Args, Debug)]
pub struct Registries {
    /// Files with mirror sets, image.config.openshift.io and the Secret pull-secret in YAML or JSON; `-` is
    /// standard input.
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    output: Output,
}

/// What was found, as `-o json` prints it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Found<'a> {
    ok: bool,
    /// How many mirror sets there are.
    mirror_sets: usize,
    /// Files that containerd gets.
    files: Vec<String>,
    problems: Vec<Row<'a>>,
    warnings: Vec<Row<'a>>,
    /// About all of it.
    advice: Vec<String>,
}

/// One finding.
#[derive(Serialize)]
struct Row<'a> {
    object: &'a ClusterObject,
    field: &'a str,
    text: String,
}

impl Registries {
    /// Checks and prints what was found.
    ///
    /// # Errors
    /// The input cannot be read, or holds nothing to check.
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let given = Given::read(&self.files)?;
        if !given.any {
            let kinds = KINDS.join(", ");
            let Some(elsewhere) = given.findings().next() else {
                bail!("the input has none of {kinds}, add one with -f FILE");
            };
            bail!("the input has none of {kinds} that counts: {elsewhere}");
        }
        let advice = given.registries.advice(&given.pause_image);
        let findings = given.findings();
        let (problems, warnings): (Vec<_>, Vec<_>) =
            findings.partition(|finding| finding.problem.is_serious());
        let found = Found {
            ok: problems.is_empty() && !advice.iter().any(RegistryAdvice::is_serious),
            mirror_sets: given.mirror_sets,
            files: given.registries.files().into_keys().collect(),
            problems: problems.iter().copied().map(row).collect(),
            warnings: warnings.iter().copied().map(row).collect(),
            advice: advice.iter().map(ToString::to_string).collect(),
        };
        let serious = advice.iter().filter(|advice| advice.is_serious()).count();
        self.output.print(&found, || report(&found, (&problems, serious), &warnings))?;
        given.tell_assumption();
        for advice in &advice {
            tell(if advice.is_serious() { "error" } else { "note" }, &advice.to_string());
        }
        Ok(if found.ok { Answer::Yes } else { Answer::No })
    }
}

fn row(finding: &RegistryFinding) -> Row<'_> {
    let text = finding.problem.to_string();
    Row { object: &finding.object, field: &finding.field, text }
}

/// A line for each finding and a summary, for people, with the number of advices that are serious.
fn report(
    found: &Found<'_>,
    (problems, serious_advice): (&[&RegistryFinding], usize),
    warnings: &[&RegistryFinding],
) -> String {
    let mut text = String::new();
    for (label, findings) in [("error", problems), ("warning", warnings)] {
        for finding in findings {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{label:<7}  {finding}");
        }
    }
    if !text.is_empty() {
        text.push('\n');
    }
    let noun = if found.mirror_sets == 1 { "mirror set" } else { "mirror sets" };
    let verdict = match (problems.len() + serious_advice, warnings.len()) {
        (0, 0) => "all fine".to_owned(),
        (0, doubtful) => format!("{doubtful} to look at"),
        (wrong, _) => format!("{wrong} wrong"),
    };
    let files = match found.files.len() {
        1 => "1 file".to_owned(),
        files => format!("{files} files"),
    };
    let _ = writeln!(text, "{} {noun}, {files} for containerd, {verdict}", found.mirror_sets);
    text
}
