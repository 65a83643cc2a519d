//! `check bundle`: whether the Operator Lifecycle Manager takes a bundle.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use wmco_core::bundle::{Level, Problem, check};

use super::bundle_folder::bundle_files;
use super::{Answer, Output};

/// Arguments of `check bundle`.
#[derive(Args, Debug)]
pub struct Bundle {
    /// Folder of the bundle, with `manifests`, `metadata` and a Dockerfile.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    #[command(flatten)]
    output: Output,
}

/// What was found, as `-o json` prints it.
#[derive(Serialize)]
struct Found {
    /// Whether no rule is broken, warnings aside.
    ok: bool,
    /// Broken rules in the order of files.
    problems: Vec<Problem>,
}

impl Bundle {
    /// Checks and prints what was found.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let problems = check(&bundle_files(&self.folder)?);
        let ok = problems.iter().all(|problem| problem.rule.level == Level::Warning);
        let found = Found { ok, problems };
        self.output.print(&found, || text(&found))?;
        Ok(if ok { Answer::Yes } else { Answer::No })
    }
}

fn text(found: &Found) -> String {
    let mut text = String::new();
    for problem in &found.problems {
        let level = match problem.rule.level {
            Level::Error => "error",
            Level::Warning => "warning",
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{level}: {problem}\n  see {}", problem.rule.source);
    }
    text.push_str(if found.ok {
        "The bundle can be installed.\n"
    } else {
        "The bundle is refused.\n"
    });
    text
}
