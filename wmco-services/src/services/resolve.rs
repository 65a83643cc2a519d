//! Resolves a manifest's service with its placeholders to the configuration in the Service Control Manager.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use wmco_core::digest::Sha256;
use wmco_core::limits as core_limits;
use wmco_core::winpath::WindowsPath;

use crate::jsonpath::{NodePath, NodePathError};
use crate::manifest::{self, NodeVariable};
use crate::owner::Owner;
use crate::windows::{Recovery, Service, ServiceConfig, ServiceName, StartType};
use crate::words;

use super::answers;

/// A pre-script with its placeholders replaced.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Script {
    /// The text that PowerShell runs.
    pub text: String,
    /// Placeholder of the command that the script's output replaces, if any.
    pub variable: Option<String>,
    /// The value in the command of the existing service, if it is constant for the lifetime of the machine: used when
    /// the script fails, as it may after a restart of the host.
    ///
    /// Source: `docs/contract/services.md`, SVC45.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remembered: Option<String>,
}

/// The result of the last run of a service's pre-scripts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ScriptResult {
    /// Digest of the script texts; other texts invalidate the result.
    pub inputs: Sha256,
    /// Time of the run.
    pub at: Timestamp,
    /// Values of the placeholders, from the last successful run.
    pub values: Option<BTreeMap<String, String>>,
    /// The failure of the last run, if it failed.
    pub problem: Option<String>,
    /// Whether the scripts changed a file since the service's process started.
    pub process_is_stale: bool,
}

/// Results by service. If they are lost, the scripts run again; nothing else happens.
pub type ScriptResults = BTreeMap<ServiceName, ScriptResult>;

/// Why a placeholder cannot be replaced.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// There is no Node yet.
    #[error("placeholder {placeholder} needs the node, wait until it is there")]
    NoNode {
        /// The placeholder.
        placeholder: String,
    },
    /// The Node does not have the value.
    #[error("placeholder {placeholder} cannot be filled")]
    Path {
        /// The placeholder.
        placeholder: String,
        /// The cause.
        source: NodePathError,
    },
    /// The value could be parsed as something else than one argument.
    #[error(
        "the value of placeholder {placeholder} is empty or holds blanks, quotes or other characters \
         that mean something to a shell, correct it at its source"
    )]
    Unfit {
        /// The placeholder.
        placeholder: String,
    },
}

/// Returns the scripts of a service, ready to run.
///
/// The manifest may name scripts in a folder that others can write to; then the copy in a folder that others cannot
/// write to runs, see [`Owner::scripts`]. Without that copy the script fails; there is no fallback.
pub(super) fn scripts(
    service: &manifest::Service,
    owner: &Owner,
    seen: Option<&Service>,
    node: Option<&Value>,
) -> Result<Vec<Script>, ResolveError> {
    let ready = |script: &manifest::PreScript| {
        let values = node_values(&script.node_args, &script.path, node)?;
        let mut values = borrowed(&values);
        values.extend(
            owner.scripts.iter().map(|(manifest, host)| (manifest.as_str(), host.as_str())),
        );
        let text = words::replace(&script.path, &values);
        let is_used = |name: &String| words::occurs(&service.command, name);
        let variable = Some(script.variable_name.clone()).filter(is_used);
        let had = || words::recover(&service.command, variable.as_ref()?, &seen?.config.command);
        let remembered = if answers::is_constant(&text) { had().map(str::to_owned) } else { None };
        Ok(Script { text, variable, remembered })
    };
    service.powershell_pre_scripts.iter().map(ready).collect()
}

/// Returns the digest of the script texts.
pub(super) fn inputs(scripts: &[Script]) -> Sha256 {
    let text: Vec<&str> = scripts.iter().map(|script| script.text.as_str()).collect();
    Sha256::of(text.join("\0").as_bytes())
}

/// Returns the owner's files on a command line that a process reads, not runs.
pub(super) fn watched(service: &manifest::Service, owner: &Owner) -> Vec<WindowsPath> {
    service
        .command
        .split(|c: char| c.is_whitespace() || c == '=')
        .filter_map(|word| word.parse::<WindowsPath>().ok())
        .filter(|path| path.is_within(&owner.root) && *path != owner.root)
        .filter(|path| !path.file_name().to_ascii_lowercase().ends_with(".exe"))
        .collect()
}

/// Returns the desired configuration of a service.
pub(super) fn config(
    service: &manifest::Service,
    owner: &Owner,
    node: Option<&Value>,
    from_scripts: &BTreeMap<String, String>,
) -> Result<ServiceConfig, ResolveError> {
    let mut values = node_values(&service.node_variables_in_command, &service.command, node)?;
    for script in &service.powershell_pre_scripts {
        if let Some(value) = from_scripts.get(&script.variable_name) {
            values.insert(script.variable_name.clone(), fit(&script.variable_name, value.clone())?);
        }
    }
    let mut dependencies = service.dependencies.clone();
    dependencies.sort();
    dependencies.dedup();
    Ok(ServiceConfig {
        command: words::replace(&service.command, &borrowed(&values)),
        description: owner.description(&service.name),
        dependencies,
        start: StartType::Manual,
        recovery: Some(recovery()),
    })
}

/// Returns the recovery of declared services: restarts after growing pauses.
pub fn recovery() -> Recovery {
    let milliseconds =
        |delay: jiff::SignedDuration| u32::try_from(delay.as_millis()).unwrap_or(u32::MAX);
    Recovery {
        restart_delays_ms: core_limits::WICD_RESTART_DELAYS.map(milliseconds).to_vec(),
        reset_seconds: u32::try_from(core_limits::WICD_FAILURE_RESET.as_secs()).unwrap_or(u32::MAX),
        on_error_exit: true,
    }
}

/// Returns the values of the variables that `text` uses. The other variables need no value.
fn node_values(
    variables: &[NodeVariable],
    text: &str,
    node: Option<&Value>,
) -> Result<BTreeMap<String, String>, ResolveError> {
    let value = |variable: &NodeVariable| {
        let placeholder = || variable.name.clone();
        let unreadable = |source| ResolveError::Path { placeholder: placeholder(), source };
        let path: NodePath = variable.node_object_json_path.parse().map_err(unreadable)?;
        if path.is_constant() {
            // The ConfigMap holds it verbatim, like the text around it.
            return Ok((placeholder(), path.to_string()));
        }
        let node = node.ok_or_else(|| ResolveError::NoNode { placeholder: placeholder() })?;
        let value = path.text(node).map_err(unreadable)?;
        Ok((placeholder(), fit(&variable.name, value)?))
    };
    let is_used = |variable: &&NodeVariable| words::occurs(text, &variable.name);
    variables.iter().filter(is_used).map(value).collect()
}

/// Accepts a value that is a single argument to every shell.
fn fit(placeholder: &str, value: String) -> Result<String, ResolveError> {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "._-:/\\,=+~".contains(c);
    if !value.is_empty() && value.chars().all(harmless) {
        Ok(value)
    } else {
        Err(ResolveError::Unfit { placeholder: placeholder.to_owned() })
    }
}

fn borrowed(values: &BTreeMap<String, String>) -> BTreeMap<&str, &str> {
    values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}
