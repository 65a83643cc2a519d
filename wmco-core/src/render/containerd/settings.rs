//! The administrator's settings of containerd.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::Value as Json;
use toml_edit::Value as Toml;

use crate::registries::ImageReference;

/// Variable with the image of the pause container, a complete reference.
const PAUSE_IMAGE: &str = "CONTAINERD_PAUSE_IMAGE";
/// Variable with the snapshotter.
const SNAPSHOTTER: &str = "CONTAINERD_SNAPSHOTTER";
/// Variable with additional runtime handlers, a JSON object by name.
const RUNTIMES: &str = "CONTAINERD_RUNTIMES";
/// Variable with the handler of pods without a RuntimeClass.
const DEFAULT_RUNTIME: &str = "CONTAINERD_DEFAULT_RUNTIME";
/// Variable with the log level.
const LOG_LEVEL: &str = "CONTAINERD_LOG_LEVEL";

const USUAL_PAUSE_IMAGE: &str = "mcr.microsoft.com/oss/kubernetes/pause:3.9";
const USUAL_SNAPSHOTTER: &str = "windows";
const USUAL_RUNTIME: &str = "runhcs-wcow-process";
/// Runtime type of the payload's shim.
const USUAL_RUNTIME_TYPE: &str = "io.containerd.runhcs.v1";

/// The administrator's settings of containerd, validated.
///
/// ```
/// use wmco_core::render::ContainerdSettings;
///
/// let variable = |name: &str| match name {
///     "CONTAINERD_PAUSE_IMAGE" => Some("quay.io/team/pause:1".to_owned()),
///     _ => None,
/// };
/// let settings = ContainerdSettings::from_environment(variable).unwrap();
/// assert_eq!(settings.pause_image, "quay.io/team/pause:1");
/// assert_eq!(settings.snapshotter, "windows");
/// ```
#[derive(Clone, Debug)]
pub struct ContainerdSettings {
    /// Image of the pause container.
    pub pause_image: String,
    /// The snapshotter.
    pub snapshotter: String,
    /// Runtime handlers for RuntimeClasses.
    pub runtimes: BTreeMap<String, RuntimeHandler>,
    /// Handler of pods without a RuntimeClass.
    pub default_runtime: String,
    /// Log level, if it differs from that of the operator's other services.
    pub log_level: Option<ContainerdLogLevel>,
}

/// A runtime handler.
#[derive(Clone, Debug)]
pub struct RuntimeHandler {
    /// Runtime type of the shim.
    pub runtime_type: String,
    /// Options of the shim.
    pub options: BTreeMap<String, Toml>,
}

/// containerd's log levels, most verbose first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ContainerdLogLevel {
    /// `trace`
    Trace,
    /// `debug`
    Debug,
    /// `info`
    Info,
    /// `warn`
    Warn,
    /// `error`
    Error,
    /// `fatal`
    Fatal,
    /// `panic`
    Panic,
}

/// All invalid settings of containerd.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct ContainerdSettingsError(pub Vec<BadContainerdSetting>);

/// An invalid setting of containerd.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("variable {name}: {problem}")]
pub struct BadContainerdSetting {
    /// The variable.
    pub name: &'static str,
    /// The problem with its value, and the expected form.
    pub problem: String,
}

/// A handler in the variable's JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenHandler {
    #[serde(rename = "type")]
    runtime_type: Option<String>,
    #[serde(default)]
    options: BTreeMap<String, Json>,
}

impl Default for ContainerdSettings {
    fn default() -> Self {
        let handler = RuntimeHandler {
            runtime_type: USUAL_RUNTIME_TYPE.to_owned(),
            options: BTreeMap::new(),
        };
        Self {
            pause_image: USUAL_PAUSE_IMAGE.to_owned(),
            snapshotter: USUAL_SNAPSHOTTER.to_owned(),
            runtimes: BTreeMap::from([(USUAL_RUNTIME.to_owned(), handler)]),
            default_runtime: USUAL_RUNTIME.to_owned(),
            log_level: None,
        }
    }
}

