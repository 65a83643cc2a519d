//! The operator's settings, checked at its start.

use jiff::SignedDuration;
use wmco_core::fleet::MaxUnavailable;
use wmco_core::manifests::{POD_NAME, WATCH_NAMESPACE};
use wmco_core::names::monitoring::OPERATOR_CONDITION_VARIABLE;
use wmco_core::proxy::{ProxyError, ProxySettings};
use wmco_core::render::{ContainerdSettings, ContainerdSettingsError};
use wmco_core::{limits, names};
use wmco_services::generate::{LogSettings, LogSettingsError};

use crate::leader::{self, Times};

/// Configuration of the controllers.
#[derive(Clone, Debug)]
pub struct Config {
    /// The namespace that the operator serves.
    pub namespace: String,
    /// Operator version.
    pub version: String,
    /// Name of this process in the leader election and in Events.
    pub identity: String,
    /// Times of the leader election.
    pub election: Times,
    /// Most nodes disrupted at the same time.
    pub max_unavailable: MaxUnavailable,
    /// Most removals that may begin at once without a person's confirmation; `None`: any number.
    pub guard_removals: Option<usize>,
    /// How long a drain may take before its node is given back.
    pub drain_timeout: SignedDuration,
    /// How long the host of a Machine may refuse our key before the Machine is made anew.
    pub refused_after: SignedDuration,
    /// How long it may not answer while keys are exchanged, before the same is done.
    pub unanswered_after: SignedDuration,
    /// Whether services on nodes log in detail.
    pub debug: bool,
    /// Whether certificate requests that break a rule are denied; else they stay pending.
    pub deny_requests: bool,
    /// The proxy in our own environment, which wins over the cluster's.
    pub proxy: ProxySettings,
    /// Name of our OperatorCondition; none without the Operator Lifecycle Manager.
    pub operator_condition: Option<String>,
    /// How services on nodes rotate their logs.
    pub logs: LogSettings,
    /// What people set of containerd.
    pub containerd: ContainerdSettings,
    /// Size of log files on nodes as a Kubernetes quantity, for the daemon.
    pub log_file_size: Option<String>,
    /// Age at which log files on nodes go, in Go's notation, for the daemon.
    pub log_file_age: Option<String>,
}

/// Why the environment cannot be used.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Settings of containerd, all wrong ones at once.
    #[error(transparent)]
    Containerd(#[from] ContainerdSettingsError),
    /// Log settings, all wrong ones at once.
    #[error(transparent)]
    Logs(#[from] LogSettingsError),
    /// No namespace, or several.
    #[error(
        "{WATCH_NAMESPACE} is {problem}, set it to the one namespace that the operator lives in"
    )]
    Namespace {
        /// The problem, as the message words it.
        problem: &'static str,
    },
    /// A proxy variable is no URL of a proxy.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
}

impl Config {
    /// From environment variables, looked up by name. `process` is a number that no other process has,
    /// whatever their environments say.
    ///
    /// Source: `docs/contract/cluster.md`, CLU11.
    ///
    /// # Errors
    /// [`ConfigError`] names the variable.
    pub fn from_env(
        version: &str,
        debug: bool,
        process: u64,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let namespace = lookup(WATCH_NAMESPACE).unwrap_or_default();
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
        let pod = set(POD_NAME).unwrap_or_else(|| names::objects::OPERATOR.to_owned());
        Ok(Self {
            identity: leader::identity(&pod, process),
            election: Times::default(),
            namespace,
            version: version.to_owned(),
            max_unavailable: MaxUnavailable::default(),
            guard_removals: None,
            drain_timeout: limits::DRAIN_TIMEOUT,
            refused_after: limits::LOGIN_REFUSED,
            unanswered_after: limits::ROTATION_PATIENCE,
            debug,
            deny_requests: false,
            proxy: ProxySettings::from_environment(&lookup),
            operator_condition: set(OPERATOR_CONDITION_VARIABLE),
            logs: LogSettings::from_environment(&lookup)?,
            containerd: ContainerdSettings::from_environment(&lookup)?,
            log_file_size: set("SERVICES_LOG_FILE_SIZE"),
            log_file_age: set("SERVICES_LOG_FILE_AGE"),
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
        Config::from_env("1.0.0", false, 1, |name| variables.get(name).cloned())
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
    fn two_processes_without_a_pod_name_have_two_names() {
        let name = |process, variables: &[(&str, &str)]| {
            let variables: BTreeMap<_, _> =
                variables.iter().copied().chain([("WATCH_NAMESPACE", "winc")]).collect();
            let lookup = |name: &str| variables.get(name).map(ToString::to_string);
            Config::from_env("1.0.0", false, process, lookup).unwrap().identity
        };
        for variables in [&[][..], &[("POD_NAME", "")], &[("POD_NAME", "a")]] {
            assert_ne!(name(1, variables), name(2, variables));
        }
        assert!(name(1, &[("POD_NAME", "a")]).starts_with("a_"));
    }

    #[test]
    fn empty_proxy_variables_are_no_proxy() {
        let config = from(&[("WATCH_NAMESPACE", "winc"), ("HTTP_PROXY", ""), ("NO_PROXY", "a")]);
        assert!(!config.unwrap().proxy.is_enabled());
        let config = from(&[("WATCH_NAMESPACE", "winc"), ("HTTPS_PROXY", "http://p:3128")]);
        assert!(config.unwrap().proxy.is_enabled());
    }
}
