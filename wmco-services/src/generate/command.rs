//! Command lines, built argument by argument.

use std::fmt;

use super::GenerateError;

/// A command line none of whose arguments needs quotes, so that it is split where it was joined.
#[derive(Clone, Debug)]
pub(super) struct Command {
    words: Vec<String>,
}

impl Command {
    /// Starts with a program.
    pub(super) fn new(program: &str) -> Self {
        Self { words: vec![program.to_owned()] }
    }

    /// Adds an argument that is known to be one.
    pub(super) fn arg(mut self, argument: impl Into<String>) -> Self {
        self.words.push(argument.into());
        self
    }

    /// Adds several arguments that are known to be such.
    pub(super) fn args<'a>(mut self, arguments: impl IntoIterator<Item = &'a str>) -> Self {
        self.words.extend(arguments.into_iter().map(str::to_owned));
        self
    }

    /// Adds an argument if there is one.
    pub(super) fn maybe(self, argument: Option<String>) -> Self {
        match argument {
            Some(argument) => self.arg(argument),
            None => self,
        }
    }

    /// Adds several arguments that are known to be such.
    pub(super) fn extend(mut self, arguments: impl IntoIterator<Item = String>) -> Self {
        self.words.extend(arguments);
        self
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words.join(" "))
    }
}

/// Lets a value through that is part of one argument as it stands.
pub(super) fn fit<'a>(what: &'static str, value: &'a str) -> Result<&'a str, GenerateError> {
    let breaks = |c: char| c.is_whitespace() || c.is_control() || c == '"';
    if value.is_empty() || value.contains(breaks) {
        Err(GenerateError::Unfit { what })
    } else {
        Ok(value)
    }
}
