//! `explain mirror`: which URLs containerd asks for an image.

use std::path::PathBuf;

use clap::Args;
use wmco_core::registries::ImageReference;

use super::registries::Given;
use super::{Answer, Output};

/// Arguments of `explain mirror`.
///
/// The source of the pause image, as CONTAINERD_PAUSE_IMAGE in the environment names it, is asked with the credentials
/// that the pull secret has for it.
#[derive(Args, Debug)]
// The image comes first: behind the files it would be taken for one of them.
#[command(override_usage = "wmco-operator explain mirror <IMAGE> --filename <FILE>... [OPTIONS]")]
pub struct Mirror {
    /// The image, for example quay.io/team/app:1 or quay.io/team/app@sha256:DIGEST.
    #[arg(value_name = "IMAGE")]
    image: ImageReference,
    /// Files with mirror sets, image.config.openshift.io and the Secret pull-secret in YAML or JSON; `-` is
    /// standard input.
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    output: Output,
}

impl Mirror {
    /// Explains and prints, and tells what was found about the image's registry. "No" means that nothing may be asked,
    /// or that a setting for this registry does not hold.
    ///
    /// # Errors
    /// The input cannot be read, or the output cannot be written.
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let given = Given::read(&self.files)?;
        let pull = given.registries.explain(&self.image);
        self.output.print(&pull, || pull.to_string())?;
        given.tell_assumption();
        let about_it = given.findings().filter(|finding| finding.is_about(&self.image));
        let holds = Given::tell_findings(about_it);
        Ok(if pull.resolve.is_empty() { Answer::No } else { holds })
    }
}
