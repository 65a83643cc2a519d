//! Reports every problem and warning of a services ConfigMap to its author.

use std::collections::BTreeMap;

use wmco_core::protocol::ServicesData;

use super::{Manifest, NodeVariable, Problem, SERVICES_KEY, Service, check, read};
use crate::windows::ServiceName;

/// Something that is valid and yet may be a mistake.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Warning {
    /// The place, as in [`Problem::at`].
    pub at: String,
    /// The effect, and what to do if it is not intended.
    pub text: String,
}

/// The result of [`review`].
#[derive(Debug, Default)]
pub struct Review {
    /// Every problem. [`Manifest::parse`] accepts a ConfigMap exactly if it has none.
    pub problems: Vec<Problem>,
    /// Possible mistakes.
    pub warnings: Vec<Warning>,
    /// The manifest, if there are no problems.
    pub manifest: Option<Manifest>,
}

/// Parses the data of a services ConfigMap and continues after a problem.
pub fn review(data: &ServicesData) -> Review {
    let (draft, mut problems) = read::read(data);
    problems.extend(check::all(&draft));
    let services = &draft.parts.services;
    let by_name: BTreeMap<_, _> = services.iter().map(|service| (&service.name, service)).collect();
    let mut warnings = Vec::new();
    for (service, place) in services.iter().zip(&draft.places) {
        let at = format!("{SERVICES_KEY}[{place}]");
        needs(&at, service, &by_name, &mut warnings);
        variables(
            &format!("{at}.nodeVariablesInCommand"),
            &service.node_variables_in_command,
            &service.command,
            &mut warnings,
        );
        for (k, script) in service.powershell_pre_scripts.iter().enumerate() {
            let at = format!("{at}.powershellPreScripts[{k}]");
            variables(&format!("{at}.NodeArgs"), &script.node_args, &script.path, &mut warnings);
            let at = format!("{at}.variableName");
            unused(at, &script.variable_name, &service.command, &mut warnings);
        }
    }
    problems.sort_by(|a, b| place(&a.at).cmp(&place(&b.at)));
    let manifest = if problems.is_empty() { Manifest::checked(draft).ok() } else { None };
    Review { problems, warnings, manifest }
}

/// Orders places as in the document: by key, then by index.
fn place(at: &str) -> (&str, usize) {
    let (key, rest) = at.split_once('[').unwrap_or((at, ""));
    let number = rest.split(']').next().and_then(|number| number.parse().ok());
    (key, number.unwrap_or_default())
}

fn needs(
    at: &str,
    service: &Service,
    by_name: &BTreeMap<&ServiceName, &Service>,
    warnings: &mut Vec<Warning>,
) {
    for (k, need) in service.dependencies.iter().enumerate() {
        let earlier = service.dependencies.get(..k).unwrap_or_default();
        let text = match by_name.get(need) {
            _ if earlier.contains(need) => format!("service `{need}` is named twice, drop one"),
            None => format!("service `{need}` is not in this ConfigMap, so Windows must bring it"),
            Some(other) if other.priority > service.priority => format!(
                "service `{need}` has priority {}, which is after this one's {}; it is started first \
                 all the same, swap the numbers to say so",
                other.priority, service.priority
            ),
            Some(_) => continue,
        };
        warnings.push(Warning { at: format!("{at}.dependencies[{k}]"), text });
    }
}

/// Finds warnings about placeholders for values of the Node in `text`.
fn variables(at: &str, variables: &[NodeVariable], text: &str, warnings: &mut Vec<Warning>) {
    paths(at, variables, warnings);
    for (k, variable) in variables.iter().enumerate() {
        unused(format!("{at}[{k}].name"), &variable.name, text, warnings);
    }
}

/// Reports a placeholder that `text` does not use: harmless, but it may have been forgotten there.
fn unused(at: String, placeholder: &str, text: &str, warnings: &mut Vec<Warning>) {
    if !placeholder.trim().is_empty() && !text.contains(placeholder) {
        let text = format!(
            "placeholder `{placeholder}` is not used in the text that it is for, drop it unless it is missing there"
        );
        warnings.push(Warning { at, text });
    }
}

