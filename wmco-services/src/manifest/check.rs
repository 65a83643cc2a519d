//! Finds the problems of a manifest.
//!
//! Source: `docs/contract/services.md`, SVC13 to SVC23.

use std::collections::{BTreeMap, BTreeSet};

use super::read::Draft;
use super::{
    ENVIRONMENT_KEY, ManifestError, NodeVariable, PreScript, Problem, SERVICES_KEY, Service,
    WATCHED_KEY, order, placeholders,
};
use crate::jsonpath::NodePath;
use crate::windows::ServiceName;
use crate::words;

/// Returns every problem of a draft, each with its place on the wire.
pub(super) fn all(draft: &Draft) -> Vec<Problem> {
    let mut found = Vec::new();
    let services: Vec<Placed<'_>> = draft
        .parts
        .services
        .iter()
        .zip(&draft.places)
        .map(|(service, place)| Placed { service, at: format!("{SERVICES_KEY}[{place}]") })
        .collect();
    together(&services, &mut found);
    for placed in &services {
        placed.check_alone(&mut found);
    }
    variables(&draft.parts.environment, &draft.parts.watched, &mut found);
    for path in order::cycles(&draft.parts.services) {
        let first = services.iter().find(|placed| path.first() == Some(&placed.service.name));
        let at = first.map(|placed| format!("{}.dependencies", placed.at)).unwrap_or_default();
        let path = path.iter().map(ToString::to_string).collect();
        found.push(Problem { at, error: ManifestError::Cycle { path } });
    }
    found
}

/// A service and its place on the wire, for example `services[3]`.
struct Placed<'a> {
    service: &'a Service,
    at: String,
}

/// A placeholder: the place of its declaration, the field and its name.
type Declared<'a> = (String, &'static str, &'a str);

