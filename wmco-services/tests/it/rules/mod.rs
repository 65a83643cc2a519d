//! Edge cases of `docs/contract/services.md` and `docs/contract/wicd.md`, one test for each. Tests of live clusters and
//! of Windows itself are elsewhere.

mod cleanup;
mod generated;
mod leftovers;
mod logs;
mod manifest;
mod network;
mod node;
mod own_node;
mod pass;
mod scm;
mod service;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use wmco_core::names;
use wmco_core::names::host;
use wmco_core::protocol::ServiceRunState;
use wmco_services::fake::FakeWindows;
use wmco_services::manifest::{Manifest, NodeVariable, Parts, PreScript, Service};
use wmco_services::windows::{ServiceConfig, ServiceManager as _, ServiceName, StartType};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn name(text: &str) -> ServiceName {
    text.parse().expect("a name")
}

/// Returns a service that starts after the bootstrap services.
fn service(text: &str, needs: &[&str]) -> Service {
    Service {
        name: name(text),
        command: text.to_owned(),
        node_variables_in_command: Vec::new(),
        powershell_pre_scripts: Vec::new(),
        dependencies: needs.iter().map(|need| name(need)).collect(),
        bootstrap: false,
        priority: 1,
    }
}

fn bootstrap(text: &str, priority: u64) -> Service {
    Service { bootstrap: true, priority, ..service(text, &[]) }
}

fn manifest_of(services: Vec<Service>) -> Manifest {
    Manifest::new(Parts { services, ..Parts::default() }).expect("a good manifest")
}

fn variable(name: &str, path: &str) -> NodeVariable {
    NodeVariable { name: name.to_owned(), node_object_json_path: path.to_owned() }
}

fn script(variable: &str, path: &str) -> PreScript {
    PreScript { variable_name: variable.to_owned(), path: path.to_owned(), node_args: Vec::new() }
}

/// Returns the configuration of a foreign service.
fn other(command: &str, description: &str, needs: &[&str]) -> ServiceConfig {
    ServiceConfig {
        command: command.to_owned(),
        description: description.to_owned(),
        dependencies: needs.iter().map(|need| name(need)).collect(),
        start: StartType::Manual,
        recovery: None,
    }
}

fn tagged(service: &str) -> String {
    format!("{} {service}", host::SERVICE_TAG)
}

/// Returns a ready Node with desired version `1`.
fn ready_node(more: &[(&str, &str)]) -> Value {
    let mut annotations = BTreeMap::from([(names::DESIRED_VERSION_ANNOTATION, "1")]);
    annotations.extend(more.iter().copied());
    json!({
        "metadata": {"name": "node", "annotations": annotations, "labels": {"zone": "east"}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn state(host: &FakeWindows, service: &str) -> Option<ServiceRunState> {
    Some(host.query(&name(service)).expect("it can be asked")?.state)
}

fn command(host: &FakeWindows, service: &str) -> Option<String> {
    Some(host.query(&name(service)).expect("it can be asked")?.config.command)
}
