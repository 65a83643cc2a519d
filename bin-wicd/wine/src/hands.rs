//! A person at the host: orders over standard input, one JSON line each, and one line back.
//!
//! Nothing of our libraries is in here, so that stand-ins stay small.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What the person is to do.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", tag = "order")]
pub enum Order {
    /// Read all services: what they are from the registry, what they do from the manager.
    Services,
    /// Create a service that starts when asked for.
    Create {
        /// Its name.
        name: String,
        /// How it is to be; recovery is left out.
        config: Config,
    },
    /// Give a service another command line.
    Command {
        /// Its name.
        name: String,
        /// The command line.
        command: String,
    },
    /// Show a service by another name, and let the host tell at its start when that fails.
    Show {
        /// Its name.
        name: String,
        /// The other one.
        shown: String,
    },
    /// Set a system-wide variable, or remove it.
    Variable {
        /// Its name.
        name: String,
        /// Its value.
        value: Option<String>,
    },
    /// Set a system-wide variable to a number, which no program sees.
    Number {
        /// The variable.
        variable: String,
    },
    /// Start a service; does not wait.
    Start {
        /// Its name.
        name: String,
    },
    /// Tell a service to stop; does not wait.
    Stop {
        /// Its name.
        name: String,
    },
    /// Delete a service; one that runs is only marked.
    Delete {
        /// Its name.
        name: String,
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

/// A service, in the same JSON as that of `wmco_services::windows`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "as there")]
pub struct Service {
    pub name: String,
    pub config: Config,
    pub account: String,
    pub display_name: String,
    pub own_process: bool,
    pub errors_ignored: bool,
    pub state: State,
    pub exit_code: u32,
    pub process: Option<u32>,
}

/// How a service is configured.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "as there")]
pub struct Config {
    pub command: String,
    pub description: String,
    pub dependencies: Vec<String>,
    pub start: Start,
}

/// When a service starts.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "as there")]
pub enum Start {
    Automatic,
    Manual,
    Disabled,
}

/// What a service does.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "as there")]
pub enum State {
    Running,
    Stopped,
    Starting,
    Stopping,
    Paused,
}
