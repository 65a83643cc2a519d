//! Finds programs that a stopped service may have left running.
//!
//! A service whose program starts another program (the log runner starts the kubelet) can end without it. The left-over
//! process holds ports and files, and no process of the Service Control Manager leads to it; so its program's path
//! identifies it.
//!
//! Source: `docs/contract/wicd.md`, WICD74.

use std::collections::BTreeSet;

use wmco_core::winpath::WindowsPath;

use crate::manifest::Manifest;
use crate::owner::Owner;
use crate::windows::{Service, ServiceName};

/// The command lines of all services, on the host and in manifests.
pub(super) struct Commands<'a> {
    owner: &'a Owner,
    lines: Vec<(&'a ServiceName, &'a str)>,
}

impl<'a> Commands<'a> {
    pub(super) fn new(
        owner: &'a Owner,
        services: &'a [Service],
        manifests: impl IntoIterator<Item = &'a Manifest>,
    ) -> Self {
        let seen = services.iter().map(|seen| (&seen.name, seen.config.command.as_str()));
        let wanted = manifests
            .into_iter()
            .flat_map(Manifest::services)
            .map(|wanted| (&wanted.name, wanted.command.as_str()));
        Self { owner, lines: seen.chain(wanted).collect() }
    }

    /// Returns programs that only this service runs, so that their processes are left over while it is stopped. Only
    /// programs below the owner's root count, and none that the command line of another service, running or not,
    /// mentions.
    pub(super) fn own(&self, service: &ServiceName) -> BTreeSet<WindowsPath> {
        let of = |mine: bool| self.lines.iter().filter(move |(name, _)| (*name == service) == mine);
        let others: BTreeSet<WindowsPath> = of(false)
            .flat_map(|(_, command)| mentioned(command))
            .chain(self.owner.spared.iter().cloned())
            .collect();
        of(true)
            .flat_map(|(_, command)| run(command, self.owner.log_runner.as_ref()))
            .filter(|program| program.is_within(&self.owner.root) && !others.contains(program))
            .collect()
    }
}

/// Returns the programs that a command line runs: the first word, and the program that the log runner wraps.
fn run(command: &str, log_runner: Option<&WindowsPath>) -> Vec<WindowsPath> {
    let mut words = command.split_whitespace().map(|word| word.trim_matches('"'));
    let first = words.next().and_then(program);
    let wraps = first.is_some() && first.as_ref() == log_runner;
    let wrapped = words.find(|word| wraps && !word.starts_with('-')).and_then(program);
    first.into_iter().chain(wrapped).collect()
}

/// Returns all programs that a command line mentions.
fn mentioned(command: &str) -> Vec<WindowsPath> {
    let words = command.split(|c: char| c.is_whitespace() || "=\"',;".contains(c));
    words.filter_map(|word| program(&word.replace('/', "\\"))).collect()
}

fn program(word: &str) -> Option<WindowsPath> {
    let path: WindowsPath = word.parse().ok()?;
    path.file_name().to_ascii_lowercase().ends_with(".exe").then_some(path)
}

#[cfg(test)]
mod tests {
    use wmco_core::names::host;

    use super::*;

    /// Returns the programs of service `x` that runs `command`, beside a service `y` that runs `other`.
    fn own(command: &str, other: &str) -> Vec<String> {
        let (x, y) = ("x".parse().unwrap(), "y".parse().unwrap());
        let commands = Commands { owner: Owner::ours(), lines: vec![(&x, command), (&y, other)] };
        commands.own(&"X".parse().unwrap()).into_iter().map(|path| path.to_string()).collect()
    }

    const RUNNER: &str = r"C:\k\kube-log-runner.exe -log-file=C:\x.log";
    const NONE: [&str; 0] = [];

    #[test]
    fn a_program_below_the_root_belongs_to_its_service() {
        assert_eq!(own(r"C:\k\a.exe --with C:\k\b.exe", "y"), [r"C:\k\a.exe"]);
        assert_eq!(own(r#""C:\k\a.exe" -v"#, ""), [r"C:\k\a.exe"]);
    }

    #[test]
    fn a_wrapped_program_belongs_to_its_service_and_a_shared_wrapper_to_none() {
        let command = format!(r"{RUNNER} C:\k\a.exe --with C:\k\b.exe");
        assert_eq!(own(&command, "y"), [r"C:\k\a.exe", r"C:\k\kube-log-runner.exe"]);
        assert_eq!(own(&command, &format!(r"{RUNNER} C:\k\b.exe")), [r"C:\k\a.exe"]);
    }

    #[test]
    fn what_another_service_names_in_any_way_is_not_its_own() {
        for other in [
            r"C:\k\A.EXE",
            r#""C:\k\a.exe" -v"#,
            r"cmd.exe /c C:/k/a.exe",
            r"y.exe --child=C:\k\a.exe",
            r"y.exe --children=z,C:\k\a.exe",
        ] {
            assert_eq!(own(r"C:\k\a.exe", other), NONE, "{other}");
        }
    }

    #[test]
    fn programs_of_others_and_the_agent_belong_to_no_service() {
        for command in [
            r"C:\Windows\System32\svchost.exe -k netsvcs",
            r"C:\kube\a.exe",
            r"C:\k\..\a.exe",
            "a.exe",
            r"C:\k\a",
            "\"\"",
            "",
            r"C:\other\runner.exe -x C:\k\a.exe",
            host::AGENT,
        ] {
            assert_eq!(own(command, ""), NONE, "{command}");
        }
        assert_eq!(own(&format!("{RUNNER} {}", host::AGENT), RUNNER), NONE);
    }
}
