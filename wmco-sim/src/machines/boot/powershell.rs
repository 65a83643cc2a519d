//! Extracts the commands of a PowerShell script.

use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::{Node, Parser};

/// A command that the script runs.
#[derive(Debug)]
pub(super) struct Command {
    name: String,
    /// Parameters and arguments, without quotation marks. Variables are replaced by their values.
    words: Vec<String>,
}

impl Command {
    /// Whether it is one of `names`. PowerShell ignores the case of names.
    pub(super) fn is(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.name.eq_ignore_ascii_case(name))
    }

    /// Whether `word` is one of its parameters or arguments.
    pub(super) fn has(&self, word: &str) -> bool {
        self.words.iter().any(|own| own.eq_ignore_ascii_case(word))
    }

    /// Whether a parameter or argument ends with `end`, for example the end of a path.
    pub(super) fn has_ending(&self, end: &str) -> bool {
        let end = end.to_ascii_lowercase();
        self.words.iter().any(|own| own.to_ascii_lowercase().ends_with(&end))
    }
}

/// Returns the commands that `script` runs: those outside functions, and those of functions that are called. Conditions
/// count as true. `None` if the script has a syntax error, so that none of it runs.
pub(super) fn commands(script: &str) -> Option<Vec<Command>> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_powershell::LANGUAGE.into()).ok()?;
    let tree = parser.parse(script, None)?;
    if tree.root_node().has_error() {
        return None;
    }
    let mut found = Found { script, constants: BTreeMap::new(), functions: BTreeMap::new() };
    let mut commands = Vec::new();
    found.look_for_constants(tree.root_node());
    found.look_for_commands(tree.root_node(), &mut commands);
    let mut called = BTreeSet::new();
    let mut next = 0;
    while let Some(name) = commands.get(next).map(|command| command.name.to_ascii_lowercase()) {
        next += 1;
        if let Some(body) = found.functions.get(&name).copied()
            && called.insert(name)
        {
            found.look_for_commands(body, &mut commands);
        }
    }
    Some(commands)
}

struct Found<'a> {
    script: &'a str,
    /// Values of variables, by name in lower case.
    constants: BTreeMap<String, &'a str>,
    /// Bodies of functions, by name in lower case.
    functions: BTreeMap<String, Node<'a>>,
}

impl<'a> Found<'a> {
    fn text(&self, node: Node<'_>) -> &'a str {
        self.script.get(node.byte_range()).unwrap_or_default()
    }

    fn look_for_constants(&mut self, root: Node<'a>) {
        // A list instead of recursion, since scripts can be nested to any depth.
        let mut open = vec![root];
        while let Some(node) = open.pop() {
            if node.kind() == "assignment_expression"
                && let Some((name, value)) = self.text(node).split_once('=')
            {
                self.constants.insert(name.trim().to_ascii_lowercase(), unquoted(value.trim()));
            }
            push_children(node, &mut open);
        }
    }

    /// Adds the commands below `root` in order; stores functions without descending into them.
    fn look_for_commands(&mut self, root: Node<'a>, commands: &mut Vec<Command>) {
        let mut open = vec![root];
        while let Some(node) = open.pop() {
            match node.kind() {
                "function_statement" => self.note_function(node),
                "command" => {
                    commands.extend(self.command(node));
                    push_children(node, &mut open);
                }
                _ => push_children(node, &mut open),
            }
        }
    }

    fn note_function(&mut self, function: Node<'a>) {
        let mut cursor = function.walk();
        let (mut name, mut body) = (None, None);
        for child in function.named_children(&mut cursor) {
            match child.kind() {
                "function_name" => name = Some(self.text(child).to_ascii_lowercase()),
                "script_block" => body = Some(child),
                _ => {}
            }
        }
        self.functions.extend(name.zip(body));
    }

    fn command(&self, node: Node<'_>) -> Option<Command> {
        let name = self.word(node.child_by_field_name("command_name")?);
        let mut cursor = node.walk();
        let elements = node.children_by_field_name("command_elements", &mut cursor);
        let mut words = Vec::new();
        for element in elements {
            let mut cursor = element.walk();
            let parts = element.named_children(&mut cursor);
            words.extend(
                parts.filter(|part| part.kind() != "command_argument_sep").map(|p| self.word(p)),
            );
        }
        Some(Command { name, words })
    }

    fn word(&self, node: Node<'_>) -> String {
        let text = unquoted(self.text(node).trim());
        self.constants.get(&text.to_ascii_lowercase()).copied().unwrap_or(text).to_owned()
    }
}

fn push_children<'a>(node: Node<'a>, open: &mut Vec<Node<'a>>) {
    let mut cursor = node.walk();
    let children: Vec<_> = node.named_children(&mut cursor).collect();
    open.extend(children.into_iter().rev());
}

fn unquoted(text: &str) -> &str {
    let inner = |mark| text.strip_prefix(mark)?.strip_suffix(mark);
    inner('\'').or_else(|| inner('"')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(script: &str, expected: &[&str]) {
        let found = commands(script).unwrap();
        let line = |command: &Command| format!("{} {}", command.name, command.words.join("|"));
        assert_eq!(found.iter().map(line).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn words_have_no_quotation_marks_and_variables_are_filled_in() {
        check(
            "$File = \"$env:ProgramData\\a b\"\n'x' | Set-Content -Path $file -Value 'c d'",
            &[r"Set-Content -Path|$env:ProgramData\a b|-Value|c d"],
        );
    }

    #[test]
    fn texts_and_comments_are_no_commands() {
        check("# Start-Service a\n$x = 'Start-Service b'\n<# Start-Service c #>", &[]);
    }

    #[test]
    fn a_function_counts_when_it_is_called() {
        let script = "function f { a }\nfunction G { b; f }\nfunction h { c }\n";
        check(script, &[]);
        check(&format!("{script}g 1"), &["g 1", "b ", "f ", "a "]);
    }

    #[test]
    fn commands_in_blocks_and_in_arguments_count() {
        check(
            "if (-not (Get-A x)) { b } else { c }\nd -e (Get-F)",
            &["Get-A x", "b ", "c ", "d -e|(Get-F)", "Get-F "],
        );
    }

    #[test]
    fn nothing_of_what_is_no_powershell_runs() {
        assert!(commands("Start-Service sshd\nif (").is_none());
    }
}
