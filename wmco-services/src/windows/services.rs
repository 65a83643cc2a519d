//! The Service Control Manager.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use wmco_core::protocol::ServiceRunState;

use super::{Wait, WindowsError};

/// Name of a Windows service; equality and order ignore case.
///
/// Source: Windows documentation of `CreateServiceW` (at most 256 characters, no slashes).
#[derive(Clone)]
pub struct ServiceName(String);

/// The text is no valid service name.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{name}` is no name of a service: use 1 to 256 characters without slashes")]
pub struct BadServiceName {
    name: String,
}

impl ServiceName {
    /// Returns the name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn key(&self) -> String {
        self.0.to_lowercase()
    }
}

impl FromStr for ServiceName {
    type Err = BadServiceName;

    fn from_str(name: &str) -> Result<Self, BadServiceName> {
        let characters = name.chars().count();
        let fits = (1..=256).contains(&characters) && name.trim() == name;
        if fits && !name.contains(|c: char| c == '/' || c == '\\' || c.is_control()) {
            Ok(Self(name.to_owned()))
        } else {
            Err(BadServiceName { name: name.to_owned() })
        }
    }
}

impl PartialEq for ServiceName {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for ServiceName {}

impl Ord for ServiceName {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for ServiceName {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Serialize for ServiceName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ServiceName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for ServiceName {
    fn schema_name() -> Cow<'static, str> {
        "ServiceName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "minLength": 1, "maxLength": 256, "pattern": r"^[^/\\]+$"})
    }
}

/// Account of all our services.
pub const LOCAL_SYSTEM: &str = "LocalSystem";

/// When a service starts.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum StartType {
    /// At the start of the host.
    Automatic,
    /// On request.
    Manual,
    /// Never.
    Disabled,
}

/// Recovery actions of the Service Control Manager for a failed service: restarts.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recovery {
    /// Milliseconds before each restart; the last value repeats. Not empty.
    pub restart_delays_ms: Vec<u32>,
    /// Seconds after which the count of failures is reset.
    pub reset_seconds: u32,
    /// Whether a stop with an error code counts as a failure, too.
    pub on_error_exit: bool,
}

/// The fields of a service that we set.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceConfig {
    /// The whole command line.
    pub command: String,
    /// The description; declared services have that of their [`Owner`](crate::owner::Owner).
    pub description: String,
    /// Services that start before it, in any order. An empty list means none: an executor clears the list of the
    /// service.
    pub dependencies: Vec<ServiceName>,
    /// The time of its start.
    pub start: StartType,
    /// The reaction to a failure; `None`: none.
    pub recovery: Option<Recovery>,
}

/// A service as observed.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Service {
    /// Its name.
    pub name: ServiceName,
    /// Its configuration.
    pub config: ServiceConfig,
    /// Account of its process; ours run as [`LOCAL_SYSTEM`].
    pub account: String,
    /// Display name; that of our services is their name.
    pub display_name: String,
    /// Whether it has its own process without access to the desktop, as ours have.
    pub own_process: bool,
    /// Whether the start of the host ignores its failure to start, as with ours.
    pub errors_ignored: bool,
    /// Its state.
    pub state: ServiceRunState,
    /// Exit code of its last stop; 0 while it runs.
    pub exit_code: u32,
    /// Its process ID, while it has a process.
    pub process: Option<u32>,
}

/// The status of a service, without its configuration.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ServiceStatus {
    /// Its name.
    pub name: ServiceName,
    /// Its state.
    pub state: ServiceRunState,
    /// Its process ID, while it has a process.
    pub process: Option<u32>,
}

/// The Service Control Manager of a host.
pub trait ServiceManager: Send + Sync {
    /// Returns all services that the caller may read, in no particular order.
    fn list(&self) -> Result<Vec<Service>, WindowsError>;

    /// Returns the statuses of all services, in one cheap call.
    fn statuses(&self) -> Result<Vec<ServiceStatus>, WindowsError> {
        let status = |service: Service| ServiceStatus {
            name: service.name,
            state: service.state,
            process: service.process,
        };
        Ok(self.list()?.into_iter().map(status).collect())
    }

    /// Returns a service; `None` if it does not exist.
    fn query(&self, name: &ServiceName) -> Result<Option<Service>, WindowsError>;

    /// Creates a stopped service that runs as [`LOCAL_SYSTEM`] in its own process, has its name as display name, and
    /// whose failures the start of the host ignores.
    ///
    /// # Errors
    /// [`WindowsError::Exists`], [`WindowsError::MarkedForDeletion`].
    fn create(&self, name: &ServiceName, config: &ServiceConfig) -> Result<(), WindowsError>;

    /// Changes the configuration to `config` and all other fields to those of [`create`](Self::create). A running
    /// process keeps its old command line until the service restarts.
    ///
    /// # Errors
    /// [`WindowsError::Missing`].
    fn configure(&self, name: &ServiceName, config: &ServiceConfig) -> Result<(), WindowsError>;

    /// Starts the service after its dependencies, and waits until it runs. It may already run.
    ///
    /// # Errors
    /// [`WindowsError::ServiceEnded`] when it stops again, [`WindowsError::TimedOut`],
    /// [`WindowsError::MissingDependency`], [`WindowsError::Interrupted`]. Dependencies that were started stay running.
    fn start(&self, name: &ServiceName, wait: Wait<'_>) -> Result<(), WindowsError>;

    /// Stops the service, waits, and ends its process with all its children when [`Wait::is_over`]. The service may be
    /// stopped already, stop meanwhile, or not exist.
    ///
    /// # Errors
    /// [`WindowsError::DependentsRun`], [`WindowsError::Interrupted`].
    fn stop(&self, name: &ServiceName, wait: Wait<'_>) -> Result<(), WindowsError>;

    /// Deletes a stopped service and waits until it is gone; returns whether it existed.
    ///
    /// # Errors
    /// [`WindowsError::MarkedForDeletion`] when a program still has a handle to it after the limit,
    /// [`WindowsError::Interrupted`].
    fn delete(&self, name: &ServiceName, wait: Wait<'_>) -> Result<bool, WindowsError>;

    /// Returns services that directly depend on this one, running or not.
    fn dependents(&self, name: &ServiceName) -> Result<Vec<ServiceName>, WindowsError> {
        let needs_it =
            |service: &Service| service.name != *name && service.config.dependencies.contains(name);
        Ok(self.list()?.into_iter().filter(needs_it).map(|service| service.name).collect())
    }
}
