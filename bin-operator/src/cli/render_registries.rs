//! `render registries`: containerd's files with mirrors.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use wmco_core::names::host::REGISTRIES;

use super::registries::Given;
use super::{Answer, Output};

/// Arguments of `render registries`.
///
/// The registry of the pause image, as CONTAINERD_PAUSE_IMAGE in the environment names it, has a file if the pull
/// secret has credentials for that image.
#[derive(Args, Debug)]
pub struct Registries {
    /// Files with mirror sets, image.config.openshift.io and the Secret pull-secret in YAML or JSON; `-` is
    /// standard input.
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    output: Output,
}

impl Registries {
    /// Prints the files, and on standard error what people should know of the objects. "No" means that something in
    /// them does not hold; the files say the rest.
    ///
    /// # Errors
    /// The input cannot be read, or the output cannot be written.
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let given = Given::read(&self.files)?;
        let mut files: BTreeMap<String, String> = BTreeMap::new();
        for (path, text) in given.registries.files() {
            files.insert(path, std::str::from_utf8(text.expose())?.to_owned());
        }
        self.output.print(&files, || {
            let mut text = String::new();
            for (path, content) in &files {
                // Writing to a string does not fail.
                let _ =
                    writeln!(text, "{REGISTRIES}\\{path}: {} bytes\n\n{content}", content.len());
            }
            text
        })?;
        given.tell_assumption();
        Ok(Given::tell_findings(given.findings()))
    }
}
