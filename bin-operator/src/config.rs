//! What the operator was told at its start, checked.

use jiff::SignedDuration;
use wmco_core::{limits, names};
use wmco_services::generate::{LogSettings, LogSettingsError, Proxy};

/// Configuration of the controllers.
#[derive(Clone, Debug)]
pub struct Config {
    /// The namespace that the operator serves.
    pub namespace: String,
    /// Operator version.
    pub version: String,
    /// Name of this process in the leader election and in Events.
    pub identity: String,
    /// Most nodes disrupted at the same time.
    pub disruption_budget: usize,
    /// How long a drain may take before its node is given back.
    pub drain_timeout: SignedDuration,
    /// Whether services on nodes log in detail.
    pub debug: bool,
    /// Whether certificate requests that break a rule are denied; else they stay pending.
    pub deny_requests: bool,
    /// The cluster's proxy.
    pub proxy: Proxy,
    /// How services on nodes rotate their logs.
    pub logs: LogSettings,
    /// Size of the daemon's log files as a Kubernetes quantity.
    pub log_file_size: Option<String>,
}

/// Why the environment cannot be used.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Log settings, all wrong ones at once.
    #[error(transparent)]
    Logs(#[from] LogSettingsError),
    /// No namespace, or several.
    #[error("WATCH_NAMESPACE is {problem}, set it to the one namespace that the operator lives in")]
    Namespace {
        /// What is wrong.
        problem: &'static str,
    },
}

impl Config {
    /// From environment variables, looked up by name.
    ///
    /// Source: `spec/operator.md`, section 1.2.
    ///
    /// # Errors
    /// [`ConfigError`] names the variable.
    pub fn from_env(
        version: &str,
        debug: bool,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let namespace = lookup("WATCH_NAMESPACE").unwrap_or_default();
        let problem = match namespace.as_str() {
            "" => Some("not set"),
            text if text.contains(',') => Some("a list"),
            _ => None,
        };
        if let Some(problem) = problem {
            return Err(ConfigError::Namespace { problem });
        }
        let set = |name: &str| {
            lookup(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        Ok(Self {
            identity: set("POD_NAME").unwrap_or_else(|| names::objects::OPERATOR.to_owned()),
            namespace,
            version: version.to_owned(),
            disruption_budget: limits::DISRUPTION_BUDGET,
            drain_timeout: limits::DRAIN_TIMEOUT,
            debug,
            deny_requests: false,
            proxy: Proxy::from_environment(&lookup),
            logs: LogSettings::from_environment(&lookup)?,
            log_file_size: set("SERVICES_LOG_FILE_SIZE"),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn from(variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let variables: BTreeMap<String, String> =
            variables.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        Config::from_env("1.0.0", false, |name| variables.get(name).cloned())
    }

    #[test]
    fn one_namespace_is_needed() {
        let problem = |variables| from(variables).unwrap_err();
        assert_eq!(problem(&[]), ConfigError::Namespace { problem: "not set" });
        assert_eq!(
            problem(&[("WATCH_NAMESPACE", "a,b")]),
            ConfigError::Namespace { problem: "a list" }
        );
    }

    #[test]
    fn empty_proxy_variables_are_no_proxy() {
        let config = from(&[("WATCH_NAMESPACE", "winc"), ("HTTP_PROXY", ""), ("NO_PROXY", "a")]);
        assert!(!config.unwrap().proxy.is_enabled());
        let config = from(&[("WATCH_NAMESPACE", "winc"), ("HTTPS_PROXY", "http://p:3128")]);
        assert!(config.unwrap().proxy.is_enabled());
    }
}
