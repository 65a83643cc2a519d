//! Everything about a manifest that can be wrong one service at a time, and the rule of priorities.
//!
//! Source: `spec/services.md`, sections 3.2, 3.4 and 15.

use std::collections::{BTreeMap, BTreeSet};

use super::{ENVIRONMENT_KEY, ManifestError, NodeVariable, PreScript, Service, WATCHED_KEY};
use crate::jsonpath::NodePath;
use crate::windows::ServiceName;
use crate::words;

/// Checks services that are sorted by priority.
pub(super) fn services(services: &[Service]) -> Result<(), ManifestError> {
    let mut by_name: BTreeMap<&ServiceName, &Service> = BTreeMap::new();
    for service in services {
        if by_name.insert(&service.name, service).is_some() {
            return Err(ManifestError::DuplicateService { service: service.name.to_string() });
        }
    }
    for service in services {
        service_alone(service)?;
        let late = |name: &&ServiceName| by_name.get(name).is_some_and(|other| !other.bootstrap);
        if service.bootstrap
            && let Some(dependency) = service.dependencies.iter().find(late)
        {
            return Err(ManifestError::BootstrapDependency {
                service: service.name.to_string(),
                dependency: dependency.to_string(),
            });
        }
    }
    priorities(services)
}

/// Every service that needs a Node has a higher number than every bootstrap service.
fn priorities(services: &[Service]) -> Result<(), ManifestError> {
    let last = services.iter().filter(|service| service.bootstrap).max_by_key(|s| s.priority);
    let first = services.iter().filter(|service| !service.bootstrap).min_by_key(|s| s.priority);
    match (last, first) {
        (Some(bootstrap), Some(service)) if service.priority <= bootstrap.priority => {
            Err(ManifestError::Priority {
                service: service.name.to_string(),
                priority: service.priority,
                bootstrap: bootstrap.name.to_string(),
            })
        }
        _ => Ok(()),
    }
}

fn service_alone(service: &Service) -> Result<(), ManifestError> {
    let named = || service.name.to_string();
    if service.command.trim().is_empty() {
        return Err(ManifestError::Empty { service: named(), field: "path" });
    }
    if service.bootstrap && !service.node_variables_in_command.is_empty() {
        return Err(ManifestError::BootstrapVariable {
            service: named(),
            field: "nodeVariablesInCommand",
        });
    }
    let from_node = service
        .node_variables_in_command
        .iter()
        .map(|variable| ("nodeVariablesInCommand", variable.name.as_str()));
    let from_scripts = service
        .powershell_pre_scripts
        .iter()
        .filter(|script| !script.variable_name.is_empty())
        .map(|script| ("variableName", script.variable_name.as_str()));
    placeholders(service, &service.command, from_node.chain(from_scripts))?;
    paths(service, &service.node_variables_in_command)?;
    service.powershell_pre_scripts.iter().try_for_each(|script| pre_script(service, script))
}

fn pre_script(service: &Service, script: &PreScript) -> Result<(), ManifestError> {
    if script.path.trim().is_empty() {
        return Err(ManifestError::Empty {
            service: service.name.to_string(),
            field: "powershellPreScripts.path",
        });
    }
    paths(service, &script.node_args)?;
    let asks = |variable: &NodeVariable| {
        variable.node_object_json_path.parse::<NodePath>().is_ok_and(|path| !path.is_constant())
    };
    if service.bootstrap && script.node_args.iter().any(asks) {
        return Err(ManifestError::BootstrapVariable {
            service: service.name.to_string(),
            field: "NodeArgs",
        });
    }
    let declared = script.node_args.iter().map(|variable| ("NodeArgs", variable.name.as_str()));
    placeholders(service, &script.path, declared)
}

/// Every placeholder is declared once and occurs in `text` as a word.
fn placeholders<'a>(
    service: &Service,
    text: &str,
    declared: impl Iterator<Item = (&'static str, &'a str)>,
) -> Result<(), ManifestError> {
    let mut seen = BTreeSet::new();
    for (field, placeholder) in declared {
        let problem = if placeholder.trim().is_empty() {
            "is empty, name it"
        } else if !seen.insert(placeholder) {
            "is declared twice, drop one"
        } else if !words::occurs(text, placeholder) {
            "does not occur as a word in the text that it is for, drop it"
        } else {
            continue;
        };
        return Err(ManifestError::BadPlaceholder {
            service: service.name.to_string(),
            field,
            placeholder: placeholder.to_owned(),
            problem,
        });
    }
    Ok(())
}

fn paths(service: &Service, variables: &[NodeVariable]) -> Result<(), ManifestError> {
    for variable in variables {
        variable.node_object_json_path.parse::<NodePath>().map_err(|source| {
            ManifestError::BadPath {
                service: service.name.to_string(),
                placeholder: variable.name.clone(),
                source,
            }
        })?;
    }
    Ok(())
}

/// Checks names of variables; their values may be anything.
pub(super) fn variables(
    environment: &BTreeMap<String, String>,
    watched: &[String],
) -> Result<(), ManifestError> {
    let set = environment.keys().map(|name| (ENVIRONMENT_KEY, name));
    for (key, name) in set.chain(watched.iter().map(|name| (WATCHED_KEY, name))) {
        let bad = |c: char| c == '=' || c.is_control();
        if name.trim().is_empty() || name.contains(bad) {
            return Err(ManifestError::BadVariable { key, name: name.clone() });
        }
    }
    let mut seen = BTreeSet::new();
    match environment.keys().find(|name| !seen.insert(name.to_uppercase())) {
        Some(name) => Err(ManifestError::DuplicateVariable { name: name.clone() }),
        None => Ok(()),
    }
}
