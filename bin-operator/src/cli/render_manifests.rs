//! `render manifests`: everything that is applied to a cluster to install the operator.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use wmco_core::manifests::{self, File};

use super::installation::InstallationOptions;
use super::{Answer, Format, Output, no, tell};

/// Arguments of `render manifests`.
#[derive(Args, Debug)]
pub struct Manifests {
    #[command(flatten)]
    installation: InstallationOptions,
    /// Write files for `kubectl apply -k` into this folder, components included, instead of one stream.
    #[arg(long, value_name = "FOLDER")]
    output_dir: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

impl Manifests {
    /// Prints or writes the manifests.
    ///
    /// # Errors
    /// A file cannot be written, or the output.
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let installation = match self.installation.read() {
            Ok(installation) => installation,
            Err(error) => return Ok(no(error)),
        };
        match (&self.output_dir, self.output.format) {
            (Some(folder), _) => {
                let files = manifests::files(&installation);
                for file in &files {
                    super::output::write(&folder.join(file.path), &file.text())?;
                }
                for path in foreign_files(folder, &files)? {
                    tell("warning", &format!("{path} is not part of these manifests, remove it"));
                }
            }
            (None, Format::Json) => {
                let items = manifests::objects(&installation);
                let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
                self.output.print(&list, String::new)?;
            }
            (None, Format::Text | Format::Yaml) => {
                let applied: Vec<_> =
                    manifests::applied(&installation).iter().map(File::text).collect();
                super::output::print(&applied.join("---\n"))?;
            }
        }
        Ok(Answer::Yes)
    }
}

/// Paths of other objects in the folders of these files, such as those of an earlier version: `kubectl apply -f` would
/// take them, too.
fn foreign_files(folder: &Path, files: &[File]) -> anyhow::Result<Vec<String>> {
    let ours: BTreeSet<PathBuf> = files.iter().map(|file| PathBuf::from(file.path)).collect();
    let folders: BTreeSet<&Path> = ours.iter().filter_map(|path| path.parent()).collect();
    let mut foreign = Vec::new();
    for inside in folders {
        let cannot = || format!("cannot read the folder {}", folder.join(inside).display());
        for entry in fs::read_dir(folder.join(inside)).with_context(cannot)? {
            let path = inside.join(entry.with_context(cannot)?.file_name());
            let is_object =
                ["yaml", "yml", "json"].iter().any(|it| path.extension() == Some(it.as_ref()));
            if is_object && !ours.contains(&path) {
                foreign.push(path.display().to_string());
            }
        }
    }
    foreign.sort();
    Ok(foreign)
}
