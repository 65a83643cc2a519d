//! From a manifest's service, with its placeholders, to what the Service Control Manager shall hold.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use wmco_core::digest::Sha256;
use wmco_core::limits as core_limits;
use wmco_core::names::host;
use wmco_core::payload;
use wmco_core::winpath::WindowsPath;

use crate::jsonpath::{NodePath, NodePathError};
use crate::manifest::{self, NodeVariable};
use crate::windows::{Recovery, Service, ServiceConfig, ServiceName, StartType};
use crate::words;

use super::answers;

/// A pre-script with its placeholders filled in.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Script {
    /// What PowerShell runs.
    pub text: String,
    /// Placeholder of the command that its output fills, if any.
    pub variable: Option<String>,
    /// What the service on the host has in that place, if that holds as long as the machine exists: taken
    /// when the script gives nothing. After a restart of the host the question may have no answer.
    ///
    /// Source: `spec/services.md`, section 15, row 17.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remembered: Option<String>,
}

/// What the pre-scripts of one service gave when they last ran.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ScriptResult {
    /// Digest of the texts that ran; other texts make the result void.
    pub inputs: Sha256,
    /// When they ran.
    pub at: Timestamp,
    /// Values of the placeholders that they fill, of the last run that succeeded.
    pub values: Option<BTreeMap<String, String>>,
    /// Why the last run did not succeed.
    pub problem: Option<String>,
    /// Whether they changed a file since the service's process started.
    pub process_is_stale: bool,
}

/// Results by service. Losing them costs another run of the scripts, nothing else.
pub type ScriptResults = BTreeMap<ServiceName, ScriptResult>;

/// Why a value cannot stand in a command or a script.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// There is no Node to ask yet.
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
        /// Why.
        source: NodePathError,
    },
    /// The value would be read as something else than one argument.
    #[error(
        "the value of placeholder {placeholder} is empty or holds blanks, quotes or other characters \
         that mean something to a shell, correct it at its source"
    )]
    Unfit {
        /// The placeholder.
        placeholder: String,
    },
}

/// The scripts of a service, ready to run.
///
/// The manifest has ours in a folder that others may write to, so what runs is the copy in the folder
/// that they may not. Without that copy it fails; it never falls back.
pub(super) fn scripts(
    service: &manifest::Service,
    seen: Option<&Service>,
    node: Option<&Value>,
) -> Result<Vec<Script>, ResolveError> {
    let closed: Vec<(WindowsPath, WindowsPath)> = payload::scripts().collect();
    let ready = |script: &manifest::PreScript| {
        let values = node_values(&script.node_args, node)?;
        let mut values = borrowed(&values);
        values.extend(closed.iter().map(|(manifest, host)| (manifest.as_str(), host.as_str())));
        let text = words::replace(&script.path, &values);
        let variable = Some(script.variable_name.clone()).filter(|name| !name.is_empty());
        let had = || words::recall(&service.command, variable.as_ref()?, &seen?.config.command);
        let remembered = if answers::lasts(&text) { had().map(str::to_owned) } else { None };
        Ok(Script { text, variable, remembered })
    };
    service.powershell_pre_scripts.iter().map(ready).collect()
}

/// What a run of these scripts depends on.
pub(super) fn inputs(scripts: &[Script]) -> Sha256 {
    let text: Vec<&str> = scripts.iter().map(|script| script.text.as_str()).collect();
    Sha256::of(text.join("\0").as_bytes())
}

/// Files of ours on a command line that a process reads rather than runs.
pub(super) fn watched(service: &manifest::Service) -> Vec<WindowsPath> {
    let Ok(root) = host::ROOT.parse::<WindowsPath>() else { return Vec::new() };
    service
        .command
        .split(|c: char| c.is_whitespace() || c == '=')
        .filter_map(|word| word.parse::<WindowsPath>().ok())
        .filter(|path| path.is_within(&root) && *path != root)
        .filter(|path| !path.file_name().to_ascii_lowercase().ends_with(".exe"))
        .collect()
}

/// The configuration that a service shall have.
pub(super) fn config(
    service: &manifest::Service,
    node: Option<&Value>,
    from_scripts: &BTreeMap<String, String>,
) -> Result<ServiceConfig, ResolveError> {
    let mut values = node_values(&service.node_variables_in_command, node)?;
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
        description: description(&service.name),
        dependencies,
        start: StartType::Manual,
        recovery: Some(recovery()),
    })
}

/// The description by which a service is known as ours.
pub fn description(service: &ServiceName) -> String {
    format!("{} {service}", host::SERVICE_TAG)
}

/// What happens when a service of ours fails: it is restarted, after ever longer pauses.
pub fn recovery() -> Recovery {
    let milliseconds =
        |delay: jiff::SignedDuration| u32::try_from(delay.as_millis()).unwrap_or(u32::MAX);
    Recovery {
        restart_delays_ms: core_limits::WICD_RESTART_DELAYS.map(milliseconds).to_vec(),
        reset_seconds: u32::try_from(core_limits::WICD_FAILURE_RESET.as_secs()).unwrap_or(u32::MAX),
        on_error_exit: true,
    }
}

fn node_values(
    variables: &[NodeVariable],
    node: Option<&Value>,
) -> Result<BTreeMap<String, String>, ResolveError> {
    let value = |variable: &NodeVariable| {
        let placeholder = || variable.name.clone();
        let unreadable = |source| ResolveError::Path { placeholder: placeholder(), source };
        let path: NodePath = variable.node_object_json_path.parse().map_err(unreadable)?;
        if path.is_constant() {
            // The ConfigMap says it word for word, as it says the text around it.
            return Ok((placeholder(), path.to_string()));
        }
        let node = node.ok_or_else(|| ResolveError::NoNode { placeholder: placeholder() })?;
        let value = path.text(node).map_err(unreadable)?;
        Ok((placeholder(), fit(&variable.name, value)?))
    };
    variables.iter().map(value).collect()
}

/// Lets through what is one argument to every shell.
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
