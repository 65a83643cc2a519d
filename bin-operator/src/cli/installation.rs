//! What people choose of an installation, for the commands that print one.

use clap::Args;
use wmco_core::manifests::{IMAGE, Installation};
use wmco_core::names::objects::DEFAULT_NAMESPACE;

use super::arguments;

/// Namespace, image and options of the operator.
#[derive(Args, Debug)]
pub(super) struct InstallationOptions {
    /// Namespace of the operator.
    #[arg(long, value_name = "NAMESPACE", default_value = DEFAULT_NAMESPACE)]
    namespace: String,
    /// The operator's image, preferably by digest. `kustomize edit set image` can replace the default name.
    #[arg(long, value_name = "IMAGE", default_value = IMAGE)]
    image: String,
    /// More options of `run` in the Deployment, such as `--args="--debugLogging --max-unavailable=25%"`.
    #[arg(long, value_name = "OPTIONS", default_value = "", allow_hyphen_values = true)]
    args: String,
}

impl InstallationOptions {
    /// The installation.
    ///
    /// # Errors
    /// What cannot work, and what to write.
    pub(super) fn read(&self) -> anyhow::Result<Installation<'_>> {
        arguments::check(&self.args)?;
        Ok(Installation::new(&self.namespace, &self.image)?.with_arguments(self.args.trim()))
    }
}
