//! Builds command lines argument by argument.

use std::fmt;

use super::GenerateError;

/// A command line that programs split into the same arguments.
#[derive(Clone, Debug)]
pub(super) struct Command {
    words: Vec<String>,
}

impl Command {
    /// Creates the command line of a program.
    pub(super) fn new(program: &str) -> Self {
        Self { words: vec![program.to_owned()] }
    }

    /// Adds an argument that is known to be valid.
    pub(super) fn arg(mut self, argument: impl Into<String>) -> Self {
        self.words.push(argument.into());
        self
    }

    /// Adds several arguments that are known to be valid.
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

    /// Adds several arguments that are known to be valid.
    pub(super) fn extend(mut self, arguments: impl IntoIterator<Item = String>) -> Self {
        self.words.extend(arguments);
        self
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.words.iter().map(|word| quoted(word)).collect();
        f.write_str(&words.join(" "))
    }
}

/// Quotes a word that holds blanks or quotes, so that Windows programs read it as one argument.
///
/// Source: Microsoft, "Parsing C command-line arguments".
fn quoted(word: &str) -> String {
    if !word.contains(|c: char| c.is_whitespace() || c == '"') {
        return word.to_owned();
    }
    let mut quoted = String::from('"');
    // Backslashes are doubled only before a quote.
    let mut backslashes = 0;
    for c in word.chars() {
        if c == '"' {
            quoted.extend(std::iter::repeat_n('\\', backslashes + 1));
        }
        backslashes = if c == '\\' { backslashes + 1 } else { 0 };
        quoted.push(c);
    }
    quoted.extend(std::iter::repeat_n('\\', backslashes));
    quoted.push('"');
    quoted
}

/// Accepts the name of a file, which may hold blanks.
pub(super) fn file_name<'a>(what: &'static str, value: &'a str) -> Result<&'a str, GenerateError> {
    let impossible = |c: char| c.is_control() || "\"<>|?*".contains(c);
    if value.contains(impossible) { Err(GenerateError::Unfit { what }) } else { Ok(value) }
}

/// Accepts a value that needs no quotes as part of an argument.
pub(super) fn fit<'a>(what: &'static str, value: &'a str) -> Result<&'a str, GenerateError> {
    let breaks = |c: char| c.is_whitespace() || c.is_control() || c == '"';
    if value.is_empty() || value.contains(breaks) {
        Err(GenerateError::Unfit { what })
    } else {
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Splits a command line by the rules of Windows programs.
    fn split(line: &str) -> Vec<String> {
        let mut words = Vec::new();
        let mut rest = line.chars().peekable();
        while rest.peek().is_some() {
            while rest.next_if(|c| c.is_whitespace()).is_some() {}
            let (mut word, mut in_quotes) = (String::new(), false);
            while let Some(c) = rest.next_if(|c| in_quotes || !c.is_whitespace()) {
                let mut backslashes = usize::from(c == '\\');
                while c == '\\' && rest.next_if_eq(&'\\').is_some() {
                    backslashes += 1;
                }
                if c == '"' {
                    in_quotes = !in_quotes;
                } else if c != '\\' {
                    word.push(c);
                } else if rest.peek() == Some(&'"') {
                    word.extend(std::iter::repeat_n('\\', backslashes / 2));
                    if backslashes % 2 == 1 {
                        word.extend(rest.next());
                    }
                } else {
                    word.extend(std::iter::repeat_n('\\', backslashes));
                }
            }
            words.push(word);
        }
        words
    }

    #[test]
    fn only_what_needs_quotes_gets_them() {
        let command = Command::new(r"C:\k\x.exe").arg(r"--dir=c:\y\").arg(r"--file=C:\a b\");
        assert_eq!(command.to_string(), r#"C:\k\x.exe --dir=c:\y\ "--file=C:\a b\\""#);
    }

    proptest! {
        /// Programs read the words that were joined.
        #[test]
        fn split_gives_back_what_was_joined(words in proptest::collection::vec(r#"[a\\" ]{1,9}"#, 0..5)) {
            let mut command = Command::new("x.exe");
            for word in &words {
                command = command.arg(word.clone());
            }
            let all: Vec<String> = std::iter::once("x.exe".to_owned()).chain(words).collect();
            prop_assert_eq!(split(&command.to_string()), all);
        }
    }
}
