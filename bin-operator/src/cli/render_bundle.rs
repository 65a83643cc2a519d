//! `render bundle`: the operator for the Operator Lifecycle Manager.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use semver::Version;

use super::bundle_folder::bundle_files;
use super::installation::InstallationOptions;
use super::{Answer, Output, no, tell};

/// Arguments of `render bundle`.
#[derive(Args, Debug)]
pub struct Bundle {
    #[command(flatten)]
    installation: InstallationOptions,
    /// Version of the bundle.
    #[arg(long = "bundle-version", value_name = "VERSION", default_value = env!("CARGO_PKG_VERSION"))]
    of_version: Version,
    /// Installed versions that are upgraded directly to this one; default: all older ones.
    #[arg(long, value_name = "RANGE")]
    skip_range: Option<String>,
    /// Image of the catalog, for the examples.
    #[arg(long, value_name = "IMAGE", default_value = "wmco-catalog")]
    catalog_image: String,
    /// Image of the bundle itself, for the examples.
    #[arg(long = "bundle-image", value_name = "IMAGE", default_value = "wmco-bundle")]
    own_image: String,
    /// Write the files into this folder instead of printing them.
    #[arg(long, value_name = "FOLDER")]
    output_dir: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

impl Bundle {
    /// Prints or writes the bundle.
    ///
    /// # Errors
    /// A file cannot be written, or the output.
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let installation = match self.installation.read() {
            Ok(installation) => installation,
            Err(error) => return Ok(no(error)),
        };
        let bundle = wmco_core::bundle::Bundle {
            installation,
            version: self.of_version,
            skip_range: self.skip_range.as_deref(),
            catalog_image: &self.catalog_image,
            own_image: &self.own_image,
        };
        if let Err(error) = bundle.check() {
            return Ok(no(error));
        }
        let files = bundle.files();
        let Some(folder) = &self.output_dir else {
            self.output.print(&files, || {
                files.iter().fold(String::new(), |mut all, (path, text)| {
                    // Writing to a string does not fail.
                    let _ = writeln!(all, "{path}:\n\n{text}");
                    all
                })
            })?;
            return Ok(Answer::Yes);
        };
        for (path, text) in &files {
            super::output::write(&folder.join(path), text)?;
        }
        for path in bundle_files(folder)?.into_keys().filter(|path| !files.contains_key(path)) {
            tell("warning", &format!("{path} is not part of this bundle, remove it"));
        }
        Ok(Answer::Yes)
    }
}
