//! `render credential-provider`: where kubelets on AWS get credentials for images.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{anyhow, bail};
use clap::Args;
use serde_json::Value;
use wmco_core::digest::Sha256;
use wmco_core::ignition::{CREDENTIAL_PROVIDER, Ignition, IgnitionError};
use wmco_core::limits;
use wmco_core::members::UnknownMember;
use wmco_core::names::host::CREDENTIAL_PROVIDER_CONFIG;
use wmco_core::render::{credential_provider, missing_provider_members, unknown_provider_members};
use wmco_core::text::harmless;

use super::{Answer, Format, Output, no, tell};
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
    /// Prints the file, and on standard error which members kubelets miss in it.
    ///
    /// # Errors
    /// The input cannot be read, or the output cannot be written.
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let text = Reader::new(std::io::stdin()).text(&self.file)?;
        let config = match of_machine_configs(&text) {
            None => text,
            Some(Ok(config)) => config,
            Some(Err(error)) => return Ok(no(error)),
        };
        let unknown = unknown_provider_members(&config);
        if !unknown.is_empty() {
            for UnknownMember { path, right } in unknown {
                let right =
                    right.map_or("remove it".to_owned(), |right| format!("write `{right}`"));
                let text =
                    format!("field `{path}`: kubelets refuse a file with this member: {right}");
                tell("error", &text);
            }
            return Ok(Answer::No);
        }
        let yaml = match credential_provider(&config) {
            Ok(yaml) => yaml,
            Err(error) => return Ok(no(error)),
        };
        for path in missing_provider_members(&config) {
            let text = format!(
                "field `{path}` is missing or empty, so kubelets refuse the file, and the operator starts them \
                 without it: write it in the MachineConfig"
            );
            tell("warning", &text);
        }
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

/// The file in the MachineConfig that `text` is, or in those of a list; `None` if it is neither.
fn of_machine_configs(text: &str) -> Option<anyhow::Result<String>> {
    let object: Value = serde_saphyr::from_str(text).ok()?;
    let kind = object.get("kind").and_then(Value::as_str)?;
    let items = object.get("items").and_then(Value::as_array);
    match (kind.strip_suffix("List"), items) {
        (Some(_), items) => Some(of_list(items.map(Vec::as_slice).unwrap_or_default())),
        (None, _) if kind == MACHINE_CONFIG => Some(match file_of(&object) {
            Ok(Some(file)) => Ok(file),
            Ok(None) => Err(anyhow!("the MachineConfig has no file {CREDENTIAL_PROVIDER}")),
            Err(error) => Err(error.into()),
        }),
        (None, _) => None,
    }
}

/// The file of all MachineConfigs of a list that have it.
fn of_list(items: &[Value]) -> anyhow::Result<String> {
    let is_one = |item: &&Value| {
        item.get("kind").and_then(Value::as_str).is_none_or(|it| it == MACHINE_CONFIG)
    };
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for item in items.iter().filter(is_one) {
        if let Some(file) = file_of(item)? {
            files.entry(file).or_default().push(harmless(name(item), limits::OBJECT_NAME_BYTES));
        }
    }
    let names = files.values().flatten().cloned().collect::<Vec<_>>().join(", ");
    let mut files = files.into_keys();
    match (files.next(), files.next()) {
        (Some(file), None) => Ok(file),
        (None, _) => bail!(
            "no MachineConfig of the list has a file {CREDENTIAL_PROVIDER}, name that of the workers"
        ),
        (Some(_), Some(_)) => {
            bail!("{names} have different files {CREDENTIAL_PROVIDER}, leave that of the workers")
        }
    }
}

fn file_of(machine_config: &Value) -> Result<Option<String>, IgnitionError> {
    let config = machine_config.pointer("/spec/config").cloned().unwrap_or_default();
    let file = Ignition::read(name(machine_config), &config)
        .and_then(|config| config.file(CREDENTIAL_PROVIDER))?;
    Ok(file.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

fn name(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}
