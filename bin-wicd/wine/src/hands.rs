//! A person at the host: orders over standard input, one JSON line each, and one line back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wmco_services::windows::{Service, ServiceConfig, ServiceName};

/// What the person is to do.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", tag = "order")]
pub enum Order {
    /// Read all services: what they are from the registry, what they do from the manager.
    Services,
    /// Create a service; its recovery is left out.
    Create {
        /// Its name.
        name: ServiceName,
        /// How it is to be.
        config: ServiceConfig,
    },
    /// Start a service; does not wait.
    Start {
        /// Its name.
        name: ServiceName,
    },
    /// Tell a service to stop; does not wait.
    Stop {
        /// Its name.
        name: ServiceName,
    },
    /// Delete a service; one that runs is only marked.
    Delete {
        /// Its name.
        name: ServiceName,
    },
    /// Set a system-wide variable, or remove it.
    SetVariable {
        /// Its name.
        name: String,
        /// Its value.
        value: Option<String>,
    },
    /// Read the parts of the registry in which a daemon leaves traces.
    Registry,
}

/// What came of it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", tag = "answer", content = "with")]
pub enum Answer {
    /// Services.
    Services(Vec<Service>),
    /// Values, each by its key and name.
    Registry(BTreeMap<String, String>),
    /// It is done.
    Done,
    /// It could not be done.
    Failed(String),
}
