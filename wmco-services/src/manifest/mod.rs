//! A validated services ConfigMap.
//!
//! [`Manifest::parse`] reads the data in the cluster, [`Manifest::new`] takes generated parts; both check everything
//! that can be checked without a host, so that only problems of the node itself remain. [`Manifest::render`] writes the
//! same JSON as the original operator.
//!
//! # Guarantees
//! - Names are legal and unique, dependencies have no cycle, bootstrap services come first and need neither a Node nor
//!   a later service, every placeholder is declared once and does not occur only within other words.
//! - `parse(render(m))` is `m`.
//!
//! Source: `docs/contract/services.md`, SVC5 to SVC25.

mod check;
mod error;
mod order;
pub(crate) mod placeholders;
mod read;
mod review;
mod schema;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use wmco_core::protocol::ServicesData;

use crate::windows::ServiceName;
use read::Draft;

pub use error::{ManifestError, Problem};
pub use review::{Review, Warning, review};
pub use schema::schemas;
pub use wmco_core::names::objects::{ENVIRONMENT_KEY, FILES_KEY, SERVICES_KEY, WATCHED_KEY};

/// One Windows service that a node runs.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Service {
    /// Name in the Service Control Manager.
    pub name: ServiceName,
    /// The whole command line, placeholders included. The field is called `path` on the wire.
    #[serde(rename = "path")]
    pub command: String,
    /// Placeholders in the command that a Node gives the values of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub node_variables_in_command: Vec<NodeVariable>,
    /// Scripts that run before the service is configured, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub powershell_pre_scripts: Vec<PreScript>,
    /// Services that run first; they need not be in the manifest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub dependencies: Vec<ServiceName>,
    /// Whether it is started before there is a Node.
    pub bootstrap: bool,
    /// Order of creation, 0 is first.
    pub priority: u64,
}

impl Service {
    /// Creates a service without dependencies and without values of a Node.
    pub fn new(name: ServiceName, command: impl Into<String>) -> Self {
        Self {
            name,
            command: command.into(),
            node_variables_in_command: Vec::new(),
            powershell_pre_scripts: Vec::new(),
            dependencies: Vec::new(),
            bootstrap: false,
            priority: 1,
        }
    }
}

/// A placeholder whose value a Node gives.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeVariable {
    /// The placeholder.
    #[serde(default)]
    pub name: String,
    /// Where its value is, see [`NodePath`](crate::jsonpath::NodePath). Text without braces is the
    /// value itself.
    #[serde(default)]
    pub node_object_json_path: String,
}

/// A PowerShell script that runs before its service is configured.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PreScript {
    /// Placeholder in the service's command that its output replaces; empty when only its effect
    /// counts.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub variable_name: String,
    /// The script text, which may have placeholders of its own.
    #[serde(default)]
    pub path: String,
    /// Placeholders in the script. On the wire it is always there, spelled `NodeArgs`, and `null` when
    /// there are none.
    #[serde(rename = "NodeArgs", default, serialize_with = "wire::null_when_empty")]
    #[schemars(with = "Option<Vec<NodeVariable>>")]
    pub node_args: Vec<NodeVariable>,
}

/// A file that a node must have.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileInfo {
    /// Where it is on the instance.
    #[serde(default)]
    pub path: String,
    /// What it must hold.
    #[serde(default)]
    pub checksum: String,
}

/// The unchecked parts of a manifest.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct Parts {
    /// The services, in any order.
    pub services: Vec<Service>,
    /// Files with their checksums.
    pub files: Vec<FileInfo>,
    /// Variables with their values.
    pub environment: BTreeMap<String, String>,
    /// Names of all managed variables, in the order of the wire.
    pub watched: Vec<String>,
}

/// A checked services ConfigMap.
///
/// Values of variables can hold passwords, so `Debug` shows their names only.
#[derive(Clone, Eq, PartialEq)]
pub struct Manifest {
    /// By ascending priority; equal priorities in the given order.
    services: Vec<Service>,
    /// Indices into `services`, in start order.
    start_order: Vec<usize>,
    files: Vec<FileInfo>,
    environment: BTreeMap<String, String>,
    watched: Vec<String>,
}

impl Manifest {
    /// Checks the parts of a generated manifest.
    ///
    /// # Errors
    /// [`ManifestError`] with the name of the service and of the field.
    pub fn new(parts: Parts) -> Result<Self, ManifestError> {
        Self::checked(parts.into())
    }

    fn checked(draft: Draft) -> Result<Self, ManifestError> {
        if let Some(problem) = check::all(&draft).into_iter().next() {
            return Err(problem.error);
        }
        let Parts { mut services, files, environment, mut watched } = draft.parts;
        services.sort_by_key(|service| service.priority);
        let start_order = order::start_order(&services);
        let mut seen = BTreeSet::new();
        watched.retain(|name| seen.insert(name.to_uppercase()));
        Ok(Self { services, start_order, files, environment, watched })
    }

    /// Parses the data of a services ConfigMap.
    ///
    /// # Errors
    /// [`ManifestError`], the first that [`review`] finds; input that is not understood is never ignored.
    pub fn parse(data: &ServicesData) -> Result<Self, ManifestError> {
        let (draft, problems) = read::read(data);
        match problems.into_iter().next() {
            Some(problem) => Err(problem.error),
            None => Self::checked(draft),
        }
    }

    /// Renders the data of the ConfigMap.
    pub fn render(&self) -> ServicesData {
        wire::write(self)
    }

    /// All services by ascending priority, as in the ConfigMap.
    pub fn services(&self) -> &[Service] {
        &self.services
    }

    /// All services in start order: dependencies come first, otherwise lower priority numbers.
    pub fn start_order(&self) -> impl DoubleEndedIterator<Item = &Service> {
        self.start_order.iter().filter_map(|place| self.services.get(*place))
    }

    /// The services that start before there is a Node, in start order.
    pub fn bootstrap(&self) -> impl DoubleEndedIterator<Item = &Service> {
        self.start_order().filter(|service| service.bootstrap)
    }

    /// Returns the service of that name.
    pub fn service(&self, name: &ServiceName) -> Option<&Service> {
        self.services.iter().find(|service| service.name == *name)
    }

    /// Files with their checksums.
    pub fn files(&self) -> &[FileInfo] {
        &self.files
    }

    /// Variables with their values.
    pub const fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    /// Names of the variables that must not exist unless they are in [`Self::environment`].
    pub fn watched(&self) -> &[String] {
        &self.watched
    }

    /// Creates a manifest without content, which changes nothing on a host.
    pub fn empty() -> Self {
        Self {
            services: Vec::new(),
            start_order: Vec::new(),
            files: Vec::new(),
            environment: BTreeMap::new(),
            watched: Vec::new(),
        }
    }
}

impl fmt::Debug for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manifest")
            .field("services", &self.services)
            .field("files", &self.files)
            .field("environment", &self.environment.keys())
            .field("watched", &self.watched)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("services", &self.services)
            .field("files", &self.files)
            .field("environment", &self.environment.keys())
            .field("watched", &self.watched)
            .finish()
    }
}

#[cfg(test)]
mod tests;