/// Finds problems of all services together, except cycles.
fn together(services: &[Placed<'_>], found: &mut Vec<Problem>) {
    let mut by_name: BTreeMap<&ServiceName, &Service> = BTreeMap::new();
    for placed in services {
        if by_name.insert(&placed.service.name, placed.service).is_some() {
            placed.add(found, ".name", |service| ManifestError::DuplicateService { service });
        }
    }
    let is_late = |name: &ServiceName| by_name.get(name).is_some_and(|other| !other.bootstrap);
    for placed in services.iter().filter(|placed| placed.service.bootstrap) {
        for (index, need) in placed.service.dependencies.iter().enumerate() {
            if is_late(need) {
                let dependency = need.to_string();
                placed.add(found, &format!(".dependencies[{index}]"), |service| {
                    ManifestError::BootstrapDependency { service, dependency }
                });
            }
        }
    }
    // The priority of a service that needs a Node is higher than those of all bootstrap services.
    let of_all = || services.iter().map(|placed| placed.service);
    let last = of_all().filter(|service| service.bootstrap).max_by_key(|s| s.priority);
    let Some(last) = last else { return };
    for placed in services {
        let priority = placed.service.priority;
        if !placed.service.bootstrap && priority <= last.priority {
            let bootstrap = last.name.to_string();
            placed.add(found, ".priority", |service| ManifestError::Priority {
                service,
                priority,
                bootstrap,
            });
        }
    }
}

impl Placed<'_> {
    /// Adds a problem of a field; `field` is the field's path below the service's place.
    fn add(
        &self,
        found: &mut Vec<Problem>,
        field: &str,
        error: impl FnOnce(String) -> ManifestError,
    ) {
        let error = error(self.service.name.to_string());
        found.push(Problem { at: format!("{}{field}", self.at), error });
    }

    /// Finds the problems of a single service.
    fn check_alone(&self, found: &mut Vec<Problem>) {
        const FIELD: &str = "nodeVariablesInCommand";
        let Service { command, node_variables_in_command: asked, powershell_pre_scripts, .. } =
            self.service;
        if command.trim().is_empty() {
            self.add(found, ".path", |service| ManifestError::Empty { service, field: "path" });
        }
        if self.service.bootstrap && !asked.is_empty() {
            self.add(found, &format!(".{FIELD}"), |service| ManifestError::BootstrapVariable {
                service,
                field: FIELD,
            });
        }
        let from_node = asked
            .iter()
            .enumerate()
            .map(|(k, variable)| (format!(".{FIELD}[{k}].name"), FIELD, variable.name.as_str()));
        let from_scripts = powershell_pre_scripts
            .iter()
            .enumerate()
            .filter(|(_, script)| !script.variable_name.is_empty())
            .map(|(k, script)| {
                let at = format!(".powershellPreScripts[{k}].variableName");
                (at, "variableName", script.variable_name.as_str())
            });
        let declared: Vec<_> = from_node.chain(from_scripts).collect();
        self.undeclared(".path", "path", command, &declared, found);
        self.placeholders(command, declared, found);
        self.paths(&format!(".{FIELD}"), asked, found);
        for (k, script) in powershell_pre_scripts.iter().enumerate() {
            self.pre_script(&format!(".powershellPreScripts[{k}]"), script, found);
        }
    }

    fn pre_script(&self, at: &str, script: &PreScript, found: &mut Vec<Problem>) {
        const FIELD: &str = "NodeArgs";
        if script.path.trim().is_empty() {
            self.add(found, &format!("{at}.path"), |service| ManifestError::Empty {
                service,
                field: "powershellPreScripts.path",
            });
        }
        self.paths(&format!("{at}.{FIELD}"), &script.node_args, found);
        let asks = |variable: &NodeVariable| {
            variable.node_object_json_path.parse::<NodePath>().is_ok_and(|path| !path.is_constant())
        };
        if self.service.bootstrap && script.node_args.iter().any(asks) {
            self.add(found, &format!("{at}.{FIELD}"), |service| ManifestError::BootstrapVariable {
                service,
                field: FIELD,
            });
        }
        let declared: Vec<_> = script
            .node_args
            .iter()
            .enumerate()
            .map(|(k, variable)| (format!("{at}.{FIELD}[{k}].name"), FIELD, variable.name.as_str()))
            .collect();
        let path = format!("{at}.path");
        self.undeclared(&path, "powershellPreScripts.path", &script.path, &declared, found);
        self.placeholders(&script.path, declared, found);
    }

    /// Finds undeclared placeholders of the operator's own services. Other words may be intended.
    fn undeclared(
        &self,
        at: &str,
        field: &'static str,
        text: &str,
        declared: &[Declared<'_>],
        found: &mut Vec<Problem>,
    ) {
        let is_declared = |name: &str| declared.iter().any(|(_, _, declared)| *declared == name);
        for placeholder in placeholders::ALL {
            if !is_declared(placeholder) && words::occurs(text, placeholder) {
                self.add(found, at, |service| ManifestError::UndeclaredPlaceholder {
                    service,
                    field,
                    placeholder,
                });
            }
        }
    }

    /// Checks that every placeholder has a name, is declared once, and does not occur in `text` only within other
    /// words, where the Go operator's daemon would replace it and ours does not. A placeholder that does not occur at
    /// all is harmless.
    fn placeholders(&self, text: &str, declared: Vec<Declared<'_>>, found: &mut Vec<Problem>) {
        let mut seen = BTreeSet::new();
        for (at, field, placeholder) in declared {
            let problem = if placeholder.trim().is_empty() {
                "is empty, name it"
            } else if !seen.insert(placeholder) {
                "is declared twice, drop one"
            } else if text.contains(placeholder) && !words::occurs(text, placeholder) {
                "stands only within other words of the text that it is for, set it apart"
            } else {
                continue;
            };
            let placeholder = placeholder.to_owned();
            self.add(found, &at, |service| ManifestError::BadPlaceholder {
                service,
                field,
                placeholder,
                problem,
            });
        }
    }

    fn paths(&self, at: &str, variables: &[NodeVariable], found: &mut Vec<Problem>) {
        for (k, variable) in variables.iter().enumerate() {
            if let Err(source) = variable.node_object_json_path.parse::<NodePath>() {
                let placeholder = variable.name.clone();
                self.add(found, &format!("{at}[{k}].nodeObjectJsonPath"), |service| {
                    ManifestError::BadPath { service, placeholder, source }
                });
            }
        }
    }
}

/// Checks names of variables; their values are unrestricted.
fn variables(environment: &BTreeMap<String, String>, watched: &[String], found: &mut Vec<Problem>) {
    let mut check = |at: String, key: &'static str, name: &String| {
        let bad = |c: char| c == '=' || c.is_control();
        if name.trim().is_empty() || name.contains(bad) {
            found.push(Problem {
                at,
                error: ManifestError::BadVariable { key, name: name.clone() },
            });
        }
    };
    for name in environment.keys() {
        check(ENVIRONMENT_KEY.to_owned(), ENVIRONMENT_KEY, name);
    }
    for (k, name) in watched.iter().enumerate() {
        check(format!("{WATCHED_KEY}[{k}]"), WATCHED_KEY, name);
    }
    let mut seen = BTreeSet::new();
    for name in environment.keys().filter(|name| !seen.insert(name.to_uppercase())) {
        let error = ManifestError::DuplicateVariable { name: name.clone() };
        found.push(Problem { at: ENVIRONMENT_KEY.to_owned(), error });
    }
}