/// Reports a path without braces, which counts as a constant.
fn paths(at: &str, variables: &[NodeVariable], warnings: &mut Vec<Warning>) {
    const FIELDS: [&str; 4] = [".", "metadata.", "spec.", "status."];
    for (k, variable) in variables.iter().enumerate() {
        let path = &variable.node_object_json_path;
        if !path.contains('{') && FIELDS.iter().any(|field| path.starts_with(field)) {
            warnings.push(Warning {
                at: format!("{at}[{k}].nodeObjectJsonPath"),
                text: format!(
                    "`{path}` stands for itself, put it in braces to read it from the node"
                ),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ENVIRONMENT_KEY, FILES_KEY, WATCHED_KEY};
    use super::*;

    fn data(entries: &[(&str, &str)]) -> ServicesData {
        ServicesData(entries.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
    }

    /// Returns one line for each problem: place, message and cause.
    fn problems(entries: &[(&str, &str)]) -> Vec<String> {
        let line = |problem: &Problem| {
            let why = std::error::Error::source(&problem.error);
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            format!("{}: {}{why}", problem.at, problem.error)
        };
        let review = review(&data(entries));
        assert_eq!(review.manifest.is_none(), !review.problems.is_empty());
        review.problems.iter().map(line).collect()
    }

    fn warnings(services: &str) -> Vec<String> {
        let review = review(&data(&[(SERVICES_KEY, services), (FILES_KEY, "[]")]));
        assert!(review.problems.is_empty(), "{:?}", review.problems);
        review.warnings.iter().map(|warning| format!("{}: {}", warning.at, warning.text)).collect()
    }

    #[test]
    fn every_problem_is_told_with_its_place() {
        let services = r#"[
            {"name": "late", "path": " ", "priority": 0, "dependencies": ["a/b", "x"]},
            {"name": "early", "path": "run A", "bootstrap": true, "priority": 1,
             "dependencies": ["other", "late"],
             "nodeVariablesInCommand": [
                {"name": "A", "nodeObjectJsonPath": "{.metadata.name}"},
                {"name": "A", "nodeObjectJsonPath": "{.metadata"},
                {"name": "", "nodeObjectJsonPath": "x"}]},
            {"name": "other", "path": "c --B2", "priority": 1, "powershellPreScripts": [
                {"path": "", "variableName": "B"}, {"path": "_C", "nodeargs": [{"name": "C", "nodeObjectJsonPath": "x"}]}]},
            {"name": "Other", "path": "c", "priority": "2"},
            {"name": "Other", "path": "c", "priority": 2}
        ]"#;
        let found = problems(&[
            (SERVICES_KEY, services),
            (ENVIRONMENT_KEY, r#"{"A=": "", "b": "", "B": ""}"#),
            ("watchedenvironmentvars", "[]"),
        ]);
        insta::assert_snapshot!(found.join("\n"), @r#"
        environmentVars: `A=` in `environmentVars` is no name of a variable, use text without `=`
        environmentVars: variable `b` is there twice (names ignore case), drop one
        files: add the key `files`; `[]` will do
        services[0].dependencies[0]: fix field `dependencies` of service `late`: `a/b` is no name of a service: use 1 to 256 characters without slashes
        services[0].priority: priority 0 of service `late` is not above that of bootstrap service `early`, raise it
        services[0].path: field `path` of service `late` is empty, fill it
        services[1].dependencies[0]: bootstrap service `early` depends on `other`, which starts only when there is a node; make that a bootstrap service, too, or drop the dependency
        services[1].dependencies[1]: bootstrap service `early` depends on `late`, which starts only when there is a node; make that a bootstrap service, too, or drop the dependency
        services[1].nodeVariablesInCommand: bootstrap service `early` asks for values of the node in field `nodeVariablesInCommand`, but it starts before there is one; drop them
        services[1].nodeVariablesInCommand[1].name: placeholder `A` in field `nodeVariablesInCommand` of service `early` is declared twice, drop one
        services[1].nodeVariablesInCommand[2].name: placeholder `` in field `nodeVariablesInCommand` of service `early` is empty, name it
        services[1].nodeVariablesInCommand[1].nodeObjectJsonPath: fix field `nodeObjectJsonPath` of placeholder A of service `early`: `{.metadata` is no node path: end it with the closing brace, and put nothing after
        services[2].priority: priority 1 of service `other` is not above that of bootstrap service `early`, raise it
        services[2].powershellPreScripts[0].variableName: placeholder `B` in field `variableName` of service `other` stands only within other words of the text that it is for, set it apart
        services[2].powershellPreScripts[0].path: field `powershellPreScripts.path` of service `other` is empty, fill it
        services[2].powershellPreScripts[1].NodeArgs[0].name: placeholder `C` in field `NodeArgs` of service `other` stands only within other words of the text that it is for, set it apart
        services[3].priority: fix the JSON at `services[3].priority`: write a whole number, 0 or more
        services[3].name: service `Other` is there twice (names ignore case), drop one
        services[4].name: service `Other` is there twice (names ignore case), drop one
        watchedenvironmentvars: drop the key `watchedenvironmentvars`, it means nothing here
        "#);
    }

    #[test]
    fn every_value_of_a_wrong_kind_is_told() {
        let services = r#"[5, null,
            {"name": 1, "path": [], "nodeVariablesInCommand": {}, "powershellPreScripts": [7],
             "dependencies": [true, ""], "bootstrap": "true", "priority": -1},
            {"name": "a", "path": "a", "priority": 1.0, "nodeVariablesInCommand": [{"name": 2}],
             "powershellPreScripts": [{"path": "p", "NodeArgs": "x"}], "NAME": "b"}]"#;
        let found = problems(&[
            (SERVICES_KEY, services),
            (FILES_KEY, r#"[{"path": 1}, 2]"#),
            (ENVIRONMENT_KEY, r#"{"A": 1, "B": [], "C": null}"#),
            (WATCHED_KEY, r#"[1, "A"]"#),
        ]);
        let json = |line: &&String| line.contains("fix the JSON");
        let told: Vec<&str> = found
            .iter()
            .filter(json)
            .map(|line| line.split_once(": ").map_or("", |(_, rest)| rest))
            .collect();
        insta::assert_snapshot!(told.join("\n"), @r"
        fix the JSON at `environmentVars.A`: write text
        fix the JSON at `environmentVars.B`: write text
        fix the JSON at `files[0].path`: write text
        fix the JSON at `files[1]`: write an object
        fix the JSON at `services[0]`: write an object
        fix the JSON at `services[2].name`: write text
        fix the JSON at `services[2].path`: write text
        fix the JSON at `services[2].nodeVariablesInCommand`: write a list
        fix the JSON at `services[2].powershellPreScripts[0]`: write an object
        fix the JSON at `services[2].dependencies[0]`: write text
        fix the JSON at `services[2].bootstrap`: write true or false
        fix the JSON at `services[2].priority`: write a whole number, 0 or more
        fix the JSON at `services[3].name`: it is there twice, drop one
        fix the JSON at `services[3].nodeVariablesInCommand[0].name`: write text
        fix the JSON at `services[3].powershellPreScripts[0].NodeArgs`: write a list
        fix the JSON at `services[3].priority`: write a whole number, 0 or more
        fix the JSON at `watchedEnvironmentVars[0]`: write text
        ");
    }

    #[test]
    fn an_unreadable_priority_is_told_once() {
        let services = r#"[{"name": "a", "path": "a", "bootstrap": true, "priority": 3},
            {"name": "b", "path": "b", "priority": "4"}]"#;
        assert_eq!(problems(&[(SERVICES_KEY, services), (FILES_KEY, "[]")]).len(), 1);
    }

    #[test]
    fn a_variable_that_is_null_is_empty() {
        let review = review(&data(&[
            (SERVICES_KEY, "[]"),
            (FILES_KEY, "[]"),
            (ENVIRONMENT_KEY, r#"{"A": null}"#),
        ]));
        assert_eq!(review.manifest.unwrap().environment()["A"], "");
    }

    #[test]
    fn every_circle_is_told() {
        let services = r#"[
            {"name": "a", "path": "c", "priority": 1, "dependencies": ["b", "c"]},
            {"name": "b", "path": "c", "priority": 1, "dependencies": ["a"]},
            {"name": "c", "path": "c", "priority": 1, "dependencies": ["a"]},
            {"name": "d", "path": "c", "priority": 1, "dependencies": ["d"]}]"#;
        insta::assert_snapshot!(problems(&[(SERVICES_KEY, services), (FILES_KEY, "[]")]).join("\n"), @r#"
        services[0].dependencies: services need each other in a circle, drop one dependency: a -> b -> a
        services[0].dependencies: services need each other in a circle, drop one dependency: a -> c -> a
        services[3].dependencies: services need each other in a circle, drop one dependency: d -> d
        "#);
    }

    #[test]
    fn values_of_variables_are_never_told() {
        for text in
            [r#""hush""#, r#"["hush"]"#, r#"{"A": {"hush": 1}}"#, "{\"A\": hush}", r#"{"A": "hush"#]
        {
            let found =
                problems(&[(SERVICES_KEY, "[]"), (FILES_KEY, "[]"), (ENVIRONMENT_KEY, text)]);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(
                !found[0].contains("hush") && found[0].contains("environmentVars"),
                "{found:?}"
            );
        }
    }

    #[test]
    fn a_need_from_elsewhere_is_a_warning() {
        let services = r#"[{"name": "a", "path": "c", "priority": 1, "dependencies": ["RpcSs"]}]"#;
        insta::assert_snapshot!(warnings(services).join("\n"), @"services[0].dependencies[0]: service `RpcSs` is not in this ConfigMap, so Windows must bring it");
    }

    #[test]
    fn a_need_with_a_later_priority_is_a_warning() {
        let services = r#"[{"name": "a", "path": "c", "priority": 1, "dependencies": ["b"]},
            {"name": "b", "path": "c", "priority": 2}]"#;
        insta::assert_snapshot!(warnings(services).join("\n"), @"services[0].dependencies[0]: service `b` has priority 2, which is after this one's 1; it is started first all the same, swap the numbers to say so");
    }

    #[test]
    fn a_need_that_is_named_twice_is_a_warning() {
        let services = r#"[{"name": "b", "path": "c", "priority": 1},
            {"name": "a", "path": "c", "priority": 1, "dependencies": ["b", "B"]}]"#;
        insta::assert_snapshot!(warnings(services).join("\n"), @"services[1].dependencies[1]: service `B` is named twice, drop one");
    }

    #[test]
    fn a_placeholder_that_nothing_fills_is_a_problem() {
        let services = r#"[{"name": "a", "path": "c --ip=NODE_IP --n NODE_NAME NODE_IPS", "priority": 1,
            "nodeVariablesInCommand": [{"name": "NODE_NAME", "nodeObjectJsonPath": "{.metadata.name}"}],
            "powershellPreScripts": [{"path": "p NODE_NAME VERBOSITY",
                "NodeArgs": [{"name": "VERBOSITY", "nodeObjectJsonPath": "4"}]}]}]"#;
        insta::assert_snapshot!(problems(&[(SERVICES_KEY, services), (FILES_KEY, "[]")]).join("\n"), @r"
        services[0].path: nothing fills NODE_IP in field `path` of service `a`, declare it or write the value
        services[0].powershellPreScripts[0].path: nothing fills NODE_NAME in field `powershellPreScripts.path` of service `a`, declare it or write the value
        ");
    }

    #[test]
    fn a_placeholder_that_is_not_used_is_a_warning() {
        let services = r#"[{"name": "a", "path": "c", "priority": 1,
            "nodeVariablesInCommand": [{"name": "NODE_NAME", "nodeObjectJsonPath": "{.metadata.name}"}],
            "powershellPreScripts": [{"path": "p", "variableName": "NODE_IP",
                "NodeArgs": [{"name": "VERBOSITY", "nodeObjectJsonPath": "4"}]}]}]"#;
        insta::assert_snapshot!(warnings(services).join("\n"), @r"
        services[0].nodeVariablesInCommand[0].name: placeholder `NODE_NAME` is not used in the text that it is for, drop it unless it is missing there
        services[0].powershellPreScripts[0].NodeArgs[0].name: placeholder `VERBOSITY` is not used in the text that it is for, drop it unless it is missing there
        services[0].powershellPreScripts[0].variableName: placeholder `NODE_IP` is not used in the text that it is for, drop it unless it is missing there
        ");
    }

    #[test]
    fn a_path_without_braces_is_a_warning() {
        let services = r#"[{"name": "a", "path": "c X Y", "priority": 1,
            "nodeVariablesInCommand": [{"name": "X", "nodeObjectJsonPath": ".metadata.name"},
                {"name": "Y", "nodeObjectJsonPath": "plain.metadata"}],
            "powershellPreScripts": [{"path": "p Z", "NodeArgs": [
                {"name": "Z", "nodeObjectJsonPath": "spec.providerID"}]}]}]"#;
        insta::assert_snapshot!(warnings(services).join("\n"), @r#"
        services[0].nodeVariablesInCommand[0].nodeObjectJsonPath: `.metadata.name` stands for itself, put it in braces to read it from the node
        services[0].powershellPreScripts[0].NodeArgs[0].nodeObjectJsonPath: `spec.providerID` stands for itself, put it in braces to read it from the node
        "#);
    }
}
