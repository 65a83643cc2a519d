//! Parses remote commands and renders the shell's errors.

use wmco_core::winpath::WindowsPath;

/// The shell that OpenSSH starts for remote commands.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Shell {
    /// `cmd.exe`, the default of Windows.
    #[default]
    Cmd,
    /// Windows PowerShell.
    PowerShell,
}

/// A parsed remote command. Programs need a full path or one relative to the start folder.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Command {
    /// A program and its arguments.
    Program { path: WindowsPath, arguments: Vec<String> },
    /// The shell's own command that prints a text.
    Echo(String),
    /// Any other command; holds its first word.
    Unknown(String),
}

/// The output and exit status of a remote command.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Ended {
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) code: u32,
}

impl Command {
    /// Parses a command that starts in the folder `home`.
    pub(super) fn parse(text: &str, home: &WindowsPath) -> Self {
        if let Some(text) = text.strip_prefix("echo ") {
            return Self::Echo(text.to_owned());
        }
        let mut words = text.split_whitespace();
        let first = words.next().unwrap_or_default();
        let path = match first.strip_prefix(r".\") {
            Some(below) => home.join(below),
            None => first.parse(),
        };
        match path {
            Ok(path) => Self::Program { path, arguments: words.map(str::to_owned).collect() },
            Err(_) => Self::Unknown(first.to_owned()),
        }
    }
}

impl Shell {
    /// Renders the error for an unknown command.
    pub(super) fn not_found(self, name: &str) -> Ended {
        let stderr = match self {
            Self::Cmd => format!(
                "'{name}' is not recognized as an internal or external command,\r\n\
                 operable program or batch file.\r\n"
            ),
            Self::PowerShell => format!(
                "{name} : The term '{name}' is not recognized as the name of a cmdlet, function, \
                 script file, or operable program.\r\n    \
                 + CategoryInfo          : ObjectNotFound: ({name}:String) [], \
                 CommandNotFoundException\r\n    \
                 + FullyQualifiedErrorId : CommandNotFoundException\r\n"
            ),
        };
        Ended { stderr, code: 1, ..Ended::default() }
    }

    /// Renders the error for a program whose folder does not exist.
    pub(super) fn no_such_folder(self, program: &WindowsPath) -> Ended {
        match self {
            Self::Cmd => Ended {
                stderr: "The system cannot find the path specified.\r\n".to_owned(),
                code: 1,
                ..Ended::default()
            },
            Self::PowerShell => self.not_found(program.as_str()),
        }
    }

    /// Renders the error for a file that is no program.
    pub(super) fn no_program(self, program: &WindowsPath) -> Ended {
        match self {
            Self::Cmd => Ended {
                stderr: format!("{program} is not a valid Win32 application.\r\n"),
                code: 193,
                ..Ended::default()
            },
            Self::PowerShell => Ended {
                stderr: format!(
                    "Program '{}' failed to run: {program} is not a valid Win32 application.\r\n    \
                     + FullyQualifiedErrorId : NativeCommandFailed\r\n",
                    program.file_name()
                ),
                code: 1,
                ..Ended::default()
            },
        }
    }
}
