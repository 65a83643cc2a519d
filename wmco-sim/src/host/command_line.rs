//! Parses the command lines of services.

use std::collections::BTreeMap;

use wmco_core::winpath::WindowsPath;
use wmco_services::fake::FakeWindows;

/// Flags of a program, by name; a flag without a value has an empty one, and the last one wins.
pub(super) type Flags = BTreeMap<String, String>;

/// Why a command line is invalid.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum CommandLineError {
    /// A program does not exist.
    #[error("{path} does not exist, place it first")]
    MissingProgram { path: WindowsPath },
    /// The command line does not start the expected program.
    #[error("the command line does not start {program}, correct the service")]
    OtherProgram { program: &'static str },
}

/// Parses `--name=value` and `--name value` after the path of `program`, which another program may start. All these
/// programs must exist on the host.
pub(super) fn flags(
    host: &FakeWindows,
    command: &str,
    program: &'static str,
) -> Result<Flags, CommandLineError> {
    let mut words = command.split_whitespace().map(|word| word.trim_matches('"')).peekable();
    loop {
        let Some(word) = words.next() else {
            return Err(CommandLineError::OtherProgram { program });
        };
        let Ok(path) = word.parse::<WindowsPath>() else { continue };
        if host.file(&path).is_none() {
            return Err(CommandLineError::MissingProgram { path });
        }
        if path.file_name().eq_ignore_ascii_case(program) {
            break;
        }
    }
    let mut flags = Flags::new();
    while let Some(word) = words.next() {
        let Some(flag) = word.strip_prefix("--") else { continue };
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, value),
            None => (flag, words.next_if(|word| !word.starts_with('-')).unwrap_or_default()),
        };
        flags.insert(name.to_owned(), value.to_owned());
    }
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_come_after_the_program_behind_its_runner() {
        let host = FakeWindows::new("winhost");
        host.put_file(&r"C:\k\runner.exe".parse().unwrap(), "MZ");
        let command =
            r#"C:\k\runner.exe -log-file=x --a=0 "C:\k\kubelet.exe" --a=1 --b 2 --c --d="#;
        let missing = flags(&host, command, "kubelet.exe").unwrap_err();
        assert_eq!(missing.to_string(), r"C:\k\kubelet.exe does not exist, place it first");
        host.put_file(&r"C:\k\kubelet.exe".parse().unwrap(), "MZ");
        let flags = flags(&host, command, "kubelet.exe").unwrap();
        let flags: Vec<_> = flags.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(flags, [("a", "1"), ("b", "2"), ("c", ""), ("d", "")]);
    }

    #[test]
    fn another_program_is_told() {
        let host = FakeWindows::new("winhost");
        host.put_file(&r"C:\k\runner.exe".parse().unwrap(), "MZ");
        let other = flags(&host, r"C:\k\runner.exe --a", "kubelet.exe").unwrap_err();
        assert_eq!(other, CommandLineError::OtherProgram { program: "kubelet.exe" });
    }
}
