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

/// The text is not the name of a service.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{name}` is no name of a service: use 1 to 256 characters without slashes")]
pub struct BadServiceName {
    name: String,
}

impl ServiceName {
    /// The name as it is spelled.
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

/// Account of all services of ours.
pub const LOCAL_SYSTEM: &str = "LocalSystem";

/// When a service starts.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum StartType {
    /// With the host.
    Automatic,
    /// When somebody asks for it.
    Manual,
    /// Never.
    Disabled,
}

/// What the Service Control Manager does when a service fails: restart it.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recovery {
    /// Milliseconds before each restart; the last one repeats. Not empty.
    pub restart_delays_ms: Vec<u32>,
    /// Failures are forgotten after this many seconds.
    pub reset_seconds: u32,
    /// Whether a stop with an error code counts as a failure, too.
    pub on_error_exit: bool,
}

/// What we decide about a service.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceConfig {
    /// The whole command line.
    pub command: String,
    /// The description; ours start with [`SERVICE_TAG`](wmco_core::names::host::SERVICE_TAG).
    pub description: String,
    /// Services that run before it, in no order that matters. Empty means none: an executor clears
    /// the list and does not leave it as it is.
    pub dependencies: Vec<ServiceName>,
    /// When it starts.
    pub start: StartType,
    /// What happens when it fails; `None`: nothing.
    pub recovery: Option<Recovery>,
}

/// One service as it is.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Service {
    /// Its name.
    pub name: ServiceName,
    /// How it is configured.
    pub config: ServiceConfig,
    /// Account that it runs as; ours run as [`LOCAL_SYSTEM`].
    pub account: String,
    /// Name that people see; that of ours is the name.
    pub display_name: String,
    /// Whether it has a process of its own that talks to no desktop, as ours have.
    pub own_process: bool,
    /// Whether the host starts without a word when it does not, as with ours.
    pub errors_ignored: bool,
    /// What it does now.
    pub state: ServiceRunState,
    /// Code that it ended with when it last stopped; 0 while it runs.
    pub exit_code: u32,
    /// Its process, while it has one.
    pub process: Option<u32>,
}

/// One service at one moment, without its configuration.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Glimpse {
    /// Its name.
    pub name: ServiceName,
    /// What it does.
    pub state: ServiceRunState,
    /// Its process, while it has one.
    pub process: Option<u32>,
}

/// The Service Control Manager of a host.
pub trait ServiceManager: Send + Sync {
    /// All services that the caller may read, in no order that matters.
    fn list(&self) -> Result<Vec<Service>, WindowsError>;

    /// All services, in one cheap call that may be made again and again.
    fn glance(&self) -> Result<Vec<Glimpse>, WindowsError> {
        let glimpse = |service: Service| Glimpse {
            name: service.name,
            state: service.state,
            process: service.process,
        };
        Ok(self.list()?.into_iter().map(glimpse).collect())
    }

    /// One service; `None` when there is none of that name.
    fn query(&self, name: &ServiceName) -> Result<Option<Service>, WindowsError>;

    /// Creates a stopped service that runs as [`LOCAL_SYSTEM`] in a process of its own, is shown by its name,
    /// and does not trouble the start of the host.
    ///
    /// # Errors
    /// [`WindowsError::Exists`], [`WindowsError::MarkedForDeletion`].
    fn create(&self, name: &ServiceName, config: &ServiceConfig) -> Result<(), WindowsError>;

    /// Makes the service be configured as `config` says and all else as [`create`](Self::create) does,
    /// whatever it was before. A running process keeps its old command line until it is started anew.
    ///
    /// # Errors
    /// [`WindowsError::Missing`].
    fn configure(&self, name: &ServiceName, config: &ServiceConfig) -> Result<(), WindowsError>;

    /// Starts the service, and before it the services that it needs, and waits until it runs. A
    /// service that runs already is fine.
    ///
    /// # Errors
    /// [`WindowsError::ServiceEnded`] as soon as it is stopped again, [`WindowsError::TimedOut`],
    /// [`WindowsError::MissingDependency`], [`WindowsError::Interrupted`]. Dependencies that were started stay so.
    fn start(&self, name: &ServiceName, wait: Wait<'_>) -> Result<(), WindowsError>;

    /// Stops the service, waits, and when [`Wait::is_over`] ends its process with all its children. A
    /// service that is stopped already, or stops meanwhile, or is not there, is fine.
    ///
    /// # Errors
    /// [`WindowsError::DependentsRun`], [`WindowsError::Interrupted`].
    fn stop(&self, name: &ServiceName, wait: Wait<'_>) -> Result<(), WindowsError>;

    /// Deletes a stopped service and waits until it is gone; tells whether it was there.
    ///
    /// # Errors
    /// [`WindowsError::MarkedForDeletion`] when somebody still has it open after the limit,
    /// [`WindowsError::Interrupted`].
    fn delete(&self, name: &ServiceName, wait: Wait<'_>) -> Result<bool, WindowsError>;

    /// Services that directly need this one, running or not.
    fn dependents(&self, name: &ServiceName) -> Result<Vec<ServiceName>, WindowsError> {
        let needs_it =
            |service: &Service| service.name != *name && service.config.dependencies.contains(name);
        Ok(self.list()?.into_iter().filter(needs_it).map(|service| service.name).collect())
    }
}
