//! `render credential-provider`: where kubelets on AWS get credentials for images.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use serde_json::Value;
use wmco_core::digest::Sha256;
use wmco_core::ignition::{CREDENTIAL_PROVIDER, Ignition, IgnitionError};
use wmco_core::names::host::CREDENTIAL_PROVIDER_CONFIG;
use wmco_core::render::credential_provider;

use super::{Answer, Format, Output, no};
use crate::input::Reader;

/// Kind of the objects that hold the files of Linux workers.
const MACHINE_CONFIG: &str = "MachineConfig";

/// Arguments of `render credential-provider`.
#[derive(Args, Debug)]
pub struct CredentialProvider {
    /// File with the `CredentialProviderConfig` of Linux workers, or with their rendered MachineConfig, in
    /// YAML or JSON; `-` is standard input.
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    output: Output,
}

impl CredentialProvider {
    /// Prints the file.
    ///
    /// # Errors
    /// The input cannot be read, or the output cannot be written.
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let text = Reader::new(std::io::stdin()).text(&self.file)?;
        let config = match of_machine_config(&text) {
            None => text,
            Some(Ok(Some(config))) => config,
            Some(Ok(None)) => {
                return Ok(no(anyhow!("the MachineConfig has no file {CREDENTIAL_PROVIDER}")));
            }
            Some(Err(error)) => return Ok(no(error)),
        };
        let yaml = match credential_provider(&config) {
            Ok(yaml) => yaml,
            Err(error) => return Ok(no(error)),
        };
        if self.output.format == Format::Yaml {
            super::output::print(&yaml)?;
            return Ok(Answer::Yes);
        }
        let value: Value = serde_saphyr::from_str(&yaml)?;
        let (length, digest) = (yaml.len(), Sha256::of(yaml.as_bytes()));
        self.output.print(&value, || {
            format!("{CREDENTIAL_PROVIDER_CONFIG}: {length} bytes, SHA-256 {digest}\n\n{yaml}")
        })?;
        Ok(Answer::Yes)
    }
}

/// The file in the MachineConfig that `text` is; `None` if it is none.
fn of_machine_config(text: &str) -> Option<Result<Option<String>, IgnitionError>> {
    let object: Value = serde_saphyr::from_str(text).ok()?;
    if object.get("kind").and_then(Value::as_str) != Some(MACHINE_CONFIG) {
        return None;
    }
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let config = object.pointer("/spec/config").cloned().unwrap_or_default();
    let file = Ignition::read(name, &config).and_then(|config| config.file(CREDENTIAL_PROVIDER));
    Some(file.map(|file| file.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())))
}
