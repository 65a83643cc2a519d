//! `render manifests`: everything that is applied to a cluster to install the operator.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use wmco_core::manifests::{self, File};

use super::installation::InstallationOptions;
use super::{Answer, Format, Output, no};

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
                for file in manifests::files(&installation) {
                    super::output::write(&folder.join(file.path), &file.text())?;
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