impl ContainerdSettings {
    /// Reads the settings from the operator's environment. Unset, empty and blank variables mean the default.
    ///
    /// # Errors
    /// [`ContainerdSettingsError`] with every invalid setting.
    pub fn from_environment(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ContainerdSettingsError> {
        let mut settings = Self::default();
        let mut bad = Vec::new();
        let mut read = |name: &'static str, set: &mut dyn FnMut(String) -> Result<(), String>| {
            let text = variable(name).map(|text| text.trim().to_owned());
            if let Some(text) = text.filter(|text| !text.is_empty())
                && let Err(problem) = set(text)
            {
                bad.push(BadContainerdSetting { name, problem });
            }
        };
        read(PAUSE_IMAGE, &mut |text| {
            pause_image(&text)?;
            settings.pause_image = text;
            Ok(())
        });
        read(SNAPSHOTTER, &mut |text| {
            settings.snapshotter = word(text, "-_.")?;
            Ok(())
        });
        read(RUNTIMES, &mut |text| {
            settings.runtimes.extend(runtimes(&text)?);
            Ok(())
        });
        read(DEFAULT_RUNTIME, &mut |text| {
            settings.default_runtime = text;
            Ok(())
        });
        read(LOG_LEVEL, &mut |text| {
            settings.log_level = Some(log_level(&text)?);
            Ok(())
        });
        let default = &settings.default_runtime;
        if !settings.runtimes.contains_key(default) && !bad.iter().any(|bad| bad.name == RUNTIMES) {
            let known: Vec<&str> = settings.runtimes.keys().map(String::as_str).collect();
            let problem = format!(
                "there is no such runtime handler, name one of {} or add it to {RUNTIMES}",
                known.join(", ")
            );
            bad.push(BadContainerdSetting { name: DEFAULT_RUNTIME, problem });
        }
        if bad.is_empty() { Ok(settings) } else { Err(ContainerdSettingsError(bad)) }
    }
}

impl ContainerdLogLevel {
    const ALL: [Self; 7] =
        [Self::Trace, Self::Debug, Self::Info, Self::Warn, Self::Error, Self::Fatal, Self::Panic];

    /// The value in containerd's configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
            Self::Fatal => "fatal",
            Self::Panic => "panic",
        }
    }
}

impl fmt::Display for ContainerdLogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Checks the pause image; refuses a name without a registry, too, because containerd does not complete this name.
fn pause_image(text: &str) -> Result<(), String> {
    let image: ImageReference = text.parse().map_err(|wrong| format!("{wrong}"))?;
    if text.starts_with(&format!("{}/{}", image.host(), image.repository())) {
        Ok(())
    } else {
        Err(format!("write the whole name, such as {image}"))
    }
}

fn log_level(text: &str) -> Result<ContainerdLogLevel, String> {
    let found = ContainerdLogLevel::ALL.into_iter().find(|level| level.as_str() == text);
    found.ok_or_else(|| {
        let known = ContainerdLogLevel::ALL.map(ContainerdLogLevel::as_str);
        format!("there is no such level, write one of {}", known.join(", "))
    })
}

fn runtimes(text: &str) -> Result<Vec<(String, RuntimeHandler)>, String> {
    const FORM: &str = r#"write JSON such as {"NAME": {"options": {"SandboxIsolation": 1}}}"#;
    let written: BTreeMap<String, WrittenHandler> =
        serde_json::from_str(text).map_err(|wrong| format!("{wrong}; {FORM}"))?;
    let handler = |(name, written): (String, WrittenHandler)| {
        // The name must be a Kubernetes label, as RuntimeClasses require.
        let lower = !name.contains(|c: char| c.is_ascii_uppercase());
        let named = word(name.clone(), "-").ok().filter(|_| lower);
        named.ok_or_else(|| {
            format!("handler {name:?} has no usable name, write lower-case letters, digits and `-`")
        })?;
        let runtime_type = written.runtime_type.unwrap_or_else(|| USUAL_RUNTIME_TYPE.to_owned());
        let runtime_type = word(runtime_type, "-_.")
            .map_err(|wrong| format!("handler {name}, field `type`: {wrong}"))?;
        let option = |(key, found): (String, Json)| {
            let found = toml(&found).ok_or_else(|| {
                format!(
                    "handler {name}, option {key}: write a text, a whole number or a truth value"
                )
            });
            found.map(|found| (key, found))
        };
        let options = written.options.into_iter().map(option).collect::<Result<_, _>>()?;
        Ok((name, RuntimeHandler { runtime_type, options }))
    };
    written.into_iter().map(handler).collect()
}

fn toml(found: &Json) -> Option<Toml> {
    match found {
        Json::Bool(truth) => Some((*truth).into()),
        Json::Number(number) => number.as_i64().map(Toml::from),
        Json::String(text) => Some(text.as_str().into()),
        Json::Array(_) | Json::Null | Json::Object(_) => None,
    }
}

/// Checks a word of letters, digits and the characters in `more`.
fn word(text: String, more: &str) -> Result<String, String> {
    let edge = |c: char| c.is_ascii_alphanumeric();
    let right = text.starts_with(edge)
        && text.ends_with(edge)
        && text.chars().all(|c| edge(c) || more.contains(c));
    if right { Ok(text) } else { Err(format!("{text:?} is no name")) }
}
