//! PowerShell parsed by a foreign parser, for tests of rendered scripts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use tree_sitter::{Node, Parser, Tree};

/// A command of a script. Displays as one line: name, parameters by name, other arguments, conditions.
pub(super) struct Command {
    pub(super) name: String,
    /// Parameters; switches have empty values.
    parameters: BTreeMap<String, String>,
    arguments: Vec<String>,
    /// Conditions of the surrounding `if` statements, the outermost one first.
    conditions: Vec<String>,
}

/// Whether `script` has a syntax error.
pub(super) fn has_error(script: &str) -> bool {
    parsed(script).root_node().has_error()
}

/// Texts of all nodes of a kind, in order.
pub(super) fn all<'a>(kind: &str, script: &'a str) -> Vec<&'a str> {
    texts(parsed(script).root_node(), kind, script)
}

/// Variables that are read but never set, and the number of all variables that are read.
pub(super) fn unset_variables(script: &str) -> (BTreeSet<String>, usize) {
    let names = |kind: &str| -> BTreeSet<String> {
        let places = all(kind, script).into_iter();
        let first = places.filter_map(|place| place.rsplit('$').next());
        first.map(|name| word(name).to_lowercase()).collect()
    };
    let mut set: BTreeSet<String> =
        ["", "_", "env", "false", "lastexitcode", "matches", "null", "true"]
            .map(str::to_owned)
            .into();
    set.extend(["left_assignment_expression", "script_parameter"].into_iter().flat_map(names));
    let loops = all("foreach_statement", script).into_iter();
    set.extend(loops.filter_map(|text| Some(word(text.split('$').nth(1)?).to_lowercase())));
    let used = all("variable", script).into_iter();
    let used: BTreeSet<_> =
        used.map(|name| word(name.trim_start_matches(['$', '{'])).to_lowercase()).collect();
    (used.difference(&set).cloned().collect(), used.len())
}

/// All commands in order. Variables are replaced by the constants that they are set to.
pub(super) fn commands(script: &str) -> Vec<Command> {
    let constants = all("assignment_expression", script).into_iter().filter_map(|assignment| {
        let (name, value) = assignment.split_once('=')?;
        let value = value.trim();
        let is_constant = value.starts_with(['\'', '"']) && all("command", value).is_empty();
        is_constant.then(|| (name.trim(), unquoted(value)))
    });
    let constants = constants.collect();
    let mut found = Vec::new();
    collect(parsed(script).root_node(), &[], &Script { text: script, constants }, &mut found);
    found
}

struct Script<'a> {
    text: &'a str,
    constants: BTreeMap<&'a str, &'a str>,
}

impl Script<'_> {
    /// The text of a node on one line, without surrounding quotation marks.
    fn value(&self, node: Node<'_>) -> String {
        let text = &self.text[node.byte_range()];
        let text = self.constants.get(text).copied().unwrap_or_else(|| unquoted(text));
        let words = text.split_whitespace().filter(|word| *word != "`");
        words.collect::<Vec<_>>().join(" ")
    }
}

fn collect(node: Node<'_>, conditions: &[String], script: &Script<'_>, found: &mut Vec<Command>) {
    if node.kind() == "command" {
        found.push(command(node, conditions, script));
    }
    let condition = node.child_by_field_name("condition").map(|condition| script.value(condition));
    let mut cursor = node.walk();
    for child in node.children(&mut cursor) {
        let mut conditions = conditions.to_vec();
        if child.kind() == "statement_block" {
            conditions.extend(condition.clone());
        }
        collect(child, &conditions, script, found);
    }
}

fn command(node: Node<'_>, conditions: &[String], script: &Script<'_>) -> Command {
    let name = node.child_by_field_name("command_name").expect("each has a name");
    let mut command = Command {
        name: script.value(name),
        parameters: BTreeMap::new(),
        arguments: Vec::new(),
        conditions: conditions.to_vec(),
    };
    let mut open = None;
    let mut cursor = node.walk();
    let elements = node.children_by_field_name("command_elements", &mut cursor);
    for elements in elements.collect::<Vec<_>>() {
        let mut cursor = elements.walk();
        for element in elements.named_children(&mut cursor) {
            let value = script.value(element);
            match (element.kind(), open.take()) {
                ("command_argument_sep", parameter) => open = parameter,
                ("command_parameter", _) => {
                    command.parameters.insert(value.clone(), String::new());
                    open = Some(value);
                }
                (_, Some(parameter)) => {
                    command.parameters.insert(parameter, value);
                }
                (_, None) => command.arguments.push(value),
            }
        }
    }
    command
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (name, value) in &self.parameters {
            let between = if value.is_empty() { "" } else { "=" };
            write!(f, " {name}{between}{value}")?;
        }
        for argument in &self.arguments {
            write!(f, " {argument}")?;
        }
        for (condition, word) in
            self.conditions.iter().zip(["if"].iter().chain(["and"].iter().cycle()))
        {
            write!(f, ", {word} {condition}")?;
        }
        Ok(())
    }
}

fn parsed(script: &str) -> Tree {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_powershell::LANGUAGE.into()).unwrap();
    parser.parse(script, None).unwrap()
}

fn texts<'a>(node: Node<'_>, kind: &str, script: &'a str) -> Vec<&'a str> {
    let mut found = Vec::new();
    if node.kind() == kind {
        found.push(&script[node.byte_range()]);
    }
    let mut cursor = node.walk();
    for child in node.children(&mut cursor) {
        found.extend(texts(child, kind, script));
    }
    found
}

fn unquoted(text: &str) -> &str {
    let inner = |mark| text.strip_prefix(mark)?.strip_suffix(mark);
    inner('\'').or_else(|| inner('"')).filter(|inner| !inner.contains(['\'', '"'])).unwrap_or(text)
}

fn word(text: &str) -> &str {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap()
}
